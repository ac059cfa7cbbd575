"""Adaptive steps of one system of ordinary differential equations u̇ = f(t, u) to a given accuracy."""

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
    """Integrator of one system u̇ = rate(time, u) by adaptive steps of order 8 with error control, by `DormandPrince`.

    rate         (time, values) → rate of change, of the values' shape
    tolerance    allowed error of a step over |u|, as the root mean square over all numbers of the state
    absolute     allowed absolute error in addition, for numbers near zero; None for the value of ``tolerance``
    limit        applied to the state after each step, in place (projection on a sphere, …)
    to_device    moves the values to the device of the rate

    Each step depends on time, values and ``state.dt``, the next step to try, so that a run resumed after any step is
    bitwise identical. For ``dt`` = NaN the first step is chosen from the rates. Raises ValueError for a tolerance ≤ 0,
    Exploding on underflow of the step, and NonFinite for a rate that is not finite; the state is then the one after the
    last accepted step.
    """

    ends_at_restarts = False  # interpolated states have order 7 and serve for restarts

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
        """Advance a state by one accepted step, whose length divides the time to ``target`` into equal parts.

        The last of these steps ends exactly at ``target``.
        """
        row = self._row
        row.start(state.values[None].copy(), np.array([state.time]), np.array([state.dt]))
        with np.errstate(all="ignore"):  # a step that overflows is rejected, and a shorter one tried
            while not row.attempt(np.array([target]))[0]:
                if not row.begins_finite()[0]:
                    raise NonFinite(f"{state.time_and_step}: the rate of change is not finite")
                if row.stuck()[0]:
                    raise Exploding(f"{state.time_and_step}: step size underflow (blow-up?)")
        state.time, state.dt, state.values[...] = float(row.reached[0]), float(row.dt[0]), row.ends(_ONLY)[0]
        state.steps += 1
        return StepResult(stable_dt=state.dt)

    def interpolate(self, time: float) -> Floats:
        """Return the state's values interpolated at a time within the last step."""
        values: Floats = self._row.interpolate(_ONLY, np.array([time]))[0]
        return values
