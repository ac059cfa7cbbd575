"""The remaining time that a run shows after a part of it, against the time that it then took."""

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
from solvers.io.memory import RunMemory
from solvers.timestepping.state import State

PARTS = (0.1, 0.3)  # of the wall time of a run
FACTOR = 2.0


class _Timed(Record):
    """A recorder that keeps what a bar would show after each step: (seconds so far, remaining seconds or None)."""

    shown: list[tuple[float, float | None]]

    def after_step(self, state: State) -> bool:
        now = time.monotonic()
        ends = super().after_step(state)
        self._remaining.update(state.time, now)
        self.shown.append((now, self._remaining.seconds()))
        return ends


def remaining(names: Sequence[str] = tuple(shipped())) -> Iterator[Figure]:
    """Shipped cases: how many show a remaining time after a part of the run, and the share of them that is right."""
    runs = {name: _shown(load(name)) for name in names}
    for part in PARTS:
        ratios = {name: ratio for name, shown in runs.items() if (ratio := _ratio(shown, part)) is not None}
        wrong = {name: ratio for name, ratio in ratios.items() if not 1 / FACTOR <= ratio <= FACTOR}
        share = 1 - len(wrong) / max(len(ratios), 1)
        note = ", ".join(f"{name} by {ratio:.2g}" for name, ratio in wrong.items())
        text = f"remaining time: after {part:.0%} of the run"
        yield Figure(f"{text}, runs of {len(names)} that show it", len(ratios), "")
        yield Figure(f"{text}, share of these within a factor {FACTOR:g}", share, "", note=note)


def _shown(case: Case) -> list[tuple[float, float | None]]:
    problem = set_up(case)
    start, diagnostics = new_start(problem), problem.diagnostics(case.output.diagnostics or (), None)
    memory = RunMemory(
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
    """Shown to true remaining time at the first step after that part of the run; None where nothing is shown."""
    clocks = [clock for clock, _ in shown]
    at = bisect_left(clocks, clocks[0] + part * (clocks[-1] - clocks[0]))
    seconds, left = shown[at][1], clocks[-1] - clocks[at]
    return None if seconds is None or left <= 0 else seconds / left
