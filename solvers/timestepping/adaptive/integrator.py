"""The loop in time for ordinary equations u̇ = f(t, u) to a given accuracy, with adaptive step size."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ...backends import backend_for
from ...mesh.mesh import Floats
from ..checks import check_positive
from ..state import Exploding, NonFinite, State, StepResult
from .dormand_prince import GROW, MIN_SPACINGS, ORDER, SAFETY, SHRINK, TARGET_SPACINGS, dense_tableau, tableau

Rate = Callable[[float, Floats], Floats]


class AdaptiveIntegrator:
    """Steps of u̇ = rate(time, u) of adaptive length, by the error of each.

    rate         (time, values) → rate of change, of the values' shape
    tolerance    error of a step over |u|, as the root mean square over all numbers of the state
    absolute     error of a step beside that, of numbers near zero; None for the tolerance
    limit        applied to the state after each step, in place (back to a sphere, …)
    to_device    puts a state's values where the rate is computed

    Dormand and Prince's Runge–Kutta method of order 8 with errors of orders 5 and 3 (Hairer, Nørsett and Wanner,
    Solving Ordinary Differential Equations I, section II.10), each step by itself: it depends on time, values and
    ``state.dt``, the next step to try, so that a state kept after any step continues bit for bit. NaN as ``dt`` has the
    first step chosen from the rates (section II.4). Of a step one number comes to the host, its error. Between its ends
    a step is interpolated, at order 7, by four more rates.
    Raises ValueError for a tolerance ≤ 0; Exploding where no step is small enough, and NonFinite where the rate is not
    finite; the state is then the one after the last good step.
    """

    meets_kept = False  # order 7 is as good as a step

    def __init__(
        self,
        rate: Rate,
        tolerance: float = 1e-9,
        limit: Callable[[Floats], None] | None = None,
        to_device: Callable[[Floats], Floats] = lambda values: values,
        absolute: float | None = None,
    ) -> None:
        absolute = tolerance if absolute is None else absolute
        check_positive(tolerance=tolerance, absolute=absolute)
        self._rate, self._limit, self._to_device = rate, limit, to_device
        self._tolerances = absolute, tolerance

    def begin(self, state: State) -> None:
        state.values = self._to_device(state.values)
        self._method = _Method(self._rate, *self._tolerances, state.values)

    def step(self, state: State, target: float) -> StepResult:
        """One step towards ``target``, which is met exactly, by equal steps as long as those before."""
        with np.errstate(all="ignore"):  # a step that overflows is refused, and a shorter one tried
            _step(state, self._method, target)
        if self._limit is not None:
            self._limit(state.values)
        return StepResult(stable_dt=state.dt)

    def between(self, time: float) -> Floats:
        """Values at a time within the last step."""
        values = self._method.between(time)
        if self._limit is not None:
            self._limit(values)
        return values


def _step(state: State, method: _Method, target: float) -> None:
    """Advance a state by one step towards ``target``."""
    left = target - state.time
    first = left / max(math.ceil(left / state.dt), 1) if state.dt > 0 else None
    method.begin(state)
    size = method.first_size(state, left) if first is None else first
    min_dt, max_growth = MIN_SPACINGS * float(np.spacing(state.time)), GROW
    size = size if size > min_dt else min_dt
    while True:
        if size < min_dt:
            raise Exploding(f"{state.when}: step size underflow (blow-up?)")
        reached = min(state.time + size, target)
        taken = reached - state.time
        values, error = method.attempt(state, taken)
        size = taken * _change(error, max_growth)
        if error < 1:
            break
        if math.isnan(error) and not method.begins_finite():
            raise NonFinite(f"{state.when}: the rate of change is not finite")
        max_growth = 1.0  # after a step that was refused none grows
    cut = first is not None and taken > 0.999 * first  # shortened to meet the target, not because of the error
    state.dt = max(size, state.dt) if cut else size
    state.time = target if target - reached <= TARGET_SPACINGS * np.spacing(target) else reached
    state.values[...] = values
    state.steps += 1


def _change(error: float, max_growth: float) -> float:
    """The next step over this one, by the error over what is allowed; NaN is too much by any measure."""
    if math.isnan(error):
        return SHRINK
    factor = SAFETY * error ** (-1 / ORDER) if error > 0 else GROW
    return min(factor, max_growth) if error < 1 else max(factor, SHRINK)


class _Method:
    """The stages of a step, and its error."""

    def __init__(self, rate: Rate, absolute: float, relative: float, values: Floats) -> None:
        backend = backend_for(values)
        self._rate, self._absolute, self._relative, self._size = rate, absolute, relative, values.size
        stages, weights, errors, self._nodes = tableau()
        self._stages, self._weights, self._errors = (
            backend.to_device(table.astype(values.dtype)) for table in (stages, weights, errors)
        )
        self._rates = backend.empty((len(weights), *values.shape), values.dtype)
        self._before = values.copy()
        self._step = (0.0, 0.0, values)  # begin, length, values after
        self._polynomial: Floats | None = None

    def begin(self, state: State) -> None:
        """Keep the state where a step begins, and evaluate its rate."""
        self._before[...] = state.values
        self._rates[0] = self._rate(state.time, state.values)

    def begins_finite(self) -> bool:
        """Whether that rate is finite."""
        return bool(np.isfinite(self._rates[0]).all())

    def attempt(self, state: State, dt: float) -> tuple[Floats, float]:
        """Values after a step of dt, and the error over what is allowed: NaN where either is not finite."""
        before = self._before
        for k in range(1, len(self._rates)):
            stage = before + dt * _combined(self._stages[k, :k], self._rates[:k])
            self._rates[k] = self._rate(state.time + self._nodes[k] * dt, stage)
        values = before + dt * _combined(self._weights, self._rates)
        allowed = self._allowed(np.maximum(np.abs(before), np.abs(values)))
        fifth, third = (((_combined(row, self._rates) / allowed) ** 2).sum() for row in self._errors)
        both = np.maximum(fifth + 0.01 * third, np.finfo(before.dtype).tiny)
        error = abs(dt) * fifth / np.sqrt(both * self._size)
        self._step, self._polynomial = (state.time, dt, values), None
        return values, float(np.where(np.isfinite(values).all(), error, np.nan))

    def between(self, time: float) -> Floats:
        """Values at a time within the step last attempted: section II.6, in x and 1 − x by turns."""
        begin, dt, after = self._step
        if self._polynomial is None:
            self._polynomial = self._interpolated(begin, dt, after)
        x = (time - begin) / dt
        values = np.zeros_like(after)
        for k, row in enumerate(self._polynomial[::-1]):
            values = (values + row) * (x if k % 2 == 0 else 1 - x)
        return self._before + values

    def _interpolated(self, begin: float, dt: float, after: Floats) -> Floats:
        """Coefficients (7, ...) of the interpolation; the rates at its other places are the four more."""
        before, backend = self._before, backend_for(after)
        stages, nodes, coefficients = (table.astype(before.dtype) for table in dense_tableau())
        rates = backend.empty((len(nodes) + len(self._rates), *before.shape), before.dtype)
        rates[: len(self._rates)] = self._rates
        for k, node in enumerate(nodes, len(self._rates)):
            row = backend.to_device(stages[k - len(self._rates), :k])
            rates[k] = self._rate(begin + float(node) * dt, before + dt * _combined(row, rates[:k]))
        change = after - before
        first, last = dt * rates[0], dt * rates[len(self._rates)]
        rows = [change, first - change, 2 * change - first - last]
        return np.stack(rows + [dt * _combined(backend.to_device(row), rates) for row in coefficients])

    def _allowed(self, sizes: Floats) -> Floats:
        """What each number of the state may err in a step, by its size."""
        return self._relative * (self._absolute / self._relative + sizes)  # equal tolerances: to the bit tol (1 + |u|)

    def first_size(self, state: State, longest: float) -> float:
        """A first step, no longer than ``longest``, from the rates now and after an Euler step; may be NaN."""
        values, rate = state.values, self._rates[0]
        allowed = self._allowed(np.abs(values))
        size, speed = _norm(values / allowed), _norm(rate / allowed)
        trial = min(1e-6 if size < 1e-5 or speed < 1e-5 else 0.01 * size / speed, longest)
        bend = _norm((self._rate(state.time + trial, values + trial * rate) - rate) / allowed) / trial
        fastest = max(speed, bend)
        second = max(1e-6, 1e-3 * trial) if fastest <= 1e-15 else (0.01 / fastest) ** (1 / ORDER)
        return float(min(100 * trial, second, longest))


def _norm(values: Floats) -> np.float64:
    """Root mean square."""
    return np.float64(np.sqrt(float((values**2).mean())))


def _combined(weights: Floats, rates: Floats) -> Floats:
    """Σ_s weights_s rates_s, always in the same order."""
    total: Floats = np.einsum("s,s...->...", weights, rates)
    return total
