"""What a run writes into its file on its way, and how it ends there."""

from __future__ import annotations

import time as clock

from meanfield.case.case import Case
from meanfield.diagnostics.table import Diagnostics
from meanfield.domains.common.problem import Problem
from meanfield.runtime.progress import Progress
from meanfield.runtime.restart import Start, checkpoint_of
from meanfield.simulation import sample_schedule, snapshot_schedule
from solvers.io.memory import RunMemory
from solvers.io.run_file import RunFile
from solvers.timestepping.evolution import Observer, State


class Record:
    """Writes snapshots and samples when they are due, checkpoints now and then, and how the run has ended.

    observers   look at the state for snapshots and for samples
    """

    def __init__(
        self,
        case: Case,
        problem: Problem,
        start: Start,
        diagnostics: Diagnostics,
        file: RunFile | RunMemory,
        progress: Progress,
    ) -> None:
        self._file, self.progress = file, progress
        self._problem, self._diagnostics = problem, diagnostics
        self._checkpoints, self._every = file.checkpoints, case.output.checkpoint
        self._before, self._began = start.wall_time, clock.monotonic()
        self._saved = self._began
        self.observers = (
            Observer(self._write_snapshot, snapshot_schedule(case), start.snapshots_seen),
            Observer(self._write_sample, sample_schedule(case), start.samples_seen),
        )

    @property
    def wall_time(self) -> float:
        """Seconds that the run has taken so far, those before a resume included."""
        return self._before + clock.monotonic() - self._began

    def after_step(self, state: State) -> None:
        """Show the state, and save it if the last checkpoint is old."""
        self.progress.look(state)
        if clock.monotonic() - self._saved > self._every:
            self.save(state)
            self._saved = clock.monotonic()

    def save(self, state: State) -> None:
        """Write a checkpoint, which counts on all that has been written."""
        file = self._file
        file.sync()
        self._checkpoints.write(*checkpoint_of(state, file.snapshots, file.samples, self.wall_time))
        file.update(wall_time=self.wall_time, **self._problem.marks)

    def look_at_end(self, state: State) -> None:
        """A snapshot and a sample of a state at which none was due."""
        for observer in self.observers:
            if observer.last_time != state.time:
                observer.look_now(state)

    def close(self, stop_reason: str, message: str = "") -> None:
        """Close the file with why the run has stopped."""
        self._file.close(stop_reason=stop_reason, message=message, wall_time=self.wall_time)

    def _write_snapshot(self, state: State) -> None:
        self._file.write_snapshot(state.time, self._problem.snapshot(state.values))

    def _write_sample(self, state: State) -> None:
        values = self._diagnostics(state.time, state.values)
        self._file.write_sample(state.time, values)
        if "clusters" in values:
            self.progress.clusters = f", {values['clusters']:.0f} clusters"
