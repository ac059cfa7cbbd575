"""The problem that the timings share: a smooth random density on the sphere under softmax attention."""

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
    """A density (cells) and what moves it."""

    mesh: Mesh
    attention: Attention
    density: Floats

    def velocity(self) -> Floats:
        return self.attention.output(self.density)

    def flux(self) -> tuple[Advection, Floats]:
        """The advection term by a velocity that is known, and an array for its rate."""
        velocity = self.velocity()
        return Advection(self.mesh, lambda time, density: velocity, nonnegative=True), np.zeros(self.mesh.cells)


def sphere_problem(rings: int, beta: float) -> SphereProblem:
    """The problem on ``rings`` rings; its density is within a factor of about 5 of uniform, and resolved."""
    mesh = sphere(rings)
    return SphereProblem(mesh, Attention(mesh, beta), initial_perturbed(mesh, amplitude=0.5))


def brute_force_velocity(problem: SphereProblem, targets: Floats) -> Floats:
    """X at ``targets`` (n, d) by dense matrix products over all cells; a share of the uniform part is analytic."""
    mesh, beta, mean = problem.mesh, problem.attention.beta, 1.0 / problem.mesh.volume
    mean *= max(0.0, 1.0 - (np.abs(problem.density - mean) @ mesh.volumes) ** 2)  # see meanfield.model.heads.ZonalSums
    masses = (problem.density - mean) * mesh.volumes
    kernel = np.exp(beta * (targets @ mesh.centers.T - 1.0))
    sums = kernel @ np.column_stack([masses, masses[:, None] * mesh.centers])
    normalizer = sums[:, 0] + mean * exponential_multipliers(mesh.centers.shape[1], beta, 1)[0]
    vectors = sums[:, 1:] / normalizer[:, None]
    return np.asarray(vectors - (vectors * targets).sum(axis=1, keepdims=True) * targets)
