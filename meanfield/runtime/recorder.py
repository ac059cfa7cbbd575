"""Recorders: snapshots, diagnostics, checkpoints and the ending of a run."""

from __future__ import annotations

import math
import time as clock
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Self

import numpy as np

from meanfield.case.case import Case
from meanfield.diagnostics.table import Diagnostics
from meanfield.domains.common.problem import Problem
from meanfield.runtime.messages import counted
from meanfield.runtime.progress import Progress
from meanfield.runtime.remaining import RemainingTime
from meanfield.runtime.restart import Start, checkpoint_of
from meanfield.runtime.watching import Moment, Watch
from meanfield.simulation import sample_schedule, snapshot_schedule
from solvers.backends import backend_for
from solvers.io.memory import InMemoryWriter
from solvers.io.run_file import RunFile
from solvers.mesh.mesh import Floats
from solvers.timestepping.observers import Cancelled, Observer
from solvers.timestepping.state import Exploding, NonFinite, State

MAX_SAMPLES = 64  # maximum number of samples whose diagnostics are computed together
MAX_NUMBERS = 70_000  # values of their states, half a megabyte: they fit the cache of a core
MAX_COST = 2e-3  # seconds of a sample that may be batched: a slower one is computed alone, so that it can be canceled
MAX_WAIT = 0.5  # maximum seconds between two computations of diagnostics, where steps are no longer
Samples = list[tuple[float, Floats]]  # time and state of each
NOT_EXPLODED = {"exploded": 0}  # attribute of a run; 1 once its state has left the mesh


class Record:
    """Recorder of a run in a file: snapshots, samples of diagnostics, checkpoints, and the reason why the run ended.

    end         end time of the run
    watch       callbacks and stop conditions, by default those of the case
    observers   writers of the snapshots and of the samples
    """

    def __init__(
        self,
        case: Case,
        problem: Problem,
        start: Start,
        diagnostics: Diagnostics,
        file: RunFile | InMemoryWriter,
        end: float,
        quiet: bool,
        watch: Watch | None = None,
    ) -> None:
        self.case, self._file, self.state, self.path = case, file, start.state, file.path
        schedules = snapshot_schedule(case), sample_schedule(case)
        self._remaining = RemainingTime(end, schedules, handover=case.handover is not None)
        self.progress = Progress(file.path.stem, start.state.time, end, quiet, self._remaining)
        self._end, self._stopping = end, never
        self._own_end = end if end != case.time.end else None  # not an event of any schedule
        self._problem, self._diagnostics = problem, diagnostics
        self._watch = Watch(case) if watch is None else watch
        self._checkpoints, self._every = file.checkpoints, case.output.checkpoint
        self._before, self._began = start.wall_time, clock.monotonic()
        self._saved = self._began
        self._waiting: Samples = []  # samples without diagnostics yet
        self._max_waiting = _max_samples_in_batch(start.state.values.size, diagnostics, self._watch)
        self._sampled, self._sample_cost = self._began, math.inf  # time of the last diagnostics; seconds of a sample
        self.observers = (
            Observer(self._write_snapshot, schedules[0], start.snapshots_seen, keeps=True),
            Observer(self._write_sample, schedules[1], start.samples_seen),
        )

    def compiling(self) -> AbstractContextManager[None]:
        """Return a context manager that prints a message if the block, which may compile kernels, takes long."""
        return self.progress.show_if_slow("compiling kernels, or loading those of an earlier run")

    @property
    def wall_time(self) -> float:
        """Return the seconds that the run has taken so far, those before a resume included."""
        return self._before + clock.monotonic() - self._began

    def after_step(self, state: State) -> bool:
        """Show the progress, write what is due, and return whether a stop condition holds.

        New events, batched samples and, if the last one is old, a checkpoint are written.
        """
        if math.isfinite(self._problem.run_scalars.get("hand_over_time", math.nan)):
            self._remaining.forget_density_steps()
        self.progress.update(state)
        for time, values in self._problem.events[self._file.events :]:
            self._file.write_event(time, values)
        self._write_samples_if_due()
        self._file.flush_if_due()
        if clock.monotonic() - self._saved > self._every:
            self.save(state)
            self._saved = clock.monotonic()
        return bool(self._watch.message)

    def save(self, state: State, *, in_snapshot: bool = False) -> None:
        """Write a checkpoint of the state, after the rows that the checkpoint counts are on disk.

        ``in_snapshot``: whether the last snapshot is bitwise equal to the state, which is then not stored again.
        """
        file = self._file
        self._write_samples()
        file.sync()
        rows = file.rows_until(state.time)
        contents = checkpoint_of(state, *rows, file.events, self.wall_time, in_snapshot=in_snapshot)
        self._checkpoints.write(*contents)
        file.update(wall_time=self.wall_time, **self._problem.run_scalars)

    def stop_when(self, stopping: Callable[[], bool]) -> None:
        """Set the function that says whether to cancel samples before the end time, until ``end`` is called."""
        self._stopping = stopping

    def end(self, state: State) -> None:
        """Save the last state in a checkpoint.

        A snapshot and a sample are added if the run has ended between the times of the schedules, by a stop condition
        or a changed end time.
        """
        self._stopping = never
        if self._watch.message or (self._own_end is not None and state.time >= self._own_end):
            for observer in self.observers:
                if observer.last_time != state.time:
                    observer.observe_now(state)
        self._write_samples()
        self.progress.finish(state)
        self.save(state, in_snapshot=self._is_last_snapshot(state))

    def _is_last_snapshot(self, state: State) -> bool:
        """Return whether the last snapshot equals the whole state bitwise, so that a checkpoint need not store it."""
        if not self._problem.snapshot_is_state or self.observers[0].last_time != state.time:
            return False
        values = backend_for(state.values).to_host(state.values)
        return values.dtype == np.float64 and values.tobytes() == self._problem.snapshot(values).tobytes()

    def __enter__(self) -> Self:
        self.progress.__enter__()
        if self.state.steps == 0 and not self._problem.snapshot_is_exact:
            self.save(self.state)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close the file with the reason why the run ended: finished, failed or interrupted.

        After any other error the file stays open, and its own context manager records the error.
        """
        self.progress.__exit__()
        if error is None:
            self.close("finished", self._watch.ending)
        elif isinstance(error, NonFinite):
            self.close("failed", reason(error), exploded=int(isinstance(error, Exploding)))
        elif isinstance(error, KeyboardInterrupt | SystemExit):
            self.close("interrupted", str(error) or "interrupted at once")
        else:
            return
        self._watch.finish()

    def close(self, stop_reason: str, message: str = "", **attributes: int) -> None:
        """Write the batched samples, and close the file with the reason why the run ended and further attributes."""
        self._write_samples()
        self._file.close(stop_reason=stop_reason, message=message, wall_time=self.wall_time, **attributes)

    def _write_snapshot(self, state: State) -> None:
        """Write a snapshot of the state in double precision."""
        self._file.write_snapshot(state.time, self._problem.snapshot(_as_float64(state.values)), may_wait=True)

    def _write_sample(self, state: State) -> bool:
        """Write the diagnostics of a state, or batch the state for later; return whether a stop condition holds."""
        if self._max_waiting > 1 and self._sample_cost <= MAX_COST:
            self._waiting.append((state.time, np.array(state.values, dtype=np.float64)))
            self._write_samples_if_due()
            return False
        self._write_samples()
        density, began = _as_float64(state.values), clock.monotonic()

        def going_on() -> None:
            if state.time < self._end and self._stopping():  # a canceled run at its end would count as finished
                raise Cancelled

        self._keep_sample(state.time, density, self._diagnostics(state.time, density, going_on))
        self._sampled = clock.monotonic()
        self._sample_cost = self._sampled - began
        return bool(self._watch.message)

    def _write_samples_if_due(self) -> None:
        """Compute and write the diagnostics of the batched samples, if the batch is full or waits long enough."""
        if len(self._waiting) >= self._max_waiting or clock.monotonic() - self._sampled > MAX_WAIT:
            self._write_samples()

    def _write_samples(self) -> None:
        """Compute and write the diagnostics of the batched samples."""
        samples, self._waiting = self._waiting, []
        self._sampled = began = clock.monotonic()
        if not samples:
            return
        times, states = [time for time, _ in samples], [density for _, density in samples]
        try:
            rows = self._diagnostics.of_states(times, states)
        except Exception:  # raised again at its own sample, after the earlier samples are written
            for time, density in samples:
                self._keep_sample(time, density, self._diagnostics(time, density))
        else:
            self._file.write_samples(times, rows)
            self._show_clusters({name: row[-1] for name, row in rows.items()})
        self._sampled = clock.monotonic()
        self._sample_cost = (self._sampled - began) / len(samples)

    def _keep_sample(self, time: float, density: Floats, values: dict[str, float | Floats]) -> None:
        """Write a sample (the diagnostics of one state), and pass it to the callbacks and stop conditions."""
        self._file.write_sample(time, values)
        if self._watch.is_used:
            self._watch(Moment(time, self._problem.snapshot(density), values, self._problem.space))
        self._show_clusters(values)

    def _show_clusters(self, values: Mapping[str, float | Floats]) -> None:
        """Show the number of clusters in the progress bar."""
        if "clusters" in values:
            self.progress.clusters = f", {counted(float(np.asarray(values['clusters'])), 'cluster')}"


def _max_samples_in_batch(size: int, diagnostics: Diagnostics, watch: Watch) -> int:
    """Return the maximum number of samples that are batched before their diagnostics are computed.

    ``size`` is the number of values of a state. The maximum is 1 if a callback or stop condition needs each sample at
    once, or if diagnostics depend on the moment of their computation.
    """
    return 1 if watch.is_used or not diagnostics.may_wait else max(1, min(MAX_SAMPLES, MAX_NUMBERS // max(size, 1)))


def never() -> bool:
    """Return False: never request a stop."""
    return False


def _as_float64(values: Floats) -> Floats:
    """Return values in float64, the format of files and diagnostics; the state may be in another format."""
    return values.astype(np.float64, copy=False)


def reason(error: NonFinite) -> str:
    """Return a text that says why a run failed on values that are not finite."""
    return f"stopped on {error.what}: {error}"
