"""Zonal operators: sums Σ_j K(⟨x_i, x_j⟩) w_j over all cells by a transform (Funk–Hecke), not cells².

A zonal kernel acts on harmonics of degree l as a number, its multiplier c_l. For K(z) = e^{βz} on S^{d−1}, ν = d/2 − 1,

    c_l = Γ(d/2) (2/β)^ν I_{l+ν}(β) |S^{d−1}|

(Funk–Hecke; e.g. Dai and Xu, Approximation Theory and Harmonic Analysis on Spheres, theorem 1.2.9).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy import fft, special

from solvers.harmonics import SphereHarmonics, sine_derivative
from solvers.mesh import Floats, Mesh


def exponential_multipliers(dimension: int, beta: float, degrees: int) -> Floats:
    """(degrees) multipliers c_l, l = 0, 1, …, of e^{β⟨x,y⟩ − |β|} on the unit sphere of R^dimension (2 or more).

    Negative β flips the odd degrees. The factor e^{−|β|} keeps them in range for any β.
    """
    l, nu, size = np.arange(degrees), dimension / 2 - 1, abs(beta)
    surface = 2 * np.pi ** (dimension / 2) / special.gamma(dimension / 2)
    if size == 0:
        return np.where(l == 0, surface, 0.0)
    bessel = special.ive(l + nu, size)
    return surface * special.gamma(dimension / 2) * (2 / size) ** nu * bessel * np.sign(beta) ** l


def exponential_gradient_multipliers(dimension: int, beta: float, degrees: int) -> Floats:
    """(degrees) c_l/β of :func:`exponential_multipliers`, with its limit at β = 0: only c_1/β → |S^{d−1}|/d."""
    if beta == 0:
        surface = exponential_multipliers(dimension, 0.0, 1)[0]
        return np.where(np.arange(degrees) == 1, surface / dimension, 0.0)
    multipliers = exponential_multipliers(dimension, beta, degrees) / beta
    multipliers[0] = 0.0  # a constant has no gradient
    return multipliers


def exponential_degree(dimension: int, beta: float) -> int:
    """Degree L beyond which the multipliers of e^{β⟨x,y⟩} and of its gradient add nothing in float64.

    About √(2β ln(1/ε)) for large β. The multipliers are positive, so their tail bounds the error of the kernel.
    """
    most = int(np.sqrt(2 * abs(beta) * 50) + 60)
    l = np.maximum(np.arange(most), 1)
    harmonics_of_degree = (2 * l + dimension - 2.0) * l ** (dimension - 3.0)  # up to a constant
    tail = np.abs(exponential_multipliers(dimension, beta, most)) * l * harmonics_of_degree
    kept = np.flatnonzero(np.cumsum(tail[::-1])[::-1] > 1e-17 * tail[0])
    return max(int(kept[-1]), 1)


class ZonalOperator(Protocol):
    """Sums over point masses w_j at cell centers."""

    def apply(self, masses: Floats) -> tuple[Floats, Floats]:
        """For masses (cells): Σ_j K(x_i·x_j) w_j, (cells), and ∇Σ_j G(x_i·x_j) w_j, (cells, d), tangent at x_i."""
        ...


class CircleZonal:
    """K and G given by multipliers (degrees), applied as circular convolutions with the sampled kernels.

    The sums over cells are exact to rounding for any kernel, resolved by the cells or not.
    """

    def __init__(self, mesh: Mesh, value: Floats, gradient: Floats) -> None:
        self.mesh = mesh
        l = np.arange(len(value))
        angle = mesh.volumes[0] * np.arange(mesh.cells)
        weight = np.where(l == 0, 1.0, 2.0) / (2 * np.pi)
        kernel, slope = np.zeros(mesh.cells), np.zeros(mesh.cells)
        for degree in l:
            kernel += weight[degree] * value[degree] * np.cos(degree * angle)
            slope -= weight[degree] * gradient[degree] * degree * np.sin(degree * angle)
        self._kernel, self._slope = fft.rfft(kernel), fft.rfft(slope)
        self._tangent = np.stack([-mesh.centers[:, 1], mesh.centers[:, 0]], axis=1)

    def apply(self, masses: Floats) -> tuple[Floats, Floats]:
        spectrum = fft.rfft(masses)
        values = fft.irfft(spectrum * self._kernel, self.mesh.cells)
        slopes = fft.irfft(spectrum * self._slope, self.mesh.cells)
        return values, slopes[:, None] * self._tangent


class SphereZonal:
    """K and G given by multipliers (degrees) on S²; the gradient is (∂θ, ∂φ/sin θ) turned into vectors."""

    def __init__(self, mesh: Mesh, value: Floats, gradient: Floats) -> None:
        self.mesh = mesh
        self._harmonics = SphereHarmonics(mesh, len(value))  # one degree more, for the derivative along θ
        self._value, self._gradient = np.append(value, 0.0)[:, None], np.append(gradient, 0.0)[:, None]

    def apply(self, masses: Floats) -> tuple[Floats, Floats]:
        mesh, kernels = self.mesh, self.mesh.kernels
        coefficients = self._harmonics.analysis(masses)
        potential = self._gradient * coefficients
        sets = np.stack([self._value * coefficients, sine_derivative(potential), potential])
        over_sine = 1.0 / self._harmonics.sine
        outputs = [(False, np.ones_like(over_sine)), (False, over_sine), (True, over_sine)]
        values, vectors = np.empty(mesh.cells), np.empty((mesh.cells, 3))
        for here, (value, south, east) in self._harmonics.blocks(sets, outputs):
            values[here] = value
            kernels.launch(kernels.gradient_to_vectors, len(value), mesh.centers[here], south, east, vectors[here])
        return values, vectors


def zonal_operator(mesh: Mesh, value: Floats, gradient: Floats) -> ZonalOperator:
    """Operator of the kernels with multipliers ``value`` (for the sum) and ``gradient`` (for its gradient)."""
    return _OPERATORS[mesh.manifold](mesh, value, gradient)


_OPERATORS: dict[str, type[CircleZonal] | type[SphereZonal]] = {"circle": CircleZonal, "sphere": SphereZonal}
