"""Equations with data that depend on time, by every method, from a time other than 0: orders of convergence.

The reference is the solution on the same cells, by SciPy to 1e-12, so that errors are temporal only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from support.methods import GENERAL

from solvers import (
    Advection,
    ConservationLaw,
    Convolution,
    Diffusion,
    DriftDiffusion,
    Equation,
    Flux,
    NonlinearDiffusion,
    Outflow,
    Robin,
    Source,
    State,
    Value,
    interval,
    solve,
)
from solvers.timestepping.evolution import SplitIntegrator, evolve
from solvers.timestepping.methods import integrator_of
from solvers.timestepping.runge_kutta.error_controlled import ErrorControlled
from solvers.timestepping.runge_kutta.semi_discrete import SemiDiscrete

MESH = interval(0.0, 2.0, 8)
X = MESH.centers[:, 0]
START = 1.5 + 0.5 * np.cos(X)
SPAN = 0.7, 1.1
STEPS = 6, 12
ORDERS = {
    "euler": 1, "ssprk2": 2, "ssprk3": 3, "ssp3": 3, "dopri5": 5, "ars2": 2, "ark3": 3, "ark4": 4, "rkl2": 2,
    "implicit": 4, "exponential": 2,
}  # fmt: skip
SPLIT_ORDER = 2  # order of Strang's splitting, whatever the stepper
REACHED = 2e-9  # accuracy of the reference, of Newton's iteration and of difference quotients


def wave(time: float, points: np.ndarray) -> np.ndarray:
    """Return data g(t, x) at a boundary."""
    return 1.0 + 0.5 * np.sin(3.0 * time) + 0.0 * points[:, 0]


class Relaxation:
    """A user's stiff term −(u − cos t), exact for any step: u − p decays, p = (cos t + sin t)/2."""

    def longest_step(self, values: np.ndarray, time: float) -> float:
        return np.inf

    def step(self, dt: float, values: np.ndarray, limited: bool, time: float) -> float:
        before, after = (0.5 * (np.cos(t) + np.sin(t)) for t in (time, time + dt))
        values[...] = after + (values - before) * np.exp(-dt)
        return 0.0

    def prepare(self, time: float, values: np.ndarray) -> float:
        self._rate = np.cos(time) - values
        return np.inf

    def rate(self, dt: float, rate: np.ndarray) -> None:
        rate += self._rate


def diffusion(**ends: object) -> Callable[[], Equation]:
    return lambda: Equation(MESH, [Diffusion(MESH, 0.05, boundaries=ends)])  # type: ignore[arg-type]


def of(*terms: object) -> Equation:
    return Equation(MESH, list(terms))


def attraction() -> Equation:
    pull = Convolution(MESH, lambda r: np.exp(-(r**2).sum(axis=1)))
    return of(Advection(MESH, lambda t, u: 0.1 * (1.0 + 0.5 * np.sin(3.0 * t)) * pull.drift(u), limiter="none"))


def inflow(term: Callable[..., object]) -> Equation:
    return of(term(boundaries={"left": Value(wave), "right": Outflow()}))


def rising(time: float, u: np.ndarray) -> np.ndarray:
    return np.full((8, 1), 0.2 + 0.1 * np.sin(3.0 * time))


KINDS: dict[str, Callable[[], Equation]] = {
    "value": diffusion(left=Value(wave)),
    "flux": diffusion(left=Flux(wave)),
    "robin": diffusion(left=Robin(1.0, 0.5, wave), right=Value(2.0)),
    "two stiff terms": lambda: of(
        Diffusion(MESH, 0.05, boundaries={"left": Flux(wave)}), Diffusion(MESH, 0.03, boundaries={"right": Value(wave)})
    ),
    "stiff and source": lambda: of(
        Diffusion(MESH, 0.05, boundaries={"left": Value(wave)}), Source(lambda t, u: np.sin(3.0 * t) * u)
    ),
    "own stiff term": lambda: Equation(None, [Source(lambda t, u: np.sin(3.0 * t) * u), Relaxation()]),
    "source": lambda: of(Source(lambda t, u: np.cos(3.0 * t) * (1.0 - u) * np.sin(X))),
    "velocity": lambda: of(
        Advection(MESH, rising, limiter="none", boundaries={"left": Value(1.0), "right": Outflow()})
    ),
    "velocity and inflow": lambda: inflow(lambda **ends: Advection(MESH, rising, limiter="none", **ends)),
    "kernel": attraction,
    "inflow": lambda: inflow(
        lambda **ends: ConservationLaw(MESH, lambda u: 0.2 * u, lambda u: 0.2 + 0 * u, limiter="none", **ends)
    ),
    "potential": lambda: of(DriftDiffusion(MESH, 0.05, lambda t, u: 0.02 * np.sin(3.0 * t) * X**2)),
    "nonlinear diffusion": lambda: of(
        NonlinearDiffusion(MESH, lambda u: 0.02 * u**2, boundaries={"left": Value(wave)})
    ),
}


@cache
def exact(kind: str) -> np.ndarray:
    rate = SemiDiscrete(KINDS[kind]()).full
    return solve_ivp(rate, SPAN, START, method="DOP853", rtol=1e-12, atol=1e-12).y[:, -1]


def error(kind: str, method: str, steps: int) -> float:
    """Return the error at the end of ``steps`` equal steps."""
    equation, state = KINDS[kind](), State(SPAN[0], START.copy())
    integrator = integrator_of(equation, method, 1e-8, 1e-12, None)
    if isinstance(integrator, SplitIntegrator):
        integrator = SplitIntegrator(equation, method, cfl=100.0)  # accuracy bounds its steps
    integrator.begin(state)
    for target in np.linspace(*SPAN, steps + 1)[1:].tolist():
        if isinstance(integrator, ErrorControlled):
            state.values = integrator.attempt(state, target - state.time)[0]
            state.time = target
        else:
            integrator.step(state, target)
            assert state.time == target  # reached in one step
    return float(np.abs(state.values - exact(kind)).max())


def expected_order(kind: str, method: str) -> int:
    splits = ORDERS[method] > SPLIT_ORDER and method == "ssprk3"
    return SPLIT_ORDER if splits and KINDS[kind]().stiff is not None else ORDERS[method]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ORDERS)
def test_order_in_time(method: str, kind: str) -> None:
    coarse, fine = (error(kind, method, steps) for steps in STEPS)
    order, expected = np.log2(coarse / fine), expected_order(kind, method)
    assert fine < REACHED or order > expected - 0.35, f"errors {coarse:.3g}, {fine:.3g}: order {order:.2f}"


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", ["auto", "dop853"])
def test_to_a_tolerance(method: str, kind: str) -> None:
    found = solve(KINDS[kind](), START, SPAN, method=method, rtol=1e-6, times=[SPAN[1]]).u[-1]
    assert np.abs(found - exact(kind)).max() < 2e-5  # errors of steps add up


@pytest.mark.sampled
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("method", ["auto", *GENERAL])
def test_what_comes_in_is_the_integral_of_its_rate(method: str, nonnegative: bool) -> None:
    """∫t dt = 1.5 from t = 1 to 2, exact for methods of order 2, since data are linear."""
    mesh = interval(0.0, 1.0, 3)
    equation = Equation(
        mesh, [Diffusion(mesh, 1.0, boundaries={"left": Flux(lambda t, x: t)}, nonnegative=nonnegative)]
    )
    found = solve(equation, np.ones(3), (1.0, 2.0), method=method, times=[2.0], rtol=1e-2).u[-1]
    assert found @ mesh.volumes == pytest.approx(2.5, abs=1e-9)


@pytest.mark.parametrize("steps", [1, 4])
def test_the_stiff_term_of_evolve_has_its_time(steps: int) -> None:
    term, state = Diffusion(MESH, 0.05, boundaries={"left": Flux(lambda t, x: t)}), State(1.0, START.copy())
    for k in range(steps):
        evolve(state, Equation(None, [term]), "ssprk3", 1.0 + (k + 1) / steps)
    assert state.values @ MESH.volumes == pytest.approx(START @ MESH.volumes + 1.5, abs=1e-12)


def test_a_step_of_a_potential_of_time_takes_the_one_in_its_middle() -> None:
    """The term is stepped directly, since an equation treats such a term as explicit; the order is 2."""
    term, errors = DriftDiffusion(MESH, 0.05, lambda t, u: 0.02 * np.sin(3.0 * t) * X**2), []
    for steps in (8, 16):
        u, dt = START.copy(), (SPAN[1] - SPAN[0]) / steps
        for k in range(steps):
            term.step(dt, u, time=SPAN[0] + k * dt)
        errors.append(np.abs(u - exact("potential")).max())
    assert np.log2(errors[0] / errors[1]) > 1.7


def diffused(data: Callable[[float], float], condition: Callable[..., object], nonnegative: bool) -> tuple:
    """Return a diffusion term on twelve cells, with data g(t) on the left, and the exact values at t = 1 from rest."""
    mesh = interval(0.0, 1.0, 12)
    boundaries = {"left": condition(lambda t, x: data(t) * np.ones(len(x)))}
    problem = SemiDiscrete(Equation(mesh, [Diffusion(mesh, 0.7, boundaries=boundaries)]))
    exact = solve_ivp(problem.full, (0.0, 1.0), np.ones(12), "Radau", rtol=1e-10, atol=1e-12).y[:, -1]
    return Diffusion(mesh, 0.7, boundaries=boundaries, nonnegative=nonnegative), exact


def test_exponential_steps_are_exact_for_data_linear_in_time() -> None:
    term, exact = diffused(lambda t: t, Flux, nonnegative=False)
    found = solve(Equation(term.mesh, [term]), np.ones(12), (0.0, 1.0), method="exponential", times=[1.0])
    np.testing.assert_allclose(found.u[-1], exact, atol=1e-8)  # difference quotients, over a hundred steps


@pytest.mark.parametrize("condition", [Value, Flux])
@pytest.mark.parametrize("data", [lambda t: 1.0 + t * t, lambda t: 1.0 + np.sin(3.0 * t)], ids=["square", "sine"])
def test_evolve_meets_its_tolerance_from_rest(data: Callable[[float], float], condition: type) -> None:
    """The change in a step falls as fast as the error for data without a jump in their derivative, otherwise slower."""
    term, exact = diffused(data, condition, nonnegative=True)
    state = evolve(State(0.0, np.ones(12)), Equation(None, [term]), "ssprk3", 1.0, rtol=1e-4)
    np.testing.assert_allclose(state.values, exact, atol=1e-4)  # errors of steps add up to rtol times the path
