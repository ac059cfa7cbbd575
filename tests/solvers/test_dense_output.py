"""States between the ends of steps: exact solutions, the order of the interpolation, costs, and `solution(t)`."""

from functools import cache

import numpy as np
import pytest
from scipy.linalg import expm
from support.adaptive import evolve_adaptively
from support.methods import GENERAL

from solvers import Diffusion, Equation, Solution, Threshold, interval, solve
from solvers.timestepping.adaptive import AdaptiveIntegrator
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Listed
from solvers.timestepping.state import State

START = np.array([1.0, 0.0])


def circling(time, values):
    """Return ẋ = −y, ẏ = x + 2t, a rate that depends on time."""
    return np.array([-values[1], values[0] + 2 * time])


def exact(time):
    """Return x = a cos t + b sin t − 2t, the solution of ẍ = −x − 2t, and y = −ẋ."""
    a, b = START[0], 2.0 - START[1]
    return np.array([a * np.cos(time) + b * np.sin(time) - 2 * time, a * np.sin(time) - b * np.cos(time) + 2])


def looked(times, tolerance=1e-9, until=3.0, look=None):
    """Return the states that an observer sees at some times, the number of rate evaluations, and the final state."""
    seen, calls = [], []

    def rate(time, values):
        calls.append(time)
        return circling(time, values)

    def keep(state):
        seen.append((state.time, state.values.copy()))
        return look is not None and look(state)

    state = evolve_adaptively(State(0.0, START.copy()), rate, until, [Observer(keep, Listed(tuple(times)))], tolerance)
    return seen, len(calls), state


def test_states_within_steps_are_those_of_the_equation():
    times = np.linspace(0.0, 3.0, 301)
    seen, _, state = looked(times)
    assert [time for time, _ in seen] == list(times)
    error = max(np.abs(values - exact(time)).max() for time, values in seen)
    assert error < 1e-8  # ten steps, each within 1e-9 of a solution of size 1 to 6
    np.testing.assert_array_equal(seen[-1][1], state.values)


def test_looks_cost_no_step():
    """The interpolation takes four rates a step, for any number of observations."""
    few, many = (looked(np.linspace(0.0, 3.0, count)) for count in (2, 1000))
    assert many[2].steps == few[2].steps
    np.testing.assert_array_equal(many[2].values, few[2].values)
    assert many[1] == few[1] + 4 * few[2].steps


def test_interpolation_is_of_order_seven():
    """The error over a step of length h is O(h⁸), as large as that of a method of order 7."""
    errors = []
    for dt in (0.4, 0.2):
        integrator = AdaptiveIntegrator(circling, tolerance=1.0)
        state = State(0.0, START.copy(), dt=dt)
        integrator.begin(state)
        integrator.step(state, dt)
        errors.append(
            max(np.abs(integrator.interpolate(x * dt) - exact(x * dt)).max() for x in np.linspace(0.05, 0.95, 19))
        )
    assert np.log2(errors[0] / errors[1]) == pytest.approx(8, abs=0.5)


def test_a_look_ends_the_loop_where_it_is():
    """The loop ends within a step, with the state shown to the observer, and without later observations."""
    times = np.linspace(0.0, 3.0, 31)
    seen, _, state = looked(times, look=lambda state: state.time >= 1.2)
    assert state.time == seen[-1][0] == times[12]
    np.testing.assert_array_equal(state.values, seen[-1][1])


def three(time, u):
    """Return u' = u² cos t − u, and the rate of an oscillator of frequency 3."""
    return np.array([u[0] ** 2 * np.cos(time) - u[0], -3 * u[2], 3 * u[1]])


def exact_three(time):
    bernoulli = 1 / (1.5 * np.exp(time) + (np.cos(time) - np.sin(time)) / 2)
    return np.stack([bernoulli, np.cos(3 * time), np.sin(3 * time)], axis=-1)


TIMES = np.linspace(0.0, 1.0, 24)
LOOSEST = {"euler": 1e-2, "ssprk2": 1e-4, "ars2": 1e-3, "rkl2": 1e-4, "exponential": 1e-4}  # few steps of low order
TIGHTEST = {
    "ssp3": 1e-6,
    "ssprk3": 1e-6,
    "ark3": 1e-5,
    "ark4": 1e-7,
    "implicit": 1e-6,
    "dopri5": 1e-10,
    "dop853": 1e-10,
}


@cache
def solved(method, rtol, times=None):
    return solve(
        Equation(None, [three]), [0.5, 1.0, 0.0], (0.0, 1.0), method=method, rtol=rtol, atol=0.01 * rtol, times=times
    )


@pytest.mark.sampled
@pytest.mark.parametrize("method", GENERAL)
@pytest.mark.parametrize("rtol", [1e-4, 1e-7, 1e-10])
def test_a_solution_is_as_accurate_between_steps_as_at_them(method, rtol):
    """Cubic interpolation loses a factor of 60 by dopri5 at 1e-10, and of 4·10⁵ by dop853."""
    rtol = LOOSEST.get(method, max(rtol, TIGHTEST.get(method, 0.0)))
    found = solved(method, rtol)
    at = np.abs(found.u - exact_three(found.t)).max()
    between = np.abs(found(TIMES) - exact_three(TIMES)).max()
    assert between < 1.2 * at, f"{method}, rtol {rtol:g}: {between:.1e} between steps, {at:.1e} at them"


@pytest.mark.parametrize("method", ["ssprk2", "ssp3", "ark4", "dopri5", "dop853"])
def test_a_solution_at_few_times_is_as_accurate_between_them(method):
    rtol = LOOSEST.get(method, 1e-6)
    every, few = solved(method, rtol), solved(method, rtol, (0.0, 0.7, 1.0))
    at = np.abs(every.u - exact_three(every.t)).max()
    if method == "dop853":  # the field at 0.7 is interpolated
        at = np.abs(few.u - exact_three(few.t)).max()
    between = np.abs(few(TIMES) - exact_three(TIMES)).max()
    assert between < 2 * at, f"{between:.1e} between times, {at:.1e} at steps"  # a run that restarts at 0.7


@pytest.mark.parametrize("method", ["ssprk3", "ark4", "implicit", "exponential"])
def test_stiff_modes_between_steps(method):
    """Heat from a jump: errors of rates at steps are multiplied by 1/h² = 1024, too much for an interpolation by
    rates."""
    mesh = interval(0.0, 1.0, 32)
    equation, start = Equation(mesh, [Diffusion(mesh, 1.0)]), np.where(mesh.centers[:, 0] < 0.3, 1.0, 0.0)
    matrix = Diffusion(mesh, 1.0).jacobian(1)[0].toarray()
    found = solve(equation, start, (0.0, 0.1), method=method)
    at = max(np.abs(u - expm(t * matrix) @ start).max() for t, u in zip(found.t, found.u, strict=True))
    between = max(np.abs(found(t) - expm(t * matrix) @ start).max() for t in np.linspace(0.0, 0.1, 40))
    rounding = 1e-13  # of e^{tM}, |tM| to 400: method "exponential" is exact
    assert between < 2 * at + rounding, f"{between:.1e} between steps, {at:.1e} at them"


@pytest.mark.parametrize("method", ["ssp3", "dop853"])
def test_a_solution_at_an_array_of_times(method):
    """Rows follow the given order of the times, and stored times give the stored fields."""
    found = solved(method, 1e-5)
    times = np.array([0.9, 0.25, found.t[2], 0.25, 0.0, 1.0])
    rows = found(times)
    assert rows.shape == (6, 3)
    for time, row in zip(times, rows, strict=True):
        np.testing.assert_array_equal(row, found(time))
    np.testing.assert_array_equal(rows[[2, 4, 5]], found.u[[2, 0, -1]])
    np.testing.assert_array_equal(found(found.t), found.u)
    assert found([]).shape == (0, 3)
    assert found(0).shape == (3,)


@pytest.mark.parametrize("method", GENERAL)
def test_a_solution_is_continuous_at_the_ends_of_steps(method):
    """The time to a step's end may be rounding: it is no step that has shrunk to nothing."""
    found = solved(method, LOOSEST.get(method, 1e-4))
    for time, field in list(zip(found.t[1:-1], found.u[1:-1], strict=True))[:20]:
        for near in (np.nextafter(time, 0.0), np.nextafter(time, 1.0), time + 3 * np.spacing(time)):
            np.testing.assert_allclose(found(near), field, rtol=1e-13, atol=1e-13)


def test_a_solution_that_an_event_ends():
    found = solve(Equation(None, [lambda t, u: -u]), [1.0], (0.0, 5.0), events=Threshold(0.5), rtol=1e-6)
    times = np.linspace(0.0, found.t[-1], 20)
    np.testing.assert_allclose(found(times)[:, 0], np.exp(-times), rtol=1e-5)


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (1.5, r"t = 1\.5: expected a time from 0 to 1"),
        ([0.5, -0.25, 3.0], r"t = -0\.25: expected a time from 0 to 1"),
        (np.nan, r"t = nan: expected a time from 0 to 1"),
        ([[0.5]], r"t of shape \(1, 1\): expected a time, or a list of times"),
        ("soon", r"t = 'soon': expected a time, or a list of times"),
        (None, r"t = nan: expected a time from 0 to 1"),
        ([0.1, [0.2]], r"t = \[0\.1, \[0\.2\]\]: expected a time, or a list of times"),
    ],
)
def test_times_outside_a_solution_are_refused(time, message):
    with pytest.raises(ValueError, match=message) as caught:
        solved("dop853", 1e-4)(time)
    assert "\n" not in str(caught.value)


def test_the_interpolation_of_a_solution_is_no_positional_argument():
    found = solve(Equation(None, [lambda t, u: -u]), [1.0], (0.0, 1.0))
    with pytest.raises(TypeError, match="positional arguments"):
        Solution(found.t, found.u, found.steps, found.rejected, found.message, None, None, found)
