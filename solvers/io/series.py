"""Rows that grow over time in a run file, each committed by its time, which is written last."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .reading import Floats, read_times

if TYPE_CHECKING:
    import h5py


class Series:
    """Datasets ``names`` of a file's ``group``, with one row for each time; they grow with the dataset ``time``.

    repeats   whether several rows may have equal times

    Failed writes raise OSError or RuntimeError, like h5py.
    """

    def __init__(self, file: h5py.File, group: h5py.Group, names: Sequence[str], *, repeats: bool = False) -> None:
        self._file, self._times, self._repeats = file, group["time"], repeats
        self._last = self._last_committed_time()  # time of the last row, which may be buffered
        self._columns = {name: group[name] for name in names}
        self._shapes = {name: dataset.shape[1:] for name, dataset in self._columns.items()}
        self._types = {name: dataset.dtype for name, dataset in self._columns.items()}

    @property
    def committed(self) -> int:
        """Return the number of complete rows in the file, those whose time has been written."""
        return len(read_times(self._times))

    @property
    def times(self) -> Floats:
        """Return the times (rows,) of the complete rows in the file."""
        return read_times(self._times)

    def rows_until(self, time: float) -> int:
        """Return the number of complete rows with times up to ``time``."""
        return int(np.searchsorted(self.times, time, side="right"))

    def values(self) -> dict[str, Floats]:
        """Return the complete rows (rows, …) of each dataset, by the name of the dataset."""
        return {name: column[: self.committed] for name, column in self._columns.items()}

    def rows(self, times: Sequence[float], values: Mapping[str, ArrayLike]) -> dict[str, Floats]:
        """Check the values (times, …) of the next rows, and return them as arrays by the names of the datasets.

        Raises ValueError for a missing or unknown name, a value of another shape, a time that is not finite (it would
        mark an absent row), and a time that does not increase; with ``repeats`` equal times are accepted.
        """
        if values.keys() != self._columns.keys():
            raise ValueError(f"a sample with columns {sorted(values)}, expected {sorted(self._columns)}")
        if lost := [time for time in times if not math.isfinite(time)]:
            raise ValueError(f"time: {lost[0]!r}, expected a finite number")
        for before, time in pairwise((self._last, *map(float, times))):
            if time < before or (time == before and not self._repeats):
                expected = f"from {before!r} on" if self._repeats else f"after {before!r}"
                raise ValueError(f"time: {time!r}, expected a time {expected}")
        for name, value in values.items():
            if np.iscomplexobj(value) and self._types[name].kind != "c":
                raise ValueError(f"{name}: complex numbers, expected real ones")
        rows = {name: np.asarray(value, dtype=self._types[name]) for name, value in values.items()}
        for name, value in rows.items():
            if value.shape != (len(times), *self._shapes[name]):
                raise ValueError(f"{name}: shape {value.shape[1:]}, expected {self._shapes[name]}")
        self._last = float(times[-1]) if len(times) else self._last
        return rows

    def append(self, start: int, times: Sequence[float], rows: Mapping[str, Floats]) -> None:
        """Write rows to each dataset from row number ``start`` on, and then their times, which make the rows valid."""
        for name, dataset in self._columns.items():
            _append(dataset, start, rows[name])
        self._file.flush()
        _append(self._times, start, np.array(times))
        self._file.flush()

    def cut(self, count: int) -> None:
        """Drop all rows from row number ``count`` on.

        The times are dropped first, since a row without a time does not count.
        """
        for dataset in (self._times, *self._columns.values()):
            if len(dataset) != count:
                dataset.resize(count, axis=0)
                self._file.flush()
        self._last = self._last_committed_time()

    def _last_committed_time(self) -> float:
        """Return the time of the last complete row; −∞ if there is none."""
        times = self.times
        return float(times[-1]) if len(times) else -math.inf


def _append(dataset: h5py.Dataset, start: int, rows: NDArray[Any]) -> None:
    """Write rows to a dataset from row number ``start`` on, as its last rows."""
    dataset.resize(start + len(rows), axis=0)
    dataset[start:] = rows
