"""Observers of `solve`: each method obeys an observer that ends the run, and none shows a state beyond an event."""

import numpy as np
import pytest
from support.methods import GENERAL

from solvers import Equation, Every, Listed, Observer, Threshold, circle, read, record, restart, solve

DECAY = Equation(None, [lambda t, u: -u])
HALF = np.log(2)  # time of the event u = ½


def below_half(t, u):
    return float(u[0]) - 0.5


def run(method, observers, times=None, end=2.0, **options):
    return solve(DECAY, [1.0], (0.0, end), method=method, times=times, rtol=1e-2, callbacks=observers, **options)


@pytest.mark.parametrize("method", GENERAL)
@pytest.mark.parametrize("times", [None, [0.0, 1.0, 2.0]])
@pytest.mark.parametrize("due", [0.0, 0.3, 1.0])
def test_an_observer_ends_a_run_at_its_time(method, times, due):
    """All observers due at that time are called, and none later."""
    seen = []
    ending, watching = Observer(lambda state: True, Listed((due,))), Observer(seen.append, Listed((due, 2.0)))
    found = run(method, [ending, watching], times)
    assert found.t[-1] == due
    assert found.u[-1, 0] == pytest.approx(np.exp(-due), rel=1e-2)
    assert np.all(np.diff(found.t) > 0)
    assert [state.time for state in seen] == [due]
    assert found.event is None
    assert found.message.startswith(f"ended by a callback at time {due:g}")


@pytest.mark.parametrize("method", GENERAL)
def test_an_observer_ends_a_run_at_the_end_of_a_step(method):
    """The end of the second step is due; a method with interpolation calls the observer there as within a step."""
    due = run(method, ()).t[2]
    found = run(method, [Observer(lambda state: True, Listed((due,)))])
    assert (found.t[-1], found.steps) == (due, 2)


@pytest.mark.parametrize("method", GENERAL)
def test_a_run_that_an_observer_ends_at_the_last_time_has_reached_it(method):
    found = run(method, Observer(lambda state: True, Listed((2.0,))))
    assert found.t[-1] == 2.0
    assert found.message.startswith("reached t = 2")


@pytest.mark.parametrize("method", GENERAL)
def test_observers_see_states_up_to_an_event(method):
    seen = []
    observers = [Observer(lambda state: seen.append((state.time, state.values[0])), Every(0.4))]
    found = run(method, observers, events=below_half)
    assert found.event == 0
    assert found.t[-1] == pytest.approx(HALF, rel=1e-2)
    times, values = np.transpose(seen)
    assert times.tolist() == [0.0, 0.4]
    assert values == pytest.approx(np.exp(-times), rel=1e-2)


@pytest.mark.parametrize("method", ["dopri5", "dop853"])
def test_an_observer_may_end_a_run_within_the_step_of_an_event(method):
    """The steps are about as long as the run, so that both are in one step of a method with interpolation."""
    found = run(method, Observer(lambda state: True, Listed((HALF - 1e-3,))), events=Threshold(0.5))
    assert found.t[-1] == HALF - 1e-3
    assert found.event is None
    assert found.message.startswith("ended by a callback")


@pytest.mark.parametrize("method", ["dopri5", "dop853"])
def test_a_recorded_file_ends_before_an_event(tmp_path, method):
    """Snapshots and checkpoints are those of states up to the event."""
    path, mesh = tmp_path / "u.h5", circle(8)
    with record(path, mesh, every=0.4, checkpoint=0.0) as recorder:
        found = solve(DECAY, np.ones(8), (0.0, 2.0), method=method, callbacks=recorder, events=Threshold(0.5))
    assert read(path).times.tolist() == [0.0, 0.4]
    assert restart(path).time == found.t[-1] == pytest.approx(HALF, rel=1e-3)


def test_a_run_that_begins_where_another_has_ended_is_observed_from_its_start():
    seen = []
    observer = Observer(lambda state: seen.append(state.time), Every(0.5))
    for start in (0.0, 1.0):
        solve(DECAY, [1.0], (start, start + 1.0), callbacks=observer)
    assert seen == [0.0, 0.5, 1.0, 1.0, 1.5, 2.0]
