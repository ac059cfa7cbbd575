"""Observers of a state during integration, each with a schedule."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from weakref import ref

from ..backends import backend_for
from .schedules import Listed, Schedule, events_before, is_reached
from .state import State


@dataclass
class Observer:
    """Calls ``look(state)``, on the host, at times that steps are shortened to meet; it changes nothing.

    Events before the time of the state that a loop begins with are over; another state's loop begins anew. Several
    that a step has passed at once, as layers may, are looked at once.

    count       events of the schedule that are over
    last_time   time of the last look; NaN before the first
    """

    look: Callable[[State], None]
    schedule: Schedule = field(default_factory=lambda: Listed(()))
    count: int = 0
    last_time: float = field(default=math.nan, init=False)
    _state: ref[State] | None = field(default=None, init=False, repr=False)

    def begin(self, state: State) -> None:
        """Look if it is due, at the beginning of a loop with a state: the one of the last loop goes on."""
        before, reached = (events_before(self.schedule, state.time, or_at=or_at) for or_at in (False, True))
        is_other = self._state is not None and self._state() is not state
        if is_other or not before <= self.count <= reached:
            self.count = before
        self._state = ref(state)
        self.look_if_due(state)

    def due(self) -> float:
        return self.schedule.due(self.count)

    def look_if_due(self, state: State) -> None:
        if self.is_due(state):
            self.look_now(state)
            self.count = max(self.count + 1, events_before(self.schedule, state.time, or_at=True))

    def is_due(self, state: State) -> bool:
        """Whether the next event is due, but for rounding of its time."""
        return is_reached(self.due(), state.time)

    def look_now(self, state: State) -> None:
        """Look, due or not."""
        self.last_time = state.time
        self.look(replace(state, values=backend_for(state.values).to_host(state.values)))
