"""Slow motion of clusters: rates at which k equal, equally spaced clusters leave that state, and lifetimes.

    d(δθ)/dt = J δθ ,   J the derivative of the velocity of the atoms in tangent coordinates

The eigenvalues of J are of the size of e^{−β(1 − cos δ)}, δ the angle between neighbors: metastable states have a
lifetime of the inverse of the largest eigenvalue. Geshkovski, Letrouit, Polyanskiy, Rigollet (2312.10794) show such
states, without rates.
"""

from __future__ import annotations

import numpy as np

from meanfield.model.normalization import normalization_of
from solvers.mesh.mesh import Floats

NOISE = 1e-9  # relative to the largest rate: smaller rates may be zero, as for a rotation of all clusters


def lifetimes(rates: Floats) -> Floats:
    """Return the lifetimes 1/λ of the unstable modes of a state with the growth ``rates`` λ, shortest first.

    The array is empty for a stable state.
    """
    unstable = rates.real[rates.real > NOISE * np.abs(rates).max(initial=0.0)]
    return np.asarray(np.sort(1 / unstable))


def equally_spaced_rates(count: int, beta: float, normalization: str = "softmax") -> tuple[Floats, Floats]:
    """Return the growth rates (k,) of displacements of k equal clusters on a great circle: along it, and across it.

    The clusters are 2π/k apart, and Q = K = V = I. Displacements across the circle exist for d ≥ 3.

        along    λ_p = Σ_j g'(δ_j)(cos pδ_j − 1)/Z ,   g' = (cos δ − β sin² δ) w
        across   λ_p = Σ_j w(δ_j)(cos pδ_j − cos δ_j)/Z

    for the Fourier modes p = 0 … k − 1, δ_j = 2πj/k, w = e^{β(cos δ − 1)}, Z = Σ_j w(δ_j); unnormalized Z = k e^{−β}.
    The Jacobian of the motion is circulant: θ̇_i = Σ_j sin(θ_j − θ_i) w/Z is zero by symmetry, so that changes of Z
    have no effect. A height z_i over the circle has the velocity ż_i = Σ_j w (z_j − z_i cos δ_ij)/Z. The rates across
    have the multiplicity d − 2. Raises ArgumentError for a normalization other than softmax and unnormalized.
    """
    steps = np.arange(count)
    delta = 2 * np.pi * steps / count
    weights = np.exp(-2 * beta * np.sin(delta / 2) ** 2)
    is_relative = normalization_of(normalization, two_sided=False).is_relative
    size = weights.sum() if is_relative else count * np.exp(-beta)
    modes = 2 * np.pi * (np.outer(steps, steps) % count) / count  # p δ_j
    slopes = (np.cos(delta) - beta * np.sin(delta) ** 2) * weights
    along = -2 * np.sin(modes / 2) ** 2 @ slopes / size
    across = (np.cos(modes) - np.cos(delta)) @ weights / size
    return np.asarray(along), np.asarray(across)
