"""Linear stability of stationary densities about an axis, to perturbations of any order about it.

∂ₜ(fh) = div(f ∇(κh − Φ)) with Φ = (v/β) φ'(Z) k(fh), for h = g(z) Y(ξ), ξ the direction about the axis, Y of order m.
On S^{d−1} with s² = 1 − z²

    ⟨∇(gY), ∇(GY)⟩ = s² g' G' + m(m + d − 3) g G/s²

and g = s^m p with a polynomial p, so that all is smooth at the poles. On the circle the orders are m = 0 and 1, even
and odd about the axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from meanfield.analysis.branches.equilibria import Equilibria

MODES = 32  # of perturbations whose growth is looked for
ORDERS = 5  # m = 0 … 4 for d ≥ 3
_UNIFORM = 1e-6  # departure of f from 1 below which nothing turns with the axis


def rates_of_orders(equilibria: Equilibria, masses: Floats, noise: float) -> tuple[Floats, ...]:
    """Rates of each order m, largest first, for f times the weights of the nodes; rotations of the axis left out."""
    found = [_rates(equilibria, masses, noise, m) for m in range(2 if equilibria.dimension == 2 else ORDERS)]
    if np.abs(masses / equilibria.weights - 1).max() > _UNIFORM:
        found[1] = np.delete(found[1], np.abs(found[1]).argmin())
    return tuple(np.sort(rates)[::-1] for rates in found)


def _rates(equilibria: Equilibria, masses: Floats, noise: float, m: int) -> Floats:
    """Galerkin with p_0, p_1, … that are orthonormal with respect to f s^{2m}, which follow f as it narrows.

    Real parts of the eigenvalues of −∫f ⟨∇(s^m p_j Y), ∇(κ s^m p_k Y − Φ_k)⟩ dμ; without p_0 for m = 0, which is mass.
    """
    from scipy.linalg import eigvals

    z, d = equilibria.nodes, equilibria.dimension
    sine = np.sqrt(1 - z**2)
    values, slopes = orthonormal(z, np.sqrt(masses) * sine**m, min(MODES, len(z) // 2))
    if m == 0:
        values, slopes = values[:, 1:], slopes[:, 1:]
    root = np.sqrt(masses)
    kernel = (np.sign(equilibria.beta) or 1.0) ** m * equilibria.kernel(m) / sine[:, None] ** m
    inner = equilibria.slope(equilibria.kernel(0) @ masses)[:, None]
    potential = equilibria.gain * inner * (kernel @ (root[:, None] * values))
    weight = root * sine**m  # Φ/s^m at the nodes becomes weighted as the polynomials are
    flat, steep = noise * values - weight[:, None] * potential, noise * slopes
    steep = steep - weight[:, None] * (equilibria.derivative @ potential)
    if m == 0:
        return np.asarray(np.real(eigvals(-slopes.T @ (sine[:, None] ** 2 * steep))))
    left = -m * z[:, None] * values + sine[:, None] ** 2 * slopes
    right = -m * z[:, None] * flat + sine[:, None] ** 2 * steep
    form = left.T @ (right / sine[:, None] ** 2) + m * (m + d - 3) * values.T @ (flat / sine[:, None] ** 2)
    return np.asarray(np.real(eigvals(-form)))


def orthonormal(z: Floats, root: Floats, count: int) -> tuple[Floats, Floats]:
    """√w p_k and √w p_k' for k = 0 … count, p_k orthonormal with respect to w = ``root``², by their recurrence."""
    values, slopes = np.zeros((2, len(z), count + 1))
    values[:, 0] = root / np.linalg.norm(root)
    for k in range(count):
        known, slopes_known = values[:, : k + 1], slopes[:, : k + 1]
        value, slope = z * values[:, k], z * slopes[:, k] + values[:, k]
        for _ in range(2):  # twice is enough (Kahan and Parlett)
            parts = known.T @ value
            value, slope = value - known @ parts, slope - slopes_known @ parts
        size = np.linalg.norm(value)
        values[:, k + 1], slopes[:, k + 1] = value / size, slope / size
    return values, slopes
