"""Common problem of the timings: a smooth random density on the sphere under softmax attention."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.domains.sphere.initial import initial_perturbed
from meanfield.model.attention import Attention
from solvers.mesh.mesh import Floats, Mesh, sphere
from solvers.terms.advection import Advection
from solvers.transforms.exponential import exponential_multipliers


@dataclass(frozen=True)
class SphereProblem:
    """Density (cells,) on a sphere, and the attention that defines its velocity."""

    mesh: Mesh
    attention: Attention
    density: Floats

    def velocity(self) -> Floats:
        """Return the attention velocity X at the cell centers as vectors in R³ (cells, 3)."""
        return self.attention.output(self.density, empty="bounded")

    def components(self) -> Floats:
        """Return the east and north components (2, cells) of the attention velocity X, the form that time steps use."""
        found = self.attention.along_rings(self.density, empty="bounded")
        assert found is not None
        return found

    def flux(self) -> tuple[Advection, Floats]:
        """Return the advection term with a precomputed velocity, and an empty array for its rate of change."""
        known = _Known(self.velocity(), self.components())
        return Advection(self.mesh, known, nonnegative=True), np.zeros(self.mesh.cells)


@dataclass(frozen=True)
class _Known:
    """Precomputed velocity without cost."""

    vectors: Floats
    components: Floats

    def __call__(self, time: float, density: Floats) -> Floats:
        return self.vectors

    def along_rings(self, time: float, density: Floats) -> Floats:
        return self.components


def sphere_problem(rings: int, beta: float) -> SphereProblem:
    """Return softmax attention and a smooth random density on a sphere of ``rings`` rings.

    The density is within a factor of about 5 of uniform.
    """
    mesh = sphere(rings)
    return SphereProblem(mesh, Attention(mesh, beta), initial_perturbed(mesh, amplitude=0.5))


def brute_force_velocity(problem: SphereProblem, targets: Floats) -> Floats:
    """Return the attention velocity X at ``targets`` (n, d) by direct sums over all cells.

    A part of the density that is uniform contributes analytically.
    """
    mesh, beta, mean = problem.mesh, problem.attention.beta, 1.0 / problem.mesh.volume
    mean *= max(
        0.0, 1.0 - (np.abs(problem.density - mean) @ mesh.volumes) ** 2
    )  # see meanfield.model.kernel_sums.ZonalSums
    masses = (problem.density - mean) * mesh.volumes
    kernel = np.exp(beta * (targets @ mesh.centers.T - 1.0))
    sums = kernel @ np.column_stack([masses, masses[:, None] * mesh.centers])
    normalizer = sums[:, 0] + mean * exponential_multipliers(mesh.centers.shape[1], beta, 1)[0]
    vectors = sums[:, 1:] / normalizer[:, None]
    return np.asarray(vectors - (vectors * targets).sum(axis=1, keepdims=True) * targets)
