"""Problem of a case, ready to run: its state, its dynamics and what is recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from meanfield.diagnostics.table import Diagnostics
from solvers.io.layout import Space, Variable
from solvers.mesh.mesh import Floats
from solvers.timestepping.integrate import Dynamics, Integrator
from solvers.timestepping.schedules import Schedule
from solvers.timestepping.state import Exploding, State

MAX_ESCAPED = 1e-3  # of the mass: moments of what is left would be off by as much
Check = Callable[[State], None]


def no_check(state: State) -> None:
    """For states that a run can always go on from."""


@dataclass(frozen=True)
class Problem:
    """A case that is ready to run, whatever its domain.

    space        the cells or the tokens of a snapshot, as the file describes them
    initial      () → values of the state at time 0; CaseError for a density that cannot be
    dynamics     (state, end of the run) → integrator of that state, and the time to which it holds
    prepare      evaluates the equation once, which compiles its kernels
    diagnostics  names, last degree of the power or None → what is measured along the run
    snapshot     values → density (cells), or positions (n, d), of a snapshot
    check        raises Exploding for a state, after each step, that the run cannot go on from
    whole        whether a snapshot is the whole state
    variables    what the file keeps of the mesh beside its cells
    marks        numbers that the run finds out on its way, by the name of the file's attribute; NaN until then
    attributes   what the file keeps of how this is computed
    """

    space: Space
    initial: Callable[[], Floats]
    dynamics: Dynamics
    prepare: Callable[[State], Any]
    diagnostics: Callable[[Sequence[str], int | None], Diagnostics]
    snapshot: Callable[[Floats], Floats] = field(default=lambda values: values)
    check: Check = field(default=no_check)
    whole: bool = True
    variables: tuple[Variable, ...] = ()
    marks: dict[str, float] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)


def in_turn(integrator: Callable[[int], Integrator], turns: Schedule) -> Dynamics:
    """Integrator number k from time turns.due(k) to turns.due(k + 1); no step crosses from one to the next."""
    of_turn = lru_cache(maxsize=1)(integrator)

    def dynamics(state: State, until: float) -> tuple[Integrator, float]:
        k = turn_at(turns, state.time)
        return of_turn(k), turns.due(k + 1)

    return dynamics


def turn_at(turns: Schedule, time: float) -> int:
    """The number k of the turn that a time lies in."""
    k = 0
    while turns.due(k + 1) <= time:
        k += 1
    return k


def within_mesh(escaped: Callable[[State], float], end: str) -> Check:
    """A check that at most MAX_ESCAPED of the mass is in the last cells of the mesh.

    escaped   state → that mass
    end       where these cells are, for the message
    Raises Exploding otherwise, since what comes there can go no farther, and the rest would follow it.
    """

    def check(state: State) -> None:
        if (mass := escaped(state)) > MAX_ESCAPED:
            raise Exploding(
                f"{state.when}: {mass:.2g} of the mass has reached {end}, where "
                "the mesh ends; domain.outermost can be larger"
            )

    return check
