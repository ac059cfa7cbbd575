"""Steps of a density whose error is estimated in its moments, and which are interpolated."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..mesh.mesh import Floats
from ..terms.stiff_sum import add_rate
from .equation import Equation
from .evolution import SplitIntegrator, step_to_target
from .moments import Moments
from .state import NonFinite, State, StepResult
from .steppers import Stepper

RTOL = 1e-3  # of an estimate of second order
SAFETY, SHRINK, GROW = 0.9, 0.1, 10.0  # of the step that the error asks for; limits of a change, each undoing the other
OPPOSED_PART = 0.3  # of what explicit terms alone change: where the stiff one undoes it, splitting errs all the same
OTHERS_PART = 1e-6  # of the larger norm, that of smaller moments: below it limiters and rounding break symmetries
ROUNDING = 1e-13  # of moments of a density of mass 1
SINGLE_ROUNDING = 3e-7  # in float32
MIN_GAIN = 0.5  # least power of the step with which an error of time decreases; another is of limiters
LARGE = 50.0  # times the tolerance: such an error may fall later, and is of limiters only where the end is as stable
MARGIN = 2.0  # factor within which two errors count as equal
MAX_REFUSED = 12  # attempts of a step
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
        attempts = Attempts(state.dt, self._begin_step(state), least=MIN_STEP * float(np.spacing(begin)))
        while True:
            dt, reached = step_to_target(begin, target, attempts.longest)
            try:
                result = self._advance(state, dt, reached, limited=True)
                if not result.finite:
                    raise NonFinite(f"the step of {dt:.3g} is not finite")
                end = self._measured(reached, values)
            except NonFinite as error:  # this one, or a term's
                self._fail(state, error)
            ratio = math.inf if self._has_become_long(dt, result) else self._error(dt, self._start, end)
            if attempts.accept(dt, ratio, self.cfl * result.stable_dt):
                break
            values[...] = self._good
            if self.equation.stiff is None:
                self.equation.prepare(begin, values)
        self._end_step(state, dt, reached, result)
        self._start, self._last = end, (begin, reached, values)
        state.dt = math.nan if reached == target else attempts.next_step
        return result

    def between(self, time: float) -> Floats:
        """Values at a time within the last step."""
        begin, end, values = self._last
        if self.equation.stiff is not None:
            within = State(begin, self._good.copy())
            self._advance(within, time - begin, time, limited=True)
            return within.values
        (start, _, first), part = self._work, (time - begin) / (end - begin)
        return (1 - part) * start + (part * (1 - part)) * first + part**2 * values

    def _measured(self, time: float, values: Floats) -> _Measured:
        """Moments of values, for which the explicit terms are prepared, and of their rates of change."""
        rate, stiff = self._work[1], self.equation.stiff
        rate[...] = 0.0
        for term in self.equation.terms:
            term.rate(0.0, rate)
        if stiff is None:
            moments, rates = self._moments(values, rate)
            return _Measured(moments, rates, None)
        explicit = rate.copy()
        add_rate(stiff, time, values, rate)
        moments, rates, explicit_rates = self._moments(values, rate, explicit)
        return _Measured(moments, rates, explicit_rates)

    def _error(self, dt: float, start: _Measured, end: _Measured) -> float:
        """The error of a step over what is allowed."""
        change = end.moments - start.moments
        error = change - 0.5 * dt * (start.rates + end.rates)
        size, norms = end.moments, self._moments.norms
        allowed = norms(change, size)
        if end.explicit is not None:
            allowed += OPPOSED_PART * dt * norms(end.explicit, size)
        return float(error_ratio(norms(error, size), allowed, self._tolerance, self._rounding))


def error_ratio(error: Floats, change: Floats, rtol: float, rounding: float) -> Floats:
    """(...) the error of a step over what is allowed, by norms (..., 2) of its moments; ∞ where that is not finite."""
    allowed = rtol * (change + OTHERS_PART * change.max(axis=-1, keepdims=True)) + rounding
    ratio = (error / allowed).max(axis=-1)
    return np.where(np.isfinite(ratio), ratio, np.inf)


@dataclass(frozen=True)
class _Measured:
    """Moments at an end of a step: of the state, its rate of change, and that of the explicit terms beside a stiff."""

    moments: Floats
    rates: Floats
    explicit: Floats | None


class Attempts:
    """Attempts of a step, each shorter than the one before, and the next step to try.

    Where an error does not fall with the step it is not of time, and the longest step that errs no more is taken after
    all, at the third attempt at the earliest.
    """

    def __init__(self, proposed: float, stable: float, least: float) -> None:
        self.longest = self.next_step = min(stable, proposed) if proposed > 0 else stable
        self._least = least
        self._refused: list[tuple[float, float]] = []  # (dt, error over what is allowed)
        self._is_last = False

    def accept(self, dt: float, error: float, stable: float) -> bool:
        """Whether a step of dt with that error is taken; ``stable`` is the longest step that its end allows."""
        change = SAFETY / math.sqrt(error) if error > 0 else math.inf
        is_least = len(self._refused) == MAX_REFUSED or dt <= self._least
        if error <= 1 or self._is_last or is_least:
            self.next_step = dt * (min(change, GROW) if error <= 1 else 1.0)
            return True
        self._is_last = self._is_no_better(dt, error, stable)
        if self._is_last:
            self.longest = max([dt, *(size for size, refused in self._refused if refused <= MARGIN * error)])
            self.next_step = self.longest
            return self.longest == dt
        self._refused.append((dt, error))
        self.longest = max(dt * max(SHRINK, min(change, 0.5)), self._least)
        return False

    def _is_no_better(self, dt: float, error: float, stable: float) -> bool:
        """Whether the error has not fallen with the step, and is small, or its end is as stable as its beginning."""
        if not self._refused:
            return False
        before, refused = self._refused[-1]
        return error > refused * (dt / before) ** MIN_GAIN and (error < LARGE or dt <= stable)
