"""Axisymmetric harmonics of S^{d−1}: Gegenbauer functions φ_l(θ) of cos θ, orthonormal under the uniform distribution.

    cosθ φ_l = a_{l+1} φ_{l+1} + a_l φ_{l−1},   a_l² = l(l + d − 3)/((2l + d − 2)(2l + d − 4)),   φ_0 = 1

(DLMF 18.9.1 made orthonormal; d = 2: φ_l = √2 cos lθ, d = 3: √(2l + 1) P_l.) Δφ_l = −l(l + d − 2) φ_l, and φ_l(0)² is
the number of harmonics of degree l.
"""

from __future__ import annotations

import numpy as np

from ..mesh.mesh import Floats


def gegenbauer(dimension: int, theta: Floats, degree: int) -> Floats:
    """Return the Gegenbauer functions φ_0 … φ_degree at polar angles θ, (degree + 1, …), |φ_l| ≤ φ_l(0).

    The functions are polynomials of cos θ, orthonormal under the uniform distribution on S^{d−1}, d = ``dimension``.
    """
    z = np.cos(theta)
    values = np.ones((degree + 1, *z.shape))
    a = _recurrence(dimension, degree)
    if degree > 0:
        values[1] = z / a[1]
    for l in range(2, degree + 1):
        values[l] = (z * values[l - 1] - a[l - 1] * values[l - 2]) / a[l]
    return values


def _recurrence(dimension: int, degree: int) -> Floats:
    """Return the coefficients a_0 … a_degree of cos θ φ_l = a_{l+1} φ_{l+1} + a_l φ_{l−1}, φ the Gegenbauer functions.

    For d = 2, a_1² = 1/d is a limit of the general formula.
    """
    l = np.arange(2, degree + 1)
    tail = np.sqrt(l * (l + dimension - 3.0) / ((2 * l + dimension - 2.0) * (2 * l + dimension - 4.0)))
    return np.concatenate([[0.0, dimension**-0.5], tail])[: degree + 1]
