"""Reading of run files (running, killed or finished) without blocking a writer."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .attributes import (
    CONTENTS,
    NETCDF,
    WRITERS,
    Writer,
    all_attributes,
    own_attributes,
    own_datasets,
    readable_attributes,
    writers_from_text,
)
from .lock import Lock, holder
from .opening import open_to_read
from .repair import FileError, is_open_for_writing, reason, repair
from .schema import (
    CHANGING,
    DAMAGE,
    EVENTS,
    LOCATION,
    SCHEMA_VERSION,
    SNAPSHOT,
    TRIANGLES,
    columns_of,
    dataset_of,
    faults,
    is_text,
    require_size,
    rows_of,
)
from .verifying import digest

if TYPE_CHECKING:
    import h5py

PAUSE = 0.01  # seconds between tries
TRIES = 200  # to open a file that is being written: two seconds
TRIES_WRITTEN = 20  # to read a file that is being written, before it counts as damaged
TRIES_ALONE = 5  # of TRIES without a writer, since a writer may start and end within one try

_NUMBERS = "fiuc"  # kinds of numbers of snapshots, in NumPy's letters
_PARTS: dict[str, Callable[[Any], Any]] = {"abs": np.abs, "arg": np.angle}  # of complex fields in figures

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Contents of a run file at the time of reading.

    A Run is returned by :func:`~solvers.read`. Snapshots and the mesh are read when they are needed. Each parameter is
    an attribute of the same name.

    Parameters
    ----------
    path : Path
        Path of the file.
    attributes : mapping
        Attributes of the file by name: texts and numbers, among them ``stop_reason``, ``message`` and ``wall_time``.
    times : (snapshots,) array
        Times of the snapshots, increasing.
    sample_times : (samples,) array
        Times of the diagnostics, increasing.
    diagnostics : mapping
        Values of each diagnostic by name, (samples, …) arrays.
    events : mapping
        Values of each column of events by name, "time" included, (events, …) arrays; empty without such a table.
    manifold : str
        Name of the manifold, such as "circle" or "interval"; "particles" for points.
    resolution : int
        Number of rings on a sphere of rings, number of points for particles, otherwise number of cells.
    ring_cells : (rings,) array
        Number of cells in each ring of latitude; empty for particles.
    writer : str or None
        Process that is writing the file, as "process 123 on name"; None without one.
    writers : tuple of Writer
        All writers of the file, the latest last.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import RunFile, circle, read
    >>> with RunFile.create("run.h5", circle(8), overwrite=True) as file:
    ...     file.write_snapshot(0.0, np.ones(8))
    >>> run = read("run.h5")
    >>> run.manifold, run.cells, run.snapshots, run.attributes["stop_reason"]
    ('circle', 8, 1, 'finished')
    """

    path: Path
    attributes: Mapping[str, Any]
    times: Floats
    sample_times: Floats
    diagnostics: Mapping[str, Floats]
    events: Mapping[str, Floats]
    manifold: str
    resolution: int
    ring_cells: NDArray[np.int32]
    writer: str | None
    writers: tuple[Writer, ...]

    def __repr__(self) -> str:
        contents = (
            f"{self.snapshots} snapshots, {len(self.sample_times)} samples of {len(self.diagnostics)} diagnostics"
        )
        return f"<{type(self).__name__} {self.path}: {contents} on {self.manifold}>"

    @property
    def snapshots(self) -> int:
        """Return the number of snapshots."""
        return len(self.times)

    @property
    def cells(self) -> int:
        """Return the number of cells; 0 for particles."""
        return 0 if self.manifold == "particles" else len(self.cell_areas)

    def snapshot(self, k: int) -> Floats:
        """Return the density or the positions of a snapshot, read at this call.

        Parameters
        ----------
        k : int
            Number of the snapshot, counted from the end if k < 0.

        Returns
        -------
        (cells,) or (n, d) array
            Density, or the first of several fields; positions of particles.

        Raises
        ------
        IndexError
            If there is no such snapshot.
        FileError
            If the values are damaged, or not finite except in a file of :func:`~solvers.record`.
        """
        values = self._read(self.kind, range(self.snapshots)[k], _NUMBERS)
        self._expect(self.is_solution or bool(np.isfinite(values).all()), f"damaged: snapshot {k} is not finite")
        return values

    @property
    def is_solution(self) -> bool:
        """Return whether :func:`~solvers.record` wrote the file, with the fields of a user's equation and no case."""
        return "fields" in self.attributes

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the names of the fields on the cells; a single field without a name is "density"."""
        return tuple(str(self.attributes.get("fields", "density")).split(","))

    def field(self, name: str, k: int) -> Floats:
        """Return one field of a snapshot.

        Parameters
        ----------
        name : str
            Name of the field, see :attr:`fields` and :attr:`real_fields`.
        k : int
            Number of the snapshot, counted from the end if k < 0.

        Returns
        -------
        (cells,) array
            Field on the cells.

        Raises
        ------
        FileError
            If the name is unknown, the file holds particles, or the values are damaged.
        """
        part, _, inside = name.rstrip(")").partition("(")
        if name not in self.fields and name in self.real_fields:
            found: Floats = _PARTS[part](self.field(inside, k))
            return found
        self._expect(name in self.fields, f"holds no field {name!r}: expected one of {', '.join(self.fields)}")
        return self.density(k) if name == self.fields[0] else self._read(name, range(self.snapshots)[k], _NUMBERS)

    @property
    def real_fields(self) -> tuple[str, ...]:
        """Return the names of real fields for figures: modulus and phase, "abs(u)" and "arg(u)", of a complex u.

        :meth:`field` accepts these names too.
        """
        each = (f"{part}({name})" for name in self.fields for part in _PARTS)
        return tuple(each) if self.is_complex else self.fields

    @cached_property
    def is_complex(self) -> bool:
        """Return whether the fields are complex."""
        if not self.is_solution:
            return False
        with self.opened() as file:
            return bool(dataset_of(file, self.kind).dtype.kind == "c")

    def density(self, k: int) -> Floats:
        """Return the density of a snapshot, or the first of several fields.

        Parameters
        ----------
        k : int
            Number of the snapshot, counted from the end if k < 0.

        Returns
        -------
        (cells,) array
            Density; its sum over the cells times :attr:`cell_areas` is the mass.

        Raises
        ------
        FileError
            If the file holds particles, or the values are damaged.
        """
        self._expect(self.manifold != "particles", "holds particles: expected a file with a density")
        return self.snapshot(k)

    def positions(self, k: int) -> Floats:
        """Return the positions of the particles of a snapshot.

        Parameters
        ----------
        k : int
            Number of the snapshot, counted from the end if k < 0.

        Returns
        -------
        (n, d) array
            Positions, radius times direction.

        Raises
        ------
        FileError
            If the file holds a density, or the values are damaged.
        """
        self._expect(self.manifold == "particles", "holds a density: expected a file with particles")
        return self.snapshot(k)

    @cached_property
    def weights(self) -> Floats:
        """Return the masses (n,) of the points; raise FileError for negative masses or a sum that is 0 or infinite."""
        weights = self._read("weight")
        positive = bool((weights >= 0).all()) and 0 < float(weights.sum()) < np.inf
        self._expect(positive, "damaged: weight: expected masses >= 0 of a finite sum above 0")
        return weights

    @cached_property
    def cell_centers(self) -> Floats:
        """Return the centroids of the cells on the manifold, (cells, d)."""
        return self._read("cell_center")

    @cached_property
    def cell_areas(self) -> Floats:
        """Return the length, area or measure of each cell, (cells,)."""
        return self._read("cell_area")

    @cached_property
    def triangles(self) -> NDArray[np.int32] | None:
        """Return the triangles of a triangulation, (n, 3) numbers of cells; None for other meshes and older files."""
        with self.opened() as file:
            if self.manifold != "triangles" or TRIANGLES not in file:
                return None
        found = self._read(TRIANGLES, kinds="iu").astype(np.int32)
        is_table = found.ndim == 2 and found.shape[1] == 3 and len(found) > 0
        valid = is_table and bool(((found >= 0) & (found < self.cells)).all())
        self._expect(valid, f"damaged: {TRIANGLES}: expected numbers of cells (n, 3)")
        return found

    def variable(self, name: str, kinds: str = "fiu") -> Floats:
        """Return an array that is stored with the mesh.

        Parameters
        ----------
        name : str
            Name of the dataset.
        kinds : str, optional
            Accepted kinds of dtype, in NumPy's letters: "fiu" for real numbers, "S" for texts.

        Returns
        -------
        array
            Values of the dataset.

        Raises
        ------
        FileError
            If there is no such dataset, or it holds values of another kind.
        """
        return self._read(name, kinds=kinds)

    def attributes_of(self, diagnostic: str) -> dict[str, Any]:
        """Return the attributes of a diagnostic's dataset.

        Parameters
        ----------
        diagnostic : str
            Name of the diagnostic.

        Returns
        -------
        dict
            Values by name; empty for an absent diagnostic.
        """
        with self.opened() as file:
            known = diagnostic in columns_of(file)
            return dict(all_attributes(dataset_of(file, f"diagnostics/{diagnostic}"))) if known else {}

    def number(self, attribute: str, default: float, diagnostic: str | None = None) -> float:
        """Return the value of a numerical attribute of the file or of a diagnostic.

        Parameters
        ----------
        attribute : str
            Name of the attribute.
        default : float
            Value if there is no such attribute.
        diagnostic : str, optional
            Name of the diagnostic with the attribute. By default the attribute is one of the file.

        Returns
        -------
        float
            Value of the attribute.

        Raises
        ------
        FileError
            If the attribute is no number, or is infinite and not the default.
        """
        attributes = self.attributes if diagnostic is None else self.attributes_of(diagnostic)
        value = attributes.get(attribute, default)
        known = isinstance(value, int | float) and (value == default or not np.isinf(value))
        self._expect(known, f"damaged: attribute {attribute} is {value!r:.40}, no number")
        return float(value)

    def require_growing(self) -> None:
        """Raise FileError if a dataset of snapshots, samples, events or the checkpoint has a fixed length.

        A writer can only continue a file whose datasets can grow.
        """
        with self.opened() as file:
            snapshots = ("time", self.kind, *(self.fields[1:] if self.is_solution else ()))
            for name in (*snapshots, "diagnostics/time", *rows_of(file), LOCATION):
                if dataset_of(file, name).maxshape[0] is not None:
                    raise ValueError(f"{name} cannot grow")

    def _expect(self, condition: bool, otherwise: str) -> None:
        """Raise FileError with the path of the file and the message ``otherwise`` unless a condition holds."""
        if not condition:
            raise FileError(f"{self.path}: {otherwise}")

    def rows(self, index: Any) -> Floats:
        """Return several snapshots by any index of NumPy.

        Parameters
        ----------
        index : Any
            Index of the first axis of (snapshots, cells) or (snapshots, n, d).

        Returns
        -------
        array
            Density or positions of these snapshots.
        """
        numbers = np.arange(self.snapshots)[index]
        stored, back = np.unique(numbers, return_inverse=True)  # HDF5 requires increasing numbers
        block = len(stored) > 0 and stored[-1] - stored[0] == len(stored) - 1
        found = self._read(self.kind, slice(stored[0], stored[-1] + 1) if block else stored, _NUMBERS)
        return found[back.reshape(numbers.shape)]

    def described(self) -> dict[str, DatasetDescription]:
        """Return the dimensions and attributes of every dataset of the run file.

        Returns
        -------
        dict
            Names of the ``dims`` and ``attributes`` by the dataset's name: "density", "diagnostics/mass", ….

        Raises
        ------
        FileError
            If a dataset has no units, or dimensions without names or with equal ones.
        """
        with self.opened() as file:
            names = dict.fromkeys([*own_datasets(file), "diagnostics/time", *rows_of(file)])
            return {name: _describe_dataset(name, dataset_of(file, name)) for name in names}

    @property
    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self.path.stat().st_size

    @property
    def snapshot_shape(self) -> tuple[int, ...]:
        """Return the shape of a snapshot: (cells,) for a density, (n, d) for positions of particles."""
        with self.opened() as file:
            return tuple(int(length) for length in file[self.kind].shape[1:])

    @property
    def kind(self) -> str:
        """Return the name of the dataset of snapshots: "density" on a mesh, "position" for particles."""
        return SNAPSHOT.get(self.manifold, "density")

    @contextmanager
    def opened(self) -> Iterator[h5py.File]:
        """Open the file for reading, in a ``with`` block.

        Yields
        ------
        h5py.File
            File, closed at the end of the block.

        Raises
        ------
        FileError
            If the file cannot be read, or reading fails in the block.
        """
        with _open(self.path) as file:
            yield file

    def _read(self, name: str, index: Any = None, kinds: str = "fiu") -> Floats:
        """Return a dataset of the file, or the rows ``index`` of it; raise FileError if its values have another kind.

        kinds   accepted kinds of values in NumPy's letters
        """
        with self.opened() as file:
            dataset = dataset_of(file, name)
            require_size(dataset, self.size)
            if dataset.dtype.kind not in kinds:
                raise ValueError(f"{name} holds {dataset.dtype}")
            values: Floats = dataset[... if index is None else index]
            return values


@dataclass(frozen=True)
class DatasetDescription:
    """Names of a dataset's dimensions, and its attributes: units, long_name and others.

    Parameters
    ----------
    dims : tuple of str
        Names of the dimensions.
    attributes : mapping
        Values of the attributes by name.
    coordinates : tuple of str
        Names of the datasets that are coordinates of the dataset, apart from those of its dimensions.
    """

    dims: tuple[str, ...]
    attributes: Mapping[str, Any]
    coordinates: tuple[str, ...] = ()


def _describe_dataset(name: str, dataset: h5py.Dataset) -> DatasetDescription:
    """Return the dimensions and attributes of a dataset; raise ValueError without units or names of the dimensions."""
    attributes, dims = readable_attributes(dataset), tuple(dimension.label for dimension in dataset.dims)
    if not is_text(attributes.get("units")):
        raise ValueError(f"{name} has no units")
    if not all(dims) or len(set(dims)) < len(dims):
        raise ValueError(f"{name} has dimensions without names of their own")
    kept = {key: value for key, value in attributes.items() if key not in NETCDF}
    return DatasetDescription(dims, kept, tuple(str(attributes.get("coordinates", "")).split()))


def read(path: str | Path | Run) -> Run:
    """Read a run file: running, finished, or of a killed writer.

    The file was written by :func:`~solvers.record`, or by another program in the same layout. A file that is being
    written is read without blocking its writer. The file of a killed writer is repaired if it is writable.

    Parameters
    ----------
    path : str, Path or Run
        Path of the file. A Run is returned unchanged.

    Returns
    -------
    Run
        Contents at the time of reading. ``times`` and ``sample_times`` are the times of snapshots and diagnostics,
        ``diagnostics[name]`` (samples, …) the values of a diagnostic. ``field(name, k)`` returns a field (cells,) of
        snapshot k, ``density(k)`` its first field, and ``positions(k)`` the positions (n, d) of particles. ``fields``
        are the names of the fields. ``cell_centers`` (cells, d), ``cell_areas`` (cells,) and ``manifold`` describe
        the mesh.

    Raises
    ------
    FileError
        If the file is missing, unreadable, truncated, damaged, or no run file.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import RunFile, circle, read
    >>> mesh = circle(16)
    >>> with RunFile.create("wave.h5", mesh, fields=["height"], overwrite=True) as file:
    ...     for time in (0.0, 0.5):
    ...         file.write_snapshot(time, np.cos(time) * mesh.centers[:, 0])
    >>> run = read("wave.h5")
    >>> run.times.tolist(), run.fields
    ([0.0, 0.5], ('height',))
    >>> bool((run.field("height", -1) == np.cos(0.5) * mesh.centers[:, 0]).all())
    True
    """
    if isinstance(path, Run):
        return path
    path = Path(path)
    for _ in range(TRIES_WRITTEN):
        writer = holder(path)
        try:
            return _read(path, writer)
        except FileError:
            if writer is None and holder(path) is None:
                raise
        clock.sleep(PAUSE)  # parts of a file under writing may be out of date
    return _read(path, holder(path))


def _read(path: Path, writer: str | None) -> Run:
    """Read the contents of a run file in one try; ``writer`` is the process that is writing the file, or None.

    The file of a killed writer is repaired first. Raises FileError for a damaged file.
    """
    _mend(path)
    with _open(path) as file:
        attributes = own_attributes(file)
        texts = own_texts(file)
        if found := list(faults(file, attributes, path.stat().st_size)):
            raise FileError(f"{path}: damaged: {'; '.join(found[:3])}{'; and more' if found[3:] else ''}")
        times = read_times(file["time"])  # read first: samples precede the snapshot that includes them
        group = file["diagnostics"]
        sample_times = read_times(group["time"])
        if (np.diff(times) <= 0).any() or (np.diff(sample_times) <= 0).any():
            raise FileError(f"{path}: damaged: times do not increase")
        columns = columns_of(file, EVENTS)
        events = {name: file[EVENTS][name] for name in (["time", *columns] if columns else [])}
        count = len(read_times(events["time"])) if columns else 0
        run = Run(
            path=path,
            attributes={name: value for name, value in attributes.items() if name not in (CONTENTS, WRITERS)},
            times=times,
            sample_times=sample_times,
            diagnostics={name: _rows(group[name], len(sample_times)) for name in columns_of(file)},
            events={name: _rows(dataset, count) for name, dataset in events.items()},
            manifold=attributes["manifold"],
            resolution=attributes["resolution"],
            ring_cells=file["ring_cells"][:] if "ring_cells" in file else np.empty(0, np.int32),
            writer=writer if attributes["stop_reason"] == "running" else None,
            writers=writers_from_text(texts[WRITERS]),
        )
    _require_sound(run, texts)  # opens the file again; HDF5 rejects another mode while this handle is open
    return run


def _require_sound(run: Run, texts: dict[str, str]) -> None:
    """Raise FileError for a run with contradictory numbers of cells, columns of unequal lengths, or a wrong checksum.

    texts   attributes that the checksum covers, by name
    """
    cells, path = run.ring_cells, run.path
    if run.manifold not in SNAPSHOT and not (len(cells) and (cells > 0).all() and cells.sum(dtype=object) == run.cells):
        raise FileError(f"{path}: damaged: ring_cells do not sum up to the number of cells")
    if run.manifold not in SNAPSHOT and run.resolution not in (run.cells, len(cells)):
        raise FileError(f"{path}: damaged: resolution is {run.resolution}, of {run.cells} cells in {len(cells)} rings")
    for name, values in run.diagnostics.items():
        if len(values) != len(run.sample_times):
            raise FileError(f"{path}: damaged: {name} has {len(values)} of {len(run.sample_times)} samples")
    if len({len(values) for values in run.events.values()}) > 1 or (np.diff(run.events.get("time", ())) < 0).any():
        raise FileError(f"{path}: damaged: events have columns of several lengths, or times that decrease")
    expected = run.attributes["digest"]
    if expected and expected != digest(texts, run.times, run.sample_times, run.diagnostics, run.events):
        good = f"the {run.snapshots} snapshots have checksums of their own"
        raise FileError(f"{path}: damaged: times, diagnostics or attributes differ from what was written; {good}")


def _rows(dataset: h5py.Dataset, count: int) -> Floats:
    """Return the first ``count`` rows of a dataset, which a writer may have extended since the file was opened."""
    dataset.refresh()
    return np.asarray(dataset[:count])


def path_of(source: str | Path | Run) -> Path:
    """Return the path of a run file, which is given as a path or as a `Run`."""
    return source.path if isinstance(source, Run) else Path(source)


def read_times(dataset: h5py.Dataset) -> Floats:
    """Return the times of the complete rows in a dataset that grows: those before the first time that is not finite.

    The time of a row is written last, and an absent time is NaN.
    """
    dataset.refresh()
    times = np.asarray(dataset[:], dtype=float)
    absent = np.flatnonzero(~np.isfinite(times))
    return times[: absent[0]] if len(absent) else times


def _mend(path: Path) -> None:
    """Repair the file of a killed writer, if the file is writable; leave any other file unchanged.

    A file without repair remains readable, like a file that is being written.
    """
    permitted = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    if not is_open_for_writing(path) or holder(path) or not permitted:
        return
    try:
        lock = Lock(path)
    except FileError:  # a new writer has started: the file is readable under writing
        return
    try:
        repair(path)
    except OSError as error:
        raise FileError(f"{path}: its writer was killed, and the file cannot be repaired: {reason(error)}") from error
    finally:
        lock.release()


@contextmanager
def _open(path: Path) -> Iterator[h5py.File]:
    """Open a run file for reading in a ``with`` block, with retries while a writer is opening or closing the file.

    Raises FileError if the file cannot be read, and for exceptions in the block that damaged contents cause.
    """
    left, alone = TRIES, TRIES_ALONE  # counts, not seconds, which may pass in one try of a suspended process
    while True:
        try:
            file = open_to_read(path, swmr=is_open_for_writing(path))
            break
        except OSError as error:
            left, alone = left - 1, alone - (holder(path) is None)
            if not (left and alone):
                raise FileError(f"{path}: cannot read it: {reason(error)}") from error
            clock.sleep(PAUSE)
    with file:
        try:
            _require_version(path, file.attrs.get("schema_version"))
            yield file
        except DAMAGE as error:
            raise FileError(f"{path}: damaged: {reason(error)}") from error


def _require_version(path: Path, version: Any) -> None:
    """Raise FileError unless ``version`` is a version of the file format that this program reads."""
    if version is None:
        raise FileError(f"{path}: not a run file of this package (no schema_version)")
    if not isinstance(version, int | np.integer) or version > SCHEMA_VERSION:
        raise FileError(f"{path}: schema version {version!r:.40}, this program reads up to {SCHEMA_VERSION}")


def own_texts(file: h5py.File) -> dict[str, str]:
    """Return by name the texts among a file's attributes that its checksum covers.

    The checksum covers texts that this package has written and that do not change during a run.
    """
    attributes = own_attributes(file)
    return {name: text for name, text in attributes.items() if isinstance(text, str) and name not in CHANGING}
