"""Harmonic coefficients of the fields of initial densities, in the layout of solvers/transforms/harmonics.py.

Circle: (degree + 1) complex, l ≥ 0. Sphere: (degree + 1, degree + 1) complex, [l, m], m ≥ 0.
"""

from __future__ import annotations

import numpy as np

from solvers.transforms.harmonics import Complexes


def perturbed_coefficients(dimension: int, degrees: int, seed: int) -> Complexes:
    """Return harmonic coefficients of a Gaussian random field of unit variance, determined by the seed.

    The field has equal power in the degrees 1 to ``degrees``. The dimension is 2 (circle) or 3 (sphere).
    """
    random = np.random.default_rng(seed)
    if dimension == 2:
        draws = random.standard_normal((degrees, 2)) * np.sqrt(np.pi / (2 * degrees))
        return np.concatenate([[0.0], draws[:, 0] - 1j * draws[:, 1]])
    coefficients = np.zeros((degrees + 1, degrees + 1), dtype=complex)
    for degree in range(1, degrees + 1):
        draws = random.standard_normal(2 * degree + 1) * np.sqrt(4 * np.pi / ((2 * degree + 1) * degrees))
        coefficients[degree, 0] = draws[0]
        coefficients[degree, 1 : degree + 1] = (draws[1::2] - 1j * draws[2::2]) / np.sqrt(2)
    return coefficients


def harmonic_coefficients(dimension: int, degree: int, order: int = 0) -> Complexes:
    """Return the coefficients of one real harmonic of unit mean square, of a given degree and order.

    On the sphere it varies as cos(order·φ) for order ≥ 0, else as sin(|order|·φ); on the circle it is √2 cos(degree·φ).
    The dimension is 2 (circle) or 3 (sphere).
    """
    if dimension == 2:
        coefficients = np.zeros(degree + 1, dtype=complex)
        coefficients[degree] = np.sqrt(np.pi)
        return coefficients
    coefficients = np.zeros((degree + 1, degree + 1), dtype=complex)
    size = np.sqrt(4 * np.pi) if order == 0 else np.sqrt(2 * np.pi)
    coefficients[degree, abs(order)] = size if order >= 0 else -1j * size
    return coefficients
