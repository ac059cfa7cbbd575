"""Run file: snapshots of the density and a table of diagnostics over time, in HDF5 with the layout of netCDF-4.

The whole layout is created before the first snapshot. HDF5 is then in its single-writer-multiple-readers mode, so that
the file can be read while it grows and stays valid if the writer is killed. A snapshot is committed by its time, which
is written last, and so is a sample of the diagnostics.
"""

from __future__ import annotations

import math
import os
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from .attributes import (
    WRITERS,
    Attribute,
    Writer,
    check_attributes,
    new_writer,
    overwrite_attributes,
    own_attributes,
    writers_as_text,
)
from .checkpoint import Checkpoints, store
from .layout import Column, Measure, Space, Variable
from .lock import Lock
from .reading import Floats, Run, own_texts, read
from .repair import FileError, reason, repair
from .replacing import replacement
from .schema import EVENTS, SNAPSHOT, STOP_REASONS, columns_of
from .series import Series
from .verifying import digest
from .writing import discard, disk_errors, image, open_shared, replace_attributes

if TYPE_CHECKING:
    import h5py

__all__ = ["STOP_REASONS", "Attribute", "Column", "FileError", "Run", "RunFile", "read"]

FLUSH_EVERY = 1.0  # seconds that rows are buffered at most, so that a row in each step costs little
MAX_WAITING = 1 << 22  # bytes of buffered snapshots
Waiting = tuple[list[float], dict[str, Floats]]  # times of buffered rows, and (times, ...) of each dataset


class RunFile:
    """Run file that is open for writing: snapshots of fields, and a table of diagnostics over time.

    Files are opened by :meth:`create` or :meth:`append`, and closed by :meth:`close` or at the end of a ``with`` block.
    :func:`~solvers.record` writes a solution to such a file. Other processes may read an open file. The file stays
    valid if the writer is killed. Every method raises FileError for a full disk or a failed write; the file is then
    valid up to its last snapshot.

    Parameters
    ----------
    path : Path
        Path of the file.
    lock : Lock
        Lock that this writer holds.
    file : h5py.File
        File, open for writing with concurrent readers.
    writers : sequence of Writer
        All writers of the file, this one last.

    Attributes
    ----------
    snapshots, samples, events : int
        Numbers of rows, including those that are buffered in memory.
    checkpoints : Checkpoints
        Checkpoints beside the file.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import Column, RunFile, circle, read
    >>> mesh = circle(16)
    >>> with RunFile.create("steady.h5", mesh, [Column("mass")], overwrite=True) as file:
    ...     file.write_sample(0.0, {"mass": 1.0})
    ...     file.write_snapshot(0.0, np.full(16, 1 / (2 * np.pi)))
    >>> run = read("steady.h5")
    >>> run.diagnostics["mass"].tolist(), round(float(run.density(0) @ run.cell_areas), 6)
    ([1.0], 1.0)
    """

    def __init__(self, path: Path, lock: Lock, file: h5py.File, writers: Sequence[Writer]) -> None:
        self.path, self._lock = path, lock
        self._adopt(file)
        self.snapshots, self.samples = self._snapshots.committed, self._samples.committed
        self.events = 0 if self._events is None else self._events.committed
        self._waiting: list[Waiting] = []
        self._waiting_snapshots: list[Waiting] = []
        self._flushed = -math.inf  # the first row of a run is written at once
        self.checkpoints = Checkpoints(path, writers)

    @classmethod
    def create(
        cls,
        path: str | Path,
        space: Space,
        columns: Sequence[Column] = (),
        attributes: Mapping[str, Attribute] | None = None,
        variables: Sequence[Variable] = (),
        *,
        measure: Measure | None = None,
        fields: Sequence[str] = (),
        is_complex: bool = False,
        overwrite: bool = False,
    ) -> Self:
        """Create a new file, with all its datasets empty.

        An existing file is replaced, and its checkpoints are removed, only after the new file is complete.

        Parameters
        ----------
        path : str or Path
            Path of the file.
        space : Mesh or Points
            Mesh of the snapshots, or weighted points.
        columns : sequence of Column, optional
            Columns of the tables of diagnostics and events.
        attributes : mapping, optional
            Attributes by name: texts, numbers or lists of numbers.
        variables : sequence of Variable, optional
            Further arrays, stored with the mesh.
        measure : Measure, optional
            Reference measure of densities; by default the surface area on a circle or a sphere, else the cell sizes.
        fields : sequence of str, optional
            Names of the fields on the cells. The first is stored as the dataset "density", others by their names.
        is_complex : bool, optional
            Whether the fields are complex. They are stored in the compound type of h5netcdf and netCDF4.
        overwrite : bool, optional
            Whether an existing file is replaced.

        Returns
        -------
        RunFile
            File without rows.

        Raises
        ------
        FileError
            If the file exists and ``overwrite`` is false, if another process is writing it, or if the folder cannot be
            written.
        ValueError
            If columns, attributes or names of fields contradict each other or cannot be stored.
        """
        path = Path(path)
        attributes = {**(attributes or {}), **({"fields": ",".join(fields)} if fields else {})}
        check_attributes(attributes)
        writers = (new_writer(),)
        attributes = {**attributes, WRITERS: writers_as_text(writers)}
        start = image(columns, space, attributes, variables, measure, fields[1:], is_complex)
        lock = Lock(path)
        with lock.released_on_error():
            if os.path.lexists(path) and not (overwrite and path.is_file()):
                raise FileError(f"{path}: exists already; choose another name, or overwrite it if it is a file")
            replaced = Checkpoints.to_be_replaced(path)
            replaced.require_own()
            with disk_errors(path, "cannot create it"):
                with replacement(path, overwrite=overwrite) as new:
                    new.write_bytes(start)
                    replaced.remove()
                return cls(path, lock, open_shared(path), writers)

    @classmethod
    def append(
        cls,
        path: str | Path,
        *,
        snapshots: int | None = None,
        samples: int | None = None,
        events: int | None = None,
        attributes: Mapping[str, Attribute] | None = None,
    ) -> Self:
        """Continue an existing file; that of a killed writer is repaired first.

        Parameters
        ----------
        path : str or Path
            Path of the file.
        snapshots, samples, events : int, optional
            Numbers of rows to keep; later rows are dropped. By default all are kept.
        attributes : mapping, optional
            Attributes to set or replace: texts, numbers or lists of numbers.

        Returns
        -------
        RunFile
            File with the attribute ``stop_reason`` = "running".

        Raises
        ------
        FileError
            If the file is missing, is no run file, holds fewer rows, or is being written by another process.
        ValueError
            If an attribute is reserved or cannot be stored.
        """
        path = Path(path)
        check_attributes(attributes or {})
        if not path.is_file():
            raise FileError(f"{path}: no such file")
        lock = Lock(path)
        with lock.released_on_error():
            with disk_errors(path, "cannot write it"):
                repair(path)
            run = read(path)  # raises FileError for other files
            run.require_growing()
            Checkpoints(path, run.writers).require_own()
            counts = (
                _row_count(run, "snapshots", snapshots, run.snapshots),
                _row_count(run, "samples", samples, len(run.sample_times)),
            )
            kept_events = _row_count(run, "events", events, len(run.events.get("time", ())))
            with disk_errors(path, "cannot write it"):
                # without a digest: a killed writer would leave texts that differ from the digest
                writers = (*run.writers, new_writer(*counts))
                replace_attributes(path, {**(attributes or {}), WRITERS: writers_as_text(writers), "digest": ""})
                self = cls(path, lock, open_shared(path), writers)
            with self._convert_write_errors():
                self._set({"stop_reason": "running", "message": "", "digest": ""})
                self._cut(*counts, kept_events)
            return self

    def write_snapshot(self, t: float, values: ArrayLike, *, may_wait: bool = False) -> None:
        """Write a snapshot, and all buffered rows.

        Parameters
        ----------
        t : float
            Time, later than that of the last snapshot.
        values : (cells,), (fields, cells) or (n, d) array
            Density with respect to the measure of the file, fields, or positions of points.
        may_wait : bool, optional
            Whether a copy of the values may be buffered for up to a second, like a sample.

        Raises
        ------
        ValueError
            If the values have another shape, or the time is not finite or not later than the last.
        """
        _ = self._handle
        rows = [values] if len(self._kinds) == 1 else list(np.asarray(values))
        if len(rows) != len(self._kinds):
            raise ValueError(f"{len(rows)} fields: expected {len(self._kinds)}")
        fields = zip(self._kinds, rows, strict=True)
        row = self._snapshots.rows([t], {kind: np.asarray(field)[None] for kind, field in fields})
        self._waiting_snapshots.append(([float(t)], {name: value.copy() for name, value in row.items()}))
        self.snapshots += 1
        size = sum(value.nbytes for value in row.values()) * len(self._waiting_snapshots)
        if may_wait and size < MAX_WAITING:
            self.flush_if_due()
        else:
            self.flush()

    def write_sample(self, t: float, values: Mapping[str, ArrayLike]) -> None:
        """Write a row of diagnostics, which is buffered for up to a second or until :meth:`flush`.

        Parameters
        ----------
        t : float
            Time, later than that of the last row.
        values : mapping
            Value of each column by name.

        Raises
        ------
        ValueError
            If a column is missing, unknown or of another shape, or the time is not finite or not later than the last.
        """
        self.write_samples([t], {name: np.asarray(value, dtype=np.float64)[None] for name, value in values.items()})

    def write_samples(self, times: Sequence[float], values: Mapping[str, ArrayLike]) -> None:
        """Write several rows of diagnostics, buffered like those of :meth:`write_sample`.

        Parameters
        ----------
        times : sequence of float
            Times in increasing order.
        values : mapping
            Values of each column by name, (times, …) arrays.

        Raises
        ------
        ValueError
            If a column is missing, unknown or of another shape, or a time is not finite or not later than the last.
        """
        _ = self._handle
        rows = self._samples.rows(times, values)
        self._waiting.append(([float(t) for t in times], {name: value.copy() for name, value in rows.items()}))
        self.samples += len(times)
        self.flush_if_due()

    def write_event(self, t: float, values: Mapping[str, ArrayLike]) -> None:
        """Write a row of events at once; a file without a table of events is unchanged.

        Parameters
        ----------
        t : float
            Time, not before that of the last event; several events may have one time.
        values : mapping
            Value of each column by name.

        Raises
        ------
        ValueError
            If a column is missing, unknown or of another shape, or the time is not finite or before the last.
        """
        if self._events is not None:
            self.flush()
            rows = self._events.rows([t], {name: np.asarray(value)[None] for name, value in values.items()})
            with self._convert_write_errors():
                self._events.append(self.events, [t], rows)
            self.events += 1

    def flush_if_due(self) -> None:
        """Write the buffered rows to the file if the last flush was more than a second ago."""
        if clock.monotonic() - self._flushed > FLUSH_EVERY:
            self.flush()

    def flush(self) -> None:
        """Write the buffered rows to the file: samples, then snapshots.

        A flush must precede a checkpoint that refers to the rows.
        """
        self._flushed = clock.monotonic()
        with self._convert_write_errors():
            self._write_buffered(self._samples, self._waiting, self.samples)
            self._write_buffered(self._snapshots, self._waiting_snapshots, self.snapshots)

    def _write_buffered(self, series: Series, waiting: list[Waiting], count: int) -> None:
        """Append buffered rows to their datasets, and empty the buffer.

        series    datasets of the rows
        waiting   buffer: blocks of times and values
        count     number of rows in the file and in the buffer together
        """
        if waiting:
            times, rows = [time for some, _ in waiting for time in some], [values for _, values in waiting]
            columns = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
            series.append(count - len(times), times, columns)
            waiting.clear()

    def sync(self) -> None:
        """Write the buffered rows, and wait until the disk holds all data, which then survives a power failure."""
        self.flush()
        with self._convert_write_errors():
            os.fsync(self._handle.id.get_vfd_handle())

    def rows_until(self, time: float) -> tuple[int, int]:
        """Return the numbers of snapshots and samples up to a time, after a flush.

        Parameters
        ----------
        time : float
            Last time that counts.

        Returns
        -------
        tuple of int
            Number of snapshots, and number of samples.
        """
        self.flush()
        return self._snapshots.rows_until(time), self._samples.rows_until(time)

    def update(self, **attributes: Attribute) -> None:
        """Overwrite attributes in place, while others may read the file.

        Parameters
        ----------
        **attributes : Any
            New values of numbers that :meth:`create` has set, of ``stop_reason`` and of ``message``.

        Raises
        ------
        ValueError
            If the file lacks an attribute, or the new value has another type or shape.
        """
        with self._convert_write_errors():
            self._set(attributes)

    def close(self, **attributes: Attribute) -> None:
        """Write the buffered rows and the reason of the end, and close the file.

        The last checkpoint beside the file moves into the file. A second call does nothing. After a failed write the
        attributes are recorded nevertheless if the disk has room.

        Parameters
        ----------
        **attributes : Any
            New values as for :meth:`update`. ``stop_reason`` is "finished" by default, or "interrupted" or "failed".
        """
        if self._lock.released:
            return
        try:
            if stored := self._file is not None:
                self._store_checkpoint()
            else:
                self._waiting.clear()  # the failed write may have been of these rows
                with disk_errors(self.path, "cannot record how the run ended"):
                    repair(self.path)
                    self._adopt(open_shared(self.path))
                self.samples = min(self.samples, self._samples.committed)
                self.snapshots = min(self.snapshots, self._snapshots.committed)
                self.events = 0 if self._events is None else min(self.events, self._events.committed)
            self.flush()
            with self._convert_write_errors():
                self._cut(self.snapshots, self.samples, self.events)  # drops rows that an interrupt left incomplete
                self._set({"stop_reason": "finished", **attributes})
                self._set({"digest": self._digest()})
            self._abandon()  # all data is written; HDF5's own close writes more, and crashes on failure
            with disk_errors(self.path, "cannot close it"):
                repair(self.path)
                if stored:
                    self.checkpoints.remove()
        finally:
            if self._file is not None:
                self._abandon()
            self._lock.release()

    def _store_checkpoint(self) -> None:
        """Copy the last checkpoint beside the run file, if there is one, into the file, and flush it to the disk."""
        if (data := self.checkpoints.latest_beside()) is not None:
            with self._convert_write_errors():
                store(self._handle, data)
                os.fsync(self._handle.id.get_vfd_handle())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Close the file at the end of a ``with`` block, and record in ``stop_reason`` how the block ended.

        The attribute is "finished" without an exception, "interrupted" for a KeyboardInterrupt or a failed write, and
        "failed" for any other exception.
        """
        if error is None:
            self.close()
        elif isinstance(error, KeyboardInterrupt):
            self.close(stop_reason="interrupted", message="interrupted")
        elif isinstance(error, FileError):
            with suppress(FileError):  # no room either: the file is left like that of a killed writer
                self.close(stop_reason="interrupted", message=str(error))
        else:
            self.close(stop_reason="failed", message=f"{type(error).__name__}: {error}")

    @property
    def _handle(self) -> h5py.File:
        """Return the open HDF5 file; raise FileError if it is closed, or was abandoned after a failed write."""
        if self._file is None:
            raise FileError(f"{self.path}: closed, or abandoned after a failed write")
        return self._file

    def _adopt(self, file: h5py.File) -> None:
        """Use ``file`` for all further writes; it is open with concurrent readers (HDF5's mode SWMR)."""
        self._file: h5py.File | None = file
        others = str(own_attributes(file).get("fields", "")).split(",")[1:]
        self._kinds = [SNAPSHOT.get(str(file.attrs["manifold"]), "density"), *others]  # datasets of a snapshot
        group = file["diagnostics"]
        self._snapshots = Series(file, file, self._kinds)
        self._samples = Series(file, group, group.attrs["columns"])
        columns = columns_of(file, EVENTS)
        self._events = Series(file, file[EVENTS], columns, repeats=True) if columns else None

    @contextmanager
    def _convert_write_errors(self) -> Iterator[None]:
        """Convert a failed write in the ``with`` block to a FileError, and close the file without a second attempt.

        Snapshots in the buffer are dropped.
        """
        try:
            yield
        except (OSError, RuntimeError) as error:  # h5py raises RuntimeError for a failed flush
            self._abandon()
            self.snapshots -= len(self._waiting_snapshots)
            self._waiting_snapshots.clear()
            good = f"the file is valid up to its {self.snapshots} snapshots"
            raise FileError(f"{self.path}: cannot write: {reason(error)}; {good}") from error

    def _abandon(self) -> None:
        """Close the HDF5 file without writing the data that HDF5 has buffered."""
        discard(self._handle)
        self._file = None

    def _cut(self, snapshots: int, samples: int, events: int) -> None:
        """Drop all rows after these numbers of snapshots, samples and events."""
        self._snapshots.cut(snapshots)
        self._samples.cut(samples)
        if self._events is not None:
            self._events.cut(events)
        self.snapshots, self.samples, self.events = snapshots, samples, events

    def _digest(self) -> str:
        """Return the checksum of the texts, times, diagnostics and events in the file."""
        samples, events = self._samples, self._events
        of_events = {} if events is None else {"time": events.times, **events.values()}
        return digest(own_texts(self._handle), self._snapshots.times, samples.times, samples.values(), of_events)

    def _set(self, attributes: Mapping[str, Attribute]) -> None:
        """Overwrite attributes of the file in place, and flush the file."""
        overwrite_attributes(self._handle, attributes)
        self._handle.flush()


def _row_count(run: Run, what: str, requested: int | None, stored: int) -> int:
    """Return the number of rows to keep: ``requested``, or ``stored`` if that is None.

    what   name of the rows in the message
    Raises FileError unless 0 ≤ requested ≤ stored.
    """
    if requested is not None and not 0 <= requested <= stored:
        raise FileError(f"{run.path}: holds {stored} {what}, cannot continue after {requested}")
    return stored if requested is None else requested
