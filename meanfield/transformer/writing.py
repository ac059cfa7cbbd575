"""Arrays written into a new HDF5 file such that a full disk is an error and never a crash."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from solvers.io.run_file import FileError
from solvers.io.writing import VERSION, discard, open_shared
from solvers.mesh.mesh import Floats

Shapes = Mapping[str, tuple[tuple[int, ...], str]]  # of datasets: shape and number format


def require_new(folder: str | Path, names: Sequence[str], overwrite: bool) -> None:
    """Raise FileError unless files of these names may be written into a folder."""
    for path in (Path(folder) / name for name in names):
        if path.exists() and not overwrite:
            raise FileError(f"{path}: exists already; --overwrite replaces it, -o writes elsewhere")
    if Path(folder).exists() and not Path(folder).is_dir():
        raise FileError(f"{folder}: is a file; expected a folder")


def write_arrays(
    path: Path,
    shapes: Shapes,
    rows: Iterable[tuple[str, int | None, Floats]],
    attributes: Mapping[str, str | float] | None = None,
) -> None:
    """Write arrays row by row, since together they may be large: name of a dataset, row or None for all, numbers."""
    path.write_bytes(_image(shapes, attributes or {}))
    file = open_shared(path)
    sets = {name: file[name] for name in shapes}  # kept open: a set that is closed writes, and cannot report failure
    try:
        for name, row, array in rows:
            sets[name][... if row is None else row] = array
        file.flush()
    except BaseException:
        discard(file)  # HDF5 would try again what failed, and crash
        raise
    file.close()


def _image(shapes: Shapes, attributes: Mapping[str, str | float]) -> bytes:
    """The bytes of the file without its numbers, laid out in memory: no failing disk meets HDF5 meanwhile."""
    import h5py

    with h5py.File("image", "w", driver="core", backing_store=False, libver=VERSION) as file:
        file.attrs.update(attributes)
        for name, (shape, number) in shapes.items():
            chunks = (1, *shape[1:]) if "/" in name or len(shape) > 2 else shape
            file.create_dataset(name, shape, number, chunks=chunks)
        file.flush()
        image: bytes = file.id.get_file_image()
        return image
