"""A run from case to file: the whole story on a page."""

from __future__ import annotations

import signal
import sys
import threading
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from meanfield.case import Case, parse
from meanfield.diagnostics import Diagnostics
from meanfield.progress import Progress
from meanfield.provenance import provenance
from meanfield.setup import Problem, initial_density, sample_schedule, set_up, snapshot_schedule
from solvers.checkpoint import Checkpoints
from solvers.evolution import STEPPERS, NonFinite, Observer, State, evolve
from solvers.output import RunFile, read

DONE, NON_FINITE, INTERRUPTED = 0, 3, 130  # exit statuses; bad input is 2
COMPILING = 1.0  # seconds after which the first evaluation must be compiling its kernels


def run(case: Case, path: str | Path, *, overwrite: bool = False, quiet: bool = False, command: str = "") -> int:
    """Run a case into a new file and return the exit status.

    Raises CaseError for an initial density that cannot be, FileError for a file that cannot be written.
    """
    problem = set_up(case)
    state = State(0.0, initial_density(case, problem.mesh))
    diagnostics = Diagnostics(case.output.diagnostics, problem.mesh, problem.attention)
    attributes = provenance(case, command)
    with RunFile.create(path, problem.mesh, diagnostics.columns, attributes, overwrite=overwrite) as file:
        return _go(case, problem, state, diagnostics, file, case.time.end, quiet, wall_time=0.0)


def resume(path: str | Path, *, until: float | None = None, quiet: bool = False, command: str = "") -> int:
    """Go on with a file from its last checkpoint, to the end of its case or ``until``; returns the exit status.

    Each time adds a line to the file's attribute ``segments``.
    Raises FileError for a file that holds no run, or no checkpoint, or is being written.
    """
    attributes = read(path).attributes
    case = parse(str(attributes["case"]))
    arrays, scalars = Checkpoints(path).read()
    end = case.time.end if until is None else float(until)
    time, snapshots, samples = float(scalars["time"]), int(scalars["snapshots"]), int(scalars["samples"])
    if time >= end:
        print(f"{path}: has reached time {time:g} already; go on with --until TIME", file=sys.stderr)
        return DONE
    problem = set_up(case)
    state = State(time, arrays["density"], int(scalars["steps"]))
    diagnostics = Diagnostics(case.output.diagnostics, problem.mesh, problem.attention)
    segment = f"{datetime.now(UTC).isoformat(timespec='seconds')}: from time {time:.17g} to {end:g}: {command}\n"
    segments = {"segments": str(attributes.get("segments", "")) + segment}
    with RunFile.append(path, snapshots=snapshots, samples=samples, attributes=segments) as file:
        return _go(case, problem, state, diagnostics, file, end, quiet, float(scalars["wall_time"]))


def _go(
    case: Case,
    problem: Problem,
    state: State,
    diagnostics: Diagnostics,
    file: RunFile,
    end: float,
    quiet: bool,
    wall_time: float,
) -> int:
    """Evolve to ``end`` with snapshots, diagnostics, checkpoints and progress; returns the exit status."""
    began = clock.monotonic()
    checkpoints, saved = Checkpoints(file.path), began

    def elapsed() -> float:
        return wall_time + clock.monotonic() - began

    def save() -> None:
        file.sync()
        checkpoints.write(
            {"density": state.values},
            {
                "time": state.time,
                "steps": state.steps,
                "snapshots": snapshots.count,
                "samples": samples.count,
                "wall_time": elapsed(),
            },
        )

    def sample(state: State) -> None:
        values = diagnostics(state.values)
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

    snapshots = Observer(lambda s: file.write_snapshot(s.time, s.values), snapshot_schedule(case), file.snapshots)
    samples = Observer(sample, sample_schedule(case), file.samples)
    with Progress(file.path.stem, state.time, end, quiet) as progress, _stop_on_signal() as stop:
        with _said_if_slow(progress, "compiling the kernels: once, some seconds; later runs start at once"):
            problem.equation.prepare(state.time, state.values)
        try:
            stepper, observers = STEPPERS[case.time.method], (snapshots, samples)
            evolve(state, problem.equation, stepper, end, observers, case.time.cfl, after_step)
        except NonFinite as error:
            message = f"stopped on a non-finite state: {error}"
            file.close(stop_reason="failed", message=message, wall_time=elapsed())
            print(f"meanfield: {message}; {file.path} is good up to its last snapshot", file=sys.stderr)
            return NON_FINITE
        progress.finish(state)
        save()
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


@contextmanager
def _stop_on_signal() -> Iterator[list[int]]:
    """A list that Ctrl-C or SIGTERM puts itself in, for the loop to stop after its step; a second one interrupts.

    Signals reach the main thread only; a run in another one is not stopped by them.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received
        return

    def note(number: int, frame: object) -> None:
        received.append(number)
        if len(received) > 1:
            raise KeyboardInterrupt
        print("stopping after this step; once more to stop at once", file=sys.stderr)

    previous = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield received
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
