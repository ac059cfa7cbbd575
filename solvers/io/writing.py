"""Opening of run files for writing; a file stays valid after a failed write."""

from __future__ import annotations

import itertools
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from .attributes import Attribute, create_attributes, list_contents, root_attributes
from .layout import Column, Measure, Space, Variable, lay_out
from .repair import FileError, reason, with_checksum
from .replacing import is_special, replacement

if TYPE_CHECKING:
    import h5py

_NUMBERS = itertools.count()
VERSION = ("v110", "v110")  # the oldest format with SWMR, for older readers


def open_shared(path: Path) -> h5py.File:
    """Open a run file for writing while others may read it.

    The caller must hold the file's `Lock`, since this mode of HDF5 (SWMR) drops HDF5's own lock.
    """
    import h5py

    file = h5py.File(path, "r+", libver=VERSION, locking=False)
    file.swmr_mode = True
    return file


def image(
    columns: Sequence[Column],
    space: Space,
    attributes: Mapping[str, Attribute],
    variables: Sequence[Variable] = (),
    measure: Measure | None = None,
    fields: Sequence[str] = (),
    is_complex: bool = False,
) -> bytes:
    """Return the bytes of a new run file without rows, laid out by `lay_out`, with these attributes."""

    def fill(file: h5py.File) -> None:
        """Write the datasets and attributes of a run file without rows."""
        lay_out(file, space, columns, variables, measure, fields, is_complex)
        create_attributes(file, root_attributes(space, attributes))
        list_contents(file)

    return bytes_of_file(fill)


def bytes_of_file(fill: Callable[[h5py.File], None]) -> bytes:
    """Return the bytes of a new HDF5 file that the function ``fill`` writes in memory, safe from disk errors."""
    import h5py

    name = f"image {next(_NUMBERS)}"  # HDF5 rejects a second file of one name in another thread
    with h5py.File(name, "w", driver="core", backing_store=False, libver=VERSION) as file:
        fill(file)
        file.flush()
        return with_checksum(file.id.get_file_image())  # HDF5 before 2.0 clears flags without updating the checksum


@contextmanager
def new_file_on_disk(path: Path) -> Iterator[h5py.File]:
    """Create an HDF5 file that may be larger than the memory, and yield it open for writing.

    If the ``with`` block or the disk fails, the file remains unfinished.
    """
    import h5py

    file = h5py.File(path, "w", libver=VERSION, locking=False, rdcc_nbytes=0)  # chunks are written whole
    try:
        yield file
        file.flush()
    except BaseException:
        discard(file)
        raise
    file.close()


def discard(file: h5py.File) -> None:
    """Close an HDF5 file without writing HDF5's cached data; the file keeps its last valid state.

    The data go to the null device. An ordinary close would repeat the failed write, fail again, and crash the process
    at its end.
    """
    null = _open_null_device()
    os.dup2(null, file.id.get_vfd_handle())
    os.close(null)
    with suppress(OSError, RuntimeError):  # the null device cannot be resized as HDF5 requests
        file.close()


def _open_null_device() -> int:
    """Return a descriptor of a device that drops what is written: /dev/null, or /dev/zero if that is a regular file."""
    null = os.open(os.devnull, os.O_RDWR)
    if stat.S_ISREG(os.fstat(null).st_mode) and is_special("/dev/zero"):
        os.close(null)
        null = os.open("/dev/zero", os.O_RDWR)
    return null


def replace_attributes(path: Path, attributes: Mapping[str, Attribute]) -> None:
    """Set attributes of any type and length in a copy of the run file, and replace the file by the copy."""
    import h5py

    with replacement(path) as new:
        shutil.copy(path, new)
        with open(new, "ab") as room:  # detects a full disk here; HDF5 truncates unused space
            room.write(bytes(2**20 + sum(len(str(value)) for value in attributes.values())))
        with h5py.File(new, "r+", libver=VERSION, locking=False) as file:
            create_attributes(file, attributes)


@contextmanager
def disk_errors(path: Path, what: str) -> Iterator[None]:
    """Convert exceptions of the system and HDF5 in the ``with`` block to a FileError of one line.

    what   description of the failed action in the message
    """
    try:
        yield
    except (OSError, RuntimeError) as error:  # h5py raises RuntimeError for a failed flush
        raise FileError(f"{path}: {what}: {reason(error)}") from error
