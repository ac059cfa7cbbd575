"""Sweeps from Python: a case over values of its keys, as an xarray Dataset with the keys as dimensions."""

from __future__ import annotations

import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence, Sized
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.case.errors import CaseError
from meanfield.case.load import to_toml
from meanfield.case.overrides import inline
from meanfield.case.short_names import full_names
from meanfield.results.refusals import with_python_names
from meanfield.results.result import Result
from meanfield.results.runs import CaseSource, load_case, open_run
from meanfield.runtime.progress import has_bar
from meanfield.sections.section import Section
from meanfield.sweeping.case import Sweep, parse_sweep
from meanfield.sweeping.columns import stack_columns
from meanfield.sweeping.dask_pool import with_client
from meanfield.sweeping.driver import kept_points, solve_into, work_of
from meanfield.sweeping.index import open_index
from meanfield.sweeping.local_pool import SolverLost, cores, with_processes
from meanfield.sweeping.point import FAILED, PointResult
from meanfield.sweeping.progress import SweepProgress, solve
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
    """Run a case for every combination of values of its keys, and return the final values of each run.

    Parameters
    ----------
    case : Case, str, Path or mapping
        Case that is varied, its file, the name of a shipped case, or the sections of a case file.
    keys : mapping of str to sequence
        Values of each varied key, or short name of a key: {"beta": [2, 4, 8], "initial.seed": range(3)}.
    jobs : int, optional
        Number of processes on this machine. None: one for each core, at most one for each point.
    client : distributed.Client, optional
        Client of Dask, whose workers run the cases instead.
    scalars : mapping of str to function (result), optional
        Functions of the :class:`~meanfield.Result` of a point by name, called in this process. Each returns a number,
        or an array of the same shape for all points.
    progress : bool, optional
        Whether progress is shown: as a bar on a terminal and in a notebook, elsewhere as lines. None: a bar where one
        can be drawn, else nothing.
    path : str or Path, optional
        Index that stores all results, as ``meanfield sweep`` writes it. Points of this sweep in the index are not run
        again, and the same call continues an interrupted sweep. None: all results are in memory.
    overwrite : bool
        Whether an existing file is replaced, with all its results.

    Returns
    -------
    xarray.Dataset
        The first dimensions are the keys, in the given order. Each key is also an index by its short name, the last
        part of the key: ``.sel(beta=4)``, ``.energy.plot(x="beta")``. Matrices, other lists and tables are labeled by
        texts in TOML. The variables are the last value of each
        diagnostic; ``end_time``, ``most_clusters`` and the other scalars of an index; those of ``scalars``; and the
        texts ``status`` ("done", "failed") and ``reason``. Numbers of a failed point are NaN. With a ``path`` the
        Dataset is that of :func:`~meanfield.open_sweep`.

    Raises
    ------
    CaseError
        If ``keys`` or one of its lists is empty, or a value is no list, if a point is not valid (checked before any run
        starts), if ``jobs`` is below 1, or if both ``scalars`` and ``path`` are given. If the scheduler of ``client``
        is lost: its results so far are in the index, or without a ``path`` in the attribute ``result`` of the error, a
        Dataset in which the other points have failed.
    TypeError
        If a scalar is not a function of one argument.
    FileError
        If the path is another kind of file or the index of another sweep and ``overwrite`` is false, or if it cannot be
        written.
    KeyboardInterrupt
        After Ctrl-C or SIGTERM. The index has the results so far.

    Notes
    -----
    A run that explodes is a result: its status is "done", and ``reason`` has the message.

    Examples
    --------
    The exact length of the centroid at t = 1 is 0.4603034050. Half the cell size has a quarter of the error.

    >>> import meanfield as mf
    >>> case = mf.load_case("flow_beta0_circle", {"time.end": 1})
    >>> found = mf.sweep(case, {"domain.resolution": [32, 64]}, jobs=1)
    >>> error = abs(found.centroid_length - 0.4603034050)
    >>> round(float(error.sel({"domain.resolution": 32}) / error.sel({"domain.resolution": 64})))
    4
    """
    if jobs is not None and not (isinstance(jobs, Integral) and jobs >= 1):
        raise CaseError(f"jobs = {jobs!r}: expected a whole number >= 1")
    for name, function in (scalars or {}).items():
        check_call(f"scalars[{name!r}]", function, "result")
    keys = full_names(keys) if isinstance(keys, Mapping) else keys
    plan = _plan(case, keys)
    solver = with_processes(min(jobs or cores(), len(plan.rows))) if client is None else with_client(client)
    quiet = not (has_bar() if progress is None else progress)
    if path is not None:
        if scalars:
            raise CaseError(
                f"scalars = {', '.join(scalars)}: not allowed with path, since an index has no added scalars"
            )
        with with_python_names():
            _solve_into(Path(path), plan, solver, overwrite, quiet)
        return open_sweep(path)
    count = len(plan.rows)
    work = Work(range(count), lambda number: plan.points[number].case, keep=bool(scalars))
    rows: dict[int, dict[str, Any]] = {}
    status = np.full(count, "", dtype=object)
    reasons = status.copy()

    def collect(results: Mapping[int, PointResult]) -> None:
        for number, result in results.items():
            rows[number] = _row(result, scalars or {})
            status[number], reasons[number] = result.status, result.reason

    try:
        solve(work, solver, SweepProgress(plan.title or "sweep", count, 0, quiet), collect)
    except SolverLost as error:
        lost = status == ""
        status[lost], reasons[lost] = FAILED, str(error)
        error.result = _dataset(plan, keys, rows, {"status": status, "reason": reasons})  # type: ignore[attr-defined]
        raise
    return _dataset(plan, keys, rows, {"status": status, "reason": reasons})


def open_sweep(path: str | Path) -> Dataset:
    """Return the index of a sweep as a Dataset.

    Parameters
    ----------
    path : str or Path
        Index that ``meanfield sweep`` or :func:`~meanfield.sweep` has written; the sweep may still run.

    Returns
    -------
    xarray.Dataset
        The keys are the first dimensions if every combination of their values is a point, else coordinates of the
        dimension ``point``. The variables are the last value of each diagnostic, ``end_time``, ``most_clusters`` and
        other scalars, ``status`` ("waiting", "done", "failed", "over time"), ``reason``, and ``wall_time`` in seconds.

    Raises
    ------
    FileError
        If the file is missing, damaged, or no index of a sweep.

    Examples
    --------
    >>> import meanfield as mf
    >>> case = mf.load_case("flow_beta0_circle", {"domain.resolution": 32})
    >>> swept = mf.sweep(case, {"time.end": [1, 2]}, jobs=1, path="index.h5", overwrite=True)
    >>> index = mf.open_sweep("index.h5")
    >>> index.status.values.tolist(), index.end_time.values.tolist()
    (['done', 'done'], [1.0, 2.0])
    >>> index.equals(swept)
    True
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
    if len(keys) == 1:
        return _with_coordinates(dataset.swap_dims(point=keys[0]), keys)
    grid = dataset.set_index(point=keys).unstack("point")  # in ascending order of values, keys last
    given = {key: list(dict.fromkeys(values.tolist())) for key, values in found.parameters.items()}
    return _with_coordinates(grid.sel(given).transpose(*keys, ...), keys)


def _is_grid(found: SweepResults) -> bool:
    """Return whether the runs of a sweep are a grid: every combination of the values of its keys occurs once."""
    lengths = [len(np.unique(values)) for values in found.parameters.values()]
    count = len(found.status)
    combinations = set(zip(*(values.tolist() for values in found.parameters.values()), strict=True))
    return int(np.prod(lengths)) == count == len(combinations)


def _solve_into(path: Path, plan: Sweep, solver: Solver, overwrite: bool, quiet: bool) -> None:
    """Make those runs of a sweep that have no result in the index ``path``, and store each result as it arrives."""
    lock = Lock(path)
    try:
        index = open_index(path, plan, "meanfield.sweep", overwrite=overwrite, retry=False)
        work = work_of(index)
        try:
            solve_into(index, work, solver, SweepProgress(plan.title or "sweep", len(work.numbers), 0, quiet))
        except SolverLost as error:
            raise SolverLost(f"{error}; {kept_points(index)}; the same call continues") from None
    finally:
        lock.release()


def _plan(case: CaseSource, keys: Mapping[str, Sequence[Any]]) -> Sweep:
    """Return the sweep of a case over every combination of the values of its keys. Raises CaseError."""
    case = load_case(case)
    if not isinstance(keys, Mapping) or not keys:
        raise CaseError(f'keys = {keys!r}: expected one or more, such as {{"attention.beta": [2, 4, 8]}}')
    for key, values in keys.items():
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Sized) or not len(values):
            raise CaseError(f"keys[{key!r}] = {values!r}: expected a list of values, such as [2, 4, 8]")
    texts = [f'"{key}" = {inline(list(values))}' for key, values in keys.items()]
    return parse_sweep("\n".join([f"title = {inline(case.title)}", "[keys]", *texts, ""]), base=to_toml(case))


def _row(result: PointResult, functions: Mapping[str, Scalar]) -> dict[str, Any]:
    """Return the scalar results of one run of a sweep by name, with the values of ``functions`` of the run."""
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
    """Return the results of a sweep as an xarray Dataset with one dimension for each varied key."""
    from xarray import Dataset

    shape = tuple(len(values) for values in keys.values())
    manifold = plan.points[0].case.domain.manifold
    variables: dict[str, Any] = {name: (tuple(keys), values.reshape(shape)) for name, values in texts.items()}
    for name, values in stack_columns([rows.get(number, {}) for number in range(len(plan.rows))]).items():
        inner = axes(name, values.ndim - 1, manifold)
        variables[name] = ((*keys, *inner), values.reshape(*shape, *values.shape[1:]), {"long_name": long_name(name)})
    coordinates = {key: _labels_of(values) for key, values in keys.items()}
    return _with_coordinates(Dataset(variables, coordinates, {"title": plan.title}), list(keys))


def _labels_of(values: Sequence[Any]) -> list[Any]:
    """Return the values of a key as labels along its dimension: matrices, other lists and tables as texts in TOML."""
    if not any(isinstance(value, list | tuple | np.ndarray | Mapping | Section) for value in values):
        return list(values)
    return [value if isinstance(value, str) else inline(value) for value in values]


def _with_coordinates(dataset: Dataset, keys: Sequence[str]) -> Dataset:
    """Return a sweep with the numbers 0, 1, … along each dimension of a quantity, and indexes by short names of keys.

    The last part of a key is a short name, such as "beta" of "attention.beta", unless another name is equal to it.
    """
    dataset = dataset.assign_coords({dim: np.arange(dataset.sizes[dim]) for dim in dataset.dims if dim not in keys})
    short = {key: key.rpartition(".")[2] for key in keys}
    taken = [*dataset.variables, *dataset.dims, *short.values()]
    names = {key: name for key, name in short.items() if taken.count(name) == 1}
    dataset = dataset.assign_coords({name: (key, dataset[key].values) for key, name in names.items()})
    for name in names.values():
        dataset = dataset.set_xindex(name)
    return dataset
