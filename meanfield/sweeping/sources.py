"""Where results of points are kept: an index, files of some points beside it, also those of older versions."""

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
    Heads,
    Shapes,
    columns_in,
    columns_of,
    put,
    read_columns,
    read_heads,
    shapes_in,
    values_of,
)
from meanfield.sweeping.point import Result
from meanfield.sweeping.scalars import shapes_of_scalars
from solvers.io.heaps import require_sound_heaps
from solvers.io.opening import open_file
from solvers.io.schema import dataset_of, group_of
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    import h5py

WAITING = "waiting"
OLD_POINTS = "points"  # group of version 1, which has no dataset "point"; elsewhere it is a user's
Rows = NDArray[np.intp]


class Source:
    """Results in a file. Raises what h5py and NumPy raise for damage, FileError for damaged heaps of texts.

    written   what has just been written there
    heads     of its points; those that wait are left out
    """

    def __init__(self, path: Path, written: Columns | None = None, identity: str = "") -> None:
        self.path, self.identity, self._is_old_index, self._is_old_point = path, identity, False, False
        if written is not None:
            self.heads = self._heads_of_file = written.heads
            self._rows_of_file, self.shapes = np.arange(len(self.heads.numbers)), written.shapes()
            return
        require_sound_heaps(path)
        with self._opened() as file:
            self._is_old_index = OLD_POINTS in file and "point" not in file  # a group for each point
            self._is_old_point = "status" in file.attrs  # one point alone
            if self._is_old_point:
                number = int(path.stem.partition("-")[0])
                self._columns = columns_of({number: read_old_point(file)})
                self.heads, self.identity = self._columns.heads, str(file.attrs["identity"])
                return
            heads, self.identity = read_heads(file), str(file.attrs["identity"])
            if self._is_old_index:
                points = group_of(file, "points")
                for name in points:
                    group = group_of(points, name)
                    heads.counts[int(name)] = len(dataset_of(group, "time")) if "time" in group else 0
            self._rows_of_file = np.flatnonzero(heads.status != WAITING)
            self._heads_of_file, self.heads = heads, heads.some(self._rows_of_file)

    def require_columns(self) -> None:
        """Raise ValueError for columns without a row of numbers for each point, or with shapes that contradict."""
        if self._is_old_point:
            return
        count = len(self._heads_of_file.numbers)
        with self._opened() as file:
            for group in ("result", "samples"):
                for name in columns_in(group_of(file, group)) if group in file else []:
                    column = dataset_of(file, f"{group}/{name}")
                    if column.shape[:1] != (count,) or column.dtype.kind not in "fiu":
                        raise ValueError(f"{name} has {column.shape} values, expected {count} points")
        self.shapes.require_consistent()

    def require_old_points(self) -> None:
        """Read each point of an index of version 1, which has no columns that could be checked by their shapes."""
        if self._is_old_index:
            with self._opened() as file:
                for number in self.heads.numbers:
                    read_old_point(group_of(file, f"points/{number:04}"))

    @cached_property
    def shapes(self) -> Shapes:
        """Shapes of one row."""
        if self._is_old_point:
            return self._columns.shapes()
        with self._opened() as file:
            if not self._is_old_index:
                return shapes_in(file)
            shapes = Shapes(shapes_in(file).scalars, {})
            points = group_of(file, "points")
            for group in (group_of(points, number) for number in points):
                tables = {name: dataset_of(group, name).shape for name in group}
                shapes |= Shapes(shapes_of_scalars(tables), tables)  # the file's names of scalars may be others
            return shapes

    def read(self, rows: Rows) -> Columns:
        """Columns of some of the points of ``heads``, by their places there."""
        if self._is_old_point:
            return self._columns.rows(rows)
        with self._opened() as file:
            if not self._is_old_index:
                return read_columns(file, self._heads_of_file, self._rows_of_file[rows])
            numbers = self.heads.numbers[rows]
            groups = {int(number): group_of(file, f"points/{number:04}") for number in numbers}
            return columns_of({number: read_old_point(group) for number, group in groups.items()})

    def scalar(self, name: str) -> Floats | None:
        """(points, ...) of all its points, None where it has no such scalar."""
        if self._is_old_point:
            return self._columns.scalars.get(name)
        with self._opened() as file:
            return values_of(file, f"result/{name}")[self._rows_of_file] if name in group_of(file, "result") else None

    def over_time(self, row: int, column: str) -> tuple[Floats, Floats] | list[str]:
        """Times and a column of one point; the names of its columns where it has no such one."""
        if self._is_old_point:
            tables = {name: values[row] for name, values in self._columns.tables.items()}
            return (tables["time"], tables[column]) if column in tables else [*tables]
        with self._opened() as file:
            if self._is_old_index:
                name = f"points/{self.heads.numbers[row]:04}"
                group = group_of(file, name) if name in file else {}
                return (values_of(group, "time"), values_of(group, column)) if column in group else [*group]
            group, index, count = group_of(file, "samples"), self._rows_of_file[row], int(self.heads.counts[row])
            if column not in columns_in(group):
                return columns_in(group)
            times, values = (values_of(group, name, index)[:count] for name in ("time", column))
            return times, values

    @contextmanager
    def _opened(self) -> Iterator[h5py.File]:
        with open_file(self.path, rdcc_nbytes=0) as file:  # chunks are read once
            yield file


def read_old_point(group: h5py.Group) -> Result:
    """A result as versions before 2 of the index had it: a group for its tables, and attributes."""
    about = group.attrs
    return Result(
        str(about["status"]),
        int(about["exit_status"]),
        str(about["reason"]),
        float(about["wall_time"]),
        {name: np.asarray(values_of(group, name), dtype=float) for name in group},
    )


class Merged:
    """Results of ``count`` points from several sources; of a point in several the last one counts.

    Raises ValueError for a source with points that are not there, or with other axes than those before it.
    """

    def __init__(self, count: int, sources: Sequence[Source], again: tuple[str, ...] = ()) -> None:
        """``again``: statuses of points that count as waiting."""
        self.count, self.sources = count, tuple(sources)
        self.shapes = Shapes({}, {})  # what the rows of all sources fit in
        self._source = np.full(count, -1)
        self._row = np.zeros(count, dtype=np.intp)
        self.heads = Heads(
            np.arange(count),
            np.full(count, WAITING, dtype=object),
            np.full(count, -1),
            np.full(count, "", dtype=object),
            np.zeros(count),
            np.zeros(count, dtype=np.int64),
        )
        for index in range(len(self.sources)):
            self._add(index, again)

    def add(self, source: Source) -> None:
        """One more, whose points count."""
        self.sources = (*self.sources, source)
        self._add(len(self.sources) - 1, ())

    def _add(self, index: int, again: tuple[str, ...]) -> None:
        self.shapes |= self.sources[index].shapes
        heads = self.sources[index].heads
        if len(heads.numbers) and not 0 <= heads.numbers.min() <= heads.numbers.max() < self.count:
            raise ValueError(f"{self.sources[index].path} has points up to {heads.numbers.max()} of {self.count}")
        rows = np.flatnonzero(~np.isin(heads.status.astype(str), again)) if again else np.arange(len(heads.numbers))
        numbers = heads.numbers[rows]
        self._source[numbers], self._row[numbers] = index, rows
        for name in ("status", "exit_status", "reasons", "wall_times", "counts"):
            getattr(self.heads, name)[numbers] = getattr(heads, name)[rows]

    def require_columns(self) -> None:
        """Raise ValueError for columns without a row of numbers for each point, or with shapes that contradict."""
        for source in self.sources:
            source.require_columns()

    def block(self, first: int, last: int, shapes: Shapes) -> Columns:
        """The columns of the points from ``first`` to before ``last``, NaN where there is nothing."""
        count = last - first
        scalars, tables = (
            {name: np.full((count, *shape), np.nan) for name, shape in group.items()}
            for group in (shapes.scalars, shapes.tables)
        )
        for index in np.unique(self._source[first:last]):
            if index < 0:
                continue
            selected = np.flatnonzero(self._source[first:last] == index)
            order = selected[np.argsort(self._row[first + selected], kind="stable")]
            found = self.sources[index].read(self._row[first + order])
            for into, values in ((scalars, found.scalars), (tables, found.tables)):
                for name, column in values.items():
                    put(into[name], order, column)
        return Columns(self.heads.some(slice(first, last)), scalars, tables)

    def scalar(self, name: str) -> Floats:
        """(points, ...) of one name, NaN where there is none."""
        values = np.full((self.count, *self.shapes.scalars[name]), np.nan)
        for index, source in enumerate(self.sources):
            numbers = np.flatnonzero(self._source == index)
            if len(numbers) and (column := source.scalar(name)) is not None:
                put(values, numbers, column[self._row[numbers]])
        return values

    def over_time(self, number: int, column: str) -> tuple[Floats, Floats] | list[str]:
        """Times and a column of one point; the names of its columns where it has no such one."""
        index = int(self._source[number])
        return [] if index < 0 else self.sources[index].over_time(int(self._row[number]), column)
