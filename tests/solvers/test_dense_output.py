"""States between the ends of an adaptive step: exact solutions, the order of the interpolation, and what it costs."""

import numpy as np
import pytest
from support.adaptive import evolve_adaptively

from solvers.timestepping.adaptive import AdaptiveIntegrator
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Listed
from solvers.timestepping.state import State

START = np.array([1.0, 0.0])


def circling(time, values):
    """ẋ = −y, ẏ = x + 2t: a rate that depends on time."""
    return np.array([-values[1], values[0] + 2 * time])


def exact(time):
    """ẍ = −x − 2t, so x = a cos t + b sin t − 2t, and y = −ẋ."""
    a, b = START[0], 2.0 - START[1]
    return np.array([a * np.cos(time) + b * np.sin(time) - 2 * time, a * np.sin(time) - b * np.cos(time) + 2])


def looked(times, tolerance=1e-9, until=3.0, look=None):
    """What an observer sees at some times, how often the rate was computed, and the state at the end."""
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
    """Four rates a step for the interpolation, however many look."""
    few, many = (looked(np.linspace(0.0, 3.0, count)) for count in (2, 1000))
    assert many[2].steps == few[2].steps
    np.testing.assert_array_equal(many[2].values, few[2].values)
    assert many[1] == few[1] + 4 * few[2].steps


def test_interpolation_is_of_order_seven():
    """Its error over a step of length h is O(h⁸), as large as that of a method of order 7."""
    errors = []
    for dt in (0.4, 0.2):
        integrator = AdaptiveIntegrator(circling, tolerance=1.0)
        state = State(0.0, START.copy(), dt=dt)
        integrator.begin(state)
        integrator.step(state, dt)
        errors.append(
            max(np.abs(integrator.between(x * dt) - exact(x * dt)).max() for x in np.linspace(0.05, 0.95, 19))
        )
    assert np.log2(errors[0] / errors[1]) == pytest.approx(8, abs=0.5)


def test_a_look_ends_the_loop_where_it_is():
    """Within a step: with the state that it was shown, which later looks do not see."""
    times = np.linspace(0.0, 3.0, 31)
    seen, _, state = looked(times, look=lambda state: state.time >= 1.2)
    assert state.time == seen[-1][0] == times[12]
    np.testing.assert_array_equal(state.values, seen[-1][1])
