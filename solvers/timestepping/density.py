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
SAFETY, SHRINK, GROW = 0.9, 0.1, 3.0  # of the step that the error asks for; limits of a change of the step
OPPOSED_PART = 0.1  # of what explicit terms alone change: where the stiff one undoes it, splitting errs all the same
ROUNDING = 1e-13  # of moments of a density of mass 1
MIN_GAIN = 0.5  # power of the step that an error of time falls by at least; another is of limiters
LARGE = 50.0  # times the tolerance: such an error may fall later, and is of limiters only where the end is as stable
MAX_REFUSED = 12  # attempts of a step


class DensityIntegrator(SplitIntegrator):
    """Steps of a density by a stepper, with Strang splitting around a stiff term, to a tolerance in its moments M.

        |M₁ − M₀ − ½ dt (Ṁ₀ + Ṁ₁)| ≤ rtol (|M₁ − M₀| + ⅒ dt |Ṁ of the explicit terms|, if there is a stiff one)

    Ṁ are moments of the rate of change at the ends of a step. The trapezoidal rule is of second order, as is splitting,
    whose error it shows too; what limiters do from cell to cell is not in moments. A step of a larger error is taken
    again, shorter, until that is no better. Without it a density nearly in balance, where nothing flows that would
    bound the step, would leave its balance in one.

    A step depends on time, values and ``state.dt``, the next step to try, alone, so that a state kept after any step
    goes on bit for bit; NaN as ``dt`` for none. Observers do not shorten steps: values within one are

        u(θ) = (1 − θ) u₀ + θ (1 − θ) (u₀ + dt L(u₀)) + θ² u₁          0 ≤ θ ≤ 1

    of second order and, as a mean of densities, ≥ 0; around a stiff term they are those of a step of θ dt.

    moments   of values of the state
    rtol      tolerance of a step, see above
    The other arguments are those of `SplitIntegrator`.
    """

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
        self._moments, self._tolerance = moments, rtol

    def begin(self, state: State) -> None:
        super().begin(state)
        if self.equation.stiff is None:
            self._work = (*self._work, np.empty_like(state.values))
        self._start = self._measured(state.time, state.values)
        self._last = (state.time, state.time, state.values)

    def step(self, state: State, target: float) -> StepResult:
        begin, stable = state.time, self._begin_step(state)
        attempts = _Attempts(state.dt if state.dt > 0 else math.inf)
        while True:
            dt, reached = step_to_target(begin, target, min(stable, attempts.next_step))
            if reached <= begin:
                self._fail(state, NonFinite("step size underflow: the state is not finite after longer steps"))
            end, lost = None, None
            try:
                result = self._advance(state, dt, reached)
                if result.finite:
                    end = self._measured(reached, state.values)
            except NonFinite as error:
                result, lost = StepResult(math.nan, finite=False), error
            if attempts.accept(dt, self._error(dt, self._start, end), self.cfl * result.stable_dt):
                break
            state.values[...] = self._good
            if self.equation.stiff is None:
                self.equation.prepare(begin, state.values)
        if lost is not None:
            self._fail(state, lost)
        self._end_step(state, dt, reached, result)
        self._start = self._start if end is None else end
        self._last, state.dt = (begin, reached, state.values), attempts.next_step
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
        explicit = self._moments(rate)
        if stiff is None:
            return _Measured(self._moments(values), explicit, None)
        add_rate(stiff, time, values, rate)
        return _Measured(self._moments(values), self._moments(rate), explicit)

    def _error(self, dt: float, start: _Measured, end: _Measured | None) -> float:
        """The error of a step over what is allowed; infinite for a step that is lost."""
        if end is None:
            return math.inf
        change = end.moments - start.moments
        error = change - 0.5 * dt * (start.rates + end.rates)
        size, norm = end.moments, self._moments.norm
        allowed = norm(change, size)
        if end.explicit is not None:
            allowed += OPPOSED_PART * dt * norm(end.explicit, size)
        ratio = norm(error, size) / (self._tolerance * allowed + ROUNDING)
        return ratio if math.isfinite(ratio) else math.inf


@dataclass(frozen=True)
class _Measured:
    """Moments at an end of a step: of the state, its rate of change, and that of the explicit terms beside a stiff."""

    moments: Floats
    rates: Floats
    explicit: Floats | None


class _Attempts:
    """Attempts of a step, each shorter than the one before, and the next step to try."""

    def __init__(self, first: float) -> None:
        self._refused: list[tuple[float, float]] = []  # (dt, error over what is allowed)
        self.next_step = first

    def accept(self, dt: float, error: float, stable: float) -> bool:
        """Whether a step of dt with that error is taken; ``stable`` is the longest step that its end allows."""
        is_last = len(self._refused) == MAX_REFUSED or (math.isfinite(error) and self._is_no_better(dt, error, stable))
        change = SAFETY / math.sqrt(error) if error > 0 else math.inf
        if error <= 1 or is_last:
            self.next_step = dt * (min(change, GROW) if error <= 1 else 2.0)
            return True
        self._refused.append((dt, error))
        self.next_step = dt * max(SHRINK, min(change, 0.5))
        return False

    def _is_no_better(self, dt: float, error: float, stable: float) -> bool:
        """Whether the error has not fallen with the step, as one of limiters whose steps are as stable at both ends."""
        if not self._refused:
            return False
        before, refused = self._refused[-1]
        return error > refused * (dt / before) ** MIN_GAIN and (error < LARGE or dt <= stable)
