"""Problems on the circle and the sphere, where layer norm keeps tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from types import ModuleType

from meanfield.attention import Attention
from meanfield.case import Case
from meanfield.causal import causal_equation
from meanfield.diagnostics import diagnostics_round
from meanfield.diagnostics_table import Diagnostics
from meanfield.equation import Velocity, mean_field_equation
from meanfield.heads import Head
from meanfield.layer_norm import LayerNorm
from meanfield.layers import LayerMap
from meanfield.problem import Advance, Prepare, Problem, advance_in_layers, advance_in_turn, placed
from meanfield.setup_initial import initial_by_label, initial_density
from meanfield.setup_model import feed_forward_of, heads_by_layer, layer_duration, reaction_of
from solvers.evolution import Equation, Every, Listed, Schedule
from solvers.mesh import Floats, Mesh, circle, sphere


def set_up_round(case: Case, kernels: ModuleType | None = None) -> Problem:
    """The problem of a case on a circle or a sphere. Raises ValueError or OSError for a file that cannot be used."""
    mesh = _MESHES[case.domain.manifold](case.domain.across)
    there = mesh if kernels is None else mesh.on(kernels)  # where it moves; what is looked at is on the host
    heads = heads_by_layer(case)
    labels = case.domain.labels or 1
    duration = layer_duration(case)

    @lru_cache(maxsize=2)
    def velocity(layer: int, mesh: Mesh) -> Velocity:
        return _velocity(case, mesh, heads[min(layer, len(heads) - 1)])

    def layer_at(time: float) -> int:
        return 0 if len(heads) == 1 else int(time / duration + 1e-9)  # at its end a layer is over

    def law_at(time: float) -> Velocity:
        return velocity(layer_at(time), mesh)

    def diagnostics(names: Sequence[str], degrees: int | None) -> Diagnostics:
        return diagnostics_round(names, mesh, law_at, degrees, labels)

    if case.time.method == "layers":
        advance, prepare = _in_layers(case, there, lambda time: velocity(layer_at(time), there))
    else:
        turns = Every(duration) if len(heads) > 1 else Listed((0.0,))
        advance, prepare = _flowing(case, there, lambda layer: velocity(layer, there), turns, labels)
    place = there.kernels.place
    return Problem(
        space=mesh,
        initial=lambda: initial_by_label(case, mesh, labels) if labels > 1 else initial_density(case, mesh),
        advance=placed(advance, place),
        prepare=lambda state: prepare(replace(state, values=place(state.values))),
        diagnostics=diagnostics,
        snapshot=lambda values: values.reshape(labels, -1).sum(axis=0) if labels > 1 else values,
        whole=labels == 1,
    )


def _flowing(
    case: Case, mesh: Mesh, velocity: Callable[[int], Velocity], turns: Schedule, labels: int
) -> tuple[Advance, Prepare]:
    """The continuous flow, with the velocity of one set of matrices after another."""

    @lru_cache(maxsize=1)
    def equation(layer: int) -> Equation:
        noise = case.stabilizers.noise
        if labels > 1:
            return causal_equation(mesh, velocity(layer), labels, noise)
        return mean_field_equation(mesh, velocity(layer), noise, reaction_of(case, mesh))

    return advance_in_turn(equation, turns, case.time.method), lambda state: float(
        equation(0).prepare(state.time, state.values)
    )


def _in_layers(case: Case, mesh: Mesh, law_at: Callable[[float], Velocity]) -> tuple[Advance, Prepare]:
    """The push-forward by one layer after another."""
    layer = LayerMap(
        mesh,
        lambda time, density: law_at(time).output(density),
        law_at(0.0).norm,
        case.time.step or 1.0,
        case.stabilizers.residual,
    )
    return advance_in_layers(layer), lambda state: layer(state.time, state.values)


def _velocity(case: Case, mesh: Mesh, heads: Sequence[Head]) -> Velocity:
    """X[ρ] with the given heads; tokens on a sphere of radius g attend as on the unit sphere with β g²."""
    attention, stabilizers = case.attention, case.stabilizers
    norm = LayerNorm(stabilizers.layer_norm, stabilizers.alpha)
    size = stabilizers.scale
    network = feed_forward_of(case)

    def local(points: Floats) -> Floats:
        assert network is not None
        return network(size * points) / size

    return Velocity(
        Attention(
            mesh,
            attention.beta_effective * size**2,
            attention.normalization,
            heads=heads,
            kernel=attention.kernel,
            window=attention.window,
            rescaled=attention.rescaled,
            full=norm.sees_size or case.time.method == "layers",
        ),
        norm,
        None if network is None else local,
    )


_MESHES: dict[str, Callable[[int], Mesh]] = {"circle": circle, "sphere": sphere}
