"""The error of a step of DOP853 as SciPy's coefficients give it, and what the control makes of it."""

import numpy as np
import pytest
from scipy.integrate import DOP853

from solvers.timestepping.adaptive import AdaptiveIntegrator
from solvers.timestepping.adaptive.systems import Systems
from solvers.timestepping.state import State

START = np.array([0.5, 1.0, 0.0, 1.0])


def rate(time, u):
    """Bernoulli's equation, an oscillator of frequency 3, and one of frequency 20 in time."""
    return np.array([u[0] ** 2 * np.cos(time) - u[0], -3 * u[2], 3 * u[1], np.cos(20 * time) * u[3]])


def scipy_error(dt, tolerance):
    """|h| |e₅|²/√(n (|e₅|² + 0.01 |e₃|²)) of a step from 0 (Hairer, Nørsett and Wanner, II.10), over the tolerance."""
    stages = np.zeros((13, len(START)))
    for k in range(12):
        stages[k] = rate(DOP853.C[k] * dt, START + dt * DOP853.A[k, :k] @ stages[:k])
    after = START + dt * DOP853.B @ stages[:12]
    stages[12] = rate(dt, after)
    allowed = tolerance * (1 + np.maximum(np.abs(START), np.abs(after)))
    fifth, third = (((errors @ stages / allowed) ** 2).sum() for errors in (DOP853.E5, DOP853.E3))
    return dt * fifth / np.sqrt((fifth + 0.01 * third) * len(START))


@pytest.mark.parametrize("dt", [0.05, 0.2, 0.5])
def test_the_error_of_a_step_is_scipy_s(dt):
    integrator, state = AdaptiveIntegrator(rate, 1e-6), State(0.0, START.copy(), dt=dt)
    integrator.begin(state)
    integrator._method.begin(state)
    _, error = integrator._method.attempt(state, dt)
    assert error == pytest.approx(scipy_error(dt, 1e-6), rel=1e-8)


def run_of(integrator, state, end):
    """Attempted steps and accepted ones."""
    integrator.begin(state)
    attempts, attempt = [], integrator._method.attempt

    def counted(state, dt):
        attempts.append(dt)
        return attempt(state, dt)

    integrator._method.attempt = counted
    while state.time < end:
        integrator.step(state, end)
    return len(attempts), state.steps


@pytest.mark.parametrize("tolerance", [1e-4, 1e-7, 1e-10])
def test_few_steps_are_refused_and_as_many_taken_as_by_scipy(tolerance):
    """The same control: a change by 0.9 of what the error asks for, at most 10, at least 0.2."""
    solver, counted = DOP853(rate, 0.0, START, 10.0, rtol=tolerance, atol=tolerance), 0
    while solver.status == "running":
        solver.step()
        counted += 1
    attempts, steps = run_of(AdaptiveIntegrator(rate, tolerance), State(0.0, START.copy()), 10.0)
    assert 0.8 * counted < steps < 1.25 * counted, f"{steps} steps, {counted} by SciPy"
    assert attempts - steps < 0.5 * steps, f"{attempts - steps} of {attempts} steps are refused"


@pytest.mark.parametrize("tolerance", [1e-5, 1e-8])
def test_systems_are_stepped_as_one_is(tolerance):
    """As many attempts, and the same states to the tolerance."""
    calls, alone = [], []

    def counted(time, u):
        alone.append(time)
        return rate(time, u)

    def rates(which, times, values):
        calls.append(times[0])
        return rate(times[0], values[0])[None]

    systems = Systems(
        START[None], rates, np.array([10.0]), np.array([tolerance]), lambda values: None, np.array([[10.0, np.inf]])
    )
    seen = list(systems.start())
    while len(systems.running):
        seen.extend(systems.step())
    integrator, state = AdaptiveIntegrator(counted, tolerance), State(0.0, START.copy())
    integrator.begin(state)
    while state.time < 10.0:
        integrator.step(state, 10.0)
    np.testing.assert_allclose(seen[-1][2], state.values, rtol=1e-9)
    assert len(calls) == pytest.approx(len(alone), rel=0.1)  # rates of a step that is refused are evaluated again
