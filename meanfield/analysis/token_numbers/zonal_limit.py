"""Backward equation of the central-limit variance for densities on S^{d−1} that are symmetric about an axis, any d.

    −∂ₛψ = X ∂_θψ + A*ψ + κ sin^{2−d}θ ∂_θ(sin^{d−2}θ ∂_θψ) ,    ψ(θ) at time t an observable φ(θ)
    A*ψ(θ′) = ∫ (v ∂_θK(θ,θ′)/β − K(θ,θ′) X(θ)) F(θ) dθ ,    F = p ∂_θψ/N ,    X = (v/βN) ∂_θ ∫K(θ,θ′) p(θ′) dθ′

K is the kernel e^{β⟨x,y⟩}, averaged about the axis, and p the distribution of the polar angle θ. N = ∫K p dθ′ for
softmax. For unnormalized attention N = 1, and the second part of A* is absent. These are the equations of
meanfield/analysis/token_numbers/central_limit.py for functions of θ, since ⟨y, e_θ(x)⟩ k has the average ∂_θK/β.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from meanfield.domains.axisymmetric.equation import UNDERFLOW
from meanfield.model.normalization import normalization_of
from solvers.mesh.interval import edges_of
from solvers.mesh.mesh import Floats, Mesh
from solvers.transforms.polar import log_area, log_masses
from solvers.transforms.polar_kernel import PolarKernel

STEP = 0.05  # in radians: the distance of the fastest token in a time step


class ZonalFlow:
    """Backward equation of the influence ψ(θ) of a token, by finite differences and the implicit midpoint rule.

    points          polar angles, see ``solvers.mesh.interval.polar``
    dimension       d ≥ 2, of the space around the sphere
    beta            β of k = e^{β⟨x,y⟩}
    normalization   "softmax", N = Z, or "unnormalized", N = 1
    value           v of V = vI
    noise           κ ≥ 0
    rescaled        whether unnormalized attention is divided by the largest kernel e^|β|
    """

    max_difference: ClassVar = 0.1  # of p in neighboring cells over max p: clusters have a deviation of 6 cells

    def __init__(
        self,
        points: Mesh,
        dimension: int,
        beta: float,
        normalization: str = "softmax",
        value: float = 1.0,
        noise: float = 0.0,
        rescaled: bool = False,
    ) -> None:
        self.points, self._value, self._noise = points, value, noise
        self._is_softmax = normalization_of(normalization, two_sided=False).is_relative
        sums, one = PolarKernel(points, dimension, beta), np.eye(points.cells)
        self._kernel, self._slope = sums.apply(one)  # K and ∂_θK/β of pairs of angles, times e^{−log_scale}
        self._unit = np.exp((abs(beta) if rescaled else 0.0) - sums.log_scale)
        theta = points.centers[:, 0]
        angles = np.concatenate([-theta[:1], theta, 2 * np.pi - theta[-1:]])
        even = np.pad(one, ((1, 1), (0, 0)), "symmetric")  # ψ is even about both poles
        self._derivative = np.gradient(even, angles, axis=0)[1:-1]
        self._laplacian = _laplacian(points, dimension)

    def step_back(self, influence: Floats, densities: Floats, step: float) -> tuple[Floats, Floats]:
        """Return influences (rows, cells) a step earlier, and the added variances (rows,).

        ``densities`` (3, cells) are those at the beginning, the middle and the end of the step.
        """
        masses = densities[1] * self.points.volumes
        half = 0.5 * step * self._generator(masses)
        after = influence.T
        before = np.linalg.solve(np.eye(len(half)) - half, after + half @ after)
        slopes = self._derivative @ (0.5 * (before + after))
        added = 2 * self._noise * step * (masses @ slopes**2)
        return np.asarray(before.T, np.float64), np.asarray(added)

    def _generator(self, masses: Floats) -> Floats:
        """Return the matrix (cells, cells) from ψ to −∂ₛψ about a density of masses (cells,)."""
        # far from all mass N underflows, and ψ there does not contribute
        normalizer = np.maximum(self._kernel @ masses, UNDERFLOW) if self._is_softmax else self._unit
        velocity, share = self._value * (self._slope @ masses) / normalizer, masses / normalizer
        of_slope = np.diag(velocity) + self._value * self._slope.T * share
        if self._is_softmax:
            of_slope -= self._kernel.T * (share * velocity)
        return np.asarray(of_slope @ self._derivative + self._noise * self._laplacian)

    def longest_step(self, speed: float) -> float:
        """Return a time step whose error is small beside that of the cells, for velocities up to ``speed``."""
        return STEP / speed if speed else math.inf


def _laplacian(points: Mesh, dimension: int) -> Floats:
    """Return the matrix (cells, cells) of sin^{2−d}θ ∂_θ(sin^{d−2}θ ∂_θψ), symmetric with respect to p̄ ∝ sin^{d−2}θ."""
    matrix, log_cells = np.zeros((points.cells, points.cells)), log_masses(points, dimension)
    log_faces = (dimension - 2) * np.log(np.sin(edges_of(points)[1:-1])) + log_area(dimension - 1) - log_area(dimension)
    slopes = np.diff(np.eye(points.cells), axis=0) / np.diff(points.centers, axis=0)
    matrix[:-1] += np.exp(log_faces - log_cells[:-1])[:, None] * slopes
    matrix[1:] -= np.exp(log_faces - log_cells[1:])[:, None] * slopes
    return matrix
