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
    """Exception by which an observer's function ends the time loop early; the observer stays due."""


@dataclass
class Observer:
    """Observer that calls a function with the state at scheduled times.

    Observers are passed to ``callbacks`` of :func:`~solvers.solve`. Steps end at the scheduled times; method "dop853"
    interpolates within its steps instead. Scheduled times before the start of a run are skipped. Several of them within
    one step of fixed length make one call.

    Parameters
    ----------
    function : callable
        Function of a :class:`~solvers.State` with read-only values on the host. The return value True ends the run
        with this state; other return values are ignored.
    schedule : Every, Logarithmic or Listed, optional
        Times of the calls, or an object with a method ``due(count)``; by default none.
    count : int, optional
        Number of scheduled times that are over; replaced at the start of a run if it contradicts the start time.
    keeps : bool, optional
        Whether the observed states are stored for restarts; some methods that interpolate then end steps there.

    Attributes
    ----------
    last_time : float
        Time of the last call, also of a run that is resumed there; NaN before the first.

    Examples
    --------
    >>> from solvers import Equation, Every, Observer, solve
    >>> decay, seen = Equation(None, [lambda t, u: -u]), {}
    >>> observer = Observer(lambda state: seen.update({state.time: state.values[0]}), Every(0.5))
    >>> solution = solve(decay, [1.0], (0.0, 2.0), rtol=1e-8, callbacks=observer)
    >>> list(seen), round(float(seen[2.0]), 6)
    ([0.0, 0.5, 1.0, 1.5, 2.0], 0.135335)
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

    def begin(self, state: State) -> bool:
        """Begin a run: call the observer's function if a call is scheduled at the start time.

        Parameters
        ----------
        state : State
            State at the start. The state object of the last run continues ``count``; another object resets it.

        Returns
        -------
        bool
            Whether the function was called and returned True.
        """
        before, reached = (events_before(self.schedule, state.time, or_at=or_at) for or_at in (False, True))
        is_other = self._state is not None and not self.follows(state)
        if is_other or not before <= self.count <= reached:
            self.count = before
        if before < self.count:
            self.last_time = state.time
        self._state = ref(state)
        return self.observe_if_due(state)

    def end(self, state: State) -> None:
        """End a run of :func:`~solvers.solve`, after its last step; by default without an action.

        Parameters
        ----------
        state : State
            State at the end.
        """

    def due(self) -> float:
        """Return the time at which the observer's function is called next.

        Returns
        -------
        float
            Next scheduled time; ∞ after the last.
        """
        if self._due[0] != self.count:
            self._due = self.count, self.schedule.due(self.count)
        return self._due[1]

    def observe_if_due(self, state: State) -> bool:
        """Call the observer's function with a state that has reached the next scheduled time.

        Nothing happens for an earlier state. A call counts for all scheduled times up to the time of the state.

        Parameters
        ----------
        state : State
            State at the end of a step, or within an interpolated step.

        Returns
        -------
        bool
            Whether the function was called and returned True.
        """
        if not self._is_due(state):
            return False
        ends = self.observe_now(state)
        self.count += 1
        if self._is_due(state):  # several in one step
            self.count = max(self.count, events_before(self.schedule, state.time, or_at=True))
        return ends

    def follows(self, state: State) -> bool:
        """Return whether a state is the object with which the run was begun, not one interpolated within a step.

        Parameters
        ----------
        state : State
            State, compared by identity.

        Returns
        -------
        bool
            Whether :meth:`begin` was called with this state last.
        """
        return self._state is not None and self._state() is state

    def _is_due(self, state: State) -> bool:
        """Return whether a state has reached the observer's next scheduled time, to rounding."""
        return is_reached(self.due(), state.time)

    def observe_event(self, state: State) -> None:
        """Call the observer's function at an event, unless a call at this time is scheduled or has been made.

        Parameters
        ----------
        state : State
            State at the end of a step with an event, such as a merger of atoms.
        """
        if self.last_time != state.time and not self._is_due(state):
            self.observe_now(state)

    def observe_now(self, state: State) -> bool:
        """Call the observer's function with a state, whether a call is scheduled at its time or not.

        Parameters
        ----------
        state : State
            State whose read-only copy the function receives.

        Returns
        -------
        bool
            Whether the function returned True.
        """
        ends = self.function(state.for_reading())
        self.last_time = state.time
        return isinstance(ends, bool | np.bool_) and bool(ends)
