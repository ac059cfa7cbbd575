"""Problem of a case: its initial state, its dynamics and its diagnostics."""

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

MAX_ESCAPED = 1e-3  # of the mass in the outermost cells; moments have errors of that order
Check = Callable[[State], None]
Event = tuple[float, dict[str, Any]]  # time, and a value for each column


def no_check(state: State) -> None:
    """Accept every state: a check after each step that never ends a run."""


@dataclass(frozen=True)
class Problem:
    """Initial state, dynamics and diagnostics of a case on any domain.

    space               the cells or the tokens of a snapshot, as the file describes them
    initial             () → values of the state at time 0; raises CaseError for a density that is not valid
    dynamics            (state, end of the run) → integrator of that state, and the time up to which the integrator is
                        valid
    prepare             evaluates the equation once, which compiles the kernels
    diagnostics         names, last degree of the power or None → the diagnostics to record
    snapshot            values → density (cells), or positions (n, d), of a snapshot
    check               called after each step; raises Exploding for a state from which the run cannot continue
    snapshot_is_state   whether a run can continue from a snapshot
    snapshot_is_exact   whether a run that continues from a snapshot is bitwise equal; if not, the first state is a
                        checkpoint
    variables           further datasets of the mesh
    run_scalars         numbers found during the run, by the name of the attribute in the file; NaN until then
    attributes          attributes of the file, such as the device
    events              all events so far, in order of time: those of a run that is continued, then those of the
                        dynamics
    """

    space: Space
    initial: Callable[[], Floats]
    dynamics: Dynamics
    prepare: Callable[[State], object]
    diagnostics: Callable[[Sequence[str], int | None], Diagnostics]
    snapshot: Callable[[Floats], Floats] = field(default=lambda values: values)
    check: Check = field(default=no_check)
    snapshot_is_state: bool = True
    snapshot_is_exact: bool = True
    variables: tuple[Variable, ...] = ()
    run_scalars: dict[str, float] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)


def dynamics_by_interval(integrator: Callable[[int], Integrator], intervals: Schedule) -> Dynamics:
    """Return dynamics with an integrator of its own for each interval of time; no step crosses a boundary.

    integrator   k → integrator from time intervals.due(k) to intervals.due(k + 1)
    intervals    schedule of the times at which the intervals begin
    """
    of_interval = lru_cache(maxsize=1)(integrator)

    def dynamics(state: State, until: float) -> tuple[Integrator, float]:
        """Return the integrator of the interval of a state, and the end of this interval."""
        k = interval_at(intervals, state.time)
        return of_interval(k), intervals.due(k + 1)

    return dynamics


def interval_at(intervals: Schedule, time: float) -> int:
    """Return the number k of the interval, from intervals.due(k) to intervals.due(k + 1), that contains a time."""
    k = 0
    while intervals.due(k + 1) <= time:
        k += 1
    return k


def escape_check(escaped: Callable[[State], float], end: str) -> Check:
    """Return a check that at most MAX_ESCAPED of the mass is in the last cells of the mesh.

    escaped   state → mass in these cells
    end       position of these cells, for the message

    The check raises Exploding otherwise: mass cannot move beyond the mesh, and attention depends on that mass.
    """

    def check(state: State) -> None:
        """Raise Exploding if too much of the mass of a state has reached the end of the mesh."""
        if (mass := escaped(state)) > MAX_ESCAPED:
            raise Exploding(
                f"{state.time_and_step}: {mass:.2g} of the mass has reached {end}, where "
                "the mesh ends; increase domain.outermost"
            )

    return check
