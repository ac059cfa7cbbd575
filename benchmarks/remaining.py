"""Accuracy of the remaining time that a run displays, against the true remaining time."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from benchmarks.measure import Figure
from meanfield.case.case import Case
from meanfield.case.load import load, shipped
from meanfield.running import evolve
from meanfield.runtime.recorder import Record
from meanfield.runtime.restart import new_start
from meanfield.simulation import set_up
from solvers.io.layout import Measure
from solvers.io.memory import InMemoryWriter
from solvers.timestepping.state import State

PARTS = (0.1, 0.3)  # fractions of a run's wall time
FACTOR = 2.0


class _Timed(Record):
    """Recorder that stores the displayed remaining time after each step: (clock in s, remaining s or None)."""

    shown: list[tuple[float, float | None]]

    def after_step(self, state: State) -> bool:
        now = time.monotonic()
        ends = super().after_step(state)
        self._remaining.update(state.time, now)
        self.shown.append((now, self._remaining.seconds()))
        return ends


def remaining(names: Sequence[str] = tuple(shipped())) -> Iterator[Figure]:
    """Measure for how many shipped cases a remaining time is displayed after a part of the run, and how accurately.

    A displayed time is accurate if it is within a factor FACTOR of the true one.
    """
    runs = {name: _displayed_times(load(name)) for name in names}
    for part in PARTS:
        ratios = {name: ratio for name, shown in runs.items() if (ratio := _ratio(shown, part)) is not None}
        wrong = {name: ratio for name, ratio in ratios.items() if not 1 / FACTOR <= ratio <= FACTOR}
        share = 1 - len(wrong) / max(len(ratios), 1)
        note = ", ".join(f"{name} by {ratio:.2g}" for name, ratio in wrong.items())
        text = f"remaining time: after {part:.0%} of the run"
        yield Figure(f"{text}, runs of {len(names)} that show it", len(ratios), "")
        yield Figure(f"{text}, share of these within a factor {FACTOR:g}", share, "", note=note)


def _displayed_times(case: Case) -> list[tuple[float, float | None]]:
    """Return the displayed remaining time after each step of a case: (clock in seconds, remaining seconds or None)."""
    problem = set_up(case)
    start, diagnostics = new_start(problem), problem.diagnostics(case.output.diagnostics or (), None)
    memory = InMemoryWriter(
        case.title,
        problem.space,
        diagnostics.columns,
        problem.run_scalars | problem.attributes,
        problem.variables,
        measure=Measure(*case.domain.measure),
    )
    record = _Timed(case, problem, start, diagnostics, memory, case.time.end, quiet=True)
    record.shown = []
    evolve(problem, start.state, case.time.end, record)
    return record.shown


def _ratio(shown: Sequence[tuple[float, float | None]], part: float) -> float | None:
    """Return the ratio of the displayed to the true remaining time at the first step after a fraction of the run.

    The result is None if no time is displayed at that step.
    """
    clocks = [clock for clock, _ in shown]
    at = bisect_left(clocks, clocks[0] + part * (clocks[-1] - clocks[0]))
    seconds, left = shown[at][1], clocks[-1] - clocks[at]
    return None if seconds is None or left <= 0 else seconds / left
