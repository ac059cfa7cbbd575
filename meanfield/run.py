"""A run from case to file: the whole story on a page."""

from __future__ import annotations

import math
import sys
import threading
import time as clock
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import numpy as np

from meanfield.case import Case
from meanfield.diagnostics_table import Diagnostics
from meanfield.problem import Problem
from meanfield.progress import Progress
from meanfield.provenance import provenance
from meanfield.restart import Start, last_start, new_start
from meanfield.segments import next_case, next_segment, read_segments, with_segment
from meanfield.setup import sample_schedule, set_up, snapshot_schedule
from meanfield.stopping import stop_on_signal
from solvers.backends import kernels_for
from solvers.checkpoint import Checkpoints
from solvers.evolution import NonFinite, Observer, State
from solvers.output import FileError, RunFile, read

DONE, NON_FINITE, INTERRUPTED = 0, 3, 130  # exit statuses; bad input is 2
COMPILING = 1.0  # seconds after which the first evaluation must be compiling its kernels


def run(
    case: Case,
    path: str | Path,
    *,
    overwrite: bool = False,
    quiet: bool = False,
    command: str = "",
    kernels: ModuleType | None = None,
) -> int:
    """Run a case into a new file, where ``kernels`` run or on the host, and return the exit status.

    Raises CaseError for an initial density that cannot be, FileError for a file that cannot be written.
    """
    problem = set_up(case, kernels)
    start = new_start(problem)
    diagnostics = problem.diagnostics(case.output.diagnostics or (), None)
    attributes = provenance(case, command) | problem.marks | problem.attributes
    with RunFile.create(
        path, problem.space, diagnostics.columns, attributes, problem.variables, overwrite=overwrite
    ) as file:
        return _go(case, problem, start, diagnostics, file, case.time.end, quiet)


def resume(
    path: str | Path,
    *,
    until: float | None = None,
    changes: Sequence[str] = (),
    quiet: bool = False,
    command: str = "",
    kernels: ModuleType | None = None,
) -> int:
    """Go on with a file from its last checkpoint, to the end of its case or ``until``; returns the exit status.

    Where ``kernels`` run or on the host, wherever it has run before: elsewhere results are equal but for rounding.
    ``changes`` are settings that hold from there on, like "attention.beta=4"; a later resume keeps them. Without a
    checkpoint the last snapshot serves, or the initial density. Each time adds to the file's attribute ``segments``.
    Raises FileError for a file that holds no run or is being written, CaseError for settings that cannot change.
    """
    before = read(path)
    segments = read_segments(before.attributes)
    if not segments:
        raise FileError(f"{path}: has no case to go on with; it was not written by `meanfield run`")
    case = next_case(segments, changes)
    problem = set_up(case, kernels)
    problem.marks.update({name: before.attributes[name] for name in problem.marks if name in before.attributes})
    start = last_start(before, case, problem)
    segment = next_segment(segments, case, changes, start.state.time, until, command)
    if segment.from_time >= segment.until:
        if before.attributes["stop_reason"] == "running":  # killed when all but this had been written
            RunFile.append(path, snapshots=start.snapshots, samples=start.samples).close(wall_time=start.wall_time)
        print(f"{path}: has reached time {segment.from_time:g} already; go on with --until TIME", file=sys.stderr)
        return DONE
    degrees = before.diagnostics["power"].shape[1] - 1 if "power" in before.diagnostics else None
    diagnostics = problem.diagnostics(case.output.diagnostics or (), degrees)
    attributes = with_segment(before.attributes, segment) | problem.attributes
    with RunFile.append(path, snapshots=start.snapshots, samples=start.samples, attributes=attributes) as file:
        if start.note:
            print(f"{path}: {start.note}", file=sys.stderr)
        return _go(case, problem, start, diagnostics, file, segment.until, quiet)


def _go(
    case: Case, problem: Problem, start: Start, diagnostics: Diagnostics, file: RunFile, end: float, quiet: bool
) -> int:
    """Evolve to ``end`` with snapshots, diagnostics, checkpoints and progress; returns the exit status."""
    began = clock.monotonic()
    state, checkpoints, saved = start.state, Checkpoints(file.path), began

    def elapsed() -> float:
        return start.wall_time + clock.monotonic() - began

    def save() -> None:
        file.sync()
        checkpoints.write(
            {"values": kernels_for(state.values).bring(state.values)},
            {
                "time": float(state.time),
                "steps": state.steps,
                "dt": float(state.dt) if math.isfinite(state.dt) else 0.0,
                "snapshots": file.snapshots,
                "samples": file.samples,
                "wall_time": elapsed(),
            },
        )
        file.update(wall_time=elapsed(), **problem.marks)

    def sample(state: State) -> None:
        values = diagnostics(state.time, state.values)
        file.write_sample(state.time, values)
        if "clusters" in values:
            progress.clusters = f", {values['clusters']:.0f} clusters"

    def after_step(state: State) -> bool:
        nonlocal saved
        progress.look(state)
        if clock.monotonic() - saved > case.output.checkpoint:
            save()
            saved = clock.monotonic()
        return bool(stop)

    def keep(state: State) -> None:
        file.write_snapshot(state.time, problem.snapshot(state.values))

    observers = (
        Observer(keep, snapshot_schedule(case), start.snapshots_seen),
        Observer(sample, sample_schedule(case), start.samples_seen),
    )
    try:
        with (
            Progress(file.path.stem, state.time, end, quiet) as progress,
            stop_on_signal() as stop,
            np.errstate(over="ignore", divide="ignore", invalid="ignore"),  # a state that is not finite is told below
        ):
            with _said_if_slow(progress, "compiling the kernels: once, some seconds; later runs start at once"):
                problem.prepare(state)
            problem.advance(state, end, observers, case.time.cfl, after_step)
            if state.time >= end and end != case.time.end:  # an end of its own, which no schedule knows
                for observer in observers:
                    if observer.schedule.due(observer.count - 1) < state.time:
                        observer.look_now(state)
            progress.finish(state)
            save()
    except NonFinite as error:
        message = f"stopped on {error.what}: {error}"
        file.close(stop_reason="failed", message=message, wall_time=elapsed())
        print(f"meanfield: {message}; {file.path} is good up to its last snapshot", file=sys.stderr)
        return NON_FINITE
    except FileError as error:
        raise FileError(f"{error}; when it can be written again: meanfield resume {file.path}") from error
    except KeyboardInterrupt:
        file.close(stop_reason="interrupted", message="interrupted at once", wall_time=elapsed())
        print(f"interrupted at once; go on from the last checkpoint: meanfield resume {file.path}", file=sys.stderr)
        return INTERRUPTED
    if state.time < end:
        file.close(stop_reason="interrupted", message=f"interrupted at time {state.time:.6g}", wall_time=elapsed())
        print(f"interrupted at t = {state.time:.6g}; go on: meanfield resume {file.path}", file=sys.stderr)
        return INTERRUPTED
    file.close(stop_reason="finished", wall_time=elapsed())
    if not quiet:
        print(f"{file.path}: t = {state.time:g} in {state.steps} steps, {elapsed():.1f} s", file=sys.stderr)
        print(f"look at it: meanfield plot {file.path}", file=sys.stderr)
    return DONE


@contextmanager
def _said_if_slow(progress: Progress, text: str) -> Iterator[None]:
    """Say a text if the block takes longer than compiled kernels would."""
    timer = threading.Timer(COMPILING, progress.say, [text])
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
