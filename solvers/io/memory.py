"""Run in memory: written with the methods of a run file, read with those of a run."""

from __future__ import annotations

import io
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .attributes import (
    WRITERS,
    Attribute,
    check_attributes,
    create_attributes,
    new_writer,
    overwrite_attributes,
    root_attributes,
    writers_as_text,
)
from .checkpoint import Checkpoints, Contents, Scalar, pack, store
from .layout import Column, Measure, Points, Space, Variable
from .lock import Lock
from .reading import Floats, Run, own_texts
from .repair import FileError
from .replacing import replacement
from .schema import EVENTS, TABLES, columns_of
from .series import Series
from .verifying import digest
from .writing import VERSION, disk_errors, image

if TYPE_CHECKING:
    import h5py


@dataclass(frozen=True, eq=False)
class EmptyFile:
    """Run file without rows, as bytes in memory: mesh, units and names. The bytes are computed at first use."""

    columns: Sequence[Column]
    space: Space
    attributes: Mapping[str, Attribute]
    variables: Sequence[Variable]
    measure: Measure | None

    @cached_property
    def image(self) -> bytes:
        """Return the bytes of the run file without rows, computed at the first access."""
        return image(self.columns, self.space, self.attributes, self.variables, self.measure)

    def __getstate__(self) -> dict[str, bytes]:
        """Return the bytes of the file for pickling, without the mesh, whose backend belongs to one process."""
        return {"image": self.image}


@dataclass(frozen=True, eq=False, repr=False)
class InMemoryRun(Run):
    """Run in memory, with the methods of a run that is read from a file.

    values       (snapshots, cells) densities, or (snapshots, n, d) positions
    layout       run file without rows, which holds the mesh, the units and the names
    checkpoint   arrays and scalars of the last checkpoint; None if none was written
    """

    values: Floats
    layout: EmptyFile
    checkpoint: Contents | None = None

    @contextmanager
    def opened(self) -> Iterator[h5py.File]:
        """Open the run file without rows, which holds the mesh and the names, for reading in a ``with`` block."""
        import h5py

        with h5py.File(io.BytesIO(self.layout.image), "r") as file:
            try:
                yield file
            except KeyError as error:
                raise FileError(f"{self.path}: {error.args[0]}") from error

    @property
    def size(self) -> int:
        """Return the memory of the run in bytes."""
        return len(self.layout.image) + self.values.nbytes + sum(values.nbytes for values in self.diagnostics.values())

    def attributes_of(self, diagnostic: str) -> dict[str, Any]:
        """Return the attributes of a diagnostic, from its column; empty for an absent diagnostic."""
        columns = {column.name: column for column in self.layout.columns if column.table == "diagnostics"}
        column = columns.get(diagnostic)
        if column is None:
            return {}
        return {"units": column.units, "long_name": column.long_name or column.name, **dict(column.attributes)}

    def _read(self, name: str, index: Any = None, kinds: str = "fiu") -> Floats:
        """Return the snapshots, or another dataset from the run file without rows; ``index`` selects rows."""
        if name == self.kind:
            return np.array(self.values[... if index is None else index])
        return super()._read(name, index, kinds)

    def write(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the run from memory to a run file, with the checkpoint from which the run resumes.

        Raises FileError if the file exists and ``overwrite`` is false, if another process is writing it, or if the
        write fails.
        """
        path = Path(path)
        lock = Lock(path)
        try:
            if os.path.lexists(path) and not (overwrite and path.is_file()):
                raise FileError(f"{path}: exists already; choose another name, or overwrite it if it is a file")
            replaced = Checkpoints.to_be_replaced(path)
            replaced.require_own()
            with disk_errors(path, "cannot write it"), replacement(path) as new:
                new.write_bytes(self.layout.image)
                self._write_contents(new)
                replaced.remove()
        finally:
            lock.release()

    def _write_contents(self, path: Path) -> None:
        """Write all rows, attributes and the checkpoint of the run to a run file without rows."""
        import h5py

        with h5py.File(path, "r+", libver=VERSION, locking=False) as file:
            Series(file, file, [self.kind]).append(0, list(self.times), {self.kind: self.values})
            group = file["diagnostics"]
            Series(file, group, group.attrs["columns"]).append(0, list(self.sample_times), self.diagnostics)
            if columns := columns_of(file, EVENTS):
                Series(file, file[EVENTS], columns).append(0, list(self.events["time"]), self.events)
            create_attributes(file, {**self.attributes, WRITERS: writers_as_text(self.writers)})
            texts = own_texts(file)
            checksum = digest(texts, self.times, self.sample_times, self.diagnostics, self.events)
            overwrite_attributes(file, {"digest": checksum})
            if self.checkpoint is not None:
                store(file, pack(*self.checkpoint, 1, self.writers[-1].identity))


class InMemoryWriter:
    """Writer of a run in memory, with the methods of `RunFile`; its method ``run`` returns the run.

    name        path of the run, which names no file until the run is written
    snapshots   number of snapshots written
    samples     number of samples written
    events      number of events written
    """

    def __init__(
        self,
        name: str,
        space: Space,
        columns: Sequence[Column] = (),
        attributes: Mapping[str, Attribute] | None = None,
        variables: Sequence[Variable] = (),
        *,
        measure: Measure | None = None,
    ) -> None:
        check_attributes(attributes or {})
        self.path, self.snapshots, self.samples, self.events = Path(name), 0, 0, 0
        self.checkpoints = MemoryCheckpoints()
        self._layout = EmptyFile(tuple(columns), space, dict(attributes or {}), tuple(variables), measure)
        self._attributes, self._writer = root_attributes(space, attributes or {}), new_writer()
        shapes = {table: {column.name: column.shape for column in columns if column.table == table} for table in TABLES}
        self._space, self._columns, self._event_columns = space, shapes["diagnostics"], shapes[EVENTS]
        self._events: list[dict[str, Floats]] = []
        self._times: list[float] = []
        self._values: list[Floats] = []
        self._sample_times: list[float] = []
        self._rows: dict[str, list[Floats]] = {name: [] for name in self._columns}  # consecutive blocks (samples, ...)

    def write_snapshot(self, t: float, values: ArrayLike, *, may_wait: bool = True) -> None:
        """Store a copy of a snapshot at the time ``t``: a density (cells,) or positions (n, d).

        ``may_wait`` has no effect.
        """
        self._times.append(float(t))
        self._values.append(np.array(values, dtype=np.float64))
        self.snapshots += 1

    def write_sample(self, t: float, values: Mapping[str, ArrayLike]) -> None:
        """Store a copy of one row of diagnostics at the time ``t``: the value of each column by name."""
        self.write_samples([t], {name: np.asarray(values[name])[None] for name in self._rows})

    def write_samples(self, times: Sequence[float], values: Mapping[str, ArrayLike]) -> None:
        """Store copies of several rows of diagnostics: the times, and (times, …) values of each column by name."""
        self._sample_times += map(float, times)
        for name, rows in self._rows.items():
            rows.append(np.array(values[name], dtype=np.float64))
        self.samples += len(times)

    def write_event(self, t: float, values: Mapping[str, ArrayLike]) -> None:
        """Store a copy of one row of the table of events at the time ``t``: the value of each column by name."""
        self._events.append({name: np.array(value, dtype=np.float64) for name, value in {**values, "time": t}.items()})
        self.events += 1

    def flush(self) -> None:
        """Do nothing: rows in memory need not be written to a file."""

    sync = flush_if_due = flush

    def rows_until(self, time: float) -> tuple[int, int]:
        """Return the number of snapshots and the number of samples with times up to ``time``."""
        return bisect_right(self._times, time), bisect_right(self._sample_times, time)

    def update(self, **attributes: Attribute) -> None:
        """Set attributes of the run; raise ValueError for reserved names and values that cannot be stored."""
        check_attributes(attributes)
        self._attributes.update(attributes)

    def close(self, **attributes: Attribute) -> None:
        """Set attributes at the end of the run; ``stop_reason`` is "finished" by default."""
        self.update(**{"stop_reason": "finished", **attributes})

    def run(self) -> InMemoryRun:
        """Return the run in memory, with copies of all rows written so far."""
        times, sample_times = np.array(self._times), np.array(self._sample_times)
        diagnostics = {
            name: np.concatenate([np.empty((0, *self._columns[name])), *rows]) for name, rows in self._rows.items()
        }
        events = {
            name: np.array([event[name] for event in self._events]).reshape(-1, *shape)
            for name, shape in (self._event_columns and {"time": (), **self._event_columns}).items()
        }
        space, points = self._space, isinstance(self._space, Points)
        shape = (len(space.weights), space.dimension) if isinstance(space, Points) else (space.cells,)
        return InMemoryRun(
            path=self.path,
            attributes=dict(self._attributes),
            times=times,
            sample_times=sample_times,
            diagnostics=diagnostics,
            events=events,
            manifold=space.manifold,
            resolution=int(self._attributes["resolution"]),
            ring_cells=np.empty(0, np.int32) if points else space.ring_cells,  # type: ignore[union-attr]
            writer=None,
            writers=(self._writer,),
            values=np.array(self._values).reshape(self.snapshots, *shape),
            layout=self._layout,
            checkpoint=self.checkpoints.last,
        )


class MemoryCheckpoints:
    """Last checkpoint of a run in memory: a state from which the run resumes exactly, or None."""

    def __init__(self) -> None:
        self.last: Contents | None = None

    def write(self, arrays: Mapping[str, NDArray[Any]], scalars: Mapping[str, Scalar]) -> None:
        """Store a copy of a state, arrays and scalars by name, in place of the last checkpoint."""
        self.last = ({name: np.array(values) for name, values in arrays.items()}, dict(scalars))
