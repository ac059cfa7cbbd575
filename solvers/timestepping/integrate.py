"""Time loop: an integrator makes steps, and observers are called at their scheduled times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from ..mesh.mesh import Floats
from .checks import check_until
from .observers import Cancelled, Observer
from .schedules import TIME_RTOL, is_reached, next_time
from .state import State, StepResult


class Integrator(Protocol):  # numpydoc ignore=PR01
    """Method that advances a state step by step.

    ``METHODS`` has a function of (equation, rtol, atol, cfl) for each method, which returns its integrator. An
    integrator holds the work arrays of one run. :func:`~solvers.solve` adds stored times, events and callbacks.
    Another class with ``begin`` and ``step``, constructed by (equation, rtol, atol, cfl), may be given as ``method``.

    If steps depend on more than time, values and dt of the state, an attribute ``method_state`` of the integrator, a
    dict of numbers and arrays, makes restarts bitwise equal to an uninterrupted run. The dict after the last step is
    ``state.method_state`` when ``begin`` is called in a continued run, perhaps twice.

    Examples
    --------
    A method of one's own, Heun's with steps of 0.01:

    >>> from solvers import Equation, solve
    >>> class Heun:
    ...     def __init__(self, equation, rtol, atol, cfl):
    ...         self.rate = equation.rate
    ...
    ...     def begin(self, state):
    ...         pass
    ...
    ...     def step(self, state, target):
    ...         dt = min(0.01, target - state.time)
    ...         first = self.rate(state.time, state.values)
    ...         second = self.rate(state.time + dt, state.values + dt * first)
    ...         state.values += dt / 2 * (first + second)
    ...         state.time, state.steps, state.dt = state.time + dt, state.steps + 1, dt
    >>> solution = solve(Equation(None, [lambda t, u: -u]), [1.0], (0.0, 1.0), method=Heun)
    >>> solution.message.partition(" in ")[0], round(float(solution.u[-1, 0]), 4)
    ('reached t = 1, by Heun', 0.3679)

    A loop of one's own with a method of the package:

    >>> import numpy as np
    >>> from solvers import METHODS, Equation, State
    >>> integrator = METHODS["dopri5"](Equation(None, [lambda t, u: -u]), 1e-8, 1e-12, None)
    >>> state = State(0.0, np.ones(1))
    >>> integrator.begin(state)
    >>> while state.time < 1.0:
    ...     result = integrator.step(state, 1.0)
    >>> state.time, round(float(state.values[0]), 6)
    (1.0, 0.367879)
    """

    def begin(self, state: State) -> None:
        """Prepare the first step: move the values to their device, allocate work arrays, find the first stable step.

        Parameters
        ----------
        state : State
            State at the start of a run.
        """
        ...

    def step(self, state: State, target: float) -> StepResult | None:
        """Advance a state in place by one step.

        Parameters
        ----------
        state : State
            State whose time, values, steps and dt are advanced.
        target : float
            Time that the step does not cross, unless steps have a fixed length. The last step meets the time exactly.

        Returns
        -------
        StepResult or None
            Stable time steps at the end of the step and of its stages, and whether an event has occurred; None if these
            are unknown.

        Raises
        ------
        NonFinite
            If no step succeeds; time and values of the state are then unchanged.
        """
        ...


@runtime_checkable
class DenseIntegrator(Integrator, Protocol):
    """Integrator with interpolation within a step: no step has to end at the time of an observer.

    ends_at_restarts   whether steps nevertheless end at the times of observers that store states for restarts
    """

    ends_at_restarts: bool

    def interpolate(self, time: float) -> Floats:
        """Return the state's values interpolated at a time within the last step."""
        ...


# (state, end of the run) → integrator, and the end of the integrator's validity
Dynamics = Callable[[State, float], tuple[Integrator, float]]
AfterStep = Callable[[State], bool]


def fixed(integrator: Integrator) -> Dynamics:
    """Return dynamics for :func:`integrate` with one integrator at all times: (state, until) → (integrator, ∞).

    The infinite time is the end of its validity.
    """
    return lambda state, until: (integrator, math.inf)


def integrate(
    state: State,
    dynamics: Dynamics,
    until: float,
    observers: Sequence[Observer] = (),
    after_step: AfterStep = lambda state: False,
    stopping: Callable[[], bool] | None = None,
    locate: AfterStep = lambda state: False,
) -> State:
    """Advance ``state`` in place to the time ``until`` by an integrator, call observers when due, and return the state.

    dynamics     (state, until) → the integrator, and the end of its validity; no step crosses that time
    observers    called with the state when due; steps are shortened to meet those times, or interpolated.
                 An observer that returns True ends the loop with the observed state
    after_step   called after each step; True stops the loop
    stopping     returns whether to stop within an interpolated step: observers still due in it are not called, and the
                 state is the one before the step, from which a loop continues to the same states
    locate       called after each step, before the observers: it resets the state to the first event of the step, if
                 there is one, and returns whether the loop ends there
    Raises ValueError for an ``until`` that is not finite or lies before the state's time, the exceptions of
    integrators, and Cancelled of an observer, which stays due: for an interpolated step the state is then the one
    before the step.
    """
    check_until(until, state.time)
    begun = [observer.begin(state) for observer in observers]
    if any(begun):
        return state
    integrator: Integrator | None = None
    dense: DenseIntegrator | None = None
    start: State | None = None
    end = -math.inf
    while state.time < until:
        if state.time >= end:
            before = integrator
            integrator, end = dynamics(state, until)
            if integrator is not before:
                integrator.begin(state)
                dense = integrator if isinstance(integrator, DenseIntegrator) else None  # slow for protocols
        assert integrator is not None
        dues = [observer.due() for observer in observers]
        met = dues
        if dense is not None:
            met = [due for due, one in zip(dues, observers, strict=True) if one.keeps and dense.ends_at_restarts]
        target = next_time(met, min(until, end))
        if dense is not None and stopping is not None:
            start = _copy_state(state, start)
        result = integrator.step(state, target)
        ends = locate(state)
        if dense is not None and _observe_within_step(state, start, dense, observers, stopping):
            break
        if state.time > target:  # a step of fixed length
            state.time = _first_equal_due(state.time, [until, end, *dues])
        for observer in observers:
            if result is not None and result.event:
                observer.observe_event(state)
            ends |= observer.observe_if_due(state)
        if after_step(state) or ends:
            break
    return state


def advance_copy(before: State, integrator: Integrator, time: float) -> State:
    """Return a copy of the state ``before``, advanced by an integrator to a time."""
    state = replace(before, values=before.values.copy(), method_state={})
    return integrate(state, fixed(integrator), time)


def _observe_within_step(
    state: State,
    start: State | None,
    integrator: DenseIntegrator,
    observers: Sequence[Observer],
    stopping: Callable[[], bool] | None,
) -> bool:
    """Call observers with interpolated states at due times within the last step; return whether the loop ends there.

    state      state after the step
    start      copy of the state before the step; None without ``stopping``
    stopping   returns whether to end the loop; the state then becomes ``start``

    If an observer ends the loop, the state becomes the observed one.
    """
    while not is_reached(state.time, due := min([observer.due() for observer in observers], default=math.inf)):
        if start is not None and stopping is not None and stopping():
            _copy_state(start, state)
            return True
        within = replace(state, time=due, values=integrator.interpolate(due))
        try:
            ends = [observer.observe_if_due(within) for observer in observers]
        except Cancelled:
            if start is not None:
                _copy_state(start, state)
            raise
        if any(ends):
            state.time, state.values[...] = due, within.values
            return True
    return False


def _copy_state(state: State, into: State | None) -> State:
    """Return a copy of a state, in the memory of the state ``into`` if the shapes of their values are equal."""
    if into is None or into.values.shape != state.values.shape:
        return replace(state, values=state.values.copy())
    into.time, into.steps, into.dt, into.values[...] = state.time, state.steps, state.dt, state.values
    return into


def _first_equal_due(time: float, dues: Sequence[float]) -> float:
    """Return the first of the due times that equals ``time`` to rounding, or else ``time``.

    A step that ends at a due time but for rounding then ends there exactly.
    """
    return next((due for due in dues if abs(due - time) <= TIME_RTOL * abs(time)), time)
