"""Stationary densities with noise that are symmetric about an axis: their equations and their linear stability.

On S^{d−1} with z = ⟨x, e⟩ and f the density relative to the uniform one, a stationary state of ∂ₜρ + div(ρX) = κΔρ has

    κ log f = (v/β) φ(Z) + const ,   Z(z) = ∫ k(z, z') f(z') dμ(z') ,   φ(Z) = log Z (softmax), Z (unnormalized)

since X = (v/β) ∇φ(Z). k is e^{β⟨x,y⟩} averaged about the axis, μ the uniform distribution of z. z is on the nodes of a
Gauss–Jacobi rule, so that sums are exact to rounding where f is resolved.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvers.mesh.mesh import Floats

NODES = 128
_MODES = 32  # of perturbations whose growth is looked for
_NEUTRAL = 1e-9  # of κ: an eigenvalue so small is zero to rounding
_RESOLVED = 1e-8  # of the largest coefficient of f: what the last eighth of them may be


@dataclass(frozen=True)
class Equilibrium:
    """A stationary density.

    noise     κ
    order     ∫⟨x, e⟩ρ, the length of the mean token with its sign
    log_density  log f at the nodes
    fastest   largest real part of the eigenvalues of perturbations about the same axis, per unit of time
    unstable  number of those eigenvalues with positive real part
    """

    noise: float
    order: float
    log_density: Floats
    fastest: float
    unstable: int


class Equilibria:
    """The equations of stationary densities on S^{d−1} of a β ≠ 0 and V = vI, discretized at Gauss–Jacobi nodes."""

    def __init__(
        self, dimension: int, beta: float, normalization: str = "softmax", value: float = 1.0, nodes: int = NODES
    ) -> None:
        from scipy.special import roots_jacobi

        self.nodes, weights = roots_jacobi(nodes, (dimension - 3) / 2, (dimension - 3) / 2)
        self.weights: Floats = weights / weights.sum()
        self._log = normalization == "softmax"
        self._gain = value / beta
        self._kernel = np.exp(_log_kernel(dimension, beta, self.nodes) - (abs(beta) if self._log else 0.0))
        self._dimension = dimension

    def critical_noise(self, degree: int) -> float:
        """κ at which modes of this degree neither grow nor decay about the uniform density."""
        mode = self.mode(degree)
        normalizer = self._kernel @ self.weights
        moved = self._slope(normalizer) * (self._kernel @ (self.weights * mode))
        return float(self._gain * (self.weights * mode) @ moved)

    def mode(self, degree: int) -> Floats:
        """The zonal harmonic of this degree, of unit mean square."""
        from scipy.special import eval_chebyt, eval_gegenbauer

        d = self._dimension
        values = eval_chebyt(degree, self.nodes) if d == 2 else eval_gegenbauer(degree, d / 2 - 1, self.nodes)
        return np.asarray(values / np.sqrt(self.weights @ values**2))

    def residual(self, u: Floats, noise: float) -> tuple[Floats, Floats, Floats]:
        """u − log f[u], its derivative by u and by log κ."""
        masses = self.weights * np.exp(u)
        normalizer = self._kernel @ masses
        h = self._gain / noise * (np.log(normalizer) if self._log else normalizer)
        shift = h.max()
        images = self.weights * np.exp(h - shift)
        total = images.sum()
        images /= total
        by_u = (self._gain / noise) * self._slope(normalizer)[:, None] * self._kernel * masses
        return u - h + shift + np.log(total), np.eye(len(u)) - by_u + images @ by_u, h - images @ h

    def rounding(self, noise: float) -> float:
        """Of h = (v/βκ) φ(Z), which is large beside u for small β."""
        largest = 1.0 if self._log else float(self._kernel.max())
        return 8 * float(np.finfo(float).eps) * abs(self._gain) / noise * largest

    def equilibrium(self, u: Floats, noise: float) -> Equilibrium:
        """The stationary density with its linear stability."""
        masses = self.weights * np.exp(u)
        growth = self._growth_rates(masses, noise)
        return Equilibrium(
            noise, float(masses @ self.nodes), u, float(growth.max()), int((growth > _NEUTRAL * noise).sum())
        )

    def is_resolved(self, u: Floats) -> bool:
        """Whether the nodes hold f = e^u: its last coefficients are small beside its largest."""
        size = np.abs(self._to_coefficients @ np.exp(u - u.max()))
        return bool(size[-len(u) // 8 :].max() <= _RESOLVED * size.max())

    def _slope(self, normalizer: Floats) -> Floats:
        """φ'(Z)."""
        return 1 / normalizer if self._log else np.ones_like(normalizer)

    def _growth_rates(self, masses: Floats, noise: float) -> Floats:
        """Real parts of the eigenvalues of h ↦ div(f ∇(κh − (v/β) φ'(Z) k(fh)))/f on h without mass, ∫fh = 0.

        Galerkin with the polynomials p_1, p_2, … that are orthonormal with respect to f, which follow it as it narrows:
        −∫f (1 − z²) p_j' (κp_k − …)' dμ.
        """
        from scipy.linalg import eigvals

        root = np.sqrt(masses)
        values, slopes = _orthonormal(self.nodes, root, min(_MODES, len(root) // 2))
        potential = self._gain * self._slope(self._kernel @ masses)[:, None] * (self._kernel @ (root[:, None] * values))
        flux = noise * slopes - root[:, None] * (self._derivative @ potential)
        return np.real(eigvals(-slopes.T @ ((1 - self.nodes**2)[:, None] * flux)))

    @cached_property
    def _to_coefficients(self) -> Floats:
        """From values at the nodes to coefficients of the zonal harmonics."""
        return np.stack([self.weights * self.mode(l) for l in range(len(self.nodes))])

    @cached_property
    def _derivative(self) -> Floats:
        """d/dz at the nodes of the polynomial through them, by barycentric weights (Berrut and Trefethen 2004)."""
        z = self.nodes
        gaps = z[:, None] - z
        np.fill_diagonal(gaps, 1.0)
        logs, signs = -np.log(np.abs(gaps)).sum(1), np.prod(np.sign(gaps), axis=1)
        ratios = signs[None, :] / signs[:, None] * np.exp(logs[None, :] - logs[:, None])
        matrix: Floats = ratios / gaps
        np.fill_diagonal(matrix, 0.0)
        np.fill_diagonal(matrix, -matrix.sum(1))
        return matrix


def _orthonormal(z: Floats, root: Floats, count: int) -> tuple[Floats, Floats]:
    """√f p_k and √f p_k' for k = 1 … count, p_k orthonormal with respect to f = ``root``², by their recurrence."""
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
    return values[:, 1:], slopes[:, 1:]


def _log_kernel(dimension: int, beta: float, z: Floats) -> Floats:
    """log of e^{β⟨x,y⟩} averaged over rotations about the axis: β z z' + log c₀(|β| √(1−z²) √(1−z'²)).

    c₀(b) = Γ(h) (2/b)^{h−1} I_{h−1}(b), h = (d − 1)/2, by its series 1 + b²/(4h) where b is small.
    """
    from scipy.special import gammaln, ive

    h, sines = (dimension - 1) / 2, np.sqrt(1 - z**2)
    b = abs(beta) * sines[:, None] * sines
    small = b < 1e-4
    safe = np.where(small, 1.0, b)
    average = gammaln(h) + (h - 1) * np.log(2 / safe) + np.log(ive(h - 1, safe)) + safe
    return np.asarray(beta * z[:, None] * z + np.where(small, b**2 / (4 * h), average))
