"""Solution of an evolution equation from t0 to t1, to a tolerance, in one call."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..mesh.checks import check_call, check_unmasked
from ..mesh.mesh import Floats
from .checks import check_nonnegative, check_positive, check_tolerances, check_values
from .equation import Equation
from .events import Event, Steadiness, SteadyState, locate
from .integrate import Integrator, integrate
from .look_ahead import PROBES
from .methods import method_of
from .observers import Observer
from .runge_kutta.semi_discrete import SemiDiscrete
from .schedules import Listed
from .solution import Between, Solution
from .state import State, read_only

Callback = Callable[[State], object] | Observer


def solve(
    equation: Equation,
    u0: npt.ArrayLike,
    t_span: tuple[float, float],
    *,
    times: Sequence[float] | None = None,
    method: str = "auto",
    rtol: float = 1e-4,
    atol: float = 1e-8,
    cfl: float | None = None,
    max_step: float | None = None,
    events: Event | SteadyState | Sequence[Event | SteadyState] = (),
    callbacks: Callback | Sequence[Callback] = (),
    progress: bool = False,
) -> Solution:
    """Solve ∂ₜu = equation from u(t0) = u0 to t1, with an error of each step below

        atol + rtol (|change in the step| + |u − mean|/100)      |·|: root mean square

    If all terms are a ConservationLaw, cells at shocks are excluded: ``cfl`` alone limits the steps there. With
    "dop853" the allowed error of each number of u is atol + rtol |u|.

    u0          (cells,) or (fields, cells); it is copied
    t_span      (t0, t1)
    times       times at which u is stored, met exactly; also the end of a run that ends early. None for every step
    method      "auto", a choice by the terms that ``message`` reports, or a name of `METHODS`
    cfl         fraction of the stable step of explicit terms; None for the method's own. Not for "dop853", "implicit"
    max_step    longest step; None for steps by the error alone. Rates are evaluated at a thousand times of the span in
                addition to the steps: a pulse in time shorter than a thousandth needs a ``max_step`` of its length
    events      functions g(t, u), SteadyState or Threshold: the first whose g changes sign ends the run there
    callbacks   functions called with the read-only state after each step, where True ends the run; or Observers
    progress    whether a line on stderr shows the time
    Raises ValueError and TypeError for invalid arguments before the computation starts; NonFinite and Exploding, with
    the time, for a state that is not finite.
    """
    t0, t1 = _span(t_span)
    optional = {"cfl": cfl, "max_step": max_step}
    check_positive(rtol=rtol, atol=atol, **{key: value for key, value in optional.items() if value is not None})
    if not isinstance(equation, Equation):
        raise TypeError(f"equation = {type(equation).__name__}: expected an Equation")
    equation = equation.with_stiff_found()
    name = method_of(equation, method)
    state = State(t0, _field(u0, equation))
    check_tolerances(rtol, atol, state.values)
    longest = math.inf if max_step is None else max_step
    between = Between(equation, name, rtol, atol, cfl, longest, (t1 - t0) / PROBES, keeps_steps=times is None)
    dynamics = between.dynamics()
    stored = _StoredTimes(state, times, t1)
    watch = _Watch(_listed("events", events, "t, u"), equation, dynamics.integrator, state)
    plain, observers = _split(_listed("callbacks", callbacks, "state"))

    def after_step(state: State) -> bool:
        over = watch.happened(state)
        stored.after_step(state, over)
        if progress:
            print(f"\rt = {state.time:.6g} of {t1:g}, step {state.steps}", end="", file=sys.stderr, flush=True)
        asked = [callback(state.for_reading()) is True for callback in plain]  # calls all callbacks
        return over or any(asked)

    integrate(state, dynamics, t1, (*stored.observers, *observers), after_step)
    if state.time < t1:
        stored.after_step(state, True)
    if progress:
        print(file=sys.stderr)
    rejected = int(getattr(dynamics.integrator, "rejected", 0))
    reason = watch.message or (f"reached t = {t1:g}" if state.time >= t1 else f"ended by a callback {state.when}")
    message = f"{reason}, by {name} in {state.steps} steps"
    t, u = stored.arrays()
    return Solution(t, u, state.steps, rejected, message, watch.number, equation.mesh, between)


class _StoredTimes:
    """Stored times and fields of a solution."""

    def __init__(self, state: State, times: Sequence[float] | None, end: float) -> None:
        self._t: list[float] = []
        self._u: list[Floats] = []
        self._every = times is None
        self.observers: tuple[Observer, ...] = ()
        if times is None:
            self._keep(state)
        else:
            self.observers = (Observer(self._keep, Listed(_times(times, state.time, end))),)

    def after_step(self, state: State, is_last: bool) -> None:
        while is_last and self._t and self._t[-1] >= state.time:  # an observer has stored the end of the step
            self._t.pop()
            self._u.pop()
        if self._every or is_last:
            self._keep(state)

    def _keep(self, state: State) -> None:
        self._t.append(state.time)
        self._u.append(state.values.copy())

    def arrays(self) -> tuple[Floats, Floats]:
        return np.array(self._t), np.array(self._u)


class _Watch:
    """Events, located in each step; the state is reset to the first event."""

    def __init__(
        self, events: Sequence[Event | SteadyState], equation: Equation, integrator: Integrator, state: State
    ) -> None:
        self._events: list[Event] = [
            event.of(SemiDiscrete(equation)) if isinstance(event, SteadyState) else event for event in events
        ]
        self._integrator, self.message, self.number = integrator, "", None
        self._before = replace(state, values=state.values.copy())
        self._signs = [_sign(number, event, state) for number, event in enumerate(self._events)]

    number: int | None

    def happened(self, state: State) -> bool:
        """Return whether an event lies in the step to a state, which is then reset to the first event."""
        found: list[tuple[float, int, State]] = []
        for k, event in enumerate(self._events):
            sign = _sign(k, event, state)
            if self._signs[k] * sign < 0 or (sign == 0 and self._signs[k] != 0):
                at_event = replace(state, values=state.values.copy())  # of a steady state: the end of the step
                if not isinstance(event, Steadiness):
                    at_event = locate(event, self._integrator, self._before, state)
                found.append((at_event.time, k, at_event))
            self._signs[k] = sign or self._signs[k]
        if self._events:
            self._before = replace(state, values=state.values.copy())
        if not found:
            return False
        time, self.number, at_event = min(found, key=lambda one: one[:2])
        state.time, state.dt = time, at_event.dt
        state.values[...] = at_event.values
        event = self._events[self.number]
        name = getattr(event, "__name__", "")
        self.message = f"{f'event {name}' if name else event} at t = {time:.10g}"
        return True


def _sign(number: int, event: Event, state: State) -> float:
    """Return the sign of an event's function; raise TypeError or ValueError for a result that is not one number."""
    found = event(state.time, state.values if isinstance(event, Steadiness) else read_only(state.values))
    if np.ndim(found) != 0 or np.asarray(found).dtype.kind not in "fiu":
        what = f"shape {np.shape(found)}" if np.ndim(found) else repr(found)
        raise TypeError(f"events[{number}] returns {what}: expected one number, which changes sign at the event")
    if np.isnan(found):
        raise ValueError(f"events[{number}] returns nan {state.when}: expected a number that changes sign")
    return float(np.sign(np.float64(found)))


def _span(t_span: tuple[float, float]) -> tuple[float, float]:
    try:
        t0, t1 = map(float, t_span)
    except (TypeError, ValueError):
        raise ValueError(f"t_span = {t_span!r}: expected two times (t0, t1)") from None
    if not (np.isfinite([t0, t1]).all() and t0 < t1):
        raise ValueError(f"t_span = {t_span!r}: expected finite times with t0 < t1")
    return t0, t1


def _times(times: Sequence[float], start: float, end: float) -> tuple[float, ...]:
    check_unmasked("times", times)
    try:
        found = tuple(float(time) for time in times)
    except (TypeError, ValueError):
        raise TypeError(f"times = {times!r}: expected a list of times") from None
    if not found or list(found) != sorted(set(found)) or not start <= found[0] <= found[-1] <= end:
        raise ValueError(f"times = {times!r}: expected increasing times from t0 = {start:g} to t1 = {end:g}")
    return found


def _field(u0: npt.ArrayLike, equation: Equation) -> Floats:
    """Return a floating-point copy of u0."""
    check_unmasked("u0", u0)
    try:
        given = np.asarray(u0)
    except ValueError:
        raise ValueError("u0: rows of unequal lengths: expected (cells,) or (fields, cells)") from None
    if given.dtype.kind not in "fiub":
        what = "a function" if callable(u0) else given.dtype
        raise TypeError(f"u0 of {what}: expected real numbers, one for each cell")
    values: Floats = np.array(given, dtype=np.float32 if given.dtype == np.float32 else np.float64, order="C")
    cells = None if equation.mesh is None else equation.mesh.cells
    if cells is not None and (values.ndim not in (1, 2) or values.shape[-1] != cells or not values.size):
        raise ValueError(f"u0 of shape {values.shape}: expected ({cells},) or (fields, {cells}), as the mesh has")
    if not values.size or not values.ndim:
        raise ValueError(f"u0 of shape {values.shape}: expected an array of at least one number")
    if not np.isfinite(values).all():
        raise ValueError(f"u0: {int(values.size - np.isfinite(values).sum())} of {values.size} not finite")
    check_nonnegative("u0", values, (*equation.terms, equation.stiff))
    check_values(values, () if values.ndim > 1 else (*equation.terms, equation.stiff))
    return values


def _listed(name: str, given: Any, arguments: str) -> Sequence[Any]:
    """Return the given objects as a list; raise TypeError for classes and for wrong signatures."""
    found = given if isinstance(given, (list, tuple)) else (given,)
    for number, one in enumerate(found):
        if isinstance(one, type):
            raise TypeError(f"{name}[{number}] = {one.__name__}: expected an object, as {one.__name__}(…)")
        if not isinstance(one, (SteadyState, Observer)):
            check_call(f"{name}[{number}]", one, arguments)
    return found


def _split(callbacks: Sequence[Any]) -> tuple[list[Callable[[State], object]], list[Observer]]:
    observers = [one for one in callbacks if isinstance(one, Observer)]
    return [one for one in callbacks if not isinstance(one, Observer)], observers
