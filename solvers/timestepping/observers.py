"""Observers of a state during integration, each with a schedule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from weakref import ref

import numpy as np

from ..backends import backend_for
from .schedules import Listed, Schedule, events_before, is_reached
from .state import State


@dataclass
class Observer:
    """Calls ``look(state)``, on the host, at times that steps are shortened to meet, or within them.

    It changes nothing; that it returns True ends the loop where steps are interpolated.

    Events before the time of the state that a loop begins with are over; another state's loop begins anew. Several
    that a step has passed at once, as layers may, are looked at once.

    count       events of the schedule that are over
    keeps       whether runs go on from the states that it is shown
    last_time   time of the last look; NaN before the first
    """

    look: Callable[[State], object]
    schedule: Schedule = field(default_factory=lambda: Listed(()))
    count: int = 0
    keeps: bool = False
    last_time: float = field(default=math.nan, init=False)
    _state: ref[State] | None = field(default=None, init=False, repr=False)

    def begin(self, state: State) -> None:
        """Look if it is due, at the beginning of a loop with a state: the one of the last loop goes on."""
        before, reached = (events_before(self.schedule, state.time, or_at=or_at) for or_at in (False, True))
        is_other = self._state is not None and not self.follows(state)
        if is_other or not before <= self.count <= reached:
            self.count = before
        self._state = ref(state)
        self.look_if_due(state)

    def due(self) -> float:
        return self.schedule.due(self.count)

    def look_if_due(self, state: State) -> bool:
        """Look if it is due; whether it was and the loop is to end."""
        if not self.is_due(state):
            return False
        ends = self.look_now(state)
        self.count = max(self.count + 1, events_before(self.schedule, state.time, or_at=True))
        return ends

    def follows(self, state: State) -> bool:
        """Whether this is the very state of the loop, and none within a step."""
        return self._state is not None and self._state() is state

    def is_due(self, state: State) -> bool:
        """Whether the next event is due, but for rounding of its time."""
        return is_reached(self.due(), state.time)

    def look_now(self, state: State) -> bool:
        """Look, due or not; whether the loop is to end."""
        self.last_time = state.time
        ends = self.look(replace(state, values=backend_for(state.values).to_host(state.values)))
        return isinstance(ends, bool | np.bool_) and bool(ends)
