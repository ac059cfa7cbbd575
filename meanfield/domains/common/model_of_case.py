"""Model of a case: heads, feed-forward network and reaction from the sections of the case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.case.case import Case
from meanfield.case.validate_model import MAX_BETA
from meanfield.equation import Local
from meanfield.model.feed_forward import FeedForward, feed_forward_random
from meanfield.model.heads import Factor, Head, log_bound, steepness
from meanfield.model.kernel import kernel_of
from meanfield.model.kernel_sums import check_sums
from meanfield.model.matrices import matrices_of_layers, random_matrix
from meanfield.model.normalization import NORMALIZATIONS
from meanfield.model.reactions import (
    Reaction,
    fitness_quadratic,
    reaction_linear,
    reaction_logistic,
    reaction_replicator,
)
from meanfield.sections import attention as sections
from meanfield.sections.section import Matrix
from solvers.mesh.mesh import Mesh
from solvers.timestepping.schedules import Every, Listed, Schedule


def heads_by_layer(case: Case) -> list[list[Head]]:
    """Return the attention heads of a case in sets: one set, or one for each layer in its file of matrices.

    Raises ValueError or OSError for a file that cannot be used, and for matrices that are too large. On every domain
    β‖QᵀK‖ is bounded; where tokens attend as unit vectors, so are the ranges of floating-point numbers and of
    transforms.
    """
    sets = _sets_of_heads(case)
    steepest = max(abs(steepness(case.beta_of_heads, head)) for heads in sets for head in heads)
    if not steepest <= MAX_BETA:
        expected = f"beta times the norm of query^T key at most {MAX_BETA:g}, not {steepest:.3g}"
        raise ValueError(f"attention.beta = {case.attention.beta}: expected {expected}")
    for heads in sets:
        _check_range(case, heads)
    return sets


def _check_range(case: Case, heads: list[Head]) -> None:
    """Raise ArgumentError for heads whose kernel, or kernel sums over cells, would exceed the range of numbers."""
    attention, domain, beta = case.attention, case.domain, case.beta_of_heads
    kernel = kernel_of(attention.kernel, attention.window)
    if domain.is_closed:
        for head in heads:
            check_sums(domain.d, beta, head, kernel)
    if domain.is_closed or domain.has_tokens:
        largest = max(log_bound(beta, head, kernel) for head in heads)
        NORMALIZATIONS[attention.normalization].check_range(attention.beta, largest, attention.rescaled)


def _sets_of_heads(case: Case) -> list[list[Head]]:
    """Return the attention heads of each layer of matrices of a case; one set for all layers without a file."""
    attention, d = case.attention, case.domain.d
    if attention.file is not None:
        return _heads_from_file(attention.file, d)
    return [
        [
            Head(_factor(head.query, d), _factor(head.key, d), _factor(head.value, d), head.weight)
            for head in attention.all_heads
        ]
    ]


@dataclass(frozen=True)
class HeadsByInterval:
    """Sets of attention heads, each used for a ``duration`` of time: set k from k·duration on.

    The last set is used for all later times.
    """

    sets: list[list[Head]]
    duration: float

    def of_interval(self, interval: int) -> list[Head]:
        """Return the attention heads that are used in the interval of time with a given number."""
        return self.sets[min(interval, len(self.sets) - 1)]

    def interval_at(self, time: float) -> int:
        """Return the number of the interval, with its own set of attention heads, that contains a time.

        The end of an interval, to rounding, belongs to the next one.
        """
        return 0 if len(self.sets) == 1 else int(time / self.duration + 1e-9)

    @property
    def intervals(self) -> Schedule:
        """Return the schedule of the times at which the intervals begin, each with its own set of attention heads.

        A single set of heads has one interval, from time 0 on.
        """
        return Every(self.duration) if len(self.sets) > 1 else Listed((0.0,))


def heads_by_interval(case: Case) -> HeadsByInterval:
    """Return the attention heads of a case, with the duration of time for which each set of matrices is used.

    Raises as ``heads_by_layer``.
    """
    one_a_layer = case.time.method == "layers" and not case.stabilizers.residual
    return HeadsByInterval(heads_by_layer(case), 1.0 if one_a_layer else case.time.step or 1.0)


def _heads_from_file(path: str, d: int) -> list[list[Head]]:
    """Return the attention heads of each layer in a file of matrices, with their weights."""
    try:
        matrices = matrices_of_layers(path, d)
    except ValueError as error:
        raise ValueError(f"attention.file = {error}") from None
    weights = matrices.pop("weight")
    return [
        [Head(**{name: m[layer, head] for name, m in matrices.items()}, weight=float(weight)) for head, weight in row]
        for layer, row in enumerate(map(enumerate, weights))
    ]


def _factor(matrix: Matrix | sections.RandomMatrix | None, d: int) -> Factor:
    """Return a matrix of a head as an array (d, d), or as a number for a multiple of the identity."""
    if isinstance(matrix, sections.RandomMatrix):
        return matrix.scale * random_matrix(matrix.ensemble, d, matrix.seed)
    scale = sections.scale_of(matrix)
    return np.array(matrix, dtype=float) if scale is None else scale


def feed_forward_of(case: Case) -> Local | None:
    """Return the feed-forward network F of a case as a function from (n, d) to (n, d), or None without a network.

    Where the unit sphere represents a sphere of radius g, the function is F(gx)/g.
    """
    network, size = network_of(case), case.stabilizers.scale
    if network is None or size == 1:
        return network
    return lambda points: network(size * points) / size


def network_of(case: Case) -> Local | None:
    """Return the feed-forward network W σ(Ux + b) of a case, or the field of a component that replaces it.

    The result is a function from (n, d) to (n, d), or None for a case without network and field.
    """
    network = case.feed_forward
    if network is None:
        return None
    if type(network) in FIELDS:
        return FIELDS[type(network)](network)
    if network.width is not None:
        return feed_forward_random(case.domain.d, network.width, network.activation, network.strength, network.seed)
    inner, bias, outer = (np.array(matrix, dtype=float) for matrix in (network.inner, network.bias, network.outer))
    return FeedForward(inner, bias, network.strength * outer, network.activation)


def reaction_of(case: Case, mesh: Mesh) -> Reaction | None:
    """Return the reaction R[ρ] of a case for densities on a mesh; None where the case has no reaction."""
    return None if case.reaction is None else REACTIONS[type(case.reaction)](mesh, case.reaction)


def _replicator(mesh: Mesh, kind: sections.Replicator) -> Reaction:
    """Return the replicator reaction of a case with the fitness ⟨a, x⟩ + ½⟨x, Mx⟩ on a mesh."""
    d = mesh.centers.shape[1]
    vector = np.zeros(d) if kind.vector is None else np.array(kind.vector)
    matrix = np.zeros((d, d)) if kind.matrix is None else np.array(kind.matrix)
    return reaction_replicator(mesh, kind.rate, fitness_quadratic(mesh, vector, matrix))


REACTIONS: dict[type, Callable[[Mesh, Any], Reaction]] = {
    sections.Linear: lambda mesh, kind: reaction_linear(kind.rate),
    sections.Logistic: lambda mesh, kind: reaction_logistic(mesh, kind.rate, kind.capacity),
    sections.Replicator: _replicator,
}
FIELDS: dict[type, Callable[[Any], Local]] = {}  # entries of components, see meanfield/components
