"""Remaining time of runs whose steps are known exactly."""

from __future__ import annotations

import pytest

from meanfield.runtime.messages import counted
from meanfield.runtime.remaining import MAX_MOMENTS, MIN_STEPS, RemainingTime
from solvers.timestepping.schedules import Every, Logarithmic

SECONDS = 0.25  # seconds per step


def after(remaining: RemainingTime, times: list[float], first: float = 5.0) -> RemainingTime:
    """Update after steps that reach these times, the first of them at ``first``, and return the object."""
    for step, time in enumerate(times):
        remaining.update(time, first + SECONDS * step)
    return remaining


@pytest.mark.parametrize("steps", [2 * MIN_STEPS + 1, 100, 10 * MAX_MOMENTS + 1])
def test_steps_of_one_length(steps: int) -> None:
    remaining = after(RemainingTime(1.0, []), [(k + 1) / (10 * steps) for k in range(steps)])
    assert remaining.seconds() == pytest.approx(9 * steps * SECONDS, rel=10 / steps if steps > MAX_MOMENTS else 1e-9)


@pytest.mark.parametrize("q", [0.5, 0.8])
def test_steps_that_grow_with_time(q: float) -> None:
    """The times are s^(1/q) at step s: n = t^q."""
    remaining = after(RemainingTime(401 ** (1 / q), []), [s ** (1 / q) for s in range(1, 102)])
    assert remaining.seconds() == pytest.approx(300 * SECONDS, rel=1e-6)


def test_steps_in_logarithmic_time() -> None:
    remaining = after(RemainingTime(10.0**4, []), [10 ** (k / 100) for k in range(101)])
    assert remaining.seconds() == pytest.approx(300 * SECONDS, rel=1e-6)


def test_there_are_no_fewer_steps_than_looks() -> None:
    remaining = after(RemainingTime(10.0, [Every(10.0, 1000)]), [1e-11 * 2**k for k in range(31)])  # t = 0.0107
    assert remaining.seconds() == pytest.approx(999 * SECONDS)


def test_outputs_of_two_schedules_are_at_the_same_steps() -> None:
    schedules = [Every(10.0, 1000), Every(10.0, 1000)]
    remaining = after(RemainingTime(10.0, schedules), [1e-11 * 2**k for k in range(31)])
    assert remaining.seconds() == pytest.approx(999 * SECONDS)


def test_looks_within_steps_take_the_time() -> None:
    """The step contains five interpolated observations, and forty more steps follow."""
    remaining = after(RemainingTime(20.0, [Every(20.0, 200)]), [1.0 + k / 2 for k in range(31)])  # t = 16
    assert remaining.seconds() == pytest.approx(40 * SECONDS / 5)
    growing = [1.03 + 0.3 * k + 0.01 * k * (k - 1) for k in range(31)]  # from 3 observations per step to 9; t = 18.73
    remaining = after(RemainingTime(20.0, [Every(20.0, 200)]), growing)
    # 93 observations since step 18, t = 9.49, in 12 steps.
    assert remaining.seconds() == pytest.approx(13 * 12 * SECONDS / 93)


def test_nothing_is_shown_where_half_of_the_steps_say_otherwise() -> None:
    """The first half of these steps has one step for each observation; the second half has many observations in
    each."""
    times = [1e-8 * 2**k for k in range(31)]  # t = 10.7
    assert after(RemainingTime(20.0, [Every(20.0, 200)]), times).seconds() is None


def test_a_start_of_another_kind_is_forgotten() -> None:
    """The first eighth of the steps is a thousand times as short, as before a run has left its initial state."""
    times = [1e-4 * (k + 1) for k in range(10)] + [1e-3 + 0.1 * (k + 1) for k in range(71)]  # t = 7.1
    assert after(RemainingTime(20.0, []), times).seconds() == pytest.approx(129 * SECONDS, rel=1e-2)


def test_few_steps_say_nothing() -> None:
    assert after(RemainingTime(1.0, []), [0.01 * (k + 1) for k in range(2 * MIN_STEPS)]).seconds() is None


def test_the_first_half_second_says_nothing() -> None:
    times = [0.001 * (k + 1) for k in range(100)]
    for seconds, shown in ((0.005, None), (0.0051, pytest.approx(0.0051 * 900))):
        remaining = RemainingTime(1.0, [])
        for step, time in enumerate(times):
            remaining.update(time, 5.0 + seconds * step)
        assert remaining.seconds() == shown


def test_from_a_handover_on_steps_are_looks() -> None:
    """The run has 141 observations to t = 10¹⁴; the steps before the handover do not determine its time."""
    schedule = Logarithmic(1.0, 1e14, 141)
    remaining = after(RemainingTime(1e14, [schedule], handover=True), [0.01 * (k + 1) for k in range(99)])
    assert remaining.seconds() is None
    remaining.forget_density_steps()
    after(remaining, [schedule.due(k) for k in range(1, 32)], first=9.0)
    assert remaining.seconds() == pytest.approx(110 * SECONDS)
    remaining.forget_density_steps()  # a second call keeps the history
    assert remaining.seconds() is not None


def test_at_the_end_nothing_remains() -> None:
    assert after(RemainingTime(0.5, []), [0.05 * (k + 1) for k in range(30)]).seconds() == 0.0


@pytest.mark.parametrize(("count", "text"), [(0, "0 steps"), (1, "1 step"), (2, "2 steps")])
def test_plurals(count: int, text: str) -> None:
    assert counted(count, "step") == text
