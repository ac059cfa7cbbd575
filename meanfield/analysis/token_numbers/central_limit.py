"""Central-limit variance of observables of n tokens, from the mean-field equation linearized about its density.

    n Var⟨φ, ρ_n(t)⟩ → ∫ψ₀²ρ₀ − (∫ψ₀ρ₀)² + 2κ ∫₀ᵗ∫ |∇ψ_s|² ρ_s dx ds ,    n → ∞

    −∂ₛψ = X[ρ]·∇ψ + A*ψ + κ Δψ ,    ψ_t = φ                backward equation of the influence ψ_s of a token
    A*ψ(y) = v ⟨y, ∫ k(x,y) F(x) dx⟩ − ∫ k(x,y) F·X dx ,    F = ρ ∇ψ/N

for attention X = v ∫ k Pₓy ρ dy/N with k = e^{β⟨x,y⟩}: N = Z = ∫ k ρ dy for softmax. For unnormalized attention N = 1,
and the last integral of A* is absent. The tokens are drawn independently from ρ₀, and their noise is independent. See
docs/theory.md, "Fluctuations of n tokens", for the derivation. A density about an axis has
meanfield/analysis/token_numbers/zonal_limit.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from meanfield.analysis.token_numbers.zonal_limit import ZonalFlow
from meanfield.model.normalization import normalization_of
from solvers.mesh.mesh import Floats, Mesh
from solvers.transforms.exponential import exponential_gradient_multipliers, exponential_multipliers
from solvers.transforms.gauss_grid import GaussGrid
from solvers.transforms.harmonics import CircleHarmonics, Harmonics, SphereHarmonics
from solvers.transforms.zonal import CircleZonal, SphereZonal, ZonalOperator

Points = Mesh | GaussGrid  # points of exact quadrature: a circle, or a Gauss grid on the sphere
FILTER_ORDER, FILTER_DECAY = 8, 36.0  # of e^{−36 (l/L)⁸}: rounding at the highest degree L, 1 to 0.2 % up to L/3
STEP = 2.0  # times the largest eigenvalue: classical Runge–Kutta is stable up to 2.78 on both axes


@dataclass(frozen=True, eq=False)
class Background:
    """Density ρ (points,), its velocity X (points, d), and the quotient ρ/N (points,) with the normalizer N."""

    density: Floats
    velocity: Floats
    weight: Floats


class LinearizedFlow:
    """Backward equation −∂ₛψ = X·∇ψ + A*ψ + κΔψ of the influence ψ of a token, by harmonics.

    points          circle, or Gauss grid on the sphere
    beta            β of k = e^{β⟨x,y⟩}
    normalization   "softmax", N = Z, or "unnormalized", N = 1
    value           v of V = vI
    noise           κ ≥ 0
    rescaled        whether unnormalized attention is divided by the largest kernel e^|β|
    """

    max_difference: ClassVar = 0.2  # of ρ in neighboring cells over max ρ: clusters have a deviation of 3 cells

    def __init__(
        self,
        points: Points,
        beta: float,
        normalization: str = "softmax",
        value: float = 1.0,
        noise: float = 0.0,
        rescaled: bool = False,
    ) -> None:
        self.points, self.noise, self._value = points, noise, value
        self._is_softmax = normalization_of(normalization, two_sided=False).is_relative
        d, degree = points.centers.shape[1], degree_of(points)
        # kernels are times e^{−|β|}, and so is N = 1, unless attention is rescaled
        self._unit = 1.0 if rescaled else float(np.exp(-abs(beta)))
        l = np.arange(degree)
        smoothing = np.exp(-FILTER_DECAY * (l / degree) ** FILTER_ORDER)
        kernel = exponential_multipliers(d, beta, degree)
        self._derivatives = _zonal(points, -l * (l + d - 2.0) * smoothing, smoothing)
        self._attention = _zonal(points, kernel, exponential_gradient_multipliers(d, beta, degree))
        self._harmonics: Harmonics = _harmonics(points, degree - 1)
        self._kernel = kernel if d == 2 else kernel[:, None]  # a factor of the coefficients [l] or [l, m]

    def background(self, density: Floats) -> Background:
        """Return a density ρ (points,) with its velocity X and ρ/N."""
        normalizer, vectors = self._attention.apply(density * self.points.volumes)
        divisor = normalizer if self._is_softmax else np.full_like(normalizer, self._unit)
        return Background(density, self._value * vectors / divisor[:, None], density / divisor)

    def rate(self, influence: Floats, about: Background) -> tuple[Floats, Floats]:
        """Return −∂ₛψ (rows, points) of influences ψ (rows, points), and rates 2κ∫|∇ψ|²ρ (rows,) of the variance."""
        found = [self._derivatives.apply(row * self.points.volumes) for row in influence]
        laplacian, gradient = (np.stack(parts) for parts in zip(*found, strict=True))
        force = about.weight[:, None] * gradient
        along = self._convolve(np.moveaxis(force, -1, 0).reshape(-1, self.points.cells))
        response = self._value * np.einsum("drp,pd->rp", along.reshape(-1, *influence.shape), self.points.centers)
        if self._is_softmax:
            response -= self._convolve(np.einsum("rpd,pd->rp", force, about.velocity))
        rate = np.einsum("rpd,pd->rp", gradient, about.velocity) + response + self.noise * laplacian
        squares = np.einsum("rpd,rpd->rp", gradient, gradient)
        return rate, 2 * self.noise * squares @ (about.density * self.points.volumes)

    def _convolve(self, fields: Floats) -> Floats:
        """Return the convolutions ∫ k(x,y) f(x) dx (rows, points) of functions f (rows, points), times e^{−|β|}."""
        coefficients = self._harmonics.analysis(fields * self.points.volumes) * self._kernel
        return np.stack([self._harmonics.synthesis(row) for row in coefficients])

    def step_back(self, influence: Floats, densities: Floats, step: float) -> tuple[Floats, Floats]:
        """Return influences (rows, points) a step earlier, and the added variances (rows,), by classical Runge–Kutta.

        ``densities`` (3, points) are those at the beginning, the middle and the end of the step.
        """
        before, middle, after = (self.background(density) for density in densities)
        rate, growth = self.rate(influence, after)
        changes, added = rate / 6, growth / 6
        for about, share, weight in ((middle, 0.5, 1 / 3), (middle, 0.5, 1 / 3), (before, 1.0, 1 / 6)):
            rate, growth = self.rate(influence + share * step * rate, about)
            changes, added = changes + weight * rate, added + weight * growth
        return influence + step * changes, step * added

    def longest_step(self, speed: float) -> float:
        """Return the longest stable time step for velocities up to ``speed``."""
        degree = degree_of(self.points)
        return STEP / float(degree * speed + degree * (degree + self.points.centers.shape[1] - 2) * self.noise)


def degree_of(points: Points) -> int:
    """Return the number of degrees of harmonics that the points resolve: up to half of a wave between two points."""
    return points.cells // 2 if isinstance(points, Mesh) else len(points.ring_cells)


def _zonal(points: Points, value: Floats, gradient: Floats) -> ZonalOperator:
    """Return the operator of a zonal kernel with given multipliers on a circle or a sphere, and of its gradient."""
    return CircleZonal(points, value, gradient) if isinstance(points, Mesh) else SphereZonal(points, value, gradient)


def _harmonics(points: Points, degree: int) -> Harmonics:
    """Return the transform between values at points of a circle or a sphere and harmonics up to a degree."""
    return CircleHarmonics(points, degree) if isinstance(points, Mesh) else SphereHarmonics(points, degree)


def central_limit_variance(
    flow: LinearizedFlow | ZonalFlow, densities: Floats, step: float, observables: Floats, outputs: Sequence[int]
) -> Floats:
    """Return the limits of n Var⟨φ, ρ_n⟩ (outputs, m) of m observables after each number of steps in ``outputs``.

    densities     ρ (2 K + 1, points) at the times 0, step/2, …, K step
    step          time step
    observables   φ (m, points)
    outputs       increasing numbers of steps, from 0 to K
    """
    waiting = sorted(outputs)
    influence, variance = np.empty((0, flow.points.cells)), np.empty(0)
    for k in range(waiting[-1], -1, -1):
        if waiting and k == waiting[-1]:
            influence = np.concatenate([influence, observables])
            variance = np.append(variance, np.zeros(len(observables)))
            waiting.pop()
        if k > 0:
            influence, added = flow.step_back(influence, densities[2 * k - 2 : 2 * k + 1], step)
            variance = variance + added
    masses = densities[0] * flow.points.volumes
    variance = variance + influence**2 @ masses - (influence @ masses) ** 2
    return np.asarray(variance.reshape(-1, len(observables))[::-1])
