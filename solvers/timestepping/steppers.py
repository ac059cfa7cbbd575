"""Strong-stability-preserving Runge–Kutta methods for the explicit terms of an equation."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np

from ..backends import backend_for
from ..mesh.mesh import Floats
from ..terms.term import Step
from .equation import Equation, limit_positivity
from .state import State


@dataclass(frozen=True)
class Stepper:
    """Strong-stability-preserving Runge–Kutta method, u ← w + a (u₀ − w) with w = u + dt L(u) in each stage.

    u₀ is the state before the step, L the sum of the explicit terms (Shu–Osher form).

    Parameters
    ----------
    weights : tuple of float
        The number a of each stage, 0 first; (0,) is forward Euler.
    order : int
        Order of accuracy in time.

    Raises
    ------
    ValueError
        If the first weight is not 0, a weight is not in [0, 1), or a step of u̇ = u differs from e^dt by terms up to
        the order.
    """

    weights: tuple[float, ...]
    order: int

    def __post_init__(self) -> None:
        a = self.weights
        if not a or a[0] != 0 or not all(0 <= each < 1 for each in a):
            raise ValueError(f"weights = {a}: expected 0 first and numbers 0 <= a < 1")
        found, exact = np.ones(1), [1 / factorial(k) for k in range(self.order + 1)]  # coefficients of dt^k in e^dt
        for each in a:
            found = (1 - each) * np.convolve(found, [1.0, 1.0])
            found[0] += each
        if len(found) < len(exact) or not np.allclose(found[: len(exact)], exact):
            raise ValueError(f"weights = {a}: expected those of a method of order {self.order}")

    def step(self, equation: Equation, state: State, dt: float, work: tuple[Floats, ...]) -> Step:
        """Advance the values of a state by one Runge–Kutta step dt of the explicit terms, in place.

        ``equation.prepare`` must have been called for this state: the first stage uses its result.

        Parameters
        ----------
        equation : Equation
            Equation with the explicit terms; its stiff term is not used.
        state : State
            State; its values change, its time and number of steps do not.
        dt : float
            Time step.
        work : tuple of array
            Two or three arrays of the shape of the state. Afterwards they hold the values before the step, a rate of
            change, and in a third array u + dt L(u).

        Returns
        -------
        float
            Smallest of the stable time steps of the stages after the first; ∞ for a method of one stage.
        """
        start, rate, *first = (array.reshape(-1) for array in work)
        values, backend = state.values.reshape(-1), backend_for(state.values)
        limit, stage_time = equation.limit, 0.0
        least = 0.0 if limit is limit_positivity else -np.inf
        stable: Step = np.inf
        rate[...] = 0.0
        for k, weight in enumerate(self.weights):
            if k > 0:
                stable = equation.prepare(state.time + stage_time * dt, state.values, at_most=stable)
            for term in equation.terms:
                term.rate(dt, work[1])
            if k > 0:
                backend.launch(backend.advance, values.size, start, values, rate, dt, weight, least)
            else:
                kept = first[0] if first else start[:0]
                backend.launch(backend.advance_first, values.size, values, rate, dt, weight, least, start, kept)
            if limit is not None and limit is not limit_positivity:
                limit(state.values)
                if k == 0 and first:
                    first[0][...] = values
            stage_time = (1 - weight) * (stage_time + 1)
        return stable


STEPPERS = {
    "euler": Stepper((0.0,), 1),
    "ssprk2": Stepper((0.0, 1 / 2), 2),
    "ssprk3": Stepper((0.0, 3 / 4, 1 / 3), 3),
}
"""Strong-stability-preserving methods by name: "euler", "ssprk2" and "ssprk3", of orders 1 to 3."""


def stepper_of(stepper: Stepper | str) -> Stepper:
    """Return ``stepper``, or the one of that name in STEPPERS; raise ValueError or TypeError for anything else."""
    if isinstance(stepper, Stepper):
        return stepper
    expected = f"expected a Stepper, or one of {', '.join(STEPPERS)}"
    if not isinstance(stepper, str):
        raise TypeError(f"stepper = {stepper!r}: {expected}")
    if stepper not in STEPPERS:
        raise ValueError(f"stepper = {stepper!r}: {expected}")
    return STEPPERS[stepper]


def order_of(equation: Equation, stepper: Stepper) -> int:
    """Return the order in time of a step: that of the stepper, but at most 2 with a stiff term, by Strang splitting."""
    return stepper.order if equation.stiff is None else min(stepper.order, 2)
