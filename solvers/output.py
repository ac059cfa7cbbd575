"""The run file: snapshots of the density and a table of diagnostics over time, in HDF5 laid out as netCDF-4.

The whole layout is created before the first snapshot; from then on HDF5 is in its single-writer-multiple-readers mode,
so that the file can be read while it grows and stays sound wherever the writer is killed. A snapshot exists once its
time is written, which is the last thing that happens to it; the same holds for a sample of the diagnostics.
"""

from __future__ import annotations

import os
import time as clock
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checkpoint import Checkpoints
from .mesh import Mesh
from .reading import SCHEMA_VERSION, Run, read, read_times
from .repair import FileError, Lock, reason, repair

if TYPE_CHECKING:
    import h5py

__all__ = ["STOP_REASONS", "Attribute", "Column", "FileError", "Run", "RunFile", "read"]

Attribute = str | int | float | Sequence[int] | Sequence[float]
STOP_REASONS = ("running", "finished", "interrupted", "failed")
RESERVED = ("schema_version", "manifold", "resolution")
VERSION = ("v110", "v110")  # the oldest format with SWMR: what older readers can still open
FLUSH_EVERY = 1.0  # seconds: samples wait in memory this long at most, so that one a step costs next to nothing
CHUNK_BYTES = 8192  # of a diagnostics column: small, for a chunk is rewritten as it fills


@dataclass(frozen=True)
class Column:
    """One diagnostic under /diagnostics: a number a sample, or an array with named dimensions.

    dims   (name, length) of each dimension after the sample, e.g. (("degree", 9),)
    units  in the notation of UDUNITS, "1" where there are none
    """

    name: str
    dims: tuple[tuple[str, int], ...] = ()
    units: str = "1"
    long_name: str = ""

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(length for _, length in self.dims)


class RunFile:
    """A run file open for writing, by `RunFile.create` or `RunFile.append`; close it, or use it in a `with` block.

    snapshots   number of snapshots written
    samples     number of samples written, those that still wait in memory included

    Methods raise FileError when the disk is full or a write fails; the file is then good up to the last snapshot.
    """

    def __init__(self, path: Path, lock: Lock, file: h5py.File) -> None:
        self.path = path
        self._lock = lock
        self._file: h5py.File | None = None
        self._adopt(file)
        self.snapshots = len(self._time)
        self.samples = len(self._sample_time)
        self._waiting: list[tuple[float, dict[str, NDArray[np.float64]]]] = []
        self._flushed = clock.monotonic()

    @classmethod
    def create(
        cls,
        path: str | Path,
        mesh: Mesh,
        columns: Sequence[Column] = (),
        attributes: Mapping[str, Attribute] | None = None,
        *,
        overwrite: bool = False,
    ) -> Self:
        """Start a new file. ``attributes`` beside ``stop_reason``, ``message`` and ``wall_time``, which are always there.

        An existing file is replaced, and its checkpoints removed, only once the new one is laid out in full.
        Raises FileError if the file exists and ``overwrite`` is false, if another process is writing it, or if the
        folder cannot be written; ValueError for columns or attributes that cannot be stored.
        """
        import h5py

        path = Path(path)
        if path.exists() and not (overwrite and path.is_file()):
            expected = "choose another name, or overwrite it" if path.is_file() else "expected the name of a file"
            raise FileError(f"{path}: exists already; {expected}")
        values = _attributes(mesh, attributes or {})
        lock = Lock(path)
        new = path.with_name(path.name + ".new")
        try:
            with _disk(path, "cannot create it"):
                try:
                    with h5py.File(new, "w", libver=VERSION, locking=False) as file:
                        _lay_out(file, mesh, columns)
                        for name, value in values.items():
                            file.attrs[name] = value
                    if path.exists() and not overwrite:
                        raise FileError(f"{path}: exists already; choose another name, or overwrite it")
                    Checkpoints(path).remove()
                    os.replace(new, path)
                finally:
                    new.unlink(missing_ok=True)
                return cls(path, lock, _open(path))
        except BaseException:
            lock.release()
            raise

    @classmethod
    def append(cls, path: str | Path, *, snapshots: int | None = None, samples: int | None = None) -> Self:
        """Go on with a file, cut back to its first ``snapshots`` and ``samples``; None keeps all.

        Mends a killed writer's file first, and sets ``stop_reason`` to "running".
        Raises FileError if the file holds fewer than that, is no run file, or is being written by another process.
        """
        path = Path(path)
        if not path.is_file():
            raise FileError(f"{path}: no such file")
        lock = Lock(path)
        try:
            with _disk(path, "cannot write it"):
                repair(path)
            run = read(path)  # also refuses what is not a run file
            keep = _keep(path, "snapshots", snapshots, len(run.times))
            keep_samples = _keep(path, "samples", samples, len(run.sample_times))
            with _disk(path, "cannot write it"):
                self = cls(path, lock, _open(path))
        except BaseException:
            lock.release()
            raise
        with self._writing():
            self._cut(keep, keep_samples)
            self._set({"stop_reason": "running", "message": ""})
        return self

    def write_snapshot(self, t: float, density: ArrayLike) -> None:
        """Write the density, (cells,) with respect to surface area, at time ``t``, and everything that waited.

        Raises ValueError for another shape, or a time that is not finite: that would mean "no snapshot".
        """
        row = np.asarray(density, dtype=np.float64)
        if row.shape != self._density.shape[1:]:
            raise ValueError(f"density: shape {row.shape}, expected {self._density.shape[1:]}")
        _check_time(t)
        self.flush()
        with self._writing():
            _append(self._density, self.snapshots, row[None])
            self._handle.flush()  # the density reaches the file before the time that commits it
            _append(self._time, self.snapshots, np.array([t]))
            self._handle.flush()
            self.snapshots += 1

    def write_sample(self, t: float, values: Mapping[str, ArrayLike]) -> None:
        """Write one value for each column at time ``t``; it may wait in memory for a second, or until `flush`.

        Raises ValueError for a missing or unknown column, another shape, or a time that is not finite.
        """
        if values.keys() != self._columns.keys():
            raise ValueError(f"a sample with columns {sorted(values)}, expected {sorted(self._columns)}")
        _check_time(t)
        rows = {name: np.array(value, dtype=np.float64) for name, value in values.items()}
        for name, row in rows.items():
            if row.shape != self._columns[name].shape[1:]:
                raise ValueError(f"{name}: shape {row.shape}, expected {self._columns[name].shape[1:]}")
        self._waiting.append((float(t), rows))
        self.samples += 1
        if clock.monotonic() - self._flushed > FLUSH_EVERY:
            self.flush()

    def flush(self) -> None:
        """Write the samples that wait in memory. Call it before a checkpoint that counts on them."""
        self._flushed = clock.monotonic()
        if not self._waiting:
            return
        written = self.samples - len(self._waiting)
        with self._writing():
            for name, column in self._columns.items():
                _append(column, written, np.stack([rows[name] for _, rows in self._waiting]))
            self._handle.flush()
            _append(self._sample_time, written, np.array([t for t, _ in self._waiting]))
            self._handle.flush()
            self._waiting.clear()

    def sync(self) -> None:
        """`flush`, and wait until the disk has everything: what is written then survives a power cut."""
        self.flush()
        with self._writing():
            os.fsync(self._handle.id.get_vfd_handle())

    def close(self, **attributes: Attribute) -> None:
        """Write what waits, overwrite ``attributes`` (they exist since `create`), and let others write the file.

        ``stop_reason`` is "finished" unless given: see STOP_REASONS. A second call does nothing. After a failed write
        it still records the attributes, if there is room for them; else it raises FileError.
        """
        if self._lock.released:
            return
        values: dict[str, Attribute] = {"stop_reason": "finished", **attributes}
        try:
            if self._file is None:
                self._waiting.clear()  # the write that failed may have been theirs
                with _disk(self.path, "cannot record how the run ended"):
                    repair(self.path)
                    self._adopt(_open(self.path))
                self.samples = min(self.samples, len(read_times(self._sample_time)))
            self.flush()
            with self._writing():
                self._cut(self.snapshots, self.samples)  # what an interrupt left half written
                self._set(values)
                self._handle.close()
                self._file = None
        finally:
            if self._file is not None:
                self._abandon()
            self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; an exception is recorded as "failed", a KeyboardInterrupt as "interrupted"."""
        if error is None:
            self.close()
        elif isinstance(error, KeyboardInterrupt):
            self.close(stop_reason="interrupted", message="interrupted")
        else:
            self.close(stop_reason="failed", message=f"{type(error).__name__}: {error}")

    @property
    def _handle(self) -> h5py.File:
        if self._file is None:
            raise FileError(f"{self.path}: closed, or given up after a failed write")
        return self._file

    def _adopt(self, file: h5py.File) -> None:
        """Take over a file that is in SWMR mode."""
        self._file = file
        self._time, self._density = file["time"], file["density"]
        self._sample_time = file["diagnostics/time"]
        group = file["diagnostics"]
        self._columns = {name: group[name] for name in group.attrs["columns"]}

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn a failing write into a FileError, and keep HDF5 from trying it again."""
        try:
            yield
        except (OSError, RuntimeError) as error:  # h5py has RuntimeError for a failing flush
            self._abandon()
            raise FileError(
                f"{self.path}: cannot write: {reason(error)}; the file is good up to snapshot {self.snapshots}"
            ) from error

    def _abandon(self) -> None:
        """Close without writing: the rest of HDF5's cache goes to /dev/null, the file keeps its last good state."""
        assert self._file is not None
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, self._file.id.get_vfd_handle())
        os.close(null)
        self._file.close()
        self._file = None

    def _cut(self, snapshots: int, samples: int) -> None:
        """Drop later snapshots and samples, times first: those without a time do not exist."""
        for times, others, count in (
            (self._time, [self._density], snapshots),
            (self._sample_time, list(self._columns.values()), samples),
        ):
            for dataset in (times, *others):
                if len(dataset) != count:
                    dataset.resize(count, axis=0)
                    self._handle.flush()
        self.snapshots, self.samples = snapshots, samples

    def _set(self, attributes: Mapping[str, Attribute]) -> None:
        """Overwrite attributes in place, which SWMR allows; creating them it does not. ValueError for an unknown one."""
        for name, value in attributes.items():
            old = self._handle.attrs.get(name)
            if old is None or isinstance(old, str) != isinstance(value, str) or np.shape(old) != np.shape(value):
                raise ValueError(f"attribute {name}: {value!r}, expected something like {old!r}, as at creation")
            _check_stop_reason(name, value)
            self._handle.attrs.modify(name, value)
        self._handle.flush()


def _open(path: Path) -> h5py.File:
    """Open for writing, readable by others meanwhile. The lock is ours: HDF5's own would be lost in SWMR mode."""
    import h5py

    file = h5py.File(path, "r+", libver=VERSION, locking=False)
    file.swmr_mode = True
    return file


def _lay_out(file: h5py.File, mesh: Mesh, columns: Sequence[Column]) -> None:
    per_size = {1: "rad", 2: "sr"}[mesh.dimension]
    _dataset(file, "time", ("time",), np.empty(0), "1", "model time")
    scales = {"time": _scale(file["time"], "time")}
    for name, length in (("cell", mesh.cells), ("d", mesh.centers.shape[1]), ("ring", len(mesh.ring_cells))):
        scales[name] = _dimension(file, name, length)
    if len(mesh.ring_edges):
        _dataset(file, "ring_edge", ("ring_edge",), mesh.ring_edges, "rad", "polar angle between rings of latitude")
        scales["ring_edge"] = _scale(file["ring_edge"], "ring_edge")
    density = file.create_dataset(
        "density",
        shape=(0, mesh.cells),
        maxshape=(None, mesh.cells),
        chunks=(1, mesh.cells),
        dtype=np.float64,
        shuffle=True,
        compression="gzip",
        compression_opts=1,  # 4 to 9 save nothing more on densities
    )
    _describe(density, ("time", "cell"), f"{per_size}-1", "density of tokens with respect to surface area")
    _dataset(file, "cell_center", ("cell", "d"), mesh.centers, "1", "centroid of each cell, on the manifold")
    _dataset(file, "cell_area", ("cell",), mesh.volumes, per_size, "length or area of each cell")
    _dataset(file, "ring_cells", ("ring",), mesh.ring_cells, "1", "cells in each ring, from north to south")
    _attach(file, scales)
    _lay_out_diagnostics(file.create_group("diagnostics"), columns)


def _lay_out_diagnostics(group: h5py.Group, columns: Sequence[Column]) -> None:
    import h5py

    lengths: dict[str, int | None] = {"sample": None}
    taken = {"time", "sample"}
    for column in columns:
        if column.name in taken:
            raise ValueError(f"column {column.name!r} occurs twice, or has a reserved name (time, sample)")
        taken.add(column.name)
        for name, length in column.dims:
            if lengths.setdefault(name, length) != length:
                raise ValueError(f"column {column.name!r}: dimension {name!r} has lengths {lengths[name]} and {length}")
    if clash := taken & (lengths.keys() - {"sample"}):
        raise ValueError(f"{sorted(clash)} cannot be both columns and dimensions")
    scales = {name: _dimension(group, name, length) for name, length in lengths.items()}
    for column in (Column("time", long_name="model time"), *columns):
        _dataset(
            group,
            column.name,
            ("sample", *(name for name, _ in column.dims)),
            np.empty((0, *column.shape)),
            column.units,
            column.long_name or column.name,
        )
    _attach(group, scales)
    group.attrs["columns"] = np.array([column.name for column in columns], dtype=h5py.string_dtype())


def _dataset(
    group: h5py.Group, name: str, dims: Sequence[str], values: NDArray, units: str, long_name: str
) -> None:
    """Store ``values``; if there are none yet, a dataset that grows along its first dimension, filled with NaN."""
    if len(values):
        dataset = group.create_dataset(name, data=values)
    else:
        row = int(np.prod(values.shape[1:]))
        dataset = group.create_dataset(
            name,
            shape=values.shape,
            maxshape=(None, *values.shape[1:]),
            chunks=(max(CHUNK_BYTES // (8 * row), 1), *values.shape[1:]),
            dtype=np.float64,
            fillvalue=np.nan,
        )
    _describe(dataset, dims, units, long_name)


def _describe(dataset: h5py.Dataset, dims: Sequence[str], units: str, long_name: str) -> None:
    dataset.attrs["units"] = units
    dataset.attrs["long_name"] = long_name
    for axis, name in enumerate(dims):
        dataset.dims[axis].label = name


def _scale(dataset: h5py.Dataset, name: str) -> h5py.Dataset:
    dataset.make_scale(name)
    return dataset


def _dimension(group: h5py.Group, name: str, length: int | None) -> h5py.Dataset:
    """A netCDF dimension without coordinates: an empty scale that says so. Length None grows with its datasets."""
    scale = group.create_dataset(
        name, shape=(length or 0,), maxshape=(length,), chunks=(1024,) if length is None else None, dtype=np.int8
    )
    return _scale(scale, f"This is a netCDF dimension but not a netCDF variable. {length or 0:9d}")


def _attach(group: h5py.Group, scales: Mapping[str, h5py.Dataset]) -> None:
    """Join each dataset's labelled dimensions to their scales."""
    for dataset in group.values():
        for dimension in dataset.dims if dataset.name.split("/")[-1] not in scales else ():
            dimension.attach_scale(scales[dimension.label])


def _append(dataset: h5py.Dataset, start: int, rows: NDArray) -> None:
    dataset.resize(start + len(rows), axis=0)
    dataset[start:] = rows


def _attributes(mesh: Mesh, attributes: Mapping[str, Attribute]) -> dict[str, Any]:
    for name, value in attributes.items():
        if name in RESERVED:
            raise ValueError(f"attribute {name} is reserved")
        if not isinstance(value, str) and np.asarray(value).dtype.kind not in "iuf":
            raise ValueError(f"attribute {name}: {value!r}, expected text, a number or a list of numbers")
        _check_stop_reason(name, value)
    return {
        "schema_version": SCHEMA_VERSION,
        "manifold": mesh.manifold,
        "resolution": len(mesh.ring_cells) if mesh.manifold == "sphere" else mesh.cells,
        "stop_reason": "running",
        "message": "",
        "wall_time": 0.0,
        **attributes,
    }


def _check_stop_reason(name: str, value: Any) -> None:
    if name == "stop_reason" and value not in STOP_REASONS:
        raise ValueError(f"stop_reason: {value!r}, expected one of {', '.join(STOP_REASONS)}")


def _check_time(t: float) -> None:
    if not np.isfinite(t):
        raise ValueError(f"time: {t!r}, expected a finite number")


def _keep(path: Path, what: str, wanted: int | None, there: int) -> int:
    if wanted is not None and not 0 <= wanted <= there:
        raise FileError(f"{path}: holds {there} {what}, cannot go on after {wanted}")
    return there if wanted is None else wanted


@contextmanager
def _disk(path: Path, what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise FileError(f"{path}: {what}: {reason(error)}") from error
