"""Attention on the line, d = 1, without layer norm: tokens are not confined to a sphere.

    ∂ₜρ + ∂ₓ(ρ (V A[ρ] − γx)) = κ ∂ₓₓρ ,     A(x) = ∫ y e^{βxy} ρ(y) dy / Z(x)

Gaussians stay Gaussian (softmax, V = 1, γ = 0): A = m + βsx, so s = s₀/(1 − 2βs₀t), which blows up at 1/(2βs₀). Until
βs = 1 a token attends to y = βsx, nearer to the center than itself; beyond that the flow depends on unresolved tails. A
compact support grows at most as e^{|V|t}, and asymptotically at that rate.
"""

from __future__ import annotations

import numpy as np

from meanfield.domains.line.section import MIN_CELLS
from meanfield.model.normalization import normalization_of
from solvers.mesh.interval import edges_of
from solvers.mesh.mesh import Floats, Mesh
from solvers.terms.advection import Advection
from solvers.terms.drift.drift_diffusion import IntervalDriftDiffusion
from solvers.timestepping.equation import Equation, limit_positivity
from solvers.transforms.pairwise import exponential_sums

MIN_MASS = 1e-12


class LineAttention:
    """Velocity X[ρ](x) = V ∫ y e^{βxy} ρ(y) dy / Z(x) − γx of tokens on a line, by sums over all pairs of cells.

    softmax: Z = ∫ e^{βxy} ρ dy, so that the first part is at most |V| times the farthest token; unnormalized: Z = 1.

    mesh            see ``solvers.mesh.interval.line``; a few thousand cells at most, all pairs are summed
    beta            inverse temperature; negative where QᵀK = −1
    normalization   "softmax" or "unnormalized"
    value           V
    gate            γ ≥ 0 of −γx
    least_mass      cells with less than this share of the mass are not attended to. Exponents βxy grow with x², so a
                    softmax would follow the numerical tail ahead of a moving density, however small. Good values: 1/n
                    for a density that represents n tokens, 1e-12 for many

    Where βx over a cell exceeds 1, the softmax would also follow the front of a peak a few cells wide, whose shape is a
    numerical artifact: the tokens of such a peak attract from their center of mass (see ``_effective_positions``).
    """

    def __init__(
        self,
        mesh: Mesh,
        beta: float,
        normalization: str = "softmax",
        value: float = 1.0,
        gate: float = 0.0,
        least_mass: float = MIN_MASS,
    ) -> None:
        self.mesh, self.beta = mesh, beta
        self.normalization = normalization_of(normalization, two_sided=False)
        self.value, self.gate, self.least_mass = value, gate, least_mass

    def velocity(self, time: float, density: Floats) -> Floats:
        """Return the velocity X (cells, 1) of tokens at the cell centers: attention, and the decay of the gate.

        ``time`` is not used.
        """
        x = self.mesh.centers
        return self.output_at(time, density, x) - self.gate * x

    def output_at(self, time: float, density: Floats, points: Floats) -> Floats:
        """Return the attention field V A[ρ] (n, 1) of a density (cells) at ``points`` (n, 1); ``time`` is not used."""
        masses = density * self.mesh.volumes
        masses = self.mesh.backend.xp.where(masses <= self.least_mass * masses.sum(), 0.0, masses)
        places = _effective_positions(self.mesh, masses, self.beta)
        return self.value * self.normalization(exponential_sums(self.beta * points, places[:, None], masses))


_RESOLVED = 2.5, MIN_CELLS  # rms width in cells, unresolved and resolved; transport widens a moving peak to 2
_RESOLVED_STEEP = 4.0, 8.0  # these widths where e^{βxy} is steep, so that the front of a peak would dominate
_CONTRAST = 2.0  # of a peak over the pass to a higher one: a smaller contrast is a ripple
_STEEP = 0.5, 1.0  # βx over a cell, x the root mean square of all tokens: from gentle to steep


def _effective_positions(mesh: Mesh, masses: Floats, beta: float) -> Floats:
    """Return the positions (cells) at which the tokens of each cell are attended to.

    The positions are the cell centers, or are shifted to the center of mass of the peak around a cell. A peak includes
    the slopes around it. The fewer cells a peak spans, the larger is the shift: tokens of the narrowest peaks act as
    one atom at the center of mass.
    """
    x, backend = mesh.centers[:, 0], mesh.backend
    index = backend.xp.ones_like(x).cumsum()  # cell numbers: differences are widths in cells
    level = masses / mesh.volumes
    level = np.maximum(level, 1e-304 * level.max())  # empty cells
    peak, order = backend.empty(mesh.cells, np.int32), backend.empty(mesh.cells, np.int32)
    backend.persistent_basins(level, _CONTRAST, mesh.cell_start, mesh.side_neighbors, order, peak)
    mass = backend.sums_at(peak, masses, mesh.cells)
    mass = backend.xp.where(mass == 0, 1.0, mass)
    center, middle = (backend.sums_at(peak, masses * place, mesh.cells) / mass for place in (x, index))
    width = np.sqrt(backend.sums_at(peak, masses * (index - middle[peak]) ** 2, mesh.cells) / mass)
    steepness = abs(beta) * np.sqrt(masses @ x**2 / masses.sum()) * mesh.volumes
    steep = _ramp(steepness, *_STEEP)
    resolved = steep * _ramp(width, *_RESOLVED_STEEP)[peak] + (1 - steep) * _ramp(width, *_RESOLVED)[peak]
    places: Floats = center[peak] + resolved * (x - center[peak])
    return places


def _ramp(values: Floats, low: float, high: float) -> Floats:
    """Return a ramp of ``values``: 0 below ``low``, 1 above ``high``, linear between."""
    return ((values - low) / (high - low)).clip(0.0, 1.0)


def line_equation(mesh: Mesh, attention: LineAttention, noise: float = 0.0) -> Equation:
    """Return ∂ₜρ = −∂ₓ(ρ X[ρ]) + κ ∂ₓₓρ for a density ρ (cells) with mass 1 on a line; X is the velocity by attention.

    ``noise`` is κ ≥ 0. No flux passes the ends.
    """
    diffusion = [IntervalDriftDiffusion(mesh, noise, np.zeros(mesh.cells), nonnegative=True)] if noise > 0 else []
    return Equation(mesh, [Advection(mesh, attention.velocity, nonnegative=True), *diffusion], limit=limit_positivity)


def initial_gaussian(mesh: Mesh, mean: float, variance: float) -> Floats:
    """Return the Gaussian density with a given mean and variance on the line, as exact cell averages (cells).

    The density includes its tails, and is scaled to mass 1 on the mesh.
    """
    from scipy.special import ndtr

    z = (edges_of(mesh) - mean) / np.sqrt(variance)
    right = z[:-1] > 0  # the smaller of both tails has all its digits
    masses = np.where(right, ndtr(-z[:-1]) - ndtr(-z[1:]), ndtr(z[1:]) - ndtr(z[:-1]))
    return np.asarray(masses / (masses.sum() * mesh.volumes))


def initial_interval(mesh: Mesh, left: float, right: float) -> Floats:
    """Return the uniform density on the interval from ``left`` to ``right``, as exact cell averages (cells).

    Raises ValueError unless left < right, both on the line.
    """
    edges = edges_of(mesh)
    if not edges[0] <= left < right <= edges[-1]:
        raise ValueError(f"interval [{left:g}, {right:g}]: expected within [{edges[0]:g}, {edges[-1]:g}], not empty")
    return np.asarray(np.diff(np.clip(edges, left, right)) / ((right - left) * mesh.volumes))
