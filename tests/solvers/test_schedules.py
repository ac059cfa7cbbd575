"""Schedules: ends are exact to the bit, times never decrease, and a run omits no due time."""

import itertools
import math

import numpy as np
import pytest
from support.adaptive import evolve_adaptively
from support.status import DONE, resume, run

from meanfield.case.load import parse
from solvers.io.run_file import read
from solvers.timestepping.equation import Equation
from solvers.timestepping.evolution import evolve
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Every, Listed, Logarithmic, events_before, is_reached, next_time
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

DRAWS = 4000


def drawn_ends(seed):
    """Yield ends as people write them, of one to six digits, and ends of any size; with a number of parts."""
    random = np.random.default_rng(seed)
    for _ in range(DRAWS):
        digits = int(random.integers(1, 7))
        written = float(f"{int(random.integers(1, 10**digits))}e{int(random.integers(-8, 4))}")
        any_size = float(np.exp(random.uniform(-600, 690)))
        yield (written, any_size)[int(random.integers(2))], int(random.integers(1, 2000))


def near(*counts):
    """Return the counts and their neighbors, in order."""
    return sorted({count + step for count in counts for step in (-1, 0, 1) if count + step >= 0})


def increase(times):
    return all(a < b for a, b in itertools.pairwise(times))


def test_the_end_of_equal_parts_is_the_end():
    for end, parts in drawn_ends(1):
        schedule = Every(end, parts)
        whole = 1 + parts % 50
        assert schedule.due(parts) == end, f"{end} in {parts}"
        assert schedule.due(whole * parts) == end * whole, f"{end} in {parts}, {whole} times"
        counts = near(0, parts // 3, parts, 2 * parts)
        times = [schedule.due(count) for count in counts]
        assert increase(times), f"{end} in {parts}"
        exact = [end * (count / parts) for count in counts]
        assert all(abs(time - right) <= 4e-16 * right for time, right in zip(times, exact, strict=True))  # 2 roundings
        assert events_before(schedule, end) == parts
        assert events_before(schedule, end, or_at=True) == parts + 1


def test_the_end_of_logarithmic_parts_is_the_end():
    random = np.random.default_rng(2)
    for end, parts in drawn_ends(3):
        first = end * float(10 ** random.uniform(-9, -0.01))
        schedule = Logarithmic(first, end, parts)
        assert schedule.due(0) == 0.0
        assert schedule.due(1) == (first if parts > 1 else end)
        assert schedule.due(parts) == end, f"{first} to {end} in {parts}"
        assert increase([schedule.due(count) for count in near(0, parts // 3, parts)]), f"{first} to {end} in {parts}"
        assert events_before(schedule, end, or_at=True) == parts + 1


def test_schedules_of_extreme_numbers_do_not_decrease():
    for schedule in (Every(1.7e308, 400), Every(5e-324, 3), Every(3.0, 3 * 10**15), Logarithmic(1e-300, 1e300, 9)):
        times = [schedule.due(count) for count in (0, 1, 2, 3, 100, 399, 400, 3 * 10**15 - 1, 3 * 10**15, 10**16)]
        assert all(a <= b for a, b in itertools.pairwise(times)), f"{schedule}: {times}"
    assert Every(1.7e308, 400).due(200) == pytest.approx(0.85e308, rel=1e-15)
    assert Logarithmic(1e-3, 1e3, 7).due(10**9) == math.inf


def test_multiples_of_a_rounded_span_reach_an_end_that_they_are_meant_to_reach():
    """k·span may be an ulp beyond the end or before it: it is due at the end, and no other time remains."""
    random = np.random.default_rng(4)
    beyond = before = 0
    for _ in range(DRAWS):
        digits, count = int(random.integers(1, 6)), int(random.integers(1, 3000))
        number, power = int(random.integers(1, 10**digits)), int(random.integers(0, 7))
        span, end = number / 10**power, (number * count) / 10**power
        schedule = Every(span)
        beyond, before = beyond + (schedule.due(count) > end), before + (schedule.due(count) < end)
        assert is_reached(schedule.due(count), end), f"{count} times {span}"
        assert not is_reached(schedule.due(count + 1), end), f"{count} times {span}"
        assert next_time([schedule.due(count)], end) == end, f"{count} times {span}"
        assert events_before(schedule, end) == count
        assert events_before(schedule, end, or_at=True) == count + 1
    assert beyond > 50, f"{beyond} of {DRAWS}"  # the draws include both cases
    assert before > 50, f"{before} of {DRAWS}"


class Growth:
    """The equation u' = u."""

    def prepare(self, time, values):
        self.current = values.copy()
        return 0.5

    def rate(self, dt, rate):
        rate += self.current


LOOPS = {
    "evolve": lambda state, until, observers: evolve(
        state, Equation(None, [Growth()]), STEPPERS["ssprk3"], until, observers
    ),
    "evolve_adaptively": lambda state, until, observers: evolve_adaptively(
        state, lambda time, values: values, until, observers
    ),
}  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_looks_at_its_end(loop):
    random = np.random.default_rng(5)
    for _ in range(30):
        parts, tenths = int(random.integers(1, 30)), int(random.integers(1, 90))
        end, span = tenths * parts / 100, tenths / 100
        for schedule in (Every(end, parts), Every(span), Logarithmic(end / 50, end, parts), Listed((0.0, end))):
            times = []
            state = LOOPS[loop](
                State(0.0, np.ones(1)), end, [Observer(lambda s, times=times: times.append(s.time), schedule)]
            )
            count = 2 if isinstance(schedule, Listed) else parts + 1
            assert times[-1] == state.time == end, f"{schedule} to {end}: {times[-3:]}"
            assert len(times) == count, f"{schedule} to {end}: {len(times)}"


KINDS = {
    "circle": ('manifold = "circle"\nresolution = 32', ""),
    "particles": ('manifold = "particles"\ndimension = 2\ncount = 4', ""),
    "particles, ssprk3": ('manifold = "particles"\ndimension = 2\ncount = 4', 'method = "ssprk3"'),
}
ENDS = [
    (0.3, ["output.every=0.1", "output.samples=3"], 4, 4),
    (0.8, ["output.snapshots=6", "output.samples=6"], 7, 7),
    (0.7, ["output.every=0.7", "output.samples=100"], 2, 101),
    (1.113, ["output.snapshots=100", "output.samples=400"], 101, 401),
    (0.0931, ["output.spacing='log'", "output.first=0.001", "output.snapshots=7", "output.samples=49"], 8, 50),
]


def case(kind, end, changes=()):
    domain, method = KINDS[kind]
    text = f'[domain]\n{domain}\n[attention]\nbeta = 4.0\n[initial]\nkind = "uniform"\n[time]\n{method}\n'
    return parse(text, [f"time.end={end}", "output.diagnostics=['mass']", *changes])


@pytest.mark.sampled
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("end", "changes", "snapshots", "samples"), ENDS)
def test_a_run_ends_with_a_snapshot_and_a_sample(tmp_path, kind, end, changes, snapshots, samples):
    assert run(case(kind, end, changes), tmp_path / "run.h5", quiet=True) == DONE
    found = read(tmp_path / "run.h5")
    assert (len(found.times), len(found.sample_times)) == (snapshots, samples)
    assert (found.times[-1], found.sample_times[-1]) == (end, end)


def test_layers_end_with_a_snapshot_and_a_sample(tmp_path):
    """Layers of 0.1 end at 0.30000000000000004, and every 0.3 is due at 2.4 and at 2.3999999999999995."""
    changes = ["time.method=layers", "time.layers=24", "output.every=0.3", "output.samples=24"]
    assert run(case("circle", 2.4, changes), tmp_path / "run.h5", quiet=True) == DONE
    found = read(tmp_path / "run.h5")
    assert (len(found.times), len(found.sample_times)) == (9, 25)
    assert (found.times[-1], found.sample_times[-1]) == (2.4, 2.4)


@pytest.mark.parametrize("until", [0.3, 0.6, 0.7, 0.8])
def test_a_run_that_ends_at_a_snapshot_and_goes_on_has_none_twice(tmp_path, until):
    """0.1·3, 0.1·6 and 0.1·7 are an ulp beyond 0.3, 0.6 and 0.7."""
    path = tmp_path / "run.h5"
    changes = ["output.every=0.1", "output.samples=9"]
    run(case("circle", 0.2, changes), path, quiet=True)
    assert resume(path, until=until, quiet=True) == DONE
    assert resume(path, until=0.9, quiet=True) == DONE
    found = read(path)
    assert found.times == pytest.approx(0.1 * np.arange(10), rel=1e-15)
    assert until in found.times
    assert found.times[-1] == 0.9


def test_no_look_at_the_end_where_nothing_is_due_before_it_is_lost(tmp_path):
    """The end of a segment that comes before the first snapshot is observed."""
    path = tmp_path / "run.h5"
    run(case("circle", 0.5, ["output.times=[0.5]", "output.samples=5"]), path, quiet=True)
    assert resume(path, until=0.75, quiet=True) == DONE
    assert list(read(path).times) == [0.5, 0.75]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Every(0.0), r"span = 0\.0: expected a finite number > 0"),
        (lambda: Every(-1.0), r"span = -1\.0: expected a finite number > 0"),
        (lambda: Every(np.nan), "span = nan: expected a finite number > 0"),
        (lambda: Every(np.inf), "span = inf: expected a finite number > 0"),
        (lambda: Every(1.0, 0), "parts = 0: expected a whole number >= 1"),
        (lambda: Every(1.0, 2.5), r"parts = 2\.5: expected a whole number >= 1"),
        (lambda: Every(1.0, 2.0), r"parts = 2\.0: expected a whole number >= 1"),
        (lambda: Logarithmic(0.1, 1.0, 2.5), r"parts = 2\.5: expected a whole number >= 1"),
        (lambda: Logarithmic(0.0, 1.0, 3), r"first = 0\.0: expected a finite number > 0"),
        (lambda: Logarithmic(2.0, 1.0, 3), r"last = 1\.0: expected a finite number >= first = 2\.0"),
        (lambda: Logarithmic(0.1, 1.0, 0), "parts = 0: expected a whole number >= 1"),
        (lambda: Listed((1.0, 0.5)), r"times = \(1\.0, 0\.5\): expected numbers that do not decrease"),
        (lambda: Listed((0.0, np.nan)), r"times = \(0\.0, nan\): expected numbers that do not decrease"),
    ],
)
def test_schedules_without_an_order_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_times_that_differ_by_more_than_rounding_are_two_times():
    assert is_reached(1.0, 1.0 - 6e-16)
    assert not is_reached(1.0, 1.0 - 1e-14)
    assert next_time([1.0 - 1e-14], 1.0) == 1.0 - 1e-14


@pytest.mark.parametrize("span", [0.1, 0.3, 0.7])
def test_times_do_not_decrease_where_a_part_is_below_rounding(span):
    every, parts = Every(span, 10**16), 10**16
    for whole in range(1, 50):
        near = [every.due(whole * parts + k) for k in (-2, -1, 0, 1, 2)]
        assert near == sorted(near)
