"""Run of a case, into a file or in memory: set-up (mesh, equation) → initial state → recorder → evolve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from numbers import Real
from pathlib import Path

import numpy as np

from meanfield.case.case import Case
from meanfield.case.errors import CaseError
from meanfield.components.loaded import require_components
from meanfield.diagnostics.overflow import describe_overflow, overflows
from meanfield.diagnostics.table import require_same_units
from meanfield.domains.common.problem import Problem
from meanfield.runtime.cost import rounding_notes
from meanfield.runtime.messages import command_of, counted
from meanfield.runtime.provenance import provenance
from meanfield.runtime.recorder import NOT_EXPLODED, Record, reason
from meanfield.runtime.restart import Start, last_start, new_start
from meanfield.runtime.segments import next_case, next_segment, read_segments, resume_advice, with_segment
from meanfield.runtime.signals import Interrupted, Terminated, stop_on_signal, write_to_stderr
from meanfield.runtime.watching import Callbacks, Condition, Watch
from meanfield.simulation import set_up
from solvers.backends import Backend
from solvers.io.checkpoint import Checkpoints
from solvers.io.layout import Measure
from solvers.io.lock import remove_leftover
from solvers.io.memory import InMemoryRun, InMemoryWriter
from solvers.io.run_file import FileError, Run, RunFile, read
from solvers.timestepping.integrate import integrate
from solvers.timestepping.observers import Cancelled
from solvers.timestepping.state import NonFinite, State

KEPT = 1 << 24  # bytes
Printer = Callable[[str], None]


def print_nothing(text: str) -> None:
    """Print nothing: a stand-in for a function that prints a line."""


def run(
    case: Case,
    path: str | Path,
    *,
    problem: Problem | None = None,
    overwrite: bool = False,
    quiet: bool = True,
    command: str = "",
    backend: Backend | None = None,
    show: Printer = print_nothing,
    stop: Condition | None = None,
    callbacks: Callbacks = (),
) -> None:
    """Run a case into a new file, on the device of ``backend``, by default the host.

    problem   set-up of the case, by default that of ``set_up``
    quiet     whether the progress bar, and lines in a log, are suppressed
    show      function that prints a line: the end of the run
    stop      condition besides that of the case, checked with each sample; callbacks are called with it

    Raises CaseError for an invalid initial density, FileError for a file that cannot be written, NonFinite for a state
    that is not finite, Interrupted or Terminated after Ctrl-C or SIGTERM; the file is closed and valid then.
    """
    watch = Watch(case, stop, callbacks)
    problem = set_up(case, backend) if problem is None else problem
    start = new_start(problem)
    diagnostics = problem.diagnostics(case.output.diagnostics or (), None)
    attributes = provenance(case, command) | NOT_EXPLODED | problem.run_scalars | problem.attributes
    with RunFile.create(
        path,
        problem.space,
        diagnostics.columns,
        attributes,
        problem.variables,
        measure=Measure(*case.domain.measure),
        overwrite=overwrite,
    ) as file:
        record = Record(case, problem, start, diagnostics, file, case.time.end, quiet, watch)
        with end_messages(problem, record, quiet, show):
            evolve(problem, start.state, case.time.end, record, show)


def run_in_memory(
    case: Case,
    *,
    problem: Problem | None = None,
    quiet: bool = True,
    backend: Backend | None = None,
    stop: Condition | None = None,
    callbacks: Callbacks = (),
) -> InMemoryRun:
    """Run a case and return its results in memory, with the numbers that ``run`` would write to a file.

    Raises as ``run``; the attribute ``run`` of the error has the results so far.
    """
    watch = Watch(case, stop, callbacks)
    problem = set_up(case, backend) if problem is None else problem
    start = new_start(problem)
    diagnostics = problem.diagnostics(case.output.diagnostics or (), None)
    attributes = provenance(case, "") | NOT_EXPLODED | problem.run_scalars | problem.attributes
    measure, name = Measure(*case.domain.measure), case.title or "simulation"
    memory = InMemoryWriter(name, problem.space, diagnostics.columns, attributes, problem.variables, measure=measure)
    record = Record(case, problem, start, diagnostics, memory, case.time.end, quiet, watch)
    try:
        evolve(problem, start.state, case.time.end, record)
    except (NonFinite, KeyboardInterrupt, SystemExit) as error:
        error.run = memory.run()  # type: ignore[union-attr]
        raise
    return memory.run()


def evolve(problem: Problem, state: State, end: float, recorder: Record, show: Printer = print_nothing) -> None:
    """Integrate the state of a problem in place up to the time ``end``, and record it at the times of the recorder.

    Raises NonFinite. After a signal, raises Interrupted or Terminated in the next step or before the next diagnostic of
    a sample, which is abandoned; after a second signal, raises KeyboardInterrupt at once. The state is then the one
    after the last good step, and the recorder is closed.
    """

    def after_step(state: State) -> bool:
        """Check and record a state after a step; return True to end the run."""
        problem.check(state)
        return bool(recorder.after_step(state)) or bool(stop)

    _keep_freed_memory()
    with (
        stop_on_signal(None if show is print_nothing else write_to_stderr) as stop,
        recorder,
        closing(stop),
        np.errstate(over="ignore", divide="ignore", invalid="ignore"),
    ):
        recorder.stop_when(lambda: bool(stop))
        with suppress(Cancelled):
            with recorder.compiling():
                for observer in recorder.observers:
                    observer.begin(state)
                problem.prepare(state)
            integrate(state, problem.dynamics, end, recorder.observers, after_step, lambda: bool(stop))
        recorder.end(state)
        if state.time < end and stop:
            raise stop.error(f"interrupted at time {state.time:.6g}")


def _keep_freed_memory() -> None:
    """Keep freed arrays up to KEPT bytes in the process, so that they are reused without page faults.

    By default glibc returns freed memory to the system, except for sizes of which a block has been freed before. A
    variable such as MALLOC_TRIM_THRESHOLD_, as for workers of Dask, overrides this behavior.
    """
    np.empty(KEPT, np.uint8)


def resume(
    path: str | Path,
    *,
    until: float | None = None,
    changes: Sequence[str] = (),
    quiet: bool = True,
    command: str = "",
    backend: Backend | None = None,
    show: Printer = print_nothing,
    stop: Condition | None = None,
    callbacks: Callbacks = (),
) -> None:
    """Continue the run of a file from its last checkpoint, to the end of its case or ``until``.

    The run continues on the device of ``backend``, by default the host, whatever its earlier device; results on
    different devices differ by rounding. ``changes`` are settings from then on, like "attention.beta=4"; a later resume
    keeps them. Without a checkpoint the run starts from the last snapshot, or the initial density. The file's attribute
    ``segments`` lists all segments.

    Raises as ``run``, FileError for a file that holds no run or is being written, CaseError for settings that cannot
    change, and for components of a user's own that are not loaded.
    """
    if until is not None and not (isinstance(until, Real) and np.isfinite(until)):
        raise CaseError(f"until = {until}: expected a finite time")
    before = read(path)
    segments = read_segments(before.attributes)
    if not segments:
        raise FileError(f"{path}: has no case to resume; it was not written by `meanfield run`")
    if "layers_of" in before.attributes:
        raise FileError(f"{path}: holds the layers of {before.attributes['layers_of']}, which cannot be resumed")
    require_components(path, before.attributes, same=True)
    case = next_case(segments, changes)
    watch = Watch(case, stop, callbacks)
    problem = set_up(case, backend)
    start = last_start(before, case, problem)
    if start.events:  # at its start the segment has had its handover
        problem.run_scalars.update(
            {name: before.attributes[name] for name in problem.run_scalars if name in before.attributes}
        )
    segment = next_segment(segments, case, changes, start.state.time, until, command)
    if until is not None and until < segment.from_time:
        raise CaseError(f"until = {until:g}: {path} has reached time {segment.from_time:g} already; nothing was done")
    if segment.from_time >= segment.until:
        _report_finished(before, start, show)
        return
    degrees = before.diagnostics["power"].shape[1] - 1 if "power" in before.diagnostics else None
    diagnostics = problem.diagnostics(case.output.diagnostics or (), degrees)
    require_same_units(before, diagnostics.columns, case)
    attributes = with_segment(before.attributes, segment) | NOT_EXPLODED | problem.run_scalars | problem.attributes
    problem.events[:] = start.events
    with RunFile.append(
        path, snapshots=start.snapshots, samples=start.samples, events=len(start.events), attributes=attributes
    ) as file:
        if start.note:
            show(f"{path}: {start.note}")
        record = Record(case, problem, start, diagnostics, file, segment.until, quiet, watch)
        with end_messages(problem, record, quiet, show):
            evolve(problem, start.state, segment.until, record, show)


def _report_finished(before: Run, start: Start, show: Printer) -> None:
    """Report that a run has reached its end; complete its file where the writer was killed just before."""
    if before.attributes["stop_reason"] == "running":
        file = RunFile.append(before.path, snapshots=start.snapshots, samples=start.samples, events=len(start.events))
        file.close(wall_time=start.wall_time)
    else:
        Checkpoints(before.path, before.writers).remove_copies()  # of a writer killed after it had closed the file
    remove_leftover(before.path)  # the lock of a writer killed after it had closed the file
    show(f"{before.path}: has reached time {start.state.time:g} already; continue with --until TIME")


@contextmanager
def end_messages(problem: Problem, record: Record, quiet: bool, show: Printer) -> Iterator[None]:
    """Add advice to errors within the block, and print a summary of a run that ends without errors.

    The advice is how far the file is valid, and how to resume.
    """
    path, advice = record.path, resume_advice(problem.attributes, record.path)
    try:
        yield
    except NonFinite as error:
        raise type(error)(f"{reason(error)}; {path} is valid up to its last snapshot") from error
    except FileError as error:
        raise FileError(f"{error}; when it can be written again, {advice}") from error
    except (KeyboardInterrupt, SystemExit) as error:
        kind = Terminated if isinstance(error, SystemExit) else Interrupted
        raise kind(f"{str(error) or 'interrupted at once'}; {advice}") from None
    if not quiet:
        state = record.state
        show(f"{path}: t = {state.time:g} in {counted(state.steps, 'step')}, {record.wall_time:.1f} s")
        written = read(path)
        overflow = describe_overflow(overflows(written.sample_times, written.diagnostics))
        for note in [*rounding_notes(record.case), *([overflow] if overflow else [])]:
            show(f"{path}: {note}")
        show(f"plot it: {command_of('plot', path)}")
