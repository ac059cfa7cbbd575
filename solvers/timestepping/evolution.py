"""Evolution of an equation in time by a stepper, between half steps of its stiff term (Strang splitting)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..backends import backend_for
from ..mesh.mesh import Floats
from ..terms.term import Step
from .checks import check_nonnegative, check_positive, check_real, check_tolerances, check_until, check_values
from .control import MAX_GROWTH, Attempts, HalvingError, Proposal, StepController, root_mean_square
from .equation import Equation
from .integrate import fixed, integrate
from .observers import Observer
from .state import MethodState, NonFinite, State, StepResult
from .steppers import Stepper, order_of, stepper_of

FIRST_PART = 1e-3  # first step from rest over the remaining time
DECAY = 0.9  # factor of a tolerated error, which no shorter step reduces, from a step to the next
SLACK = 1.1  # factor by which a Courant number above 1 may rise within a step


class SplitIntegrator:
    """Integrator with Strang splitting: a step of the explicit terms between two half steps of the stiff term.

    Source: Strang (1968).

    stepper      method of the explicit terms, one of STEPPERS or its name
    cfl          fraction of the longest stable step of the equation in use
    rtol, atol   tolerances of a step, see `evolve`; rtol = None for steps that are limited by ``cfl`` alone
    to_device    moves the values to the device of the equation's terms
    unlimited_after   number of consecutive steps without undershoot after which steps run without the limiter; an
                 unlimited step that undershoots is repeated with the limiter
    The values are not checked here but in `evolve`. Raises ValueError and TypeError for other arguments as `evolve`
    does.
    """

    def __init__(
        self,
        equation: Equation,
        stepper: Stepper | str,
        cfl: float = 0.5,
        rtol: float | None = None,
        atol: float = 1e-8,
        to_device: Callable[[Floats], Floats] = lambda values: values,
        unlimited_after: int = 8,
    ) -> None:
        check_positive(cfl=cfl, atol=atol, **({} if rtol is None else {"rtol": rtol}))
        self.equation, self.stepper, self.cfl = equation.begin(), stepper_of(stepper), cfl
        self._rtol, self._atol, self._to_device, self._unlimited_after = rtol, atol, to_device, unlimited_after

    def begin(self, state: State) -> None:
        check_real("u0", state.values, "the methods euler, ssprk2 and ssprk3")
        equation, state.values = self.equation, self._to_device(state.values)
        order = order_of(equation, self.stepper)
        self._control = StepController(order)
        self._halving = None if self._rtol is None else HalvingError(self._rtol, self._atol, order, state.values)
        self._proposal, self._tolerated = Proposal(math.inf), 1.0
        empty_like = backend_for(state.values).xp.empty_like
        self._work: tuple[Floats, ...] = (empty_like(state.values), empty_like(state.values))
        keeps = equation.stiff is None and self._halving is None  # the stepper then stores the same start values
        self._good = self._work[0] if keeps else empty_like(state.values)
        self._stable = float(equation.prepare(state.time, state.values, with_stiff=True))
        self._part = FIRST_PART
        self._since_undershoot = 0  # steps since the last undershoot of diffusion
        self._explicit_change = 0.0  # by the explicit terms in a controlled step, between the stiff half steps
        if "tolerated" in (known := state.method_state):
            self._proposal = Proposal(known["step"], known["error"])
            self._tolerated, self._part = float(known["tolerated"]), float(known["part"])
            self._since_undershoot = int(known["since_undershoot"])

    @property
    def method_state(self) -> MethodState:
        """Return the numbers on which the next step depends besides the state."""
        numbers = {"tolerated": self._tolerated, "part": self._part, "since_undershoot": self._since_undershoot}
        return {**self._proposal.numbers, **numbers}

    @property
    def stable_step(self) -> float:
        """Return the length of the next step by its stability alone."""
        return self.cfl * self._stable

    def step(self, state: State, target: float) -> StepResult:
        stable = self.cfl * self._stable
        if not stable > np.spacing(state.time):
            raise NonFinite(f"{state.time_and_step}: stable time step is {stable:.3g}")
        self._good[...] = state.values
        stable = self._first_step(stable, target - state.time)
        try:
            if self._halving is None:
                dt, reached, result = self._step_uncontrolled(state, target, stable)
            else:
                dt, reached, result = self._step_controlled(self._halving, state, target, stable)
            if not result.finite:
                raise NonFinite(f"the step of {dt:.3g} is not finite")
        except NonFinite as error:  # raised here or by a term
            state.values[...] = self._good
            raise type(error)(f"{state.time_and_step}: {error}") from error
        self._stable, self._since_undershoot = result.stable_dt, 0 if result.undershot else self._since_undershoot + 1
        state.time, state.steps, state.dt = reached, state.steps + 1, dt
        return result

    def _first_step(self, stable: float, left: float) -> float:
        """Return the first step to try: ``stable``, or a part of the time ``left`` if the stable step is unbounded.

        A state at rest has an unbounded stable step. The part is 10⁻³ at first and four times larger in each further
        step.
        """
        if math.isfinite(stable) or not self.equation.terms:
            self._part = FIRST_PART
            return stable
        part, self._part = self._part, min(MAX_GROWTH * self._part, 1.0)
        return part * left

    def _advance(self, state: State, dt: float, reached: float, limited: bool = False) -> StepResult:
        """Advance the state's values by dt to the time ``reached``, and return the result of the step.

        The stiff term limits undershoots of a density if one has occurred in the last steps. Otherwise a step that
        undershoots is repeated with the limiter.

        limited   whether to use the limiter in any case
        """
        equation, values, lowest, half = self.equation, state.values, None, dt / 2
        stiff, limited = equation.stiff, limited or self._since_undershoot < self._unlimited_after
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

    def _step_uncontrolled(self, state: State, target: float, stable: float) -> tuple[float, float, StepResult]:
        """Advance the state's values by one stable step without error control; return dt, end time and result.

        A step with an unstable stage, as where a velocity rises from zero, is repeated with a shorter length.
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
        """Return whether a step dt, stable at its beginning, is above the stable step of a stage or of its end."""
        return dt > max(1.0, SLACK * self.cfl) * result.least_stable

    def _shorter(self, state: State, result: StepResult) -> float:
        """Return the length to try after a step with an unstable stage; raise NonFinite if the stable step vanishes."""
        stable = self.cfl * result.least_stable
        if not stable > np.spacing(state.time):
            raise NonFinite(f"stable time step of the stages of the next step is {stable:.3g}")
        return stable

    def _step_controlled(
        self, halving: HalvingError, state: State, target: float, stable: float
    ) -> tuple[float, float, StepResult]:
        """Advance the state's values by two halves of a step with an allowed error; return dt, end time and result.

        The error is the difference between the two halves and one whole step. ``stable`` bounds the length.
        """
        start, values, good = state.time, state.values, self._good
        diffusion = self.equation.numerical_diffusion()  # of the state, which the last step has prepared

        def attempt(begin: float, dt: float, reached: float) -> StepResult:
            """Return the result of a step ``dt`` from the time ``begin``; the time of the state is restored."""
            state.time = begin  # stages are relative to the state's time
            if self.equation.stiff is None:
                self.equation.prepare(begin, values)
            try:
                return self._advance(state, dt, reached, limited=True)
            finally:
                state.time = start

        longest = min(stable, float(self._proposal.step))
        attempts = Attempts(self._control, longest, tolerated=self._tolerated, last=self._proposal)
        # explicit terms have limiters, whose errors do not decrease with the step
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
            elif attempts.accept(dt, halving.of_halves(values, good, dt * diffusion), of_limiters, halving.allowed):
                break
            values[...] = good
        self._proposal = attempts.next
        self._tolerated = max(1.0, DECAY * attempts.tolerated)
        return dt, reached, result


def _result(values: Floats, stable: Step, within: Step, lowest: Step | None) -> StepResult:
    """Return the result of a step that ends with ``values``, with one transfer of its numbers from the device.

    stable   longest stable step at the end; NaN if the state is not finite
    within   smallest of the stable steps of the stages
    lowest   least value before undershoots are limited; None without a stiff term
    """
    backend = backend_for(values)
    numbers = backend.empty((3,), np.float64)
    numbers[0], numbers[1], numbers[2] = stable, within, 0.0 if lowest is None else lowest
    stable_dt, within_dt, minimum = backend.to_host(numbers).tolist()
    return StepResult(stable_dt, within_dt, minimum < 0.0, finite=not math.isnan(stable_dt))


def step_to_target(time: float, target: float, longest: float) -> tuple[float, float]:
    """Return the length of the next step from ``time``, and its end time.

    The step is the first of equal steps to ``target``, each of at most the length ``longest``.
    """
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
    """Advance ``state`` in place to the time ``until`` by Strang splitting, and return the state.

    Each step of the explicit terms is between two half steps of the stiff term.

        error of a step ≤ atol + rtol (|change in the step| + |values − mean|/100 + 3·10⁴ |D|)

    in root mean squares. D is the change by numerical diffusion if each term has one and no term is stiff, else 0. If
    D = 0, the sum of the errors of all steps is about rtol times the sum of the changes in the steps. A part of the
    state that does not change does not affect this sum.
    A step is compared with two half steps, whose result is kept; a step with a larger error is repeated with a shorter
    length. An error that does not decrease with the step, as by limiters, is not temporal and is accepted. Where the
    stiff term cancels the explicit ones, a step is also so short that the explicit terms change the state by less than
    half.

    A step with an unstable stage is repeated with a shorter length at any tolerance. From a state at rest, with an
    unbounded stable step, the first step is a thousandth of the remaining time, and each step at most four times the
    previous one.

    stepper      one of STEPPERS, or its name
    cfl          fraction of the longest stable step of the equation in use
    after_step   called after each step with the state, read-only; True stops the loop
    rtol, atol   tolerances, see above; rtol = None for steps that are limited by ``cfl`` alone
    Raises ValueError for an ``until`` that is not finite or lies before the state's time, for an unknown stepper, and
    for values that are not finite, not float32 or float64, not contiguous, or of another number than the meshes' cells.
    Raises NonFinite for a non-finite state or a vanishing time step: ``state`` is then the one after the last accepted
    step.
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
