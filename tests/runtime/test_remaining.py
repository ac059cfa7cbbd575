"""The remaining time of runs whose steps are known, exactly."""

from __future__ import annotations

import pytest

from meanfield.runtime.messages import counted
from meanfield.runtime.remaining import MAX_MOMENTS, MIN_STEPS, RemainingTime
from solvers.timestepping.schedules import Every, Logarithmic

SECONDS = 0.25  # of a step


def after(remaining: RemainingTime, times: list[float], first: float = 5.0) -> RemainingTime:
    """After steps that reach these times, the first of them late."""
    for step, time in enumerate(times):
        remaining.update(time, first + SECONDS * step)
    return remaining


@pytest.mark.parametrize("steps", [MIN_STEPS + 1, 100, 10 * MAX_MOMENTS + 1])
def test_steps_of_one_length(steps: int) -> None:
    remaining = after(RemainingTime(1.0, []), [(k + 1) / (10 * steps) for k in range(steps)])
    assert remaining.seconds() == pytest.approx(9 * steps * SECONDS, rel=10 / steps if steps > MAX_MOMENTS else 1e-9)


@pytest.mark.parametrize("q", [0.5, 0.8])
def test_steps_that_grow_with_time(q: float) -> None:
    """Times s^(1/q) at step s: n = t^q."""
    remaining = after(RemainingTime(401 ** (1 / q), []), [s ** (1 / q) for s in range(1, 102)])
    assert remaining.seconds() == pytest.approx(300 * SECONDS, rel=1e-6)


def test_steps_in_logarithmic_time() -> None:
    remaining = after(RemainingTime(10.0**4, []), [10 ** (k / 100) for k in range(101)])
    assert remaining.seconds() == pytest.approx(300 * SECONDS, rel=1e-6)


def test_there_are_no_fewer_steps_than_looks() -> None:
    remaining = after(RemainingTime(10.0, [Every(10.0, 1000)]), [4e-5 * 2**k for k in range(9)])  # t = 0.01024
    assert remaining.seconds() == pytest.approx(999 * SECONDS)


def test_outputs_of_two_schedules_are_at_the_same_steps() -> None:
    schedules = [Every(10.0, 1000), Every(10.0, 1000)]
    remaining = after(RemainingTime(10.0, schedules), [4e-5 * 2**k for k in range(9)])
    assert remaining.seconds() == pytest.approx(999 * SECONDS)


def test_looks_within_steps_take_the_time() -> None:
    """Ten interpolated looks in a step, of which there are a hundred more however long the steps become."""
    remaining = after(RemainingTime(20.0, [Every(20.0, 200)]), [1.0 + k for k in range(10)])  # t = 10
    assert remaining.seconds() == pytest.approx(100 * SECONDS / 10)
    growing = after(RemainingTime(20.0, [Every(20.0, 200)]), [0.01 * 2**k for k in range(10)])  # t = 5.12
    assert growing.seconds() == pytest.approx(149 * 5 * SECONDS / 50)  # 50 looks since step 4, at t = 0.16, in 5 steps


def test_few_steps_say_nothing() -> None:
    assert after(RemainingTime(1.0, []), [0.01 * (k + 1) for k in range(MIN_STEPS)]).seconds() is None


def test_from_a_handover_on_steps_are_looks() -> None:
    """To t = 10¹⁴ in 141 looks; the steps before the handover do not say when it is."""
    schedule = Logarithmic(1.0, 1e14, 141)
    remaining = after(RemainingTime(1e14, [schedule], hand_over=True), [0.01 * (k + 1) for k in range(99)])
    assert remaining.seconds() is None
    remaining.handed_over()
    after(remaining, [schedule.due(k) for k in range(1, 32)], first=9.0)
    assert remaining.seconds() == pytest.approx(110 * SECONDS)
    remaining.handed_over()  # again: nothing is forgotten
    assert remaining.seconds() is not None


def test_at_the_end_nothing_remains() -> None:
    assert after(RemainingTime(0.5, []), [0.05 * (k + 1) for k in range(10)]).seconds() == 0.0


@pytest.mark.parametrize(("count", "text"), [(0, "0 steps"), (1, "1 step"), (2, "2 steps")])
def test_plurals(count: int, text: str) -> None:
    assert counted(count, "step") == text
