"""Sweeps: one case with different values of its keys, many runs, one index of all results."""

from __future__ import annotations

from pathlib import Path

from meanfield.case.errors import CaseError
from meanfield.case.load import to_toml
from meanfield.runtime.messages import command_of, counted, print_message
from meanfield.runtime.paths import output_for
from meanfield.sweeping.case import Sweep, load_sweep
from meanfield.sweeping.dask_pool import with_dask
from meanfield.sweeping.files import lock_path_of_part, require_folders, require_free
from meanfield.sweeping.index import Index, PartOfIndex, open_index, open_part
from meanfield.sweeping.local_pool import SolverLost, cores, with_processes
from meanfield.sweeping.progress import SweepProgress, solve
from meanfield.sweeping.tasks import Solver, Work, with_absolute_paths
from solvers.io.lock import Lock
from solvers.io.repair import FileError
from solvers.io.replacing import is_special

DONE, POINTS_FAILED, INTERRUPTED = 0, 3, 130  # exit statuses; bad input has 2


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
    part: tuple[int, int] | None = None,
) -> int:
    """Run every point of a sweep that has no result in the index (the file of all results), and return the exit status.

    path     of the sweep file, or the name of a shipped sweep
    output   NAME.h5, by default with the sweep's name, in the current folder
    jobs     processes on this machine, by default one for each core
    dask     "host:port" of a Dask scheduler, whose workers solve the points instead
    retry    re-run failed points
    part     (i, n): every n-th point from the i-th on, i = 1 … n; a call without ``part`` merges the results of all n
             processes

    Returns 0, 3 where points have failed or ran over the limit (the index has their reasons), or 130 after an
    interrupt: the same call then continues the sweep, as it does after a kill. Raises CaseError for an invalid sweep,
    before solving any point. Raises FileError for an index of another sweep or one that cannot be written, and where a
    run file would replace a file that is not of this sweep.
    """
    plan = load_sweep(path)
    target = Path(output_for(str(path)) if output is None else output)
    if not target.parent.is_dir():
        raise FileError(f"{target}: the folder {target.parent} does not exist")
    same = target.exists() and Path(path).exists() and target.samefile(path)
    if same or target.is_dir() or is_special(target):
        raise FileError(f"{target}: cannot be the index; -o writes elsewhere")
    if part is not None and (overwrite or retry):
        raise CaseError("--shard: not allowed with --overwrite or --retry; give these to a sweep without --shard")
    require_folders(target)
    lock = Lock(target if part is None else lock_path_of_part(target, *part))
    try:
        started = target.exists() and not overwrite
        index = (
            open_index(target, plan, command, overwrite=overwrite, retry=retry)
            if part is None
            else open_part(target, plan, command, part[0] - 1, part[1])
        )
        work = work_of(index)
        if plan.keep.files:
            cases = ((n, to_toml(with_absolute_paths(work.case(n)))) for n in work.numbers)
            require_free(target, cases, started=started, overwrite=overwrite)
        solver = with_dask(dask) if dask is not None and work.numbers else with_processes(jobs or cores())
        return _solve(index, work, solver, quiet)
    finally:
        lock.release()


def work_of(index: Index) -> Work:
    """Return the unsolved points (runs) of an index, with their cases, as the work of a solver."""
    sweep = index.sweep
    return Work(index.waiting, lambda number: sweep.points[number].case, sweep.keep.files, sweep.limit)


def kept_points(index: Index) -> str:
    """Return a text that says how many points (runs) of a sweep have results in its index."""
    count = len(index.sweep.rows)
    return f"{count - len(index.waiting)} of {count} points are kept in {index.path}"


def solve_into(index: Index, work: Work, solver: Solver, progress: SweepProgress) -> None:
    """Make the runs of ``work``, and store their results in the index as they arrive, also up to an interrupt."""
    if not index.closed:
        index.start()
    try:
        solve(work, solver, progress, index.put)
    except (KeyboardInterrupt, SolverLost):
        index.close("interrupted")
        raise
    if not index.closed:
        index.close("finished")


def _solve(index: Index, work: Work, solver: Solver, quiet: bool) -> int:
    """Make the runs of ``work``, store results as they arrive, print how the sweep ended, and return the status.

    The exit status is DONE, POINTS_FAILED or INTERRUPTED.
    """
    count = len(index.sweep.rows)
    try:
        solve_into(index, work, solver, SweepProgress(index.path.stem, count, count - len(work.numbers), quiet))
    except SolverLost as error:
        raise CaseError(f"{error}; {kept_points(index)}; continue with the same command") from None
    except KeyboardInterrupt:
        print_message(f"interrupted; {kept_points(index)}; continue with the same command")
        return INTERRUPTED
    _print_end(index, index.sweep, len(work.numbers), quiet)
    return POINTS_FAILED if index.failed or index.timed_out else DONE


def _print_end(index: Index, sweep: Sweep, solved: int, quiet: bool) -> None:
    """Print how the sweep ended: failed points, points (runs) over the time limit, and the next command."""
    count = len(sweep.rows)
    if failed := index.failed:
        point, reason = sweep.points[failed[0]], index.results.outcomes.reasons[failed[0]]
        print_message(f"{len(failed)} of {count} points failed; --retry solves them again")
        print_message(f"the first, point {failed[0]} ({' '.join(point.overrides)}): {reason}")
    if index.timed_out:
        message = f"{index.timed_out} of {count} points ran over the limit of {sweep.limit:g} s"
        print_message(f"{message}; the same command solves them again, with the limit in the sweep file at that time")
    if isinstance(index, PartOfIndex):
        part = f"part {index.part + 1} of {index.parts}: {counted(solved, 'point')} solved"
        print_message(f"{index.path}: {part}; when all have ended, the same command without --shard merges them")
    elif not solved:
        print_message(f"{index.path}: has all {count} points already")
    elif not quiet:
        print_message(f"{index.path}: {counted(count, 'point')}; plot it: {command_of('plot', index.path)}")
