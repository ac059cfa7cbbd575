"""Events that end a run: zeros of functions of time and field, located within a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..mesh.checks import check_call
from ..mesh.mesh import Floats
from .checks import check_positive
from .control import root_mean_square
from .integrate import Integrator, advanced
from .runge_kutta.semi_discrete import SemiDiscrete
from .state import State, read_only

Event = Callable[[float, Floats], float]  # (time, values) → a number that changes sign at the event
TIME_RTOL = 1e-12  # accuracy of an event's time relative to the step


def largest_value(values: Floats) -> float:
    """Return the largest of the values."""
    return float(values.max())


@dataclass(frozen=True)
class Threshold:
    """Event of(u) = level: by default the largest value reaches ``level``."""

    level: float
    of: Callable[[Floats], float] = largest_value

    def __post_init__(self) -> None:
        if not isinstance(self.level, (int, float, np.number)) or not np.isfinite(self.level):
            raise ValueError(f"level = {self.level!r}: expected a finite number")
        check_call("of", self.of, "u")

    def __call__(self, time: float, values: Floats) -> float:
        return float(self.of(values)) - self.level

    def __str__(self) -> str:
        return f"the threshold {self.level:g} is reached"


@dataclass(frozen=True)
class SteadyState:
    """Event |∂ₜu| ≤ rtol |u| per unit time, in root mean squares, at the end of a step: a nearly steady field."""

    rtol: float = 1e-6

    def __post_init__(self) -> None:
        check_positive(rtol=self.rtol)

    def of(self, problem: SemiDiscrete) -> Event:
        """Return the event for an equation whose rates determine steadiness."""
        return Steadiness(self, problem)


@dataclass(frozen=True)
class Steadiness:
    """Event function |∂ₜu| − rtol |u|."""

    event: SteadyState
    problem: SemiDiscrete

    def __call__(self, time: float, values: Floats) -> float:
        rate = root_mean_square(self.problem.full(time, values))
        return rate - self.event.rtol * max(root_mean_square(values), np.finfo(float).tiny)

    def __str__(self) -> str:
        return "the state is steady"


def locate(event: Event, integrator: Integrator, before: State, after: State) -> State:
    """Return the state at the event between two states, by steps from the first and Brent's method in time."""
    from scipy.optimize import brentq

    def value_at(time: float) -> float:
        state = after if time == after.time else advanced(before, integrator, time)
        return event(time, read_only(state.values))

    span = after.time - before.time
    time = brentq(value_at, before.time, after.time, xtol=max(TIME_RTOL * span, np.spacing(after.time)))
    return advanced(before, integrator, time)
