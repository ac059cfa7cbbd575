"""Results of points in files: in an index, in files of some points beside it, or in both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from meanfield.sweeping.columns import (
    Columns,
    PointOutcomes,
    Shapes,
    larger_shapes,
    paths_in,
    put,
    read_columns,
    read_outcomes,
    require_consistent,
    shapes_in,
    values_of,
)
from solvers.io.opening import open_file, require_sound_heaps
from solvers.io.schema import dataset_of, group_of, listed_columns
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    import h5py

WAITING = "waiting"
Rows = NDArray[np.intp]


class ResultFile:
    """Results of points in one file: the index of a sweep, or a file of some points beside it.

    written   columns that have just been written to the file
    outcomes  of the points of the file, without waiting points

    Raises the exceptions of h5py and NumPy for damage, FileError for damaged heaps of texts.
    """

    def __init__(self, path: Path, written: Columns | None = None, identity: str = "") -> None:
        self.path, self.identity = path, identity
        if written is not None:
            self.outcomes = self._outcomes_of_file = written.outcomes
            self._rows_of_file, self.shapes = np.arange(len(self.outcomes.numbers)), written.shapes()
            return
        require_sound_heaps(path)
        with self._opened() as file:
            self._outcomes_of_file, self.identity = read_outcomes(file), str(file.attrs["identity"])
        self._rows_of_file = np.flatnonzero(self._outcomes_of_file.status != WAITING)
        self.outcomes = self._outcomes_of_file.select_rows(self._rows_of_file)

    def require_columns(self) -> None:
        """Raise ValueError unless each column of the file has a numeric row for each run, with consistent shapes."""
        count = len(self._outcomes_of_file.numbers)
        with self._opened() as file:
            for path in paths_in(file):
                column = dataset_of(file, path)
                if column.shape[:1] != (count,) or column.dtype.kind not in "fiu":
                    name = path.partition("/")[2]
                    raise ValueError(f"{name} has {column.shape} values, expected {count} points")
        require_consistent(self.shapes)

    @cached_property
    def shapes(self) -> Shapes:
        """Return the shapes of one row (the value of one point) of each column of the file."""
        with self._opened() as file:
            return shapes_in(file)

    def read(self, rows: Rows) -> Columns:
        """Return the results of some points (runs) in the file; ``rows`` are their indices in ``outcomes``."""
        with self._opened() as file:
            return read_columns(file, self._outcomes_of_file, self._rows_of_file[rows])

    def scalar(self, name: str) -> Floats | None:
        """Return a scalar result (points, ...) of all runs (points of a sweep) in the file; None if it is absent."""
        with self._opened() as file:
            return values_of(file, f"result/{name}")[self._rows_of_file] if name in group_of(file, "result") else None

    def time_series(self, row: int, column: str) -> tuple[Floats, Floats] | list[str]:
        """Return the times and the values over time of a column at one point (run).

        If the column is missing, return the names of all columns instead.
        """
        with self._opened() as file:
            group, index, count = group_of(file, "samples"), self._rows_of_file[row], int(self.outcomes.counts[row])
            if column not in (names := listed_columns(group)):
                return names
            times, values = (values_of(group, name, index)[:count] for name in ("time", column))
            return times, values

    @contextmanager
    def _opened(self) -> Iterator[h5py.File]:
        """Yield the HDF5 file, open for reading within the context."""
        with open_file(self.path, rdcc_nbytes=0) as file:  # each chunk is read once
            yield file


class MergedResults:
    """Results of ``count`` points from several sources; for a point in several sources the last one counts.

    Raises ValueError for a source with unknown points, or with other axes than the sources before it.
    """

    def __init__(self, count: int, sources: Sequence[ResultFile], again: tuple[str, ...] = ()) -> None:
        """Merge the results of a sweep in several files; runs with a status in ``again`` count as waiting."""
        self.count, self.sources = count, tuple(sources)
        self.shapes: Shapes = {}  # shapes that contain the rows of all sources
        self._source = np.full(count, -1)
        self._row = np.zeros(count, dtype=np.intp)
        self.outcomes = PointOutcomes(
            np.arange(count),
            np.full(count, WAITING, dtype=object),
            np.full(count, -1),
            np.full(count, "", dtype=object),
            np.zeros(count),
            np.zeros(count, dtype=np.int64),
        )
        for index in range(len(self.sources)):
            self._add(index, again)

    def add(self, source: ResultFile) -> None:
        """Add a file with results of runs (points of a sweep), which replace earlier results of the same runs."""
        self.sources = (*self.sources, source)
        self._add(len(self.sources) - 1, ())

    def _add(self, index: int, again: tuple[str, ...]) -> None:
        """Merge the points (runs) of source ``index`` into the results, except points with a status in ``again``."""
        self.shapes = larger_shapes(self.shapes, self.sources[index].shapes)
        outcomes = self.sources[index].outcomes
        if len(outcomes.numbers) and not 0 <= outcomes.numbers.min() <= outcomes.numbers.max() < self.count:
            raise ValueError(f"{self.sources[index].path} has points up to {outcomes.numbers.max()} of {self.count}")
        rows = np.flatnonzero(~np.isin(outcomes.status.astype(str), again))
        numbers = outcomes.numbers[rows]
        self._source[numbers], self._row[numbers] = index, rows
        for name in ("status", "exit_status", "reasons", "wall_times", "counts"):
            getattr(self.outcomes, name)[numbers] = getattr(outcomes, name)[rows]

    def require_columns(self) -> None:
        """Raise ValueError unless each column of each file has a numeric row for each run, with consistent shapes."""
        for source in self.sources:
            source.require_columns()

    def block(self, first: int, last: int, shapes: Shapes) -> Columns:
        """Return the results of the points (runs) from ``first`` to before ``last``, padded with NaN to ``shapes``."""
        count = last - first
        values = {path: np.full((count, *shape), np.nan) for path, shape in shapes.items()}
        for index in np.unique(self._source[first:last]):
            if index < 0:
                continue
            selected = np.flatnonzero(self._source[first:last] == index)
            order = selected[np.argsort(self._row[first + selected], kind="stable")]
            found = self.sources[index].read(self._row[first + order])
            for path, column in found.values.items():
                put(values[path], order, column)
        return Columns(self.outcomes.select_rows(slice(first, last)), values)

    def scalar(self, name: str) -> Floats:
        """Return a scalar (points, ...) of all points (runs) of the sweep, NaN where values are missing."""
        values = np.full((self.count, *self.shapes[f"result/{name}"]), np.nan)
        for index, source in enumerate(self.sources):
            numbers = np.flatnonzero(self._source == index)
            if len(numbers) and (column := source.scalar(name)) is not None:
                put(values, numbers, column[self._row[numbers]])
        return values

    def time_series(self, number: int, column: str) -> tuple[Floats, Floats] | list[str]:
        """Return the times and the values over time of a column at one point (run).

        If the column is missing, return the names of all columns instead.
        """
        index = int(self._source[number])
        return [] if index < 0 else self.sources[index].time_series(int(self._row[number]), column)
