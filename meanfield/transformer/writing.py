"""Arrays written into a new HDF5 file; a full disk raises an error and never crashes the process."""

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

Shapes = Mapping[str, tuple[tuple[int, ...], str]]  # shape and number format of datasets


def require_new(folder: str | Path, names: Sequence[str], overwrite: bool) -> None:
    """Raise FileError if a named file exists in a folder and may not be replaced, or if the folder is a file."""
    for path in (Path(folder) / name for name in names):
        if path.exists() and not overwrite:
            raise FileError(f"{path}: exists already; overwrite=True replaces it, another path writes elsewhere")
    if Path(folder).exists() and not Path(folder).is_dir():
        raise FileError(f"{folder}: is a file; expected a folder")


@contextmanager
def replacements(folder: Path, names: Sequence[str]) -> Iterator[list[Path]]:
    """Yield paths of temporary files, which get the given names in a folder at the end of the ``with`` block.

    If the block fails, the temporary files are removed and existing files are unchanged.
    """
    with disk_errors(folder, "cannot write"), ExitStack() as stack:
        folder.mkdir(parents=True, exist_ok=True)
        yield [stack.enter_context(replacement(folder / name)) for name in names]


def write_arrays(
    path: Path,
    shapes: Shapes,
    rows: Iterable[tuple[str, int | None, Floats]],
    attributes: Mapping[str, str | float] | None = None,
) -> None:
    """Write arrays into a new HDF5 file row by row, which limits memory.

    shapes      shape and number format of each dataset, by name
    rows        (name of a dataset, index of the row or None for all rows, numbers) of each write
    attributes  attributes of the file
    """
    path.write_bytes(_image(shapes, attributes or {}))
    file = open_shared(path)
    sets = {name: file[name] for name in shapes}  # kept open: closing a dataset writes, and cannot report a failure
    try:
        for name, row, array in rows:
            sets[name][... if row is None else row] = array
        file.flush()
    except BaseException:
        discard(file)  # otherwise HDF5 would repeat the failed write, and crash
        raise
    file.close()


def _image(shapes: Shapes, attributes: Mapping[str, str | float]) -> bytes:
    """Return the bytes of an HDF5 file with its attributes and datasets of the given shapes, without the numbers."""

    def fill(file: h5py.File) -> None:
        """Write the attributes, and create the datasets."""
        file.attrs.update(attributes)
        for name, (shape, number) in shapes.items():
            chunks = (1, *shape[1:]) if "/" in name or len(shape) > 2 else shape
            file.create_dataset(name, shape, number, chunks=chunks)

    return bytes_of_file(fill)
