"""Observers of a state during integration, each with a schedule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from weakref import ref

import numpy as np

from .schedules import Listed, Schedule, events_before, is_reached
from .state import State


class GivenUp(Exception):
    """Raised by an observer's function that is to leave early, for the loop to stop; it is due again with the state."""


@dataclass
class Observer:
    """Calls ``function(state)``, on the host, at times that steps are shortened to meet, or within them.

    The function is given a copy of the state, whose values are read-only. A return value True ends the loop where steps
    are interpolated.

    Events before the time of the state that a loop begins with are over; another state's loop begins anew. Several
    that one step passes, as layers may, are one call.

    count       events of the schedule that are over
    keeps       whether runs continue from the states that it is called with
    last_time   time of the last call, also one of a run that is continued there; NaN before the first
    """

    function: Callable[[State], object]
    schedule: Schedule = field(default_factory=lambda: Listed(()))
    count: int = 0
    keeps: bool = False
    last_time: float = field(default=math.nan, init=False)
    _state: ref[State] | None = field(default=None, init=False, repr=False)
    _due: tuple[int, float] = field(default=(-1, math.nan), init=False, repr=False)  # a count, and when it is due

    def __getstate__(self) -> dict[str, object]:
        return vars(self) | {"_state": None}  # which is known within one process

    def begin(self, state: State) -> None:
        """Call the function if it is due at the start of a loop; the state of the last loop continues its count."""
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
        """Call the function if it is due; returns whether the loop is to end."""
        if not self.is_due(state):
            return False
        ends = self.observe_now(state)
        self.count += 1
        if self.is_due(state):  # several in one step
            self.count = max(self.count, events_before(self.schedule, state.time, or_at=True))
        return ends

    def follows(self, state: State) -> bool:
        """Whether this is the very state of the loop, and none within a step."""
        return self._state is not None and self._state() is state

    def is_due(self, state: State) -> bool:
        """Whether the next event is due, but for rounding of its time."""
        return is_reached(self.due(), state.time)

    def observe_event(self, state: State) -> None:
        """Call the function unless it is due, or was called at this time."""
        if self.last_time != state.time and not self.is_due(state):
            self.observe_now(state)

    def observe_now(self, state: State) -> bool:
        """Call the function, due or not; returns whether the loop is to end."""
        ends = self.function(state.for_reading())
        self.last_time = state.time
        return isinstance(ends, bool | np.bool_) and bool(ends)
