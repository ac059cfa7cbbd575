"""Evolution of an equation in time by a stepper, with Strang splitting around its stiff term."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..backends import backend_for
from ..mesh.mesh import Floats
from ..terms.term import Step
from .checks import check_nonnegative, check_positive, check_tolerances, check_until, check_values
from .control import MAX_GROWTH, Attempts, HalvingError, Proposal, StepController, root_mean_square
from .equation import Equation
from .integrate import fixed, integrate
from .observers import Observer
from .state import NonFinite, State, StepResult
from .steppers import Stepper, order_of, stepper_of

FIRST_PART = 1e-3  # of the time left: a first step at rest
DECAY = 0.9  # of an error that no shorter step makes smaller: how much of it the next step may have
SLACK = 1.1  # of a Courant number above 1, within which it may rise in a step


class SplitIntegrator:
    """Steps of an equation: its explicit terms by a stepper, between two half steps of its stiff term (Strang 1968).

    stepper      one of STEPPERS, or its name
    cfl          fraction of the longest stable step of the equation that is used
    rtol, atol   tolerances of a step, as `evolve` has them; rtol = None for steps that are limited by ``cfl`` alone
    to_device    puts a state's values where the equation's terms are
    calm         steps without undershoot, after which none is expected: a step that undershoots then is repeated with
                 the limiter
    Values are taken as they come: `evolve` checks them. Raises ValueError and TypeError as it does for the rest.
    """

    def __init__(
        self,
        equation: Equation,
        stepper: Stepper | str,
        cfl: float = 0.5,
        rtol: float | None = None,
        atol: float = 1e-8,
        to_device: Callable[[Floats], Floats] = lambda values: values,
        calm: int = 8,
    ) -> None:
        check_positive(cfl=cfl, atol=atol, **({} if rtol is None else {"rtol": rtol}))
        self.equation, self.stepper, self.cfl = equation.begin(), stepper_of(stepper), cfl
        self._rtol, self._atol, self._to_device, self._calm = rtol, atol, to_device, calm

    def begin(self, state: State) -> None:
        equation, state.values = self.equation, self._to_device(state.values)
        order = order_of(equation, self.stepper)
        self._control = StepController(order)
        self._halving = None if self._rtol is None else HalvingError(self._rtol, self._atol, order, state.values)
        self._proposal, self._tolerated = Proposal(math.inf), 1.0
        empty_like = backend_for(state.values).xp.empty_like
        self._work: tuple[Floats, ...] = (empty_like(state.values), empty_like(state.values))
        keeps = equation.stiff is None and self._halving is None  # the stepper then starts from the same values
        self._good = self._work[0] if keeps else empty_like(state.values)
        self._stable = float(equation.prepare(state.time, state.values, with_stiff=True))
        self._part = FIRST_PART
        self._since_undershoot = 0  # steps since diffusion has last undershot
        self._explicit_change = 0.0  # of the explicit terms in a controlled step, between the stiff term's halves

    def step(self, state: State, target: float) -> StepResult:
        stable = self.cfl * self._stable
        if not stable > np.spacing(state.time):
            raise NonFinite(f"{state.when}: stable time step is {stable:.3g}")
        self._good[...] = state.values
        stable = self._from_rest(stable, target - state.time)
        try:
            if self._halving is None:
                dt, reached, result = self._uncontrolled(state, target, stable)
            else:
                dt, reached, result = self._controlled(self._halving, state, target, stable)
            if not result.finite:
                raise NonFinite(f"the step of {dt:.3g} is not finite")
        except NonFinite as error:  # this one, or a term's
            state.values[...] = self._good
            raise type(error)(f"{state.when}: {error}") from error
        self._stable, self._since_undershoot = result.stable_dt, 0 if result.undershot else self._since_undershoot + 1
        state.time, state.steps, state.dt = reached, state.steps + 1, dt
        return result

    def _from_rest(self, stable: float, left: float) -> float:
        """The longest step, where nothing moves that bounds it a part of what is left: a wind may rise any time."""
        if math.isfinite(stable) or not self.equation.terms:
            self._part = FIRST_PART
            return stable
        part, self._part = self._part, min(MAX_GROWTH * self._part, 1.0)
        return part * left

    def _advance(self, state: State, dt: float, reached: float, limited: bool = False) -> StepResult:
        """Advance the values by dt, to time ``reached``; undershoots of diffusion are limited where they are expected.

        limited   whether they are in any case; else a step that undershoots unexpectedly is repeated
        """
        equation, values, lowest, half = self.equation, state.values, None, dt / 2
        stiff, limited = equation.stiff, limited or self._since_undershoot < self._calm
        while True:
            if stiff is None:
                within = self.stepper.step(equation, state, dt, self._work)
            else:
                before = equation.step_stiff(state.time, half, values, limited)
                equation.prepare(state.time, values)
                within = self.stepper.step(equation, state, dt, self._work)
                if self._halving is not None:
                    self._explicit_change = root_mean_square(values - self._work[0])
                lowest = np.minimum(before, equation.step_stiff(state.time + half, half, values, limited))
            result = _result(values, equation.prepare(reached, values, with_stiff=True), within, lowest)
            if stiff is None or limited or (result.finite and not result.undershot):
                return result
            values[...], limited = self._good, True

    def _uncontrolled(self, state: State, target: float, stable: float) -> tuple[float, float, StepResult]:
        """Advance the values by a stable step; returns dt, its end, and the result.

        A step that has become too long on its way, as where a wind rises from zero, is taken again, shorter.
        """
        while True:
            dt, reached = step_to_target(state.time, target, stable)
            result = self._advance(state, dt, reached)
            if not self._has_become_long(dt, result):
                return dt, reached, result
            stable, state.values[...] = self._shorter(state, result), self._good
            if self.equation.stiff is None:
                self.equation.prepare(state.time, state.values)

    def _has_become_long(self, dt: float, result: StepResult) -> bool:
        """Whether a stage of a step, or its end, is not stable for dt, as its beginning is."""
        return dt > max(1.0, SLACK * self.cfl) * result.least_stable

    def _shorter(self, state: State, result: StepResult) -> float:
        """The longest step to try after one that has become too long. Raises NonFinite where that is none."""
        stable = self.cfl * result.least_stable
        if not stable > np.spacing(state.time):
            raise NonFinite(f"stable time step within the next is {stable:.3g}")
        return stable

    def _controlled(
        self, halving: HalvingError, state: State, target: float, stable: float
    ) -> tuple[float, float, StepResult]:
        """Advance the values by two stable halves of a step whose error is allowed; returns dt, its end, the result."""
        start, values, good = state.time, state.values, self._good

        def attempt(begin: float, dt: float, reached: float) -> StepResult:
            state.time = begin  # the stages' times count from it
            if self.equation.stiff is None:
                self.equation.prepare(begin, values)
            try:
                return self._advance(state, dt, reached, limited=True)
            finally:
                state.time = start

        longest = min(stable, float(self._proposal.step))
        attempts = Attempts(self._control, longest, tolerated=self._tolerated, last=self._proposal)
        # explicit terms have limiters, whose errors no shorter step removes
        of_limiters = math.inf if self.equation.terms else 0.0
        while True:
            dt, reached = step_to_target(start, target, attempts.longest)
            attempt(start, dt, reached)
            halving.keep_whole(values, good, self._explicit_change)
            values[...] = good
            first = result = attempt(start, dt / 2, start + dt / 2)
            if first.finite:
                result = attempt(start + dt / 2, reached - start - dt / 2, reached)
            too_long = [half for half in (first, result) if self._has_become_long(dt / 2, half)]
            if too_long:
                attempts.longest = min(self._shorter(state, half) for half in too_long)
            elif attempts.accept(dt, halving.of_halves(values, good), of_limiters, halving.allowed):
                break
            values[...] = good
        self._proposal = attempts.next
        self._tolerated = max(1.0, DECAY * attempts.tolerated)
        return dt, reached, result


def _result(values: Floats, stable: Step, within: Step, lowest: Step | None) -> StepResult:
    """Of the stable steps, NaN for a state that is not finite, and the least value of diffusion; waits for all once."""
    backend = backend_for(values)
    numbers = backend.empty((3,), np.float64)
    numbers[0], numbers[1], numbers[2] = stable, within, 0.0 if lowest is None else lowest
    stable_dt, within_dt, minimum = backend.to_host(numbers).tolist()
    return StepResult(stable_dt, within_dt, minimum < 0.0, finite=not math.isnan(stable_dt))


def step_to_target(time: float, target: float, longest: float) -> tuple[float, float]:
    """The length of the next of equal steps to the target, none above ``longest``; and the time that it reaches."""
    parts = math.ceil((target - time) / longest)
    dt = (target - time) / max(parts, 1)
    return dt, target if parts <= 1 else time + dt


def evolve(
    state: State,
    equation: Equation,
    stepper: Stepper | str,
    until: float,
    observers: Sequence[Observer] = (),
    cfl: float = 0.5,
    after_step: Callable[[State], bool] | None = None,
    *,
    rtol: float | None = 1e-4,
    atol: float = 1e-8,
) -> State:
    """Advance ``state`` in place to ``until`` (Strang splitting around the stiff term) and return it.

        error of a step ≤ atol + rtol (|change in it| + |values − their mean|/100)      |·|: root mean square

    The errors of all steps then add up to about rtol of the path length of the state, whatever steady part it has. A
    step is compared with two of half its length, which are kept; one of a larger error is taken again, shorter. Where
    that is no better, as where limiters act, the error is not of time, and is accepted. Where the stiff term undoes
    what the explicit ones do, a step is also too short for them to change the state by half.

    A step with a stage that is not stable is taken again, shorter, whatever the tolerance. From a state at rest, which
    bounds no step, the first is a thousandth of the time left, each of the next at most four times as long.

    stepper      one of STEPPERS, or its name
    cfl          fraction of the longest stable step of the equation that is used
    after_step   called after each step with the state, read-only; True stops the loop
    rtol, atol   tolerances, see above; rtol = None for steps that are limited by ``cfl`` alone
    Raises ValueError for an ``until`` that is not finite or before the state's time, for another stepper's name, and
    for values that are not finite, not float32 or float64, not contiguous, or not as many as the terms' meshes have
    cells; NonFinite when the state or its time step is lost: ``state`` is then the one after the last good step.
    """
    if not isinstance(state, State) or not isinstance(equation, Equation):
        given = f"{type(state).__name__}, {type(equation).__name__}"
        raise TypeError(f"state, equation = {given}: expected a State and an Equation, in this order")
    integrator = SplitIntegrator(equation, stepper, cfl, rtol, atol)
    check_until(until, state.time)
    check_values(state.values, (*equation.terms, equation.stiff))
    check_nonnegative("state.values", state.values, (*equation.terms, equation.stiff))
    if rtol is not None:
        check_tolerances(rtol, atol, state.values)
    if after_step is None:
        return integrate(state, fixed(integrator), until, observers)
    return integrate(state, fixed(integrator), until, observers, lambda state: after_step(state.for_reading()))
