"""Sweeps: one case with other values of its keys, many runs, one index of all results."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import msgspec

from meanfield.case.case import Case
from meanfield.case.errors import CaseError, refusal
from meanfield.case.load import to_toml
from meanfield.runtime.messages import counted, print_message
from meanfield.runtime.paths import output_for
from meanfield.runtime.signals import terminate_as_interrupt
from meanfield.sweeping.case import Sweep, load_sweep
from meanfield.sweeping.dask_pool import with_dask
from meanfield.sweeping.files import require_folders, require_free
from meanfield.sweeping.index import Index, open_index
from meanfield.sweeping.local_pool import Solver, SolverLost, cores, with_processes
from meanfield.sweeping.point import FAILED
from meanfield.sweeping.progress import SweepProgress
from solvers.io.lock import Lock
from solvers.io.repair import FileError
from solvers.io.replacing import is_special

DONE, POINTS_FAILED, INTERRUPTED = 0, 3, 130  # exit statuses; bad input is 2


def sweep(
    path: str | Path,
    output: str | Path | None = None,
    *,
    jobs: int | None = None,
    dask: str | None = None,
    overwrite: bool = False,
    retry: bool = False,
    quiet: bool = False,
    command: str = "",
) -> int:
    """Solve every point of a sweep that its index does not hold yet; returns the exit status.

    path     of the sweep file, or the name of a shipped sweep
    output   NAME.h5, by default with the sweep's name, in the current folder
    jobs     processes on this machine, by default one for each core
    dask     "host:port" of a Dask scheduler, whose workers solve the points instead
    retry    re-run failed points
    Returns 0, 3 where points have failed or ran over the limit (the index has their reasons), or 130 where it was
    interrupted: the same call goes on then, as it does after a kill. Raises CaseError for a sweep that cannot be run,
    before any point is; FileError for an index that is another sweep's or cannot be written, and for a file that is not
    of this sweep where a run file is to be kept.
    """
    plan = load_sweep(path)
    if plan.limit is not None and dask is not None:
        raise refusal("limit", plan.limit, "not allowed with --dask, whose workers cannot stop a point")
    target = Path(output_for(str(path)) if output is None else output)
    if not target.parent.is_dir():
        raise FileError(f"{target}: the folder {target.parent} does not exist")
    same = target.exists() and Path(path).exists() and target.samefile(path)
    if same or target.is_dir() or is_special(target):
        raise FileError(f"{target}: cannot be the index; -o writes elsewhere")
    require_folders(target)
    lock = Lock(target)
    try:
        started = target.exists() and not overwrite
        index = open_index(target, plan, command, overwrite=overwrite, retry=retry)
        tasks = {number: task_of(plan.points[number].case) for number in index.waiting}
        if plan.keep.files:
            require_free(target, tasks, started=started, overwrite=overwrite)
        if dask is not None and index.waiting:
            solver = with_dask(dask)
        else:
            solver = with_processes(jobs or cores(), limit=plan.limit)
        return _solve(index, tasks, solver, quiet)
    finally:
        lock.release()


def _solve(index: Index, tasks: Mapping[int, str], solver: Solver, quiet: bool) -> int:
    """Solve what waits, keep each result as it comes, and say how it went."""
    sweep = index.sweep
    if not index.closed:
        index.start()
    done = len(sweep.points) - len(tasks)
    try:
        with (
            SweepProgress(index.path.stem, len(sweep.points), done, quiet) as progress,
            terminate_as_interrupt(),
            closing(solver(tasks, sweep.keep.files)) as solved,
        ):
            for number, result in solved:
                index.put(number, result)
                progress.update(failed=result.status == FAILED)
    except (KeyboardInterrupt, SolverLost) as error:
        index.close("interrupted")
        kept = f"{len(index.results)} of {len(sweep.points)} points are kept in {index.path}"
        if isinstance(error, SolverLost):
            raise CaseError(f"{error}; {kept}; go on with the same command") from None
        print_message(f"interrupted; {kept}; go on with the same command")
        return INTERRUPTED
    if not index.closed:
        index.close("finished")
    _print_end(index, sweep, len(tasks), quiet)
    return POINTS_FAILED if index.failed or index.over_time else DONE


def _print_end(index: Index, sweep: Sweep, solved: int, quiet: bool) -> None:
    """How the sweep ended; always what a second start did not do, and failures."""
    if index.failed:
        first = next(number for number, result in sorted(index.results.items()) if result.status == FAILED)
        point, reason = sweep.points[first], index.results[first].reason
        print_message(f"{index.failed} of {len(sweep.points)} points failed; --retry solves them again")
        print_message(f"the first, point {first} ({' '.join(point.overrides)}): {reason}")
    if index.over_time:
        message = f"{index.over_time} of {len(sweep.points)} points ran over the limit of {sweep.limit:g} s"
        print_message(f"{message}; the same command solves them again, with the limit that the file has then")
    if not solved:
        print_message(f"{index.path}: all {len(sweep.points)} points are there already")
    elif not quiet:
        print_message(f"{index.path}: {counted(len(sweep.points), 'point')}; plot it: meanfield plot {index.path}")


def task_of(case: Case) -> str:
    """The case as a worker gets it, which may be in another folder: files are named in full."""
    replace = msgspec.structs.replace
    if case.attention.file is not None:
        case = replace(case, attention=replace(case.attention, file=str(Path(case.attention.file).absolute())))
    if (file := getattr(case.initial, "file", None)) is not None:
        case = replace(case, initial=replace(case.initial, file=str(Path(file).absolute())))
    return to_toml(case)
