"""Reading of run files (running, killed or finished) without blocking a writer."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Iterator, Mapping
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

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """Contents of a run file at the time of reading.

    path          path of the file
    attributes    attributes of this package; text is str
    times         (snapshots,) times of the snapshots
    sample_times  (samples,) times of the diagnostics
    diagnostics   (samples, ...) for each column
    events        (events, ...) for each column, including "time"; empty without a table of events
    manifold      name of the manifold
    resolution    rings on the sphere, the number of points, cells elsewhere
    ring_cells    (rings,) cells in each ring; empty for particles
    writer        "process 123 on name" while a process is writing the file, else None
    writers       all writers of the file, the latest last
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
        return len(self.times)

    @property
    def cells(self) -> int:
        return 0 if self.manifold == "particles" else len(self.cell_areas)

    def snapshot(self, k: int) -> Floats:
        """Return the density (cells,) or positions (n, d) of snapshot k, read at this call; from the end if k < 0.

        Raises IndexError for a number without a snapshot, and FileError for a state that is not finite, which only the
        equation of a user may have.
        """
        values = self._read(self.kind, range(self.snapshots)[k])
        self._expect(self.is_solution or bool(np.isfinite(values).all()), f"damaged: snapshot {k} is not finite")
        return values

    @property
    def is_solution(self) -> bool:
        """Return whether `solvers.record` wrote the file: fields of any equation, without a case."""
        return "fields" in self.attributes

    @property
    def fields(self) -> tuple[str, ...]:
        """Return the names of the fields on the cells; a single field without a name is "density"."""
        return tuple(str(self.attributes.get("fields", "density")).split(","))

    def field(self, name: str, k: int) -> Floats:
        """Return one field (cells,) of snapshot k, see ``snapshot``; raise FileError for an unknown name."""
        self._expect(name in self.fields, f"holds no field {name!r}: expected one of {', '.join(self.fields)}")
        return self.density(k) if name == self.fields[0] else self._read(name, range(self.snapshots)[k])

    def density(self, k: int) -> Floats:
        """Return the density (cells,) of snapshot k, see ``snapshot``; raise FileError for a file with particles."""
        self._expect(self.manifold != "particles", "holds particles: expected a file with a density")
        return self.snapshot(k)

    def positions(self, k: int) -> Floats:
        """Return the positions x = rθ (n, d) of snapshot k, see ``snapshot``; raise FileError for a density."""
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
        """Return (cells, d) the centroids on the manifold."""
        return self._read("cell_center")

    @cached_property
    def cell_areas(self) -> Floats:
        """Return (cells,) the length or area of each cell."""
        return self._read("cell_area")

    @cached_property
    def ring_edges(self) -> Floats:
        """Return (rings + 1,) the polar angles between rings of latitude; empty for other manifolds."""
        return np.linspace(0.0, np.pi, len(self.ring_cells) + 1) if self.manifold == "sphere" else np.empty(0)

    def variable(self, name: str, kinds: str = "fiu") -> Floats:
        """Return an array of the mesh by its name, see `solvers.io.layout.Variable`; raise FileError for other names.

        kinds   of numbers in NumPy's letters; S for texts too
        """
        return self._read(name, kinds=kinds)

    def long_name(self, diagnostic: str) -> str:
        """Return the description of a diagnostic in the file; raise FileError for an unknown diagnostic."""
        with self.opened() as file:
            return str(dataset_of(file, f"diagnostics/{diagnostic}").attrs["long_name"])

    def attributes_of(self, diagnostic: str) -> dict[str, Any]:
        """Return the further attributes of a diagnostic's dataset; none for an absent diagnostic."""
        with self.opened() as file:
            known = diagnostic in columns_of(file)
            return dict(all_attributes(dataset_of(file, f"diagnostics/{diagnostic}"))) if known else {}

    def number(self, attribute: str, default: float, diagnostic: str | None = None) -> float:
        """Return an attribute of the file or a diagnostic, or the default; raise FileError unless it is a number."""
        attributes = self.attributes if diagnostic is None else self.attributes_of(diagnostic)
        value = attributes.get(attribute, default)
        known = isinstance(value, int | float) and (value == default or not np.isinf(value))
        self._expect(known, f"damaged: attribute {attribute} is {value!r:.40}, no number")
        return float(value)

    def require_growing(self) -> None:
        """Raise FileError if snapshots, samples or the checkpoint cannot be extended by a writer."""
        with self.opened() as file:
            snapshots = ("time", self.kind, *(self.fields[1:] if self.is_solution else ()))
            for name in (*snapshots, "diagnostics/time", *rows_of(file), LOCATION):
                if dataset_of(file, name).maxshape[0] is not None:
                    raise ValueError(f"{name} cannot grow")

    def _expect(self, condition: bool, otherwise: str) -> None:
        if not condition:
            raise FileError(f"{self.path}: {otherwise}")

    def rows(self, index: Any) -> Floats:
        """Return snapshots by any index of the committed ones, (...) of (snapshots, cells) or (snapshots, n, d)."""
        numbers = np.arange(self.snapshots)[index]
        stored, back = np.unique(numbers, return_inverse=True)  # HDF5 requires increasing numbers
        block = len(stored) > 0 and stored[-1] - stored[0] == len(stored) - 1
        found = self._read(self.kind, slice(stored[0], stored[-1] + 1) if block else stored)
        return found[back.reshape(numbers.shape)]

    def described(self) -> dict[str, Described]:
        """Return dimensions and attributes of each dataset by its name: "density", "diagnostics/mass", ...

        Raises FileError for a dataset without units, or with an unnamed dimension.
        """
        with self.opened() as file:
            names = dict.fromkeys([*own_datasets(file), "diagnostics/time", *rows_of(file)])
            return {name: _described(name, dataset_of(file, name)) for name in names}

    @property
    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self.path.stat().st_size

    @property
    def snapshot_shape(self) -> tuple[int, ...]:
        """Return the shape (cells,) or (n, d) of a snapshot."""
        with self.opened() as file:
            return tuple(int(length) for length in file[self.kind].shape[1:])

    @property
    def kind(self) -> str:
        """Return the name of a snapshot's dataset: "density", or "position" of particles."""
        return SNAPSHOT.get(self.manifold, "density")

    @contextmanager
    def opened(self) -> Iterator[h5py.File]:
        """Open the file for reading; raise FileError if the file cannot be read."""
        with _open(self.path) as file:
            yield file

    def _read(self, name: str, index: Any = None, kinds: str = "fiu") -> Floats:
        with self.opened() as file:
            dataset = dataset_of(file, name)
            require_size(dataset, self.size)
            if dataset.dtype.kind not in kinds:
                raise ValueError(f"{name} holds {dataset.dtype}")
            values: Floats = dataset[... if index is None else index]
            return values


@dataclass(frozen=True)
class Described:
    """Names of a dataset's dimensions, and its attributes: units, long_name and others."""

    dims: tuple[str, ...]
    attributes: Mapping[str, Any]


def _described(name: str, dataset: h5py.Dataset) -> Described:
    attributes, dims = readable_attributes(dataset), tuple(dimension.label for dimension in dataset.dims)
    if not is_text(attributes.get("units")):
        raise ValueError(f"{name} has no units")
    if not all(dims) or len(set(dims)) < len(dims):
        raise ValueError(f"{name} has dimensions without names of their own")
    return Described(dims, {key: value for key, value in attributes.items() if key not in NETCDF})


def read(path: str | Path | Run) -> Run:
    """Read a run file in any state; repair the file of a killed writer if permitted.

    A Run is returned unchanged. Raises FileError if the file is missing, unreadable, truncated, or no run file.
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
    """Read the file once, with the given writer or none."""
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
    """Raise FileError for inconsistent counts of cells, short columns, or a wrong digest."""
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
    """Return the first ``count`` rows, which may be newer than the dataset's state at opening."""
    dataset.refresh()
    rows: Floats = dataset[:count]
    return rows


def path_of(source: str | Path | Run) -> Path:
    """Return the path of a file, or of the file of a run."""
    return source.path if isinstance(source, Run) else Path(source)


def read_times(dataset: h5py.Dataset) -> Floats:
    """Return the committed times: those before the first non-finite one."""
    dataset.refresh()
    times = np.asarray(dataset[:], dtype=float)
    absent = np.flatnonzero(~np.isfinite(times))
    return times[: absent[0]] if len(absent) else times


def _mend(path: Path) -> None:
    """Repair the file if its writer is dead and the file is writable; else leave it, readable as under writing."""
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
    """Open for reading, with retries while a writer is opening or closing the file."""
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
    if version is None:
        raise FileError(f"{path}: not a run file of this package (no schema_version)")
    if not isinstance(version, int | np.integer) or version > SCHEMA_VERSION:
        raise FileError(f"{path}: schema version {version!r:.40}, this program reads up to {SCHEMA_VERSION}")


def own_texts(file: h5py.File) -> dict[str, str]:
    """Return the texts among the attributes of this package that the digest covers."""
    attributes = own_attributes(file)
    return {name: text for name, text in attributes.items() if isinstance(text, str) and name not in CHANGING}
