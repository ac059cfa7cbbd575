"""A run from case to file: mesh → equation → state → integrate → recorder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from meanfield.case.case import Case
from meanfield.diagnostics.table import require_same_units
from meanfield.domains.common.problem import Problem
from meanfield.runtime.messages import tell
from meanfield.runtime.provenance import provenance
from meanfield.runtime.recorder import Record, Recorder, reason
from meanfield.runtime.restart import Start, last_start, new_start
from meanfield.runtime.segments import going_on, next_case, next_segment, read_segments, with_segment
from meanfield.runtime.signals import Interrupted, stop_on_signal
from meanfield.simulation import set_up
from solvers.backends import Backend
from solvers.io.layout import Measure
from solvers.io.run_file import FileError, Run, RunFile, read
from solvers.timestepping.integrate import integrate
from solvers.timestepping.state import NonFinite, State

DONE, NON_FINITE, INTERRUPTED = 0, 3, 130  # exit statuses; bad input is 2


def run(
    case: Case,
    path: str | Path,
    *,
    problem: Problem | None = None,
    overwrite: bool = False,
    quiet: bool = False,
    command: str = "",
    backend: Backend | None = None,
) -> int:
    """Run a case into a new file, on the device of ``backend``, by default the host, and return the exit status.

    problem   the case made ready elsewhere
    Raises CaseError for an initial density that cannot be, FileError for a file that cannot be written.
    """
    problem = set_up(case, backend) if problem is None else problem
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
        record = Record(case, problem, start, diagnostics, file, case.time.end, quiet)
        with exit_status(problem, record, quiet) as status:
            go(problem, start.state, case.time.end, record)
    return status.code


def go(problem: Problem, state: State, end: float, recorder: Recorder) -> None:
    """Integrate a state to ``end``, in place, while the recorder observes it.

    Raises NonFinite, Interrupted in the step after a signal, and KeyboardInterrupt at once after a second one; the
    state is then the one after the last good step, and the recorder is closed.
    """

    def after_step(state: State) -> bool:
        problem.check(state)
        recorder.after_step(state)
        return bool(stop)

    with (
        stop_on_signal() as stop,
        recorder,
        closing(stop),
        np.errstate(over="ignore", divide="ignore", invalid="ignore"),
    ):
        with recorder.compiling():
            problem.prepare(state)
        integrate(state, problem.dynamics, end, recorder.observers, after_step)
        recorder.end(state)
        if state.time < end:
            raise Interrupted(state.time)


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
    require_same_units(before, diagnostics.columns, case.attention.beta_effective, case.domain.uniform is not None)
    attributes = with_segment(before.attributes, segment) | problem.attributes
    with RunFile.append(path, snapshots=start.snapshots, samples=start.samples, attributes=attributes) as file:
        if start.note:
            tell(f"{path}: {start.note}")
        record = Record(case, problem, start, diagnostics, file, segment.until, quiet)
        with exit_status(problem, record, quiet) as status:
            go(problem, start.state, segment.until, record)
    return status.code


def _nothing_left(before: Run, start: Start) -> int:
    """A file that is at its end already; that is recorded where the writer was killed just before it."""
    if before.attributes["stop_reason"] == "running":
        RunFile.append(before.path, snapshots=start.snapshots, samples=start.samples).close(wall_time=start.wall_time)
    tell(f"{before.path}: has reached time {start.state.time:g} already; go on with --until TIME")
    return DONE


@dataclass
class Status:
    """The exit status of a command."""

    code: int = DONE


@contextmanager
def exit_status(problem: Problem, record: Record, quiet: bool) -> Iterator[Status]:
    """How a run has ended, in words on stderr and as an exit status."""
    status, path = Status(), record.path
    try:
        yield status
    except NonFinite as error:
        status.code = NON_FINITE
        tell(f"meanfield: {reason(error)}; {path} is valid up to its last snapshot")
    except FileError as error:
        raise FileError(f"{error}; when it can be written again, {going_on(problem.attributes, path)}") from error
    except KeyboardInterrupt as error:
        status.code = INTERRUPTED
        when = f"at t = {error.time:.6g}" if isinstance(error, Interrupted) else "at once"
        tell(f"interrupted {when}; {going_on(problem.attributes, path)}")
    else:
        if not quiet:
            state = record.state
            tell(f"{path}: t = {state.time:g} in {state.steps} steps, {record.wall_time:.1f} s")
            tell(f"look at it: meanfield plot {path}")
