"""Reduction of an escape to one dimension: the diffusion of the length a of the mean token of n tokens.

    T(n) = ∫ da 1/(D w) ∫ db w(b) ,   w(a) = a^{d−1} e^{−nΦ(a)} |det(I − K_a)|^{−1/2} ,   D(a) = (κ/n) ∫(1 − z²)ρ_a

is the mean time of first passage of a diffusion with the stationary density w and the diffusivity D. The density ρ_a
minimizes the free energy F among densities with the mean token a e, and Φ(a) = F[ρ_a]/κ. With a multiplier h = Φ'(a)

    log f = (v/βκ) ∫k f dμ + h z + const .

|det(I − K_a)| is that of fluctuations that keep the mean token. The reduction assumes that other modes are fast. For
n → ∞ its rate at the saddle is λ_a = −κ Φ'' ∫(1 − z²)ρ_a instead of the exact λ. T is therefore multiplied by λ_a/λ,
and agrees with Eyring and Kramers for n → ∞. Unlike this limit, T(n) holds for barriers nΔF/κ of order 1 too. The
factors D and w are derived here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.analysis.branches.equilibria import Equilibria
from meanfield.analysis.escapes.barrier import MAX_ORDER, NEGLIGIBLE, Barrier, free_energy, harmonics_of_order
from solvers.mesh.mesh import Floats

_STATES = 48  # densities ρ_a, between which quantities are interpolated
_POINTS = 4000  # of the quadrature in a
_NEWTON = 50
_NEAREST = 0.3  # distance 1 − a of the last density above a well, relative to the distance of the well
_CONVERGED = 1e-10  # change of log f
_DEPTH = 40.0  # nΦ above the well, beyond which w is negligible


@dataclass(frozen=True)
class Reduction:
    """Escape reduced to a diffusion of the length a of the mean token, from a metastable density to a threshold.

    ρ_a is the density of least free energy F with the mean token a e, for a unit vector e, and z = ⟨x, e⟩.

    Attributes
    ----------
    order : (states,) array
        Lengths a, increasing.
    potential : (states,) array
        Φ(a) = F[ρ_a]/κ, less its value at the metastable density.
    log_determinant : (states,) array
        log |det(I − K_a)| of the fluctuations about ρ_a that keep the mean token.
    spread : (states,) array
        ∫(1 − z²)ρ_a dx.
    dimension : int
        Dimension d.
    noise : float
        Noise κ of the equations.
    threshold : float
        Length a at which an escape ends.
    ratio : float
        Growth rate at the saddle by the reduction, for n → ∞, divided by the exact rate. Times are multiplied by it.
    """

    order: Floats
    potential: Floats
    log_determinant: Floats
    spread: Floats
    dimension: int
    noise: float
    threshold: float
    ratio: float

    def log_time(self, n: float) -> float:
        """Return the log of the mean time of escape of ``n`` tokens, in time units without ``attention.rescaled``."""
        from scipy.interpolate import CubicSpline
        from scipy.special import logsumexp

        edges = np.linspace(self.order[0], self.order[-1], _POINTS + 1)
        a, width = (edges[1:] + edges[:-1]) / 2, edges[1] - edges[0]
        potential, log_determinant, spread = (
            CubicSpline(self.order, values)(a) for values in (self.potential, self.log_determinant, self.spread)
        )
        log_weight = (self.dimension - 1) * np.log(a) - n * potential - log_determinant / 2
        log_diffusivity = np.log(spread * self.noise / n)
        if self.threshold < self.order[-1]:  # the well lies above the threshold
            log_weight, log_diffusivity = log_weight[::-1], log_diffusivity[::-1]
        log_inner = np.logaddexp.accumulate(log_weight)
        log_total = logsumexp(log_inner - log_weight - log_diffusivity)
        return float(np.log(self.ratio) + 2 * np.log(width) + log_total)


def reduction_of(equations: Equilibria, barrier: Barrier, threshold: float, fewest: float) -> Reduction:
    """Return the diffusion of the mean token from a well to ``threshold`` beyond the saddle.

    ``fewest`` is the least number n of tokens. States above a well with an axis are left out where nΦ is large.
    """
    noise, well, saddle = barrier.well.noise, barrier.well, barrier.saddle
    upward = well.order < saddle.order
    state, found = _Constrained(equations, noise), list[tuple[float, ...]]()
    at_well = free_energy(equations, well.log_density, noise) / noise
    lengths = np.linspace(0.0, threshold, _STATES)
    if not upward:
        distances = np.geomspace(1 - threshold, _NEAREST * (1 - well.order), 2 * _STATES)
        lengths = np.concatenate([lengths, 1 - distances[1:]])
    for a in lengths:
        state.solve(float(a))
        if not upward and a < threshold:
            continue
        potential = free_energy(equations, state.u, noise) / noise - at_well
        if not upward and a > well.order and (fewest * potential > _DEPTH or not equations.is_resolved(state.u)):
            break
        found.append((float(a), potential, state.log_determinant(), state.spread))
    order, potentials, determinants, spreads = map(np.array, zip(*found, strict=True))
    state = _Constrained(equations, noise, saddle.log_density)
    state.solve(saddle.order)
    ratio = -noise * state.curvature * state.spread / barrier.rate
    return Reduction(order, potentials, determinants, spreads, equations.dimension, noise, threshold, ratio)


class _Constrained:
    """Density with the least free energy among axisymmetric densities with a given mean token.

    u           logarithm of the density at the nodes
    curvature   Φ''(a) of the last solution
    """

    def __init__(self, equations: Equilibria, noise: float, u: Floats | None = None) -> None:
        self._equations, self._scale = equations, equations.gain / noise
        self.u = np.zeros_like(equations.nodes) if u is None else u
        self._order = float(self._masses @ equations.nodes)
        self._tangent, self._multiplier, self.curvature = np.zeros(len(self.u) + 1), 0.0, 0.0

    @property
    def _masses(self) -> Floats:
        """Return the masses (nodes,) of the density e^u at the nodes."""
        return np.asarray(self._equations.weights * np.exp(self.u))

    @property
    def spread(self) -> float:
        """Return ∫(1 − z²)ρ."""
        return float(self._masses @ (1 - self._equations.nodes**2))

    def solve(self, order: float) -> None:
        """Find the density with a mean token of the length ``order`` by Newton's iteration from the last solution."""
        z, weights, kernel = self._equations.nodes, self._equations.weights, self._equations.kernel(0)
        self.u = self.u + (order - self._order) * self._tangent[:-1]
        self._multiplier += (order - self._order) * self.curvature
        self._order = order
        for _ in range(_NEWTON):
            masses = self._masses
            log_density = self._scale * (kernel @ masses) + self._multiplier * z
            images = weights * np.exp(log_density - log_density.max())
            constant = log_density.max() + np.log(images.sum())
            images /= images.sum()
            by_u = self._scale * kernel * masses
            matrix = np.block(
                [
                    [np.eye(len(z)) - by_u + images @ by_u, (images @ z - z)[:, None]],
                    [(masses * z)[None, :], np.zeros((1, 1))],
                ]
            )
            residual = np.append(self.u - log_density + constant, masses @ z - order)
            solved = np.linalg.solve(matrix, np.stack([residual, np.eye(len(residual))[-1]], axis=1))
            self.u, self._multiplier = self.u - solved[:-1, 0], self._multiplier - float(solved[-1, 0])
            self._tangent, self.curvature = solved[:, 1], float(solved[-1, 1])
            if np.abs(solved[:-1, 0]).max() < _CONVERGED:
                return
        raise ArithmeticError(f"no density with a mean token of length {order:.6g} found")

    def log_determinant(self) -> float:
        """Return log |det(I − K)| of fluctuations that keep the mean token, times the variances of the mean token.

        The Gaussian density of the mean token of independent tokens is proportional to the inverse square root of these
        variances, ∫(z − a)²ρ along the axis and ∫(1 − z²)ρ/(d − 1) across.
        """
        equations, masses = self._equations, self._masses
        z, root, d = equations.nodes, np.sqrt(masses), equations.dimension
        sine = np.sqrt((1 - z) * (1 + z))
        fixed = {0: np.stack([root, root * z], axis=1), 1: (root * sine)[:, None]}
        along, across = float(masses @ z**2 - (masses @ z) ** 2), self.spread / (d - 1)
        total = np.log(along) + (d - 1) * np.log(across)
        sign = np.sign(equations.beta)
        for m in range(MAX_ORDER):
            matrix = np.eye(len(z)) - self._scale * sign**m * root[:, None] * equations.kernel(m) * root
            if m in fixed:
                basis = np.linalg.qr(fixed[m])[0]
                outer = np.eye(len(z)) - basis @ basis.T
                matrix = outer @ matrix @ outer + basis @ basis.T
            part = harmonics_of_order(d, m) * np.linalg.slogdet(matrix)[1]
            total += part
            if m > 1 and abs(part) < NEGLIGIBLE:
                break
        return float(total)
