"""Results of many points as columns, a row a point: in memory, in a file of a few points, and in an index.

/point (row)                    numbers of the points
/status, /reason, /exit_status, /wall_time (row)
/result/NAME (row, ...)         each diagnostic at the end, and the scalars of meanfield.sweeping.scalars
/samples/count (row)            samples that a point has
/samples/NAME (row, sample, ...)  "time" and the diagnostics over time; NaN where a point has fewer
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from meanfield.sweeping.point import PointResult
from meanfield.sweeping.scalars import SCALARS, scalars
from solvers.io.schema import dataset_of, group_of, listed_columns, require_size
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    import h5py

Integers = NDArray[np.int64]
Texts = NDArray[np.object_]
Shapes = dict[str, tuple[int, ...]]  # of one row of each column, by path
GROUPS = ("result", "samples")
_CHUNK = 1 << 20  # bytes
_CHECKED: dict[str, object] = {"fletcher32": True}  # files are written once and completely
_COMPRESSED: dict[str, object] = {**_CHECKED, "compression": "gzip", "compression_opts": 1, "shuffle": True}
_MIN_COMPRESSED = 1 << 14  # bytes


@dataclass(frozen=True, eq=False)
class PointOutcomes:
    """Outcomes of some points (runs) of a sweep: number, status, reason and wall time of each point.

    ``counts`` are the numbers of samples of the points.
    """

    numbers: Integers
    status: Texts
    exit_status: Integers
    reasons: Texts
    wall_times: Floats
    counts: Integers

    def select_rows(self, rows: Any) -> PointOutcomes:
        """Return the outcomes of some rows, given by a slice or an index array; a row is a point (run) of the sweep."""
        return PointOutcomes(*(getattr(self, name)[rows] for name in self.__dataclass_fields__))


@dataclass(frozen=True, eq=False)
class Columns:
    """Results of some points (runs) of a sweep: outcomes, and the values (rows, …) of columns by path.

    A path is "result/NAME" for one value of each point, or "samples/NAME" for values over time (rows, samples, …).
    """

    outcomes: PointOutcomes
    values: Mapping[str, Floats]

    def shapes(self) -> Shapes:
        """Return the shape of one row (the value of one point) of each column."""
        return {path: values.shape[1:] for path, values in self.values.items()}


def names_in(group: str, paths: Iterable[str]) -> list[str]:
    """Return the names of the columns in the group "result" or "samples", given the paths of all columns."""
    return [path.removeprefix(f"{group}/") for path in paths if path.startswith(f"{group}/")]


def larger_shapes(one: Shapes, other: Shapes) -> Shapes:
    """Return for each column the smallest shape that contains both shapes.

    Raises ValueError for different numbers of axes.
    """
    both = dict(one)
    for path, shape in other.items():
        if len(both.get(path, shape)) != len(shape):
            name = path.partition("/")[2]
            raise ValueError(f"{name} has values of shape {both[path]} for some points, {shape} for others")
        both[path] = tuple(int(n) for n in np.maximum(both[path], shape)) if path in both else shape
    return both


def require_consistent(shapes: Shapes) -> None:
    """Raise ValueError if times are missing, or if a column over time has other axes than its value at the end."""
    if shapes and "samples/time" not in shapes:
        raise ValueError("samples have no time")
    for name in names_in("samples", shapes):
        shape = shapes[f"samples/{name}"]
        if len(shape) < 1 or (name == "time" and len(shape) > 1):
            raise ValueError(f"samples/{name} has values of shape {shape} for each point")
    for name in names_in("result", shapes):
        shape = shapes[f"result/{name}"]
        axes = 0 if name in SCALARS else len(shapes.get(f"samples/{name}", (0, *shape))) - 1
        if len(shape) != axes:
            raise ValueError(f"result/{name} has values of shape {shape} for each point, expected {axes} axes")


def columns_of(results: Mapping[int, PointResult]) -> Columns:
    """Return the results of some points, given by their number in the sweep, as columns."""
    found = list(results.values())
    texts = [np.array([getattr(r, name) for r in found], dtype=object) for name in ("status", "reason")]
    outcomes = PointOutcomes(
        np.array(list(results), dtype=np.int64),
        texts[0],
        np.array([r.exit_status for r in found], dtype=np.int64),
        texts[1],
        np.array([r.wall_time for r in found], dtype=float),
        np.array([len(r.tables.get("time", ())) for r in found], dtype=np.int64),
    )
    rows = [_by_path("result", scalars(r.tables)) | _by_path("samples", r.tables) for r in found]
    return Columns(outcomes, stack_columns(rows))


def _by_path(group: str, values: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the values of columns in a group by path."""
    return {f"{group}/{name}": value for name, value in values.items()}


def stack_columns(rows: Sequence[Mapping[str, Floats]]) -> dict[str, Floats]:
    """Return one column (rows, ...) for each name, whose shape contains all values of that name.

    Entries are NaN where a row has no value or a smaller one.
    """
    columns: dict[str, Floats] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        shapes = {np.shape(row[name]) for row in rows if name in row}
        if len(shapes) == 1 and all(name in row for row in rows):
            columns[name] = np.array([row[name] for row in rows], dtype=float)
            continue
        values = columns[name] = np.full((len(rows), *np.max(list(shapes), axis=0).astype(int)), np.nan)
        for k, row in enumerate(rows):
            if name in row:
                put(values, k, row[name])
    return columns


def put(values: Floats, row: Any, smaller: Floats) -> None:
    """Copy ``smaller`` into the leading entries of one row, or of several rows, of ``values``; other entries stay."""
    inner = np.shape(smaller)[len(np.shape(row)) :]
    values[(row, *(slice(length) for length in inner))] = smaller


def write_outcomes(file: h5py.Group, outcomes: PointOutcomes) -> None:
    """Write the outcomes of some points (runs) as datasets: number, status, reason and wall time of each point.

    Groups for the results are created, too.
    """
    import h5py

    file.create_dataset("point", data=outcomes.numbers)
    for name, texts in (("status", outcomes.status), ("reason", outcomes.reasons)):
        file.create_dataset(name, data=texts, dtype=h5py.string_dtype())
    file["exit_status"] = outcomes.exit_status
    file["wall_time"] = outcomes.wall_times
    file["wall_time"].attrs["units"] = "s"
    file.create_group("result")
    file.create_group("samples")["count"] = outcomes.counts


def create_columns(file: h5py.Group, count: int, shapes: Shapes, rows_at_once: int) -> None:
    """Create datasets, filled with NaN, for the scalars and tables of ``count`` points (runs).

    ``shapes`` are those of one point. ``rows_at_once`` points are written together later, which determines the chunks.
    """
    import h5py

    for group in GROUPS:
        file[group].attrs.create("columns", names_in(group, shapes), dtype=h5py.string_dtype())
    for path, shape in shapes.items():
        file.create_dataset(path, (count, *shape), "f8", fillvalue=np.nan, **_storage(count, shape, rows_at_once))


def _storage(count: int, shape: tuple[int, ...], rows_at_once: int) -> dict[str, object]:
    """Return the options of an HDF5 dataset (chunks, checksums and compression) for ``count`` rows of a shape."""
    size = 8 * int(np.prod(shape))
    if not count * size:
        return {}
    rows = 1 << (max(1, min(rows_at_once, count, _CHUNK // size)).bit_length() - 1)
    if not shape:
        return {"chunks": (min(count, _CHUNK // 8),), **_CHECKED}
    first = max(1, min(shape[0], _CHUNK * shape[0] // size))
    return {"chunks": (rows, first, *shape[1:]), **(_COMPRESSED if count * size > _MIN_COMPRESSED else _CHECKED)}


def write_columns(file: h5py.Group, columns: Columns) -> None:
    """Write the results of some points (runs) into an empty HDF5 file."""
    write_outcomes(file, columns.outcomes)
    create_columns(file, len(columns.outcomes.numbers), columns.shapes(), len(columns.outcomes.numbers))
    fill_columns(file, slice(None), columns)


def fill_columns(file: h5py.Group, rows: slice, columns: Columns) -> None:
    """Write the results of some points (runs) into a slice of the rows of existing datasets.

    The arrays of ``columns`` must have the shapes of rows of the datasets.
    """
    for path, data in columns.values.items():
        if data.size:
            file[path][rows] = data


def read_outcomes(file: h5py.Group) -> PointOutcomes:
    """Return the outcomes of all points (runs) in a file: number, status, reason and wall time of each point.

    Raises ValueError where their lengths differ.
    """
    texts = [values_of(file, name) for name in ("status", "reason")]
    numbers, counts = values_of(file, "point"), values_of(file, "samples/count")
    exits, times = values_of(file, "exit_status"), np.asarray(values_of(file, "wall_time"), dtype=float)
    for name, values in (("status", texts[0]), ("reason", texts[1]), ("exit_status", exits), ("wall_time", times),
                         ("samples/count", counts)):  # fmt: skip
        if np.ndim(values) != 1 or len(values) != len(numbers):
            raise ValueError(f"{name} has {np.shape(values)} values, expected {len(numbers)} points")
    return PointOutcomes(numbers, texts[0], exits, texts[1], times, counts)


def paths_in(file: h5py.Group) -> list[str]:
    """Return the paths of all columns in a file."""
    return [f"{group}/{name}" for group in GROUPS for name in listed_columns(group_of(file, group))]


def shapes_in(file: h5py.Group) -> Shapes:
    """Return the shape of one row (the value of one point) of each column in a file."""
    return {path: dataset_of(file, path).shape[1:] for path in paths_in(file)}


def read_columns(file: h5py.Group, outcomes: PointOutcomes, rows: NDArray[np.intp]) -> Columns:
    """Return the results of some points (runs) in a file; ``rows`` are their increasing indices in ``outcomes``."""
    first, last = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
    found = {path: values_of(file, path, slice(first, last))[rows - first] for path in paths_in(file)}
    return Columns(outcomes.select_rows(rows), found)


def values_of(group: h5py.Group, name: str, rows: Any = slice(None)) -> NDArray[Any]:
    """Return the values of an HDF5 dataset, or of some of its rows; texts are str.

    Raises ValueError for more values than a file of its size can hold.
    """
    dataset = dataset_of(group, name)
    require_size(dataset, group.file.id.get_filesize())
    return _share_equal_texts(dataset.asstr()[rows]) if dataset.dtype == object else np.asarray(dataset[rows])


def _share_equal_texts(texts: Texts) -> Texts:
    """Return texts in which equal texts are one object, to save memory.

    Most of 10⁵ points (runs) have the same status, and no reason.
    """
    known = dict[Any, Any]()
    if np.ndim(texts):
        texts[...] = [known.setdefault(text, text) for text in texts.tolist()]
    return np.asarray(texts)
