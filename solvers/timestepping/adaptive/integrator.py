"""One system of ordinary equations u̇ = f(t, u), to a given accuracy, with adaptive step size."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...mesh.mesh import Floats
from ..checks import check_positive
from ..state import Exploding, NonFinite, State, StepResult
from .dormand_prince import DormandPrince

Rate = Callable[[float, Floats], Floats]
_ONLY = np.zeros(1, dtype=np.intp)


class AdaptiveIntegrator:
    """Steps of u̇ = rate(time, u) of adaptive length, by the error of each: one row of `DormandPrince`.

    rate         (time, values) → rate of change, of the values' shape
    tolerance    error of a step over |u|, as the root mean square over all numbers of the state
    absolute     error of a step beside that, of numbers near zero; None for the tolerance
    limit        applied to the state after each step, in place (back to a sphere, …)
    to_device    puts a state's values where the rate is computed

    Each step depends on time, values and ``state.dt``, the next step to try, so that a state kept after any step
    continues bit for bit. NaN as ``dt`` has the first step chosen from the rates.
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
        self._tolerances = np.array([absolute]), np.array([tolerance])

    def begin(self, state: State) -> None:
        state.values = self._to_device(state.values)
        rate, limit = self._rate, self._limit
        self._row = DormandPrince(
            lambda numbers, times, values: rate(float(times[0]), values[0])[None],
            state.values[None],
            *self._tolerances,
            None if limit is None else lambda values: limit(values[0]),
        )

    def step(self, state: State, target: float) -> StepResult:
        """Advance by one step towards ``target``, which is met exactly, by equal steps as long as those before."""
        row = self._row
        row.start(state.values[None].copy(), np.array([state.time]), np.array([state.dt]))
        with np.errstate(all="ignore"):  # a step that overflows is refused, and a shorter one tried
            while not row.attempt(np.array([target]))[0]:
                if not row.begins_finite()[0]:
                    raise NonFinite(f"{state.when}: the rate of change is not finite")
                if row.stuck()[0]:
                    raise Exploding(f"{state.when}: step size underflow (blow-up?)")
        state.time, state.dt, state.values[...] = float(row.reached[0]), float(row.dt[0]), row.ends(_ONLY)[0]
        state.steps += 1
        return StepResult(stable_dt=state.dt)

    def between(self, time: float) -> Floats:
        """Return values at a time within the last step."""
        values: Floats = self._row.between(_ONLY, np.array([time]))[0]
        return values
