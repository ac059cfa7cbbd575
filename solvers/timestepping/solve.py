"""Solution of an evolution equation from t0 to t1, to a tolerance, in one call."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..mesh.checks import check_unmasked, listed_calls
from ..mesh.mesh import Floats
from .checks import as_state, check_complex, check_nonnegative, check_positive, check_tolerances, check_values
from .equation import Equation
from .events import Event, Steadiness, SteadyState, locate
from .integrate import Integrator, integrate
from .look_ahead import PROBES
from .methods import MAY_BECOME_IMPLICIT, Make, method_of, name_of
from .observers import Observer
from .runge_kutta.semi_discrete import SemiDiscrete
from .schedules import Listed
from .solution import Interpolant, Solution
from .state import State, read_only

Callback = Callable[[State], object] | Observer

MIN_SPAN = 1e5  # floating-point spacings of time: a first step is a thousandth of the span or less


def solve(
    equation: Equation,
    u0: npt.ArrayLike | State,
    t_span: tuple[float, float],
    *,
    times: Sequence[float] | None = None,
    method: str | Make = "auto",
    rtol: float | None = 1e-4,
    atol: float = 1e-8,
    cfl: float | None = None,
    first_step: float | None = None,
    max_step: float | None = None,
    events: Event | SteadyState | Sequence[Event | SteadyState] = (),
    callbacks: Callback | Sequence[Callback] = (),
    progress: bool = False,
) -> Solution:
    """Solve ∂ₜu = equation from u(t0) = u0 to t1, with control of the error of each step.

    Parameters
    ----------
    equation : Equation
        Right-hand side. It is not changed, and several threads may solve it at once.
    u0 : (cells,) or (fields, cells) array, or State
        Field at t0, which is copied. An equation without a mesh takes an array of any shape. Complex numbers, or a term
        with complex coefficients, make the fields complex. A :class:`~solvers.State` of a callback or of
        :func:`~solvers.restart` continues its run from its time, which is before t1. The solution is bitwise equal to
        that of an uninterrupted run if all other arguments, ``t_span`` and recorders too, are those of that run.
    t_span : tuple of float
        Times (t0, t1) with t0 < t1.
    times : sequence of float, optional
        Increasing times from t0 to t1 at which u is stored. An end before t1, by an event or a callback, is stored too.
        By default u is stored at t0 and after every step.
    method : str or callable, optional
        "auto" chooses by the terms of the equation and names its choice in ``message`` of the solution. Without ``cfl``
        it changes to "implicit" where stability alone makes the steps short. Otherwise a name of
        :data:`~solvers.METHODS`: "dopri5" or "dop853" for smooth terms, "ssp3" for fluxes with limiters, "ark4" for a
        stiff term beside others, "implicit" if all terms are stiff, "ssprk3" for densities, "symplectic" for equations
        of second order in time. A function (equation, rtol, atol, cfl) that returns an :class:`~solvers.Integrator` is
        a method of one's own.
    rtol : float or None, optional
        Relative tolerance of a step, see Notes; 1e-6 is good for studies of the errors of the mesh. With None, ``cfl``
        alone limits the steps of "ssp3", "euler", "ssprk2" and "ssprk3".
    atol : float, optional
        Absolute tolerance of a step, in units of u: an error that does not matter.
    cfl : float, optional
        Fraction of the stable step of explicit terms, by default 0.5. Not for "dop853" and "implicit".
    first_step : float, optional
        First step to try. A shorter one is taken where the error, stability, ``max_step`` or a pulse requires it. By
        default the first step is at most a thousandth of t1 − t0.
    max_step : float, optional
        Longest step. A pulse in time that is shorter than a thousandth of t1 − t0 needs a ``max_step`` of its length;
        longer ones are found.
    events : callable, Threshold, SteadyState, or sequence of these, optional
        Functions g(t, u) of a read-only u. The run ends at the first time at which a g changes its sign, which is
        located within the step; at the end of the step for a SteadyState. An attribute ``direction`` of g, 1 or −1,
        selects the changes from − to + or from + to −.
    callbacks : callable, Observer, or sequence of these, optional
        Functions called with the :class:`~solvers.State` after each step, read-only. Observers are called at the times
        of their schedules, up to an event. The return value True ends the run.
    progress : bool, optional
        Whether a line on stderr shows the time.

    Returns
    -------
    Solution
        Stored times and fields, the reason of the end, and u at any time between.

    Raises
    ------
    TypeError
        If ``equation`` is no Equation, ``u0`` or ``times`` are no numbers, ``u0`` is complex and a term or the method
        needs real numbers, as limiters, densities and "rkl2" do, an event or a callback is no function of its
        arguments, or an event does not return one number.
    ValueError
        If ``u0`` has another shape than the mesh, is not finite or masked, or is negative for a term of densities; if
        ``t_span`` or ``times`` do not increase; if ``t_span`` is shorter than 10⁵ floating-point spacings of its times;
        if a tolerance, ``cfl``, ``first_step`` or ``max_step`` is not finite and > 0; if both tolerances are below
        rounding; if the method is unknown, or does not fit the terms or ``cfl``; if an event returns NaN, or has an
        attribute ``terminal`` other than True.
    NonFinite
        If the state or a rate of change becomes NaN or infinite; the message gives the time.
    Exploding
        If the steps decrease to the rounding of time, as where a solution blows up.

    Notes
    -----
    The estimated error of a step is at most ::

        atol + rtol (|change of u in the step| + |u − mean of u|/100 + 3·10⁴ |D|)

    in root mean squares over all numbers of u, of their moduli if u is complex. D is the change of u in the step by
    numerical diffusion, if all terms are an :class:`~solvers.Advection` or a :class:`~solvers.ConservationLaw`; else D
    is 0. So at the default ``rtol`` an error of time below that of space does not shorten the steps. With "euler",
    "ssprk2" and "ssprk3", errors that shorter steps do not reduce, such as those of limiters, are accepted. With
    "dop853" the allowed error of each number of u is ``atol + rtol |u|``, with an rtol of at most 1e-3.

    Examples
    --------
    Heat on a circle: cos φ decays as e^{−t}, and the mass is kept.

    >>> import numpy as np
    >>> from solvers import Diffusion, Equation, circle, solve
    >>> mesh = circle(64)
    >>> solution = solve(Equation(mesh, [Diffusion(mesh, 1.0)]), 1 + mesh.centers[:, 0], (0.0, 1.0))
    >>> bool(abs(solution.u[-1] - 1 - np.exp(-1) * mesh.centers[:, 0]).max() < 1e-3)
    True
    >>> round(float(solution.u[-1] @ mesh.volumes / (2 * np.pi)), 6)
    1.0
    """
    t0, t1 = _span(t_span)
    optional = {"cfl": cfl, "first_step": first_step, "max_step": max_step}
    check_positive(atol=atol, **{key: value for key, value in {"rtol": rtol, **optional}.items() if value is not None})
    if not isinstance(equation, Equation):
        raise TypeError(f"equation = {type(equation).__name__}: expected an Equation")
    by_method = method_of(equation, method)
    name = name_of(by_method)
    rtol = math.inf if rtol is None else rtol
    state = _start(u0, equation, (t0, t1), first_step)
    check_tolerances(rtol, atol, state.values)
    longest = math.inf if max_step is None else max_step
    stored = _StoredTimes(state, times, (t0, t1))
    interpolant = Interpolant(
        equation, by_method, rtol, atol, cfl, longest, (t1 - t0) / PROBES, keeps_steps=times is None
    )
    if method == "auto" and cfl is None and math.isfinite(rtol) and name in MAY_BECOME_IMPLICIT:
        interpolant = replace(interpolant, longest=min(longest, stored.spacing))
    if (changed := state.method_state.get("changed")) is not None:
        interpolant = replace(interpolant, changed=float(changed))
    dynamics = interpolant.dynamics(state.time, first_step)
    if state.method_state:
        dynamics.resume(state)

    def make_integrator(time: float) -> Integrator:
        return replace(interpolant, changed=dynamics.changed).integrator(time)

    watch = _EventDetector(listed_calls("events", events, "t, u", (SteadyState,)), equation, make_integrator, state)
    plain, observers = _split(listed_calls("callbacks", callbacks, "state", (Observer,)))

    def after_step(state: State) -> bool:
        stored.after_step(state)
        if progress:
            print(f"\rt = {state.time:.6g} of {t1:g}, step {state.steps}", end="", file=sys.stderr, flush=True)
        asked = [callback(state.for_reading()) is True for callback in plain]  # calls all callbacks
        return any(asked)

    def locate_event(state: State) -> bool:
        state.method_state = dynamics.method_state
        return watch.is_event_in_step(state)

    integrate(state, dynamics, t1, (*stored.observers, *observers), after_step, locate=locate_event)
    for observer in observers:
        observer.end(state)
    event = watch.number if watch.time == state.time else None  # an observer may end the run before the event
    if state.time < t1 or event is not None or stored.is_empty:
        stored.keep_end(state)
    if progress:
        print(file=sys.stderr)
    rejected = int(getattr(dynamics.integrator, "rejected", 0))
    reason = f"reached t = {t1:g}" if state.time >= t1 else f"ended by a callback {state.time_and_step}"
    by = name if dynamics.changed == math.inf else f"{name}, from t = {dynamics.changed:.3g} on by implicit (stiff),"
    message = f"{reason if event is None else watch.message}, by {by} in {state.steps} steps"
    interpolant = replace(interpolant, changed=dynamics.changed)
    t, u = stored.arrays()
    return Solution(t, u, state.steps, rejected, message, event, equation.mesh, _interpolant=interpolant)


class _StoredTimes:
    """Store of the times and fields of a solution: at given ``times``, or at the start and after each step."""

    def __init__(self, state: State, times: Sequence[float] | None, span: tuple[float, float]) -> None:
        self._t: list[float] = []
        self._u: list[Floats] = []
        self._every = times is None
        self.observers: tuple[Observer, ...] = ()
        self.spacing = math.inf  # longest distance of given times
        if times is None:
            self._keep(state)
        else:
            given = _times(times, *span)
            self.spacing = float(np.diff([span[0], *given, span[1]]).max())
            self.observers = (Observer(self._keep, Listed(given)),)

    def after_step(self, state: State) -> None:
        """Store the state after a step, unless times are given."""
        if self._every:
            self._keep(state)

    @property
    def is_empty(self) -> bool:
        """Return whether no time is stored, as in a continued run that begins after all given times."""
        return not self._t

    def keep_end(self, state: State) -> None:
        """Store the last state of a run, unless it is stored already."""
        if not self._t or self._t[-1] < state.time:
            self._keep(state)

    def _keep(self, state: State) -> None:
        """Store a copy of a state and its time."""
        self._t.append(state.time)
        self._u.append(state.values.copy())

    def arrays(self) -> tuple[Floats, Floats]:
        """Return the stored times (n,) and fields (n, ...)."""
        return np.array(self._t), np.array(self._u)


class _EventDetector:
    """Detector of events, zeros of functions of time and state, in each step of a run.

    make      function of a time that returns a new integrator for steps from that time; it repeats a step to locate an
              event, since observers interpolate with the integrator of the run
    time      time of the event; NaN before one has happened
    number    number of the event in the list; None before one has happened
    message   description of the event, for the user
    """

    number: int | None

    def __init__(
        self,
        events: Sequence[Event | SteadyState],
        equation: Equation,
        make: Callable[[float], Integrator],
        state: State,
    ) -> None:
        self._events: list[Event] = [
            event.of(SemiDiscrete(equation)) if isinstance(event, SteadyState) else event for event in events
        ]
        for number, event in enumerate(events):
            if (terminal := getattr(event, "terminal", True)) != 1:
                expected = "expected True, as events end a run; a callback is called in each step"
                raise ValueError(f"events[{number}] with terminal = {terminal!r}: {expected}")
        self._make, self.time, self.message, self.number = make, math.nan, "", None
        self._before = replace(state, values=state.values.copy())
        self._signs = [_sign(number, event, state) for number, event in enumerate(self._events)]

    def is_event_in_step(self, state: State) -> bool:
        """Return whether an event lies in the step that ends at a state; reset the state to the first such event."""
        found: list[tuple[float, int, State]] = []
        for k, event in enumerate(self._events):
            sign = _sign(k, event, state)
            before, direction = self._signs[k], getattr(event, "direction", 0)
            if before != 0 and sign * before <= 0 and before * direction <= 0:
                at_event = replace(state, values=state.values.copy())  # of a steady state: the end of the step
                if not isinstance(event, Steadiness):
                    at_event = locate(event, self._make(self._before.time), self._before, state)
                found.append((at_event.time, k, at_event))
            self._signs[k] = sign or self._signs[k]
        if self._events:
            self._before = replace(state, values=state.values.copy())
        if not found:
            return False
        self.time, self.number, at_event = min(found, key=lambda one: one[:2])
        state.time, state.dt = self.time, at_event.dt
        state.values[...] = at_event.values
        event = self._events[self.number]
        name = getattr(event, "__name__", None)
        what = f"events[{self.number}]" if name == "<lambda>" else f"event {name}" if name else event
        self.message = f"{what} at t = {self.time:.10g}"
        return True


def _sign(number: int, event: Event, state: State) -> float:
    """Return the sign −1, 0 or 1 of an event's function at a state; raise an error unless it returns one number.

    ``number`` is that of the event in the list, for messages.
    """
    found = event(state.time, state.values if isinstance(event, Steadiness) else read_only(state.values))
    if np.ndim(found) != 0 or np.asarray(found).dtype.kind not in "fiu":
        what = f"shape {np.shape(found)}" if np.ndim(found) else repr(found)
        raise TypeError(f"events[{number}] returns {what}: expected one number, which changes sign at the event")
    if np.isnan(found):
        raise ValueError(f"events[{number}] returns nan {state.time_and_step}: expected a number that changes sign")
    return float(np.sign(np.float64(found)))


def _span(t_span: tuple[float, float]) -> tuple[float, float]:
    """Return the start and the end time as floats; raise ValueError unless they are finite and increasing."""
    try:
        t0, t1 = map(float, t_span)
    except (TypeError, ValueError):
        raise ValueError(f"t_span = {t_span!r}: expected two times (t0, t1)") from None
    if not (np.isfinite([t0, t1]).all() and t0 < t1):
        raise ValueError(f"t_span = {t_span!r}: expected finite times with t0 < t1")
    least = MIN_SPAN * float(np.spacing(max(abs(t0), abs(t1))))
    if t1 - t0 < least:  # steps would vanish by rounding
        raise ValueError(f"t_span = {t_span!r}: expected t1 − t0 of {least:.2g} or more")
    return t0, t1


def _times(times: Sequence[float], start: float, end: float) -> tuple[float, ...]:
    """Return the given output times as floats; raise an error unless they increase within the run."""
    check_unmasked("times", times)
    try:
        found = tuple(float(time) for time in times)
    except (TypeError, ValueError):
        raise TypeError(f"times = {times!r}: expected a list of times") from None
    if not found or list(found) != sorted(set(found)) or not start <= found[0] <= found[-1] <= end:
        raise ValueError(f"times = {times!r}: expected increasing times from t0 = {start:g} to t1 = {end:g}")
    return found


def _start(u0: npt.ArrayLike | State, equation: Equation, span: tuple[float, float], first_step: float | None) -> State:
    """Return the state at the start of a run, or of its continuation; raise ValueError for a state outside the run."""
    first = math.nan if first_step is None else first_step
    if not isinstance(u0, State):
        return State(span[0], _field(u0, equation), dt=first)
    if not span[0] <= u0.time < span[1]:
        raise ValueError(f"u0 is a state at t = {u0.time!r}: expected {span[0]:g} <= t < {span[1]:g}, as t_span has")
    dt = u0.dt if first_step is None or u0.method_state else first
    return replace(u0, values=_field(u0.values, equation), dt=dt)


def _field(u0: npt.ArrayLike, equation: Equation) -> Floats:
    """Return a floating-point copy of the initial field u0; raise an error unless it fits the equation."""
    check_unmasked("u0", u0)
    try:
        given = np.asarray(u0)
    except ValueError:
        raise ValueError("u0: rows of unequal lengths: expected (cells,) or (fields, cells)") from None
    if given.dtype.kind not in "fiubc":
        what = "a function" if callable(u0) else given.dtype
        raise TypeError(f"u0 of {what}: expected numbers, one for each cell")
    values = as_state(given, equation.is_complex)
    check_complex("u0", values, equation)
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


def _split(callbacks: Sequence[Any]) -> tuple[list[Callable[[State], object]], list[Observer]]:
    """Return the functions and the observers among the callbacks, separately."""
    observers = [one for one in callbacks if isinstance(one, Observer)]
    return [one for one in callbacks if not isinstance(one, Observer)], observers
