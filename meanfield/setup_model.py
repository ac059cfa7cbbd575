"""From the sections of a case to heads, feed-forward network and reaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from meanfield import case_attention as sections
from meanfield.case import Case
from meanfield.feed_forward import FeedForward, feed_forward_random
from meanfield.heads import Factor, Head
from meanfield.matrices import matrices_of_layers, random_matrix
from meanfield.reactions import (
    Reaction,
    fitness_quadratic,
    reaction_linear,
    reaction_logistic,
    reaction_replicator,
)
from solvers.mesh import Mesh


def heads_by_layer(case: Case) -> list[list[Head]]:
    """The heads of each set of matrices: one set, or as many as the file has layers.

    Raises ValueError or OSError for a file that cannot be used. Where all is a multiple of the identity, β has the
    multiples of Q and K in it.
    """
    attention, d = case.attention, case.domain.d
    if attention.file is not None:
        return _from_file(attention.file, d)
    if attention.is_scalar:
        return [[Head(value=attention.value_scale)]]
    return [
        [
            Head(_factor(head.query, d), _factor(head.key, d), _factor(head.value, d), head.weight)
            for head in attention.all_heads
        ]
    ]


def layer_duration(case: Case) -> float:
    """Time that one set of matrices, or one layer, lasts."""
    in_layers = case.time.method == "layers"
    return 1.0 if in_layers and not case.stabilizers.residual else case.time.step or 1.0


def _from_file(path: str, d: int) -> list[list[Head]]:
    """Heads of equal weight, 1 over their number."""
    try:
        matrices = matrices_of_layers(path, d)
    except ValueError as error:
        raise ValueError(f"attention.file = {error}") from None
    layers, heads = next(iter(matrices.values())).shape[:2]
    return [
        [Head(**{name: m[layer, head] for name, m in matrices.items()}, weight=1 / heads) for head in range(heads)]
        for layer in range(layers)
    ]


def _factor(matrix: sections.Matrix | sections.RandomMatrix | None, d: int) -> Factor:
    if isinstance(matrix, sections.RandomMatrix):
        return matrix.scale * random_matrix(matrix.ensemble, d, matrix.seed)
    scale = sections.scale_of(matrix)
    return np.array(matrix, dtype=float) if scale is None else scale


def feed_forward_of(case: Case) -> FeedForward | None:
    """F, None where the case has none."""
    network = case.feed_forward
    if network is None:
        return None
    if network.width is not None:
        return feed_forward_random(case.domain.d, network.width, network.activation, network.strength, network.seed)
    inner, bias, outer = (np.array(matrix, dtype=float) for matrix in (network.inner, network.bias, network.outer))
    return FeedForward(inner, bias, network.strength * outer, network.activation)


def reaction_of(case: Case, mesh: Mesh) -> Reaction | None:
    """R[ρ], None where the case has none."""
    return None if case.reaction is None else _REACTIONS[type(case.reaction)](mesh, case.reaction)


def _replicator(mesh: Mesh, kind: sections.Replicator) -> Reaction:
    d = mesh.centers.shape[1]
    vector = np.zeros(d) if kind.vector is None else np.array(kind.vector)
    matrix = np.zeros((d, d)) if kind.matrix is None else np.array(kind.matrix)
    return reaction_replicator(mesh, kind.rate, fitness_quadratic(mesh, vector, matrix))


_REACTIONS: dict[type, Callable[[Mesh, Any], Reaction]] = {
    sections.Linear: lambda mesh, kind: reaction_linear(kind.rate),
    sections.Logistic: lambda mesh, kind: reaction_logistic(mesh, kind.rate, kind.capacity),
    sections.Replicator: _replicator,
}
