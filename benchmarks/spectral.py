"""Spectral transform model of shallow water on the sphere: a reference that shares no arithmetic with `solvers`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import assoc_legendre_p_all, roots_legendre

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]


@dataclass(frozen=True)
class SpectralModel:
    """Shallow water on the rotating unit sphere, as vorticity ζ, divergence δ and depth h in spherical harmonics.

    ∂ₜζ = −div((ζ + f)v), ∂ₜδ = k·curl((ζ + f)v) − Δ(½|v|² + g(h + b)), ∂ₜh = −div(hv). Products are formed on a Gauss
    grid that is free of quadratic aliasing. The Runge–Kutta method has order 4. After each step a filter of eighth
    order damps the smallest scales: the last degree decays by 1/e in six hours.

    degree    largest degree of the harmonics, for all orders
    gravity   gravity g
    spin      angular velocity of the sphere
    hour      one hour in the unit of time

    Spectral arrays are (..., m, degree) for orders m ≥ 0. Grids are (..., latitude, longitude). Vectors are given by
    their components to the east and to the north, times cos(latitude).

    References
    ----------
    Bourke (1972), A multi-level spectral model.
    """

    degree: int
    gravity: float
    spin: float
    hour: float

    @cached_property
    def quadrature(self) -> tuple[Floats, Floats]:
        """Return the nodes z = sin(latitude) of the grid and their weights."""
        nodes, weights = roots_legendre((3 * self.degree) // 2 + 1)
        return nodes, weights

    @cached_property
    def points(self) -> Floats:
        """Return the points (latitude, longitude, 3) of the grid."""
        z = self.quadrature[0][:, None]
        angle = np.arange(2 * len(z)) * np.pi / len(z)
        radius = np.sqrt(1 - z**2)
        return np.stack(np.broadcast_arrays(radius * np.cos(angle), radius * np.sin(angle), z), axis=-1)

    @cached_property
    def square(self) -> Floats:
        """Return cos²(latitude) (latitude, 1)."""
        return 1 - self.quadrature[0][:, None] ** 2

    @cached_property
    def basis(self) -> Floats:
        return self.legendre(self.quadrature[0])

    @cached_property
    def order(self) -> Complexes:
        return 1j * np.arange(self.degree + 1)[:, None]

    @cached_property
    def laplacian(self) -> Floats:
        n = np.arange(self.degree + 1.0)
        return -n * (n + 1)

    def legendre(self, z: Floats) -> Floats:
        """Return P and (1 − z²) dP/dz as an array (2, m, z, degree); the integral of P² over z is 1."""
        p = assoc_legendre_p_all(self.degree, self.degree, z, norm=True, diff_n=1)[:, :, : self.degree + 1]
        p[1] *= 1 - z**2
        return np.ascontiguousarray(p.transpose(0, 2, 3, 1))

    def modes(self, grid: Floats) -> Complexes:
        """Return the weighted Fourier coefficients (..., m, latitude) of fields on the grid."""
        coefficients: Complexes = np.fft.rfft(grid, norm="forward")[..., : self.degree + 1]
        return coefficients.swapaxes(-1, -2) * self.quadrature[1]

    def analysis(self, grid: Floats) -> Complexes:
        """Return the spectral coefficients of fields on the grid."""
        return multiply(self.basis[0].swapaxes(-1, -2), self.modes(grid))

    def divergence_and_curl(self, east: Floats, north: Floats) -> tuple[Complexes, Complexes]:
        """Return the coefficients of the divergence and the curl of a vector field on the grid."""
        modes = self.modes(np.stack([east, north]) / self.square)
        p, slope = (multiply(basis.swapaxes(-1, -2), modes) for basis in self.basis)
        return self.order * p[0] - slope[1], self.order * p[1] + slope[0]

    def synthesis(self, coefficients: Complexes, basis: int = 0) -> Floats:
        """Return fields on the grid, or (1 − z²) times their derivatives by z if ``basis`` is 1."""
        modes = multiply(self.basis[basis], coefficients).swapaxes(-1, -2)
        grid: Floats = np.fft.irfft(modes, 2 * len(self.quadrature[0]), norm="forward")
        return grid

    def state(self, depth: Floats, velocity: Floats) -> Complexes:
        """Return ζ, δ and h as (3, m, degree), from h (latitude, longitude) and v (latitude, longitude, 3)."""
        east = self.points[..., 0] * velocity[..., 1] - self.points[..., 1] * velocity[..., 0]
        divergence, curl = self.divergence_and_curl(east, velocity[..., 2])
        return np.stack([curl, divergence, self.analysis(depth)])

    def rate(self, state: Complexes, bottom: Complexes) -> Complexes:
        """Return the rate of change of a state (3, m, degree) over a bottom (m, degree)."""
        laplacian = np.where(self.laplacian, self.laplacian, 1.0)
        potentials = state[:2] / laplacian * (self.laplacian != 0)  # stream function and velocity potential
        turned = potentials[::-1] * self.order
        slope = self.synthesis(potentials, 1)
        vorticity, depth, east, north = self.synthesis(np.stack([state[0], state[2], turned[0], turned[1]]))
        east, north = east - slope[0], north + slope[1]
        absolute = vorticity + 2 * self.spin * self.quadrature[0][:, None]
        inflow, turning = self.divergence_and_curl(absolute * east, absolute * north)
        motion = self.analysis((east**2 + north**2) / (2 * self.square))
        head = motion + self.gravity * (state[2] + bottom)
        return np.stack(
            [-inflow, turning - self.laplacian * head, -self.divergence_and_curl(depth * east, depth * north)[0]]
        )

    def advance(self, state: Complexes, bottom: Complexes, time: float) -> Complexes:
        """Return the state after a time, by steps of at most 1.8/c, where c is the largest frequency of waves."""
        depth = state[2, 0, 0].real / np.sqrt(2)
        steps = int(np.ceil(time * np.sqrt(self.gravity * depth) * (self.degree + 1) / 1.8))
        dt = time / steps
        damping = np.exp(-dt / (6 * self.hour) * (self.laplacian / self.laplacian[-1]) ** 4)
        for _ in range(steps):
            a = self.rate(state, bottom)
            b = self.rate(state + dt / 2 * a, bottom)
            c = self.rate(state + dt / 2 * b, bottom)
            d = self.rate(state + dt * c, bottom)
            state = (state + dt / 6 * (a + 2 * b + 2 * c + d)) * damping
        return state

    def interpolate(self, coefficients: Complexes, points: Floats) -> Floats:
        """Return the field (points,) with the coefficients (m, degree) at points (points, 3) that are no poles."""
        heights, ring = np.unique(points[:, 2], return_inverse=True)
        modes = multiply(self.legendre(heights)[0], coefficients)[:, ring]
        modes[1:] *= 2
        values: Floats = (modes * np.exp(self.order * np.arctan2(points[:, 1], points[:, 0]))).sum(axis=0).real
        return values


def multiply(matrix: Floats, coefficients: Complexes) -> Complexes:
    """Return the products (..., m, rows) of matrices (m, rows, columns) and coefficients (..., m, columns)."""
    columns = np.moveaxis(coefficients, (-2, -1), (0, 1))
    flat = np.ascontiguousarray(columns.reshape(*columns.shape[:2], -1)).view(float)
    product = np.ascontiguousarray(matrix @ flat).view(complex)
    return np.moveaxis(product.reshape(*product.shape[:2], *columns.shape[2:]), (0, 1), (-2, -1))
