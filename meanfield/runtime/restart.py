"""Start of a run: at the initial density, or at the checkpoint of its file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from meanfield.case.case import Case
from meanfield.domains.common.problem import Event, Problem
from meanfield.simulation import sample_schedule, snapshot_schedule
from solvers.backends import backend_for
from solvers.io.checkpoint import ROWS, Checkpoints, Contents, require_scalars
from solvers.io.run_file import FileError, Run
from solvers.mesh.mesh import Floats, Mesh
from solvers.timestepping.schedules import Schedule, events_before
from solvers.timestepping.state import State


@dataclass(frozen=True)
class Start:
    """Start of a new or resumed run: its state, the kept rows of its file, and the past events of its schedules.

    snapshots, samples             rows of the file that are kept; later rows are computed again
    snapshots_seen, samples_seen   past events of each schedule: the rows, unless the settings have changed
    wall_time                      seconds that the run has taken so far
    note                           message to the user about this start, or empty
    events                         events of the file that are kept
    """

    state: State
    snapshots: int = 0
    samples: int = 0
    snapshots_seen: int = 0
    samples_seen: int = 0
    wall_time: float = 0.0
    note: str = ""
    events: tuple[Event, ...] = ()


def new_start(problem: Problem) -> Start:
    """Return the start of a new run: its initial state at time 0. Raises CaseError for an invalid initial density."""
    return Start(State(0.0, problem.initial()))


def checkpoint_of(
    state: State, snapshots: int, samples: int, events: int, wall_time: float, *, in_snapshot: bool = False
) -> Contents:
    """Return the arrays and the scalars of a checkpoint of a state.

    snapshots, samples, events   numbers of rows in the file
    wall_time                    seconds that the run has taken so far
    in_snapshot                  whether the last snapshot is bitwise equal to the state, which is then not stored again
    """
    arrays = {} if in_snapshot else {"values": backend_for(state.values).to_host(state.values)}
    return arrays, {
        "time": float(state.time),
        "steps": state.steps,
        "dt": float(state.dt) if math.isfinite(state.dt) else 0.0,  # 0 before the first step: NaN cannot be stored
        "snapshots": snapshots,
        "samples": samples,
        "events": events,
        "wall_time": wall_time,
    }


def last_start(run: Run, case: Case, problem: Problem) -> Start:
    """Return the start of a resumed run: at the last checkpoint, else at a snapshot of the whole state, else at time 0.

    ``case`` is the case to continue with, which determines the schedules. Raises as ``new_start``, and FileError, also
    for a file with other cells or points than the case has.
    """
    space = problem.space
    expected = (space.cells,) if isinstance(space, Mesh) else (len(space.weights), space.dimension)
    if run.snapshot_shape != expected:
        raise FileError(f"{run.path}: damaged: its snapshots have shape {run.snapshot_shape}, its case {expected}")
    checkpoint = Checkpoints(run.path, run.writers).read()
    if checkpoint is not None:
        require_scalars(run.path, checkpoint[1], ("time", "dt", "wall_time"), ("steps", *ROWS))
    if checkpoint is not None and _has_its_rows(run, checkpoint):
        arrays, scalars = checkpoint
        dt = float(scalars["dt"]) or math.nan
        rows = int(scalars["snapshots"]), int(scalars["samples"])
        values = _values(run, problem, arrays, rows[0])
        state = State(float(scalars["time"]), values, int(scalars["steps"]), dt)
        columns, count = [name for name in run.events if name != "time"], int(scalars["events"])
        events = ((float(run.events["time"][k]), {name: run.events[name][k] for name in columns}) for k in range(count))
        return replace(_start(run, case, state, rows, float(scalars["wall_time"])), events=tuple(events))
    missing = "no checkpoint" if checkpoint is None else "the checkpoint is later than the file"
    if run.snapshots == 0 or not problem.snapshot_is_state:
        return replace(new_start(problem), note=f"{missing}: computed again from the initial density")
    count = _snapshots_with_samples(run, sample_schedule(case))
    time = float(run.times[count - 1])
    rows = count, int(np.searchsorted(run.sample_times, time, side="right"))
    start = _start(run, case, State(time, run.snapshot(count - 1)), rows, float(run.attributes["wall_time"]))
    return replace(start, note=f"{missing}: continuing from the last snapshot, t = {time:g}")


def _snapshots_with_samples(run: Run, samples: Schedule) -> int:
    """Return the number of snapshots up to the last snapshot before which no sample is missing.

    Samples stay in memory longer than snapshots: a killed writer may leave later snapshots.
    """
    for count in range(run.snapshots, 1, -1):
        time = float(run.times[count - 1])
        row = int(np.searchsorted(run.sample_times, time, side="right"))
        written = events_before(samples, float(run.sample_times[row - 1]), or_at=True) if row else 0
        if events_before(samples, time, or_at=False) <= written:
            return count
    return 1


def _values(run: Run, problem: Problem, arrays: Mapping[str, Floats], snapshots: int) -> Floats:
    """Return the state that a checkpoint stores in ``arrays``, or the last of ``snapshots`` snapshots if there is none.

    Raises FileError for data that are no state of the case.
    """
    if not arrays and snapshots:
        return run.snapshot(snapshots - 1)
    try:
        values = arrays["values"]
        is_state = values.dtype.kind == "f" and problem.snapshot(values).shape == run.snapshot_shape
    except (KeyError, ValueError, IndexError, TypeError):
        is_state = False
    if not is_state:
        raise FileError(f"{run.path}: damaged: its checkpoint holds no state of its case")
    return values


def _has_its_rows(run: Run, checkpoint: Contents) -> bool:
    """Return whether the file still has all rows that a checkpoint counts: the file may have been truncated since."""
    rows = run.snapshots, len(run.sample_times), len(run.events.get("time", ()))
    return all(int(checkpoint[1][name]) <= there for name, there in zip(ROWS, rows, strict=True))


def _start(run: Run, case: Case, state: State, rows: tuple[int, int], wall_time: float) -> Start:
    """Return the start of a resumed run at a state; ``rows`` are the numbers of snapshots and samples that are kept."""
    snapshots, samples = rows
    return Start(
        state,
        snapshots,
        samples,
        _events_before(snapshot_schedule(case), state.time, run.times[:snapshots]),
        _events_before(sample_schedule(case), state.time, run.sample_times[:samples]),
        wall_time,
    )


def _events_before(schedule: Schedule, now: float, rows: Floats) -> int:
    """Return the number of events of a schedule before the time ``now``, plus the event at ``now`` if it is recorded.

    ``rows`` are the recorded times. A schedule that has changed applies from ``now`` on.
    """
    return events_before(schedule, now, or_at=len(rows) > 0 and rows[-1] == now)
