"""Observers of a state during time integration, each with a schedule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import ref

import numpy as np

from .schedules import Listed, Schedule, events_before, is_reached
from .state import State


class Cancelled(Exception):
    """Early exit of an observer's function, which stops the loop; the observer stays due."""


@dataclass
class Observer:
    """Observer that calls ``function(state)`` on the host at scheduled times, at the ends of steps or within steps.

    The function receives a copy of the state with read-only values. A return value True ends the loop if steps are
    interpolated.

    Events before the start time of a loop are over; a loop with another state starts anew. Several events within one
    step, such as a layer, make one call.

    count       number of events of the schedule that are over
    keeps       whether runs continue from the observed states
    last_time   time of the last call, also of a run that is resumed there; NaN before the first
    """

    function: Callable[[State], object]
    schedule: Schedule = field(default_factory=lambda: Listed(()))
    count: int = 0
    keeps: bool = False
    last_time: float = field(default=math.nan, init=False)
    _state: ref[State] | None = field(default=None, init=False, repr=False)
    _due: tuple[int, float] = field(default=(-1, math.nan), init=False, repr=False)  # count, and its due time

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_state": None}  # a weak reference is only valid in one process

    def begin(self, state: State) -> None:
        """Call the function if it is due at the start of a loop; the last loop's state continues the count."""
        before, reached = (events_before(self.schedule, state.time, or_at=or_at) for or_at in (False, True))
        is_other = self._state is not None and not self.follows(state)
        if is_other or not before <= self.count <= reached:
            self.count = before
        if before < self.count:
            self.last_time = state.time
        self._state = ref(state)
        self.observe_if_due(state)

    def due(self) -> float:
        if self._due[0] != self.count:
            self._due = self.count, self.schedule.due(self.count)
        return self._due[1]

    def observe_if_due(self, state: State) -> bool:
        """Call the function if it is due; return whether the loop is to end."""
        if not self.is_due(state):
            return False
        ends = self.observe_now(state)
        self.count += 1
        if self.is_due(state):  # several in one step
            self.count = max(self.count, events_before(self.schedule, state.time, or_at=True))
        return ends

    def follows(self, state: State) -> bool:
        """Return whether ``state`` is the state of the loop, and not one within a step."""
        return self._state is not None and self._state() is state

    def is_due(self, state: State) -> bool:
        """Return whether the next event is due, to rounding of the time."""
        return is_reached(self.due(), state.time)

    def observe_event(self, state: State) -> None:
        """Call the function unless it is due, or was called at this time."""
        if self.last_time != state.time and not self.is_due(state):
            self.observe_now(state)

    def observe_now(self, state: State) -> bool:
        """Call the function, due or not; return whether the loop is to end."""
        ends = self.function(state.for_reading())
        self.last_time = state.time
        return isinstance(ends, bool | np.bool_) and bool(ends)
