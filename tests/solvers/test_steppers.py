"""Stages of a step: the limit after each stage, and the final content of the work arrays."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.mesh.mesh import Floats, circle
from solvers.terms.diffusion import Diffusion
from solvers.timestepping.equation import Equation, limit_positivity
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS, Stepper, order_of

START = np.array([0.5, 0.1, 2.0])


def stepped(limit: object, name: str, dt: float = 0.2) -> tuple[Floats, list[Floats]]:
    """Return the values after a step of u̇ = −1, and the work arrays: the start, the rate, the result of the first
    stage."""
    equation = Equation(None, [lambda t, u: -np.ones_like(u)], limit=limit)  # type: ignore[arg-type]
    state, work = State(0.0, START.copy()), [np.full(3, np.nan) for _ in range(3)]
    equation.prepare(0.0, state.values)
    STEPPERS[name].step(equation, state, dt, tuple(work))
    return state.values, work


@pytest.mark.parametrize("name", STEPPERS)
def test_each_stage_is_limited(name: str) -> None:
    """A user's own limit acts on all values, and the limit ρ ≥ 0 where a value is below."""
    calls = list[Floats]()

    def limit(values: Floats) -> None:
        calls.append(values.copy())
        np.maximum(values, 0.05, out=values)

    values, (start, _, first) = stepped(limit, name)
    assert len(calls) == len(STEPPERS[name].weights)
    assert calls[0] == pytest.approx(START - 0.2)
    assert first == pytest.approx([0.3, 0.05, 1.8])  # limited as well
    assert values[1] >= 0.05
    assert np.array_equal(start, START)
    values, (start, _, first) = stepped(limit_positivity, name)
    assert first == pytest.approx([0.3, 0.0, 1.8])
    assert values[0] == pytest.approx(0.3)
    assert values[1] >= 0.0
    assert np.array_equal(start, START)


@pytest.mark.parametrize(("name", "order", "split"), [("euler", 1, 1), ("ssprk2", 2, 2), ("ssprk3", 3, 2)])
def test_splitting_limits_the_order_to_two(name: str, order: int, split: int) -> None:
    mesh = circle(8)
    assert order_of(Equation(None, [lambda t, u: -u]), STEPPERS[name]) == order
    assert order_of(Equation(None, [lambda t, u: -u, Diffusion(mesh, 1.0)]), STEPPERS[name]) == split


@pytest.mark.parametrize(
    ("weights", "order", "message"),
    [
        ((1.0,), 1, r"weights = \(1\.0,\): expected 0 first and numbers 0 <= a < 1"),
        ((), 1, r"weights = \(\): expected 0 first and numbers 0 <= a < 1"),
        ((0.0, 0.9), 1, r"weights = \(0\.0, 0\.9\): expected those of a method of order 1"),
        ((0.0, 1 / 2), 3, r"weights = \(0\.0, 0\.5\): expected those of a method of order 3"),
    ],
)
def test_weights_of_another_order_are_refused(weights: tuple[float, ...], order: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Stepper(weights, order)
