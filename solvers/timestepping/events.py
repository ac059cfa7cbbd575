"""Events that end a run: zeros of functions of time and field, located within a step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..mesh.checks import check_call
from ..mesh.mesh import Floats
from .checks import check_positive
from .control import root_mean_square
from .integrate import Integrator, advance_copy
from .runge_kutta.semi_discrete import SemiDiscrete
from .state import State, read_only

Event = Callable[[float, Floats], float]  # (time, values) → a number that changes sign at the event
TIME_RTOL = 1e-12  # accuracy of an event's time relative to the step


def largest_value(values: Floats) -> float:
    """Return the largest value of a state, or the largest modulus of a complex one, for `Threshold`.

    Parameters
    ----------
    values : array
        State u.

    Returns
    -------
    float
        Maximum of u, or of its modulus.
    """
    return float(values.max() if values.dtype.kind != "c" else np.abs(values).max())


@dataclass(frozen=True)
class Threshold:
    """Event of(u) = level, which ends a run: by default the largest value, or modulus, reaches ``level``.

    Parameters
    ----------
    level : float
        Finite number.
    of : callable, optional
        Function u → one number that crosses the level; the default is the largest value.

    Raises
    ------
    TypeError
        If ``of`` is no function of u.
    ValueError
        If ``level`` is no finite number.

    Examples
    --------
    Exponential growth doubles at t = log 2:

    >>> import numpy as np
    >>> from solvers import Equation, Threshold, solve
    >>> solution = solve(Equation(None, [lambda t, u: u]), [1.0], (0, 10), events=Threshold(2.0), rtol=1e-8)
    >>> bool(abs(solution.t[-1] - np.log(2)) < 1e-8)
    True
    >>> solution.message
    'the threshold 2 is reached at t = 0.69314718..., by dopri5 in ... steps'
    """

    level: float
    of: Callable[[Floats], float] = largest_value

    def __post_init__(self) -> None:
        if not isinstance(self.level, (int, float, np.number)) or not np.isfinite(self.level):
            raise ValueError(f"level = {self.level!r}: expected a finite number")
        check_call("of", self.of, "u")

    def __call__(self, time: float, values: Floats) -> float:
        return float(self.of(values)) - self.level

    def __str__(self) -> str:
        return f"the threshold {self.level:g} is reached"


@dataclass(frozen=True)
class SteadyState:
    """Event ‖∂ₜu‖ ≤ rtol ‖u‖ at the end of a step, in root mean squares, which ends a run.

    Parameters
    ----------
    rtol : float, default 1e-6
        Rate of change relative to u, in 1/time: a finite number > 0.

    Raises
    ------
    ValueError
        If ``rtol`` is no finite number > 0, and in :func:`~solvers.solve` if a stiff term has no rate of change.

    Examples
    --------
    From 0, a field relaxes to 1 as 1 − e^(−t), so that ∂ₜu = 10⁻³ u at t = log 1001 = 6.9:

    >>> from solvers import Equation, SteadyState, solve
    >>> solution = solve(Equation(None, [lambda t, u: 1 - u]), [0.0], (0, 100), events=SteadyState(1e-3))
    >>> bool(6.9 < solution.t[-1] < 7.3), solution.event
    (True, 0)
    >>> solution.message
    'the state is steady at t = ..., by dopri5 in ... steps'
    """

    rtol: float = 1e-6

    def __post_init__(self) -> None:
        check_positive(rtol=self.rtol)

    def of(self, problem: SemiDiscrete) -> Event:
        """Return the event function that is zero where the state of an equation becomes steady.

        Parameters
        ----------
        problem : SemiDiscrete
            Semi-discrete equation with its rates.

        Returns
        -------
        callable
            Function (time, u) → number whose sign changes at the event.
        """
        return Steadiness(self, problem)


@dataclass(frozen=True)
class Steadiness:
    """Event function |∂ₜu| − rtol |u| of a steady state, in root mean squares: ≤ 0 where the state is steady.

    problem   equation that gives the rate of change ∂ₜu
    """

    event: SteadyState
    problem: SemiDiscrete

    def __call__(self, time: float, values: Floats) -> float:
        rate = root_mean_square(self.problem.full(time, values))
        return rate - self.event.rtol * max(root_mean_square(values), np.finfo(float).tiny)

    def __str__(self) -> str:
        return "the state is steady"


def locate(event: Event, integrator: Integrator, before: State, after: State) -> State:
    """Return the state at the zero of an event function between two states, by Brent's method in time.

    before, after   states at both ends of a step, between which the function changes its sign
    integrator      advances ``before`` to the times of the iteration
    """
    from scipy.optimize import brentq

    def value_at(time: float) -> float:
        state = after if time == after.time else advance_copy(before, integrator, time)
        return event(time, read_only(state.values))

    span = after.time - before.time
    time = brentq(value_at, before.time, after.time, xtol=max(TIME_RTOL * span, np.spacing(after.time)))
    return advance_copy(before, integrator, time)
