"""Arrays from a user's .npy, .npz and .h5 files; invalid files are rejected with a message of one line."""

from __future__ import annotations

import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .opening import open_to_read
from .repair import FileError
from .schema import DAMAGE, dataset_of, require_size

_MAX_LENGTH = 200  # characters of a message


def read_array(path: Path, dataset: str) -> NDArray[np.float64]:
    """Return the array in a .npy file, or the array named ``dataset`` in an .npz or HDF5 file, in double precision.

    Raises ValueError for a damaged file, an absent name, or values that are not real numbers.
    """
    with _convert_errors():
        if path.suffix == ".npy":
            return _real(np.load(path, mmap_mode="r"))  # a memory map rejects a shape beyond the file's size
        return read_arrays(path, [dataset])[dataset]


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Return, by name, those of the arrays ``names`` that an .npz or HDF5 file contains, in double precision.

    Raises ValueError for a damaged file, and for values that are not real numbers. If ``names`` has one entry, an HDF5
    file without this array raises ValueError too.
    """
    with _convert_errors():
        if not path.is_file():
            raise ValueError("expected a regular file")
        if path.suffix == ".npz":
            if not zipfile.is_zipfile(path):  # NumPy's own message would suggest to load Python objects
                raise ValueError("not a NumPy archive")
            with np.load(path) as file:
                return {name: _real(file[name]) for name in names if name in file}
        found = {}
        with open_to_read(path) as file:
            for name in names if path.suffix in (".h5", ".hdf5") else ():
                if name in file:
                    values = dataset_of(file, name)
                    require_size(values, path.stat().st_size)
                    found[name] = _real(values[()])
            if not found and len(names) == 1:
                raise ValueError(f"no dataset {names[0]}; there are {', '.join(sorted(file)[:20]) or 'none'}")
        return found


# exceptions of NumPy for damaged files, whose headers are parsed as Python
ARRAY_DAMAGE = (EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError, tokenize.TokenError, SyntaxError)


@contextmanager
def _convert_errors() -> Iterator[None]:
    """Convert exceptions of NumPy and HDF5 for a damaged file to a ValueError with a message of one line.

    FileNotFoundError passes unchanged.
    """
    try:
        yield
    except FileNotFoundError:
        raise
    except (*DAMAGE, *ARRAY_DAMAGE, FileError) as error:
        text = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(text[:_MAX_LENGTH]) from None


def _real(array: NDArray[Any]) -> NDArray[np.float64]:
    """Convert an array of real numbers to double precision; raise ValueError for an array of another type."""
    if array.dtype.kind not in "iuf":
        raise ValueError(f"holds {array.dtype}, expected real numbers")
    return np.array(array, dtype=float)
