"""Sweeps from Python: a case over values of its keys, as an xarray Dataset with the keys as dimensions."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.case.errors import CaseError
from meanfield.case.load import to_toml
from meanfield.case.overrides import inline
from meanfield.results.refusals import in_python
from meanfield.results.result import Result
from meanfield.results.runs import CaseSource, load_case, open_run
from meanfield.runtime.progress import has_bar
from meanfield.runtime.signals import terminate_as_interrupt
from meanfield.sweeping.case import Sweep, parse_sweep
from meanfield.sweeping.dask_pool import with_client
from meanfield.sweeping.driver import work_of
from meanfield.sweeping.index import open_index
from meanfield.sweeping.local_pool import cores, with_processes
from meanfield.sweeping.point import PointResult
from meanfield.sweeping.progress import SweepProgress
from meanfield.sweeping.results import SweepResults, read_sweep
from meanfield.sweeping.scalars import axes, long_name, scalars
from meanfield.sweeping.tasks import Solver, Work
from solvers.io.lock import Lock
from solvers.mesh.checks import check_call

if TYPE_CHECKING:
    from distributed import Client
    from xarray import Dataset

Scalar = Callable[[Result], Any]  # from a result to a number, or an array of the same shape for all


def sweep(
    case: CaseSource,
    keys: Mapping[str, Sequence[Any]],
    *,
    jobs: int | None = None,
    client: Client | None = None,
    scalars: Mapping[str, Scalar] | None = None,
    progress: bool | None = None,
    path: str | Path | None = None,
    overwrite: bool = False,
) -> Dataset:
    """Run a case for every combination of the values of its ``keys``; return the final values of each run.

        mf.sweep("ladder_circle", {"attention.beta": [2, 4, 8], "initial.seed": range(3)}, jobs=2)

    jobs       processes on this machine, by default one for each core
    client     of Dask, whose workers run the cases instead
    scalars    functions of a result by name, called in this process
    path       of an index, as `meanfield sweep` writes it: points of this sweep in the index are not run again, and the
               same call continues an interrupted sweep; by default all results are in memory
    overwrite  whether an index of another sweep is replaced

    The dimensions of the Dataset are the keys. Its variables are the last value of each diagnostic, the scalars of the
    index of a sweep (most_clusters, …), those of ``scalars``, ``status`` and ``reason``; NaN where a point has failed.

    Raises TypeError for scalars that are no functions of a result; CaseError for the first point that cannot be run,
    before any run starts, for ``jobs`` below 1, and for ``scalars`` with a ``path``, whose index has no such scalars;
    FileError for a path that is another kind of file.
    """
    if jobs is not None and not (isinstance(jobs, Integral) and jobs >= 1):
        raise CaseError(f"jobs = {jobs!r}: expected a whole number >= 1")
    for name, function in (scalars or {}).items():
        check_call(f"scalars[{name!r}]", function, "result")
    plan = _plan(case, keys)
    solver = with_processes(min(jobs or cores(), len(plan.rows))) if client is None else with_client(client)
    quiet = not (has_bar() if progress is None else progress)
    if path is not None:
        if scalars:
            raise CaseError(f"scalars = {', '.join(scalars)}: not allowed with path, whose index has none of them")
        with in_python():
            _solve_into(Path(path), plan, solver, overwrite, quiet)
        return open_sweep(path)
    count = len(plan.rows)
    work = Work(range(count), lambda number: plan.points[number].case, keep=bool(scalars))
    rows: dict[int, dict[str, Any]] = {}
    status = np.full(count, "", dtype=object)
    reasons = status.copy()
    for results in _solved(solver, work, plan.title, quiet):
        for number, result in results.items():
            rows[number] = _row(result, scalars or {})
            status[number], reasons[number] = result.status, result.reason
    return _dataset(plan, keys, rows, {"status": status, "reason": reasons})


def open_sweep(path: str | Path) -> Dataset:
    """Return the index of a sweep as a Dataset: its keys as dimensions for a grid, else as coordinates of ``point``.

    Raises FileError for a file that is no index.
    """
    from xarray import Dataset

    found = read_sweep(path)
    manifold = str(tomllib.loads(found.attributes["case"])["domain"]["manifold"])
    variables: dict[str, Any] = {
        name: (("point", *axes(name, values.ndim - 1, manifold)), values, {"long_name": long_name(name)})
        for name, values in found.scalars.items()
    }
    variables |= {"status": ("point", found.status), "reason": ("point", found.reasons)}
    variables["wall_time"] = ("point", found.wall_times, {"units": "s"})
    coordinates = {key: ("point", values) for key, values in found.parameters.items()}
    dataset = Dataset(variables, coords=coordinates, attrs={"title": str(found.attributes["title"])})
    if not _is_grid(found):
        return dataset
    keys = list(found.parameters)
    return dataset.swap_dims(point=keys[0]) if len(keys) == 1 else dataset.set_index(point=keys).unstack("point")


def _is_grid(found: SweepResults) -> bool:
    """Return whether every combination of values occurs once."""
    lengths = [len(np.unique(values)) for values in found.parameters.values()]
    count = len(found.status)
    combinations = set(zip(*(values.tolist() for values in found.parameters.values()), strict=True))
    return int(np.prod(lengths)) == count == len(combinations)


def _solve_into(path: Path, plan: Sweep, solver: Solver, overwrite: bool, quiet: bool) -> None:
    """Run the points that the index lacks, and store each result as it arrives."""
    lock = Lock(path)
    try:
        index = open_index(path, plan, "meanfield.sweep", overwrite=overwrite, retry=False)
        if not index.closed:
            index.start()
        try:
            for results in _solved(solver, work_of(index), plan.title, quiet):
                index.put(results)
        except KeyboardInterrupt:
            index.close("interrupted")
            raise
        if not index.closed:
            index.close("finished")
    finally:
        lock.release()


def _plan(case: CaseSource, keys: Mapping[str, Sequence[Any]]) -> Sweep:
    """Return the sweep of every combination. Raises CaseError."""
    case = load_case(case)
    if not keys:
        raise CaseError('keys = {}: expected some, such as {"attention.beta": [2, 4, 8]}')
    for key, values in keys.items():
        if isinstance(values, str | bytes) or not isinstance(values, Iterable):
            raise CaseError(f"keys[{key!r}] = {values!r}: expected a list of values, such as [2, 4, 8]")
    texts = [f'"{key}" = {inline(list(values))}' for key, values in keys.items()]
    return parse_sweep("\n".join([f"title = {inline(case.title)}", "[keys]", *texts, ""]), base=to_toml(case))


def _solved(solver: Solver, work: Work, title: str, quiet: bool) -> Iterator[dict[int, PointResult]]:
    with (
        SweepProgress(title or "sweep", len(work.numbers), 0, quiet) as progress,
        terminate_as_interrupt(),
        closing(solver(work)) as solved,
    ):
        for results in solved:
            progress.update(results)
            yield results


def _row(result: PointResult, functions: Mapping[str, Scalar]) -> dict[str, Any]:
    """Return names and values of one point."""
    row: dict[str, Any] = dict(scalars(result.tables))
    if result.file is None:
        return row
    with tempfile.TemporaryDirectory(prefix="meanfield-") as folder:
        path = Path(folder) / "run.h5"
        path.write_bytes(result.file)
        opened = open_run(path)
        return row | {name: np.asarray(function(opened)) for name, function in functions.items()}


def _dataset(
    plan: Sweep, keys: Mapping[str, Sequence[Any]], rows: Mapping[int, Mapping[str, Any]], texts: Mapping[str, Any]
) -> Dataset:
    from xarray import Dataset

    shape = tuple(len(values) for values in keys.values())
    manifold = plan.points[0].case.domain.manifold
    variables: dict[str, Any] = {name: (tuple(keys), values.reshape(shape)) for name, values in texts.items()}
    for name in dict.fromkeys(name for row in rows.values() for name in row):
        values = _stacked(name, rows, len(plan.rows))
        inner = axes(name, values.ndim - 1, manifold)
        variables[name] = ((*keys, *inner), values.reshape(*shape, *values.shape[1:]), {"long_name": long_name(name)})
    return Dataset(variables, coords={key: list(values) for key, values in keys.items()}, attrs={"title": plan.title})


def _stacked(name: str, rows: Mapping[int, Mapping[str, Any]], count: int) -> np.ndarray:
    """Return the values (points, ...) of one name, NaN where a point has none or a smaller one."""
    shapes = [np.shape(row[name]) for row in rows.values() if name in row]
    values = np.full((count, *np.max(shapes, axis=0).astype(int)), np.nan)
    for number, row in rows.items():
        if name in row:
            place: tuple[Any, ...] = (number, *(slice(length) for length in np.shape(row[name])))
            values[place] = row[name]
    return values
