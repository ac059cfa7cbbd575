"""Cost of attention with general matrices Q, K and V, relative to identities."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import CORES, Figure, both_timed
from benchmarks.problem import sphere_problem
from meanfield.model.attention import Attention
from meanfield.model.heads import Head

RINGS = 512
SIZE = 20.0  # β‖QᵀK‖


def general(rings: int = RINGS) -> list[Figure]:
    """Measure the processor time of one velocity with random matrices Q, K and V, and its ratio to Q = K = V = I."""
    problem = sphere_problem(rings, SIZE)
    mesh, density = problem.mesh, problem.density
    query, value = np.random.default_rng(0).standard_normal((2, 3, 3))
    head = Head(query=query / np.linalg.norm(query, 2), value=value)
    attention = Attention(mesh, SIZE, heads=(head,))
    zonal, seconds = both_timed(problem.components, lambda: attention.output(density, empty="bounded"), clock=CORES)
    name = f"velocity with general Q, K, V, {mesh.cells} cells, β‖QᵀK‖ = {SIZE:g}"
    return [
        Figure.of(f"{name}: processor time", 1e3 * seconds, "ms"),
        Figure.of(f"velocity with identities, {mesh.cells} cells, β = {SIZE:g}: processor time", 1e3 * zonal, "ms"),
        Figure.of(f"{name}: processor time relative to identities", seconds / zonal, "×", most=3.0),
    ]
