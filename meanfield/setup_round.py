"""Problems on the circle and the sphere, where layer norm keeps tokens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from meanfield.attention import Attention
from meanfield.case import Case
from meanfield.causal import causal_equation
from meanfield.diagnostics import diagnostics_round
from meanfield.diagnostics_table import Diagnostics
from meanfield.equation import Velocity, mean_field_equation
from meanfield.heads import Head
from meanfield.layer_norm import LayerNorm
from meanfield.problem import Problem, advance_in_turn
from meanfield.setup_initial import initial_by_label, initial_density
from meanfield.setup_model import feed_forward_of, heads_by_layer, reaction_of
from solvers.evolution import Equation, Every, Listed
from solvers.mesh import Floats, Mesh, circle, sphere


def set_up_round(case: Case) -> Problem:
    """The problem of a case on a circle or a sphere. Raises ValueError or OSError for a file that cannot be used."""
    mesh = _MESHES[case.domain.manifold](case.domain.resolution)
    heads = heads_by_layer(case)
    labels = case.domain.labels or 1

    @lru_cache(maxsize=1)
    def velocity(layer: int) -> Velocity:
        return _velocity(case, mesh, heads[min(layer, len(heads) - 1)])

    @lru_cache(maxsize=1)
    def equation(layer: int) -> Equation:
        noise = case.stabilizers.noise
        if labels > 1:
            return causal_equation(mesh, velocity(layer), labels, noise)
        return mean_field_equation(mesh, velocity(layer), noise, reaction_of(case, mesh))

    def law_at(time: float) -> Velocity:
        return velocity(0 if len(heads) == 1 else int(time / duration))

    def diagnostics(names: Sequence[str], degrees: int | None) -> Diagnostics:
        return diagnostics_round(names, mesh, law_at, degrees, labels)

    duration = case.time.step or 1.0
    method = case.time.method
    return Problem(
        mesh=mesh,
        initial=lambda: initial_by_label(case, mesh, labels) if labels > 1 else initial_density(case, mesh),
        advance=advance_in_turn(equation, Every(duration) if len(heads) > 1 else Listed((0.0,)), method),
        prepare=lambda state: equation(0).prepare(state.time, state.values),
        diagnostics=diagnostics,
        density=lambda values: values.reshape(labels, -1).sum(axis=0) if labels > 1 else values,
        whole=labels == 1,
    )


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
            full=norm.sees_size,
        ),
        norm,
        None if network is None else local,
    )


_MESHES: dict[str, Callable[[int], Mesh]] = {"circle": circle, "sphere": sphere}
