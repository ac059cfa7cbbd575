"""A run from case to file, on one page."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from meanfield.case.case import Case
from meanfield.diagnostics.table import Diagnostics, require_same_units
from meanfield.domains.common.problem import AdvanceOptions, Problem
from meanfield.runtime.progress import Progress
from meanfield.runtime.provenance import provenance
from meanfield.runtime.recorder import Record
from meanfield.runtime.restart import Start, last_start, new_start
from meanfield.runtime.segments import going_on, next_case, next_segment, read_segments, with_segment
from meanfield.runtime.signals import Stop, stop_on_signal
from meanfield.simulation import set_up
from solvers.backends import Backend
from solvers.io.layout import Measure
from solvers.io.run_file import FileError, Run, RunFile, read
from solvers.timestepping.evolution import NonFinite, State

DONE, NON_FINITE, INTERRUPTED = 0, 3, 130  # exit statuses; bad input is 2


def run(
    case: Case,
    path: str | Path,
    *,
    overwrite: bool = False,
    quiet: bool = False,
    command: str = "",
    backend: Backend | None = None,
) -> int:
    """Run a case into a new file, on the device of ``backend``, by default the host, and return the exit status.

    Raises CaseError for an initial density that cannot be, FileError for a file that cannot be written.
    """
    return run_problem(case, set_up(case, backend), path, overwrite=overwrite, quiet=quiet, command=command)


def run_problem(
    case: Case, problem: Problem, path: str | Path, *, overwrite: bool = False, quiet: bool = False, command: str = ""
) -> int:
    """As ``run``, for a case whose ``problem`` has been made ready elsewhere."""
    start = new_start(problem)
    diagnostics = problem.diagnostics(case.output.diagnostics or (), None)
    attributes = provenance(case, command) | problem.marks | problem.attributes
    with RunFile.create(
        path,
        problem.space,
        diagnostics.columns,
        attributes,
        problem.variables,
        measure=Measure(*case.domain.measure),
        overwrite=overwrite,
    ) as file:
        return _go(case, problem, start, diagnostics, file, case.time.end, quiet)


def resume(
    path: str | Path,
    *,
    until: float | None = None,
    changes: Sequence[str] = (),
    quiet: bool = False,
    command: str = "",
    backend: Backend | None = None,
) -> int:
    """Go on with a file from its last checkpoint, to the end of its case or ``until``; returns the exit status.

    On the device of ``backend``, by default the host, wherever it has run before; between devices results differ by
    rounding.
    ``changes`` are settings that hold from there on, like "attention.beta=4"; a later resume keeps them. Without a
    checkpoint the last snapshot serves, or the initial density. Each time adds to the file's attribute ``segments``.
    Raises FileError for a file that holds no run or is being written, CaseError for settings that cannot change.
    """
    before = read(path)
    segments = read_segments(before.attributes)
    if not segments:
        raise FileError(f"{path}: has no case to go on with; it was not written by `meanfield run`")
    if "layers_of" in before.attributes:
        raise FileError(f"{path}: holds the layers of {before.attributes['layers_of']}, with which it cannot go on")
    case = next_case(segments, changes)
    problem = set_up(case, backend)
    problem.marks.update({name: before.attributes[name] for name in problem.marks if name in before.attributes})
    start = last_start(before, case, problem)
    segment = next_segment(segments, case, changes, start.state.time, until, command)
    if segment.from_time >= segment.until:
        return _nothing_left(before, start)
    degrees = before.diagnostics["power"].shape[1] - 1 if "power" in before.diagnostics else None
    diagnostics = problem.diagnostics(case.output.diagnostics or (), degrees)
    require_same_units(before, diagnostics.columns, case)
    attributes = with_segment(before.attributes, segment) | problem.attributes
    with RunFile.append(path, snapshots=start.snapshots, samples=start.samples, attributes=attributes) as file:
        if start.note:
            _tell(f"{path}: {start.note}")
        return _go(case, problem, start, diagnostics, file, segment.until, quiet)


def _nothing_left(before: Run, start: Start) -> int:
    """A file that is at its end already; that is recorded where the writer was killed just before it."""
    if before.attributes["stop_reason"] == "running":
        RunFile.append(before.path, snapshots=start.snapshots, samples=start.samples).close(wall_time=start.wall_time)
    _tell(f"{before.path}: has reached time {start.state.time:g} already; go on with --until TIME")
    return DONE


def _go(
    case: Case, problem: Problem, start: Start, diagnostics: Diagnostics, file: RunFile, end: float, quiet: bool
) -> int:
    """Evolve to ``end``, write all that the file keeps, tell how it ended; returns the exit status."""
    state, path = start.state, file.path
    progress = Progress(path.stem, state.time, end, quiet, steady=case.hand_over is None)
    record = Record(case, problem, start, diagnostics, file, progress)
    with stop_on_signal() as stop:
        try:
            _evolve(case, problem, state, end, record, stop)
        except NonFinite as error:
            message = f"stopped on {error.what}: {error}"
            record.close("failed", message)
            _tell(f"meanfield: {message}; {path} is valid up to its last snapshot")
            return NON_FINITE
        except FileError as error:
            raise FileError(f"{error}; when it can be written again, {going_on(problem.attributes, path)}") from error
        except KeyboardInterrupt:
            record.close("interrupted", "interrupted at once")
            _tell(f"interrupted at once; {going_on(problem.attributes, path)}")
            return INTERRUPTED
        if state.time < end:
            record.close("interrupted", f"interrupted at time {state.time:.6g}")
            _tell(f"interrupted at t = {state.time:.6g}; {going_on(problem.attributes, path)}")
            return INTERRUPTED
        record.close("finished")
    if not quiet:
        _tell(f"{path}: t = {state.time:g} in {state.steps} steps, {record.wall_time:.1f} s")
        _tell(f"look at it: meanfield plot {path}")
    return DONE


def _evolve(case: Case, problem: Problem, state: State, end: float, record: Record, stop: Stop) -> None:
    """Move the state to ``end``, or to the step after a signal, and save it there."""
    progress = record.progress

    def after_step(state: State) -> bool:
        record.after_step(state)
        return bool(stop)

    with (
        closing(stop),
        progress,
        np.errstate(over="ignore", divide="ignore", invalid="ignore"),  # a state that is not finite is told
    ):
        with progress.said_if_slow("compiling the kernels: once, some seconds; later runs start at once"):
            problem.prepare(state)
        problem.advance(state, AdvanceOptions(end, record.observers, case.time.cfl, after_step))
        if state.time >= end and end != case.time.end:  # an end of its own, which no schedule knows
            record.look_at_end(state)
        progress.finish(state)
        record.save(state)


def _tell(text: str) -> None:
    print(text, file=sys.stderr)
