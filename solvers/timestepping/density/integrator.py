"""Steps of a density whose error is estimated in its moments, and which are interpolated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mesh.mesh import Floats
from ...terms.stiff_sum import add_rate
from ..control import Attempts, StepController
from ..equation import Equation
from ..evolution import SplitIntegrator, step_to_target
from ..state import NonFinite, State, StepResult
from ..steppers import Stepper
from .moments import Moments

RTOL = 1e-3
Numbers = NDArray[Any]  # real or complex moments
CONTROL = StepController(2)  # of an estimate of second order
OPPOSED_PART = 0.3  # of what explicit terms alone change: where the stiff one undoes it, splitting errs all the same
OTHERS_PART = 1e-6  # of the larger norm, that of smaller moments: below it limiters and rounding break symmetries
ROUNDING = 1e-13  # of moments of a density of mass 1
SINGLE_ROUNDING = 3e-7  # in float32
MIN_STEP = 16  # spacings of floating-point time


class DensityIntegrator(SplitIntegrator):
    """Steps of a density by a stepper, with Strang splitting around a stiff term, to a tolerance in its moments M.

        |M₁ − M₀ − ½ dt (Ṁ₀ + Ṁ₁)| ≤ rtol (|M₁ − M₀| + 0.3 dt |Ṁ of explicit terms|, if there is a stiff one)

    for the moments of degree 1, and for higher ones; Ṁ are those of the rate of change at the ends of a step. The
    trapezoidal rule is of second order, as is splitting, whose error it shows too; what limiters do from cell to cell
    is not in moments. A step of a larger error is taken again, shorter, unless that is no better. Without it a density
    nearly in balance, where nothing flows that would bound the step, would leave its balance in one.

    A step depends on time, values and ``state.dt``, the next step to try, alone, so that a state kept after any step
    continues bit for bit; NaN as ``dt`` for none, as after a step that has met its target, so that a state kept there
    needs no ``dt``. Values within a step are

        u(θ) = (1 − θ) u₀ + θ (1 − θ) (u₀ + dt L(u₀)) + θ² u₁          0 ≤ θ ≤ 1

    of second order and, as a mean of densities, ≥ 0; around a stiff term they are those of a step of θ dt.

    moments   of values of the state
    rtol      tolerance of a step, see above
    The other arguments are those of `SplitIntegrator`.
    """

    meets_kept = True

    def __init__(
        self,
        equation: Equation,
        stepper: Stepper | str,
        moments: Moments,
        cfl: float = 0.5,
        rtol: float = RTOL,
        to_device: Callable[[Floats], Floats] = lambda values: values,
    ) -> None:
        super().__init__(equation, stepper, cfl, to_device=to_device)
        self._moments, self._tolerance, self._rounding = moments, rtol, ROUNDING

    def begin(self, state: State) -> None:
        super().begin(state)
        self._rounding = ROUNDING if state.values.dtype == np.float64 else SINGLE_ROUNDING
        if self.equation.stiff is None:
            self._work = (*self._work, np.empty_like(state.values))
        self._start = self._measured(state.time, state.values)
        self._last = (state.time, state.time, state.values)

    def step(self, state: State, target: float) -> StepResult:
        begin, values = state.time, state.values
        attempts = attempts_from(begin, state.dt, self._begin_step(state))
        while True:
            dt, reached = step_to_target(begin, target, attempts.longest)
            try:
                result = self._advance(state, dt, reached, limited=True)
                if not result.finite:
                    raise NonFinite(f"the step of {dt:.3g} is not finite")
                end = self._measured(reached, values)
            except NonFinite as lost:  # this one, or a term's
                self._fail(state, lost)
            error = math.inf if self._has_become_long(dt, result) else self._error(dt, self._start, end)
            if attempts.accept(dt, error, self.cfl * result.stable_dt):
                break
            values[...] = self._good
            if self.equation.stiff is None:
                self.equation.prepare(begin, values)
        self._end_step(state, dt, reached, result)
        self._start, self._last = end, (begin, reached, values)
        state.dt = math.nan if reached == target else float(attempts.next.step)
        return result

    def between(self, time: float) -> Floats:
        """Return values at a time within the last step."""
        begin, end, values = self._last
        if self.equation.stiff is not None:
            within = State(begin, self._good.copy())
            self._advance(within, time - begin, time, limited=True)
            return within.values
        start, _, first = self._work
        return interpolated((time - begin) / (end - begin), start, first, values)

    def _error(self, dt: float, start: Measured, end: Measured) -> float:
        def norms(moments: Numbers) -> Floats:
            return self._moments.norms(moments, end.moments)

        return float(step_error(dt, start, end, norms, self._tolerance, self._rounding))

    def _measured(self, time: float, values: Floats) -> Measured:
        """Return moments of values, for which the explicit terms are prepared, and of their rates of change."""
        rate, stiff = self._work[1], self.equation.stiff
        rate[...] = 0.0
        for term in self.equation.terms:
            term.rate(0.0, rate)
        if stiff is None:
            moments, rates = self._moments(values, rate)
            return Measured(moments, rates, None)
        explicit = rate.copy()
        add_rate(stiff, time, values, rate)
        moments, rates, explicit_rates = self._moments(values, rate, explicit)
        return Measured(moments, rates, explicit_rates)


def attempts_from(time: float, proposed: float, stable: float) -> Attempts:
    """Return the attempts of a step: first the proposed one, where it is a number > 0 and stable."""
    longest = min(stable, proposed) if proposed > 0 else stable
    return Attempts(CONTROL, longest, least=MIN_STEP * float(np.spacing(time)))


def interpolated(part: float | Floats, start: Floats, first: Floats, end: Floats) -> Floats:
    """Return values at a part of a step, from those before it, after its first stage, and after it."""
    return (1 - part) * start + (part * (1 - part)) * first + part**2 * end


@dataclass(frozen=True)
class Measured:
    """Moments (..., k) at an end of a step: of the state, its rate of change, and that of terms beside a stiff one."""

    moments: Numbers
    rates: Numbers
    explicit: Numbers | None


def step_error(
    dt: float | Floats, start: Measured, end: Measured, norms: Callable[[Numbers], Floats], rtol: float, rounding: float
) -> Floats:
    """Return the errors of steps (...) over the allowed ones, by norms (..., 2) of moments; ∞ where not finite."""
    change = end.moments - start.moments
    error, allowed = norms(change - 0.5 * dt * (start.rates + end.rates)), norms(change)
    if end.explicit is not None:
        allowed = allowed + OPPOSED_PART * dt * norms(end.explicit)
    allowed = rtol * (allowed + OTHERS_PART * allowed.max(axis=-1, keepdims=True)) + rounding
    ratio = (error / allowed).max(axis=-1)
    return np.where(np.isfinite(ratio), ratio, np.inf)
