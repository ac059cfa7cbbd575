"""Error of a step of DOP853 by SciPy's coefficients, and the step control."""

import numpy as np
import pytest
from scipy.integrate import DOP853

from solvers.timestepping.adaptive import AdaptiveIntegrator
from solvers.timestepping.adaptive.dormand_prince import DormandPrince
from solvers.timestepping.integrate import fixed, integrate
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Every, Listed
from solvers.timestepping.state import Exploding, State
from solvers.timestepping.systems import Systems

START = np.array([0.5, 1.0, 0.0, 1.0])


def rate(time, u):
    """Return the rate of Bernoulli's equation, of an oscillator of frequency 3, and of one of frequency 20 in time."""
    return np.array([u[0] ** 2 * np.cos(time) - u[0], -3 * u[2], 3 * u[1], np.cos(20 * time) * u[3]])


def scipy_error(dt, tolerance):
    """Return |h| |e₅|²/√(n (|e₅|² + 0.01 |e₃|²)) of a step from 0 (Hairer, Nørsett and Wanner, II.10), over the
    tolerance."""
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
    rows = rows_of(rate, START, 1e-6)
    rows.start(START[None], np.zeros(1), np.array([dt]))
    errors, advance = [], rows._advance
    rows._advance = lambda: errors.append(advance()) or errors[-1]
    rows.attempt(np.array([dt]))
    assert errors[0] == pytest.approx([scipy_error(dt, 1e-6)], rel=1e-8)


def rows_of(rate, start, tolerance, limit=None):
    """Return a DormandPrince integrator of one row, from a rate f(t, u)."""
    tolerances = np.array([tolerance])
    return DormandPrince(
        lambda which, times, values: rate(times[0], values[0])[None], start[None], tolerances, tolerances
    )


def one_system(rate, start, until, tolerance):
    """Return systems with a single member, from a rate f(t, u), observed at the end."""
    return Systems(rows_of(rate, start, tolerance), [until], [Listed((until,))])


def undefined_for_a_while(time, u):
    """Return u̇ = 0, but NaN from 0.5 to 1: a step of 1 from 0 is refused, and one of 0.1 has no error."""
    return np.full_like(u, np.nan if 0.5 < time <= 1.0 else 0.0)


def test_no_step_grows_after_one_that_was_refused():
    """A step without an error is followed by one ten times as long, except after a refusal."""
    integrator, state = AdaptiveIntegrator(undefined_for_a_while, 1e-6), State(0.0, np.ones(1), dt=1.0)
    integrator.begin(state)
    integrator.step(state, 100.0)
    assert (state.time, state.dt) == (pytest.approx(0.1), pytest.approx(0.1))
    integrator.step(state, 100.0)
    assert state.dt == pytest.approx(1.0, rel=0.01)  # equal steps to the target: 100 in 500


def test_a_blow_up_is_followed_until_steps_are_the_spacing_of_the_time():
    """u = 1/(1 − t): steps are about a fifth of the remaining time, ten spacings of 1e-16 at the end."""
    integrator, state = AdaptiveIntegrator(lambda time, u: u * u, 1e-9), State(0.0, np.ones(1))
    with pytest.raises(Exploding, match="step size underflow"):
        run_of(integrator, state, 2.0)
    assert 1e12 < state.values[0] < 1e17, f"{state.values[0]:.1e} at {state.time:.17g}"


def run_of(integrator, state, end):
    """Return the numbers of attempted and of accepted steps."""
    integrator.begin(state)
    attempts, attempt = [], integrator._row.attempt

    def counted(target):
        attempts.append(target)
        return attempt(target)

    integrator._row.attempt = counted
    while state.time < end:
        integrator.step(state, end)
    return len(attempts), state.steps


@pytest.mark.parametrize("tolerance", [1e-4, 1e-7, 1e-10])
def test_few_steps_are_refused_and_as_many_taken_as_by_scipy(tolerance):
    """The control is SciPy's: a factor of 0.9 times the ideal one, at most 10."""
    solver, counted = DOP853(rate, 0.0, START, 10.0, rtol=tolerance, atol=tolerance), 0
    while solver.status == "running":
        solver.step()
        counted += 1
    attempts, steps = run_of(AdaptiveIntegrator(rate, tolerance), State(0.0, START.copy()), 10.0)
    assert 0.8 * counted < steps < 1.25 * counted, f"{steps} steps, {counted} by SciPy"
    assert attempts - steps < 0.5 * steps, f"{attempts - steps} of {attempts} steps are refused"


@pytest.mark.parametrize("tolerance", [1e-5, 1e-8])
def test_systems_are_stepped_as_one_is(tolerance):
    """The number of attempts is the same, and the states agree to the tolerance."""
    calls, alone = [], []

    def counted(time, u):
        alone.append(time)
        return rate(time, u)

    def counted_too(time, u):
        calls.append(time)
        return rate(time, u)

    systems = one_system(counted_too, START, 10.0, tolerance)
    seen = list(systems.start())
    while len(systems.running):
        seen.extend(systems.step())
    integrator, state = AdaptiveIntegrator(counted, tolerance), State(0.0, START.copy())
    integrator.begin(state)
    while state.time < 10.0:
        integrator.step(state, 10.0)
    np.testing.assert_allclose(seen[-1][2], state.values, rtol=1e-9)
    assert len(calls) == pytest.approx(len(alone), rel=0.1)  # rates of a refused step are evaluated again


def test_the_limit_holds_at_looks_within_a_step_too():
    """A rotation is projected to the unit circle; steps of a rough tolerance leave the circle by 1e-3 between."""
    looks = []
    turn, to_circle = lambda t, u: np.array([-u[1], u[0]]), lambda u: np.divide(u, np.hypot(*u), u)
    limited = AdaptiveIntegrator(turn, 1e-3, to_circle)
    observer = Observer(lambda state: looks.append(np.hypot(*state.values)), Every(0.1))
    integrate(State(0.0, np.array([1.0, 0.0])), fixed(limited), 10.0, [observer])
    np.testing.assert_allclose(looks, 1.0, rtol=4 * np.finfo(float).eps)  # rounding of a division and of a square root


def test_the_first_step_from_zero_is_that_of_scipy():
    """The state gives no scale of time: the step is 100 trial steps of 1e-6 (Hairer, Nørsett and Wanner, II.4)."""
    integrator, state = AdaptiveIntegrator(lambda time, u: np.ones_like(u), 1e-9), State(0.0, np.zeros(1))
    integrator.begin(state)
    integrator.step(state, 1.0)
    expected = DOP853(lambda time, u: np.ones_like(u), 0.0, np.zeros(1), 1.0, rtol=1e-9, atol=1e-9).h_abs
    assert state.time == pytest.approx(expected, rel=1e-3)  # a whole number of steps ends at time 1
