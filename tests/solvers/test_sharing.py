"""Solves in several threads, or one within another, that share an equation: each has the bits of a separate solve."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import numpy as np
import pytest

import meanfield as mf
from solvers import (
    Advection,
    Convolution,
    Diffusion,
    Equation,
    Flux,
    PushForward,
    Zonal,
    circle,
    interval,
    solve,
    sphere,
)  # fmt: skip
from solvers.transforms.harmonics_points import PointHarmonics
from tests.support.public_objects import EQUATIONS, OwnTerm, Wind, bump

THREADS, STEPS = 8, 3
SPAN = 0.2, 0.25


@pytest.fixture
def hasty() -> Iterator[None]:
    """Let threads take turns after a few operations, so that each is interrupted within its steps."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work: Any, count: int = THREADS) -> list[Any]:
    """Return work(k) for k < count, all at once."""
    together = Barrier(count)

    def one(k: int) -> Any:
        together.wait()
        return work(k)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(one, range(count)))


@pytest.mark.parametrize("name", EQUATIONS)
def test_one_equation_in_eight_threads(name: str, hasty: None) -> None:
    equation, start, method = EQUATIONS[name]()
    states = [start, 0.9 * start]  # different states, so that a mixed-up result is wrong

    def few_steps(k: int) -> np.ndarray:
        ended = solve(equation, states[k % 2], SPAN, method=method, callbacks=lambda state: state.steps >= STEPS)
        return ended.u[-1]

    alone = [few_steps(k) for k in range(2)]
    assert not np.array_equal(*alone)
    for k, found in enumerate(in_threads(few_steps)):
        np.testing.assert_array_equal(found, alone[k % 2])


def test_a_solve_within_a_solve_of_the_same_equation() -> None:
    mesh = circle(48)
    equation = Equation(mesh, [Advection(mesh, Wind(mesh), nonnegative=True), Diffusion(mesh, 0.1, nonnegative=True)])

    def step_within(state: Any) -> bool:
        solve(equation, 2 * state.values, SPAN, callbacks=lambda state: True)
        return bool(state.steps >= STEPS)

    alone = solve(equation, bump(mesh), SPAN, callbacks=lambda state: state.steps >= STEPS).u[-1]
    asked = solve(equation, bump(mesh), SPAN, callbacks=step_within).u[-1]
    np.testing.assert_array_equal(asked, alone)


def test_a_solve_leaves_the_terms_as_they_are() -> None:
    term, mesh = OwnTerm(), interval(0.0, 1.0, 16)
    solve(Equation(mesh, [term]), bump(mesh), SPAN, method="ssprk3")
    assert vars(term) == {}


def test_solutions_between_their_times_in_eight_threads(hasty: None) -> None:
    mesh = interval(0.0, 1.0, 16)
    term = Diffusion(mesh, 0.1, boundaries={"left": Flux(lambda t, x: t)})
    solution = solve(Equation(mesh, [term]), bump(mesh), (0.0, 0.2))
    times = 0.013 + 0.02 * np.arange(THREADS)
    alone = [solution(float(time)) for time in times]
    for found, expected in zip(in_threads(lambda k: solution(float(times[k]))), alone, strict=True):
        np.testing.assert_array_equal(found, expected)


def points_on_sphere() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((3000, 3))


def shifted(points: np.ndarray) -> np.ndarray:
    moved = points + 0.1
    return moved / np.linalg.norm(moved, axis=1)[:, None]


OPERATORS: dict[str, tuple[int, Callable[[], Callable[[np.ndarray], np.ndarray]]]] = {
    "harmonics of points": (3000, lambda: PointHarmonics(points_on_sphere(), 20).analysis),
    "push-forward": (186, lambda: partial(PushForward(sphere(12)).apply, map=shifted)),
    "attention": (186, lambda: mf.Attention(sphere(12), 3.0, heads=[mf.Head(query=np.diag([1.0, 2.0, 0.5]))]).output),
    "zonal kernel": (186, lambda: Zonal(sphere(12), np.exp).drift),
    "convolution": (48, lambda: Convolution(interval(0.0, 1.0, 48), lambda r: np.exp(-(r**2).sum(axis=1))).drift),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_one_operator_in_eight_threads(name: str, hasty: None) -> None:
    size, make = OPERATORS[name]
    operator, states = make(), np.random.default_rng(2).random((THREADS, size))
    alone = [operator(row) for row in states]
    for found, expected in zip(in_threads(lambda k: operator(states[k])), alone, strict=True):
        np.testing.assert_array_equal(found, expected)
