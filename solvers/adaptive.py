"""The loop in time for ordinary equations u̇ = f(t, u) to a given accuracy, with a step size that finds itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from solvers.evolution import Exploding, NonFinite, Observer, State
from solvers.mesh import Floats

Rate = Callable[[float, Floats], Floats]
LANDED = 16  # spacings of floating-point time from a target that count as there


def evolve_adaptively(
    state: State,
    rate: Rate,
    until: float,
    observers: Sequence[Observer] = (),
    tolerance: float = 1e-9,
    after_step: Callable[[State], bool] = lambda state: False,
    limit: Callable[[Floats], None] | None = None,
) -> State:
    """Advance ``state`` in place to ``until`` by u̇ = rate(time, u) and return it.

    rate         (time, values) → rate of change, of the values' shape
    tolerance    error of a step, absolute and relative, as the root mean square over all numbers of the state
    after_step   called after each step; True stops the loop
    limit        applied to the state after each step, in place (back to a sphere, …)

    Dormand and Prince's Runge–Kutta method of order 8 with errors of orders 5 and 3, each step by itself: what it knows
    is time, values and ``state.dt``, the next step to try, so that a state kept after any step goes on bit for bit.
    That costs one evaluation in 13. NaN as ``dt`` has the first step chosen from the rates.
    Raises ValueError for an infinite ``until``, Exploding where no step is small enough, and NonFinite where the rate
    is not finite; ``state`` is then the one after the last good step.
    """
    if not math.isfinite(until):
        raise ValueError(f"until = {until}: expected a finite time")
    for observer in observers:
        observer.look_if_due(state)
    while state.time < until:
        _step(state, rate, min([until, *(observer.due() for observer in observers)]), tolerance)
        if limit is not None:
            limit(state.values)
        for observer in observers:
            observer.look_if_due(state)
        if after_step(state):
            break
    return state


def _step(state: State, rate: Rate, target: float, tolerance: float) -> None:
    """One step towards ``target``, which is met exactly, by equal steps as long as those before."""
    left = target - state.time
    first = left / max(math.ceil(left / state.dt), 1) if state.dt > 0 else None
    with np.errstate(all="ignore"):  # a step that overflows is refused, and a shorter one tried
        solver = _solver(state, rate, target, tolerance, first)
        message = solver.step() if np.isfinite(solver.f).all() else "the rate of change is not finite"
    if message == solver.TOO_SMALL_STEP:
        raise Exploding(f"at time {state.time:.6g}, step {state.steps}: no step is small enough, as at a blow-up")
    if message or not np.isfinite(solver.y).all():
        raise NonFinite(f"at time {state.time:.6g}, step {state.steps}: {message or 'the step is not finite'}")
    cut = first is not None and solver.step_size > 0.999 * first  # shortened to land, and not for the error's sake
    state.dt = max(solver.h_abs, state.dt) if cut else solver.h_abs
    state.time = target if target - solver.t <= LANDED * np.spacing(target) else solver.t
    state.values[...] = solver.y.reshape(state.values.shape)
    state.steps += 1


def _solver(state: State, rate: Rate, target: float, tolerance: float, first: float | None) -> Any:
    from scipy.integrate import DOP853

    shape = state.values.shape

    def flat(time: float, values: Floats) -> Floats:
        return rate(time, values.reshape(shape)).reshape(-1)

    return DOP853(flat, state.time, state.values.reshape(-1), target, rtol=tolerance, atol=tolerance, first_step=first)
