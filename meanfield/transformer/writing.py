"""Arrays written into a new HDF5 file such that a full disk is an error and never a crash."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from solvers.io.replacing import replacement
from solvers.io.run_file import FileError
from solvers.io.writing import bytes_of_file, discard, disk_errors, open_shared
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    import h5py

Shapes = Mapping[str, tuple[tuple[int, ...], str]]  # of datasets: shape and number format


def require_new(folder: str | Path, names: Sequence[str], overwrite: bool) -> None:
    """Raise FileError unless files of these names may be written into a folder."""
    for path in (Path(folder) / name for name in names):
        if path.exists() and not overwrite:
            raise FileError(f"{path}: exists already; overwrite=True replaces it, another path writes elsewhere")
    if Path(folder).exists() and not Path(folder).is_dir():
        raise FileError(f"{folder}: is a file; expected a folder")


@contextmanager
def replacements(folder: Path, names: Sequence[str]) -> Iterator[list[Path]]:
    """Yield the paths of files that take these names in a folder at the end of the block; none where it fails."""
    with disk_errors(folder, "cannot write"), ExitStack() as stack:
        folder.mkdir(parents=True, exist_ok=True)
        yield [stack.enter_context(replacement(folder / name)) for name in names]


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
    """The bytes of the file without its numbers."""

    def fill(file: h5py.File) -> None:
        file.attrs.update(attributes)
        for name, (shape, number) in shapes.items():
            chunks = (1, *shape[1:]) if "/" in name or len(shape) > 2 else shape
            file.create_dataset(name, shape, number, chunks=chunks)

    return bytes_of_file(fill)
