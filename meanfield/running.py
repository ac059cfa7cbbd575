"""A run from case to file, or kept in memory: mesh → equation → state → integrate → recorder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from meanfield.case.case import Case
from meanfield.case.errors import CaseError
from meanfield.components.recorded import require_components
from meanfield.diagnostics.table import require_same_units
from meanfield.domains.common.problem import Problem
from meanfield.runtime.cost import rounding_notes
from meanfield.runtime.messages import counted
from meanfield.runtime.provenance import provenance
from meanfield.runtime.recorder import Record, Recorder, reason
from meanfield.runtime.restart import Start, last_start, new_start
from meanfield.runtime.segments import going_on, next_case, next_segment, read_segments, with_segment
from meanfield.runtime.signals import Interrupted, Terminated, say_at_once, stop_on_signal
from meanfield.runtime.watching import Callback, Condition, Watch
from meanfield.simulation import set_up
from solvers.backends import Backend
from solvers.io.layout import Measure
from solvers.io.lock import remove_leftover
from solvers.io.memory import MemoryRun, RunMemory
from solvers.io.run_file import FileError, Run, RunFile, read
from solvers.timestepping.integrate import integrate
from solvers.timestepping.state import NonFinite, State

Say = Callable[[str], None]  # shows a line


def silent(text: str) -> None:
    """Show nothing."""


def run(
    case: Case,
    path: str | Path,
    *,
    problem: Problem | None = None,
    overwrite: bool = False,
    quiet: bool = True,
    command: str = "",
    backend: Backend | None = None,
    say: Say = silent,
    stop: Condition | None = None,
    callbacks: Sequence[Callback] = (),
) -> None:
    """Run a case into a new file, on the device of ``backend``, by default the host.

    problem   the case made ready elsewhere
    quiet     without a bar, or lines in a log
    say       shows a line: how the run has ended
    stop      condition, beside that of the case, looked at with each sample; callbacks are called with it
    Raises CaseError for an initial density that cannot be, FileError for a file that cannot be written, NonFinite for a
    state that becomes so, Interrupted or Terminated after Ctrl-C or SIGTERM; the file is closed well by then.
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
        record = Record(case, problem, start, diagnostics, file, case.time.end, quiet, Watch(case, stop, callbacks))
        with explained(problem, record, quiet, say):
            go(problem, start.state, case.time.end, record, say)


def run_in_memory(
    case: Case,
    *,
    quiet: bool = True,
    backend: Backend | None = None,
    stop: Condition | None = None,
    callbacks: Sequence[Callback] = (),
) -> MemoryRun:
    """Run a case as ``run`` does, to the same numbers, without a file.

    Raises as ``run``; what had been computed by then is the error's attribute ``run``.
    """
    problem = set_up(case, backend)
    start = new_start(problem)
    diagnostics = problem.diagnostics(case.output.diagnostics or (), None)
    attributes = provenance(case, "") | problem.marks | problem.attributes
    measure, name = Measure(*case.domain.measure), case.title or "simulation"
    memory = RunMemory(name, problem.space, diagnostics.columns, attributes, problem.variables, measure=measure)
    record = Record(case, problem, start, diagnostics, memory, case.time.end, quiet, Watch(case, stop, callbacks))
    try:
        go(problem, start.state, case.time.end, record)
    except (NonFinite, KeyboardInterrupt, SystemExit) as error:
        error.run = memory.run()  # type: ignore[union-attr]
        raise
    return memory.run()


def go(problem: Problem, state: State, end: float, recorder: Recorder, say: Say = silent) -> None:
    """Integrate a state to ``end``, in place, while the recorder observes it.

    Raises NonFinite, Interrupted or Terminated in the step after a signal, and KeyboardInterrupt at once after a second
    one; the state is then the one after the last good step, and the recorder is closed.
    """

    def after_step(state: State) -> bool:
        problem.check(state)
        return bool(recorder.after_step(state)) or bool(stop)

    with (
        stop_on_signal(None if say is silent else say_at_once) as stop,
        recorder,
        closing(stop),
        np.errstate(over="ignore", divide="ignore", invalid="ignore"),
    ):
        with recorder.compiling():
            problem.prepare(state)
        integrate(state, problem.dynamics, end, recorder.observers, after_step)
        recorder.end(state)
        if state.time < end and stop:
            raise stop.error(f"interrupted at time {state.time:.6g}")


def resume(
    path: str | Path,
    *,
    until: float | None = None,
    changes: Sequence[str] = (),
    quiet: bool = True,
    command: str = "",
    backend: Backend | None = None,
    say: Say = silent,
    stop: Condition | None = None,
    callbacks: Sequence[Callback] = (),
) -> None:
    """Go on with a file from its last checkpoint, to the end of its case or ``until``.

    On the device of ``backend``, by default the host, wherever it has run before; between devices results differ by
    rounding.
    ``changes`` are settings that hold from there on, like "attention.beta=4"; a later resume keeps them. Without a
    checkpoint the last snapshot serves, or the initial density. Each time adds to the file's attribute ``segments``.
    Raises as ``run``, FileError for a file that holds no run or is being written, CaseError for settings that cannot
    change, and for components of a user's own that are not loaded.
    """
    before = read(path)
    segments = read_segments(before.attributes)
    if not segments:
        raise FileError(f"{path}: has no case to go on with; it was not written by `meanfield run`")
    if "layers_of" in before.attributes:
        raise FileError(f"{path}: holds the layers of {before.attributes['layers_of']}, with which it cannot go on")
    require_components(path, before.attributes, same=True)
    case = next_case(segments, changes)
    problem = set_up(case, backend)
    problem.marks.update({name: before.attributes[name] for name in problem.marks if name in before.attributes})
    start = last_start(before, case, problem)
    segment = next_segment(segments, case, changes, start.state.time, until, command)
    if until is not None and until < segment.from_time:
        raise CaseError(f"until = {until:g}: {path} has reached time {segment.from_time:g} already; nothing was done")
    if segment.from_time >= segment.until:
        _nothing_left(before, start, say)
        return
    degrees = before.diagnostics["power"].shape[1] - 1 if "power" in before.diagnostics else None
    diagnostics = problem.diagnostics(case.output.diagnostics or (), degrees)
    require_same_units(before, diagnostics.columns, case)
    attributes = with_segment(before.attributes, segment) | problem.attributes
    with RunFile.append(path, snapshots=start.snapshots, samples=start.samples, attributes=attributes) as file:
        if start.note:
            say(f"{path}: {start.note}")
        record = Record(case, problem, start, diagnostics, file, segment.until, quiet, Watch(case, stop, callbacks))
        with explained(problem, record, quiet, say):
            go(problem, start.state, segment.until, record, say)


def _nothing_left(before: Run, start: Start, say: Say) -> None:
    """A file that is at its end already; that is recorded where the writer was killed just before it."""
    if before.attributes["stop_reason"] == "running":
        RunFile.append(before.path, snapshots=start.snapshots, samples=start.samples).close(wall_time=start.wall_time)
    remove_leftover(before.path)  # of a writer killed after its last word
    say(f"{before.path}: has reached time {start.state.time:g} already; go on with --until TIME")


@contextmanager
def explained(problem: Problem, record: Record, quiet: bool, say: Say) -> Iterator[None]:
    """Errors that end a run with what is left of it, and what to do; and a line on a run that has not failed."""
    path, go_on = record.path, going_on(problem.attributes, record.path)
    try:
        yield
    except NonFinite as error:
        raise type(error)(f"{reason(error)}; {path} is valid up to its last snapshot") from error
    except FileError as error:
        raise FileError(f"{error}; when it can be written again, {go_on}") from error
    except (KeyboardInterrupt, SystemExit) as error:
        kind = Terminated if isinstance(error, SystemExit) else Interrupted
        raise kind(f"{str(error) or 'interrupted at once'}; {go_on}") from None
    if not quiet:
        state = record.state
        say(f"{path}: t = {state.time:g} in {counted(state.steps, 'step')}, {record.wall_time:.1f} s")
        for note in rounding_notes(record.case):
            say(f"{path}: {note}")
        say(f"look at it: meanfield plot {path}")
