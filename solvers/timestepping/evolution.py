"""The loop in time: an equation, a stepper and observers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from weakref import ref

import numpy as np

from ..backends import backend_for
from ..mesh.mesh import Floats
from ..terms.advection import Step, StiffTerm, Term
from .checks import check_methods, check_positive, check_until, check_values
from .schedules import Listed, Schedule, events_before, is_reached, next_time
from .step_control import StepControl


class NonFinite(ArithmeticError):
    """The state has become NaN or infinite, or its time step has shrunk to nothing."""

    what = "a non-finite state"


class Exploding(NonFinite):
    """The state has outgrown its mesh."""

    what = "an exploding state"


@dataclass
class State:
    """Where a run is: time, values (cells) or (cells, components), and steps taken so far."""

    time: float
    values: Floats
    steps: int = 0
    dt: float = np.nan

    @property
    def when(self) -> str:
        """For messages."""
        return f"at time {self.time:.6g}, step {self.steps}"


@dataclass(frozen=True)
class Equation:
    """∂ₜu = Σ explicit terms + at most one stiff term.

    ``limit`` is applied to the state after each stage, in place (positivity, normalization, …).
    Raises TypeError for what is no term, or not of that kind.
    """

    terms: Sequence[Term]
    stiff: StiffTerm | None = None
    limit: Callable[[Floats], None] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.terms, Sequence):
            raise TypeError(f"terms = {self.terms!r}: expected a list of terms")
        for number, term in enumerate(self.terms):
            check_methods(f"terms[{number}]", term, ("prepare", "rate"))
        if self.stiff is not None:
            check_methods("stiff", self.stiff, ("longest_step", "step"))

    def prepare(self, time: float, values: Floats) -> Step:
        """Evaluate every explicit term; returns the largest stable time step, NaN for a non-finite state."""
        steps = [term.prepare(time, values) for term in self.terms]
        finite = np.where(np.isfinite(values).all(), np.inf, np.nan)
        return reduce(np.minimum, steps, finite)

    def longest_step(self, time: float, values: Floats) -> Step:
        """As ``prepare``, but no longer than the stiff term allows, which the others do not see meanwhile."""
        step = self.prepare(time, values)
        return step if self.stiff is None else np.minimum(step, self.stiff.longest_step(values))


@dataclass(frozen=True)
class Stepper:
    """Strong-stability-preserving Runge–Kutta in Shu–Osher form: w = u + dt L(u), u ← w + a_k (u₀ − w) for each stage.

    weights   a_k of each stage; (0,) is forward Euler
    order     order of accuracy in time
    """

    weights: tuple[float, ...]
    order: int

    def step(self, equation: Equation, state: State, dt: float, work: tuple[Floats, Floats]) -> None:
        """Advance the prepared state by dt in place; ``work`` then holds the values before it, and a rate."""
        start, rate = work
        backend = backend_for(start)
        start[...] = state.values
        stage_time = 0.0
        for k, weight in enumerate(self.weights):
            if k > 0:
                equation.prepare(state.time + stage_time * dt, state.values)
            rate[...] = 0.0
            for term in equation.terms:
                term.rate(dt, rate)
            flat = (start.reshape(-1), state.values.reshape(-1), rate.reshape(-1))
            backend.launch(backend.advance, flat[0].size, *flat, dt, weight, flat[1])
            if equation.limit is not None:
                equation.limit(state.values)
            stage_time = (1 - weight) * (stage_time + 1)


STEPPERS = {
    "euler": Stepper((0.0,), 1),
    "ssprk2": Stepper((0.0, 1 / 2), 2),
    "ssprk3": Stepper((0.0, 3 / 4, 1 / 3), 3),
}


def stepper_of(stepper: Stepper | str) -> Stepper:
    """A stepper itself, or the one of that name. Raises ValueError for another name, TypeError for what is neither."""
    if isinstance(stepper, Stepper):
        return stepper
    expected = f"expected a Stepper, or one of {', '.join(STEPPERS)}"
    if not isinstance(stepper, str):
        raise TypeError(f"stepper = {stepper!r}: {expected}")
    if stepper not in STEPPERS:
        raise ValueError(f"stepper = {stepper!r}: {expected}")
    return STEPPERS[stepper]


def order_of(equation: Equation, stepper: Stepper) -> int:
    """Order in time of a step: Strang splitting around a stiff term is of second order."""
    return stepper.order if equation.stiff is None else min(stepper.order, 2)


def limit_positivity(values: Floats) -> None:
    """Set to zero what rounding has made negative; fluxes keep ρ ≥ 0 but for the last bit."""
    np.maximum(values, 0.0, out=values)


@dataclass
class Observer:
    """Calls ``look(state)``, on the host, at times that steps are shortened to meet; it changes nothing.

    Events before the time of the state that a loop begins with are over; another state's loop begins anew.

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
            self.count += 1

    def is_due(self, state: State) -> bool:
        """Whether the next event is due, but for rounding of its time."""
        return is_reached(self.due(), state.time)

    def look_now(self, state: State) -> None:
        """Look, due or not."""
        self.last_time = state.time
        self.look(replace(state, values=backend_for(state.values).to_host(state.values)))


CALM = 8  # steps without undershoots, after which none is expected: a step that has one is taken again


def _step(
    equation: Equation, stepper: Stepper, state: State, dt: float, reached: float, limited: bool, work: tuple
) -> float:
    """Advance the values by dt, to time ``reached``; returns the largest stable step there, NaN if they are not finite.

    It comes with the sign − where diffusion undershot, which is mended if ``limited``. So one number tells all, and a
    step that is not limited has to wait for no other.
    """
    stiff, values = equation.stiff, state.values
    if stiff is None:
        stepper.step(equation, state, dt, work)
        return float(equation.longest_step(reached, values))
    before = stiff.step(dt / 2, values, limited)
    equation.prepare(state.time, values)
    stepper.step(equation, state, dt, work)
    after = stiff.step(dt / 2, values, limited)
    stable = equation.longest_step(reached, values)
    return float(np.where(np.minimum(before, after) < 0.0, np.negative(stable), stable))


def _to_land(time: float, target: float, longest: float) -> tuple[float, float]:
    """The length of the next of equal steps to the target, none above ``longest``; and the time that it reaches."""
    parts = math.ceil((target - time) / longest)
    dt = (target - time) / max(parts, 1)
    return dt, target if parts <= 1 else time + dt


def _controlled_step(
    equation: Equation, stepper: Stepper, state: State, target: float, stable: float, control: StepControl,
    good: Floats, work: tuple,
) -> tuple[float, float, float]:  # fmt: skip
    """Advance the values by two halves of a step whose error is allowed; returns dt, its end, and as ``_step``."""
    start, values = state.time, state.values

    def attempt(begin: float, dt: float, reached: float) -> float:
        state.time = begin  # the stages' times count from it
        if equation.stiff is None:
            equation.prepare(begin, values)
        try:
            return _step(equation, stepper, state, dt, reached, True, work)
        finally:
            state.time = start

    while True:
        dt, reached = _to_land(start, target, control.longest(stable))
        attempt(start, dt, reached)
        control.keep_whole(values)
        values[...] = good
        middle = attempt(start, dt / 2, start + dt / 2)
        told = math.nan if math.isnan(middle) else attempt(start + dt / 2, reached - start - dt / 2, reached)
        if control.accepts(dt, values, good):
            return dt, reached, told
        values[...] = good


def evolve(
    state: State,
    equation: Equation,
    stepper: Stepper | str,
    until: float,
    observers: Sequence[Observer] = (),
    cfl: float = 0.5,
    after_step: Callable[[State], bool] = lambda state: False,
    *,
    rtol: float | None = 1e-4,
    atol: float = 1e-8,
) -> State:
    """Advance ``state`` in place to ``until`` (Strang splitting around the stiff term) and return it.

        error of a step ≤ atol + rtol (|change in it| + |values − their mean|/100)      |·|: root mean square

    The errors of all steps then add up to about rtol of the way that the state goes, whatever rests beneath it. A step
    is compared with two of half its length, which are kept; one of a larger error is taken again, shorter. Where that
    is no better, as where limiters act, the error is not of time, and is accepted.

    stepper      one of STEPPERS, or its name
    cfl          fraction of ``equation.longest_step`` that is used
    after_step   called after each step; True stops the loop
    rtol, atol   tolerances, see above; rtol = None for steps that are limited by ``cfl`` alone
    Raises ValueError for an ``until`` that is not finite or before the state's time, for another stepper's name, and
    for values that are not finite, not float32 or float64, not contiguous, or not as many as the terms' meshes have
    cells; NonFinite when the state or its time step is lost: ``state`` is then the one after the last good step.
    """
    stepper = stepper_of(stepper)
    check_until(until, state.time)
    check_positive(cfl=cfl, atol=atol, **({} if rtol is None else {"rtol": rtol}))
    check_values(state.values, (*equation.terms, equation.stiff))
    control = None if rtol is None else StepControl(rtol, atol, order_of(equation, stepper), state.values)
    work = (np.empty_like(state.values), np.empty_like(state.values))
    keeps = equation.stiff is None and control is None  # the stepper then starts from the same values
    good = work[0] if keeps else np.empty_like(state.values)
    for observer in observers:
        observer.begin(state)
    stable = cfl * float(equation.longest_step(state.time, state.values))
    calm = 0  # steps since diffusion has last undershot
    while state.time < until:
        target = next_time((observer.due() for observer in observers), until)
        if not stable > np.spacing(state.time):
            raise NonFinite(f"{state.when}: stable time step is {stable:.3g}")
        good[...] = state.values
        try:
            if control is not None:
                dt, reached, told = _controlled_step(equation, stepper, state, target, stable, control, good, work)
            else:
                dt, reached = _to_land(state.time, target, stable)
                told = _step(equation, stepper, state, dt, reached, calm < CALM, work)
                if calm >= CALM and not told > 0:
                    state.values[...] = good
                    told = _step(equation, stepper, state, dt, reached, True, work)
            if math.isnan(told):
                raise NonFinite(f"the step of {dt:.3g} is not finite")
        except NonFinite as error:  # this one, or a term's
            state.values[...] = good
            raise type(error)(f"{state.when}: {error}") from error
        stable, calm = cfl * abs(told), 0 if told < 0 else calm + 1
        state.time, state.steps, state.dt = reached, state.steps + 1, dt
        for observer in observers:
            observer.look_if_due(state)
        if after_step(state):
            break
    return state
