"""From a case to what it names: mesh, attention, equation, initial density, schedules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from meanfield import initial
from meanfield.attention import Attention
from meanfield.case import Case, CaseError
from meanfield.equation import mean_field_equation
from solvers.evolution import Equation, Every, Listed, Logarithmic, Schedule
from solvers.mesh import Floats, Mesh, circle, sphere


@dataclass(frozen=True)
class Problem:
    """A case made ready to run."""

    mesh: Mesh
    attention: Attention
    equation: Equation


def set_up(case: Case) -> Problem:
    """Mesh, attention and equation of a case."""
    mesh = _MESHES[case.domain.manifold](case.domain.resolution)
    attention = Attention(
        mesh,
        case.attention.beta_effective,
        case.attention.normalization,
        case.attention.value_scale,
        case.attention.rescaled,
    )
    return Problem(mesh, attention, mean_field_equation(mesh, attention, case.stabilizers.noise))


def initial_density(case: Case, mesh: Mesh) -> Floats:
    """The initial density (cells) of a case. Raises CaseError where it would be negative."""
    try:
        return _INITIAL[type(case.initial).__name__](mesh, case.initial)
    except ValueError as error:
        raise CaseError(str(error)) from None


def snapshot_schedule(case: Case) -> Schedule:
    """When snapshots are due."""
    output = case.output
    if output.times is not None:
        return Listed(tuple(output.times))
    if output.every is not None:
        return Every(output.every)
    assert output.snapshots is not None
    return _spaced(case, output.snapshots)


def sample_schedule(case: Case) -> Schedule:
    """When the diagnostics are due."""
    return _spaced(case, case.output.samples)


def _spaced(case: Case, parts: int) -> Schedule:
    if case.output.spacing == "log":
        assert case.output.first is not None
        return Logarithmic(case.output.first, case.time.end, parts)
    return Every(case.time.end, parts)


_MESHES: dict[str, Callable[[int], Mesh]] = {"circle": circle, "sphere": sphere}

_INITIAL: dict[str, Callable[[Mesh, Any], Floats]] = {
    "Uniform": lambda mesh, kind: initial.initial_uniform(mesh),
    "Perturbed": lambda mesh, kind: initial.initial_perturbed(mesh, kind.amplitude, kind.degrees, kind.seed),
    "Harmonic": lambda mesh, kind: initial.initial_harmonic(mesh, kind.degree, kind.order, kind.amplitude),
    "VonMisesFisher": lambda mesh, kind: initial.initial_von_mises_fisher(
        mesh,
        [component.center for component in kind.components],
        [component.concentration for component in kind.components],
        [component.mass for component in kind.components],
    ),
    "Moebius": lambda mesh, kind: initial.initial_moebius(mesh, kind.axis, kind.parameter),
    "Points": lambda mesh, kind: initial.initial_points(mesh, kind.points, kind.masses),
}
