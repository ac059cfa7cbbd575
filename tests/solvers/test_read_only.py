"""States passed to callbacks, events and observers: read-only, so that a callback cannot change a run."""

import numpy as np
import pytest

from solvers import Equation, Every, Observer, State, Threshold, solve
from solvers.timestepping.evolution import evolve

FALL = Equation(None, [lambda t, u: -u])
START = np.array([1.0, 2.0])


def erase(state):
    state.values[...] = 0.0


def erase_values(values):
    values[...] = 0.0
    return 1.0


def evolved(**options):
    return evolve(State(0.0, START.copy()), FALL, "ssprk3", 1.0, **options)


WRITERS = {
    "callback": lambda: solve(FALL, START, (0.0, 1.0), callbacks=erase),
    "observer": lambda: solve(FALL, START, (0.0, 1.0), callbacks=Observer(erase, Every(0.5))),
    "observer within a step": lambda: solve(
        FALL, START, (0.0, 1.0), callbacks=Observer(erase, Every(0.3)), method="dop853"
    ),
    "event": lambda: solve(FALL, START, (0.0, 1.0), events=lambda t, u: erase_values(u)),
    "threshold": lambda: solve(FALL, START, (0.0, 1.0), events=Threshold(5.0, erase_values)),
    "observer of evolve": lambda: evolved(observers=[Observer(erase, Every(0.5))]),
    "after a step": lambda: evolved(after_step=erase),
}


@pytest.mark.parametrize("name", WRITERS)
def test_writing_into_a_state_is_an_error(name):
    with pytest.raises(ValueError, match="read-only"):
        WRITERS[name]()


def test_another_time_of_a_state_that_is_given_changes_nothing():
    def later(state):
        state.time, state.dt, state.steps = 5.0, 5.0, 5

    plain, changed = (solve(FALL, START, (0.0, 1.0), callbacks=one) for one in (lambda state: None, later))
    np.testing.assert_array_equal(plain.t, changed.t)
    np.testing.assert_array_equal(plain.u, changed.u)


def test_what_is_given_is_the_state_itself():
    """Callbacks receive a view of the values, which they copy if they keep the values."""
    seen = []
    found = solve(FALL, START, (0.0, 1.0), callbacks=lambda state: seen.append(state.values.copy()))
    np.testing.assert_array_equal(np.stack(seen), found.u[1:])
