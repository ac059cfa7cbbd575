"""Opening of HDF5 files for reading, independent of other handles in this process.

Texts are stored in global heaps, sequences of objects with sizes. HDF5 follows the sizes, and loops forever if damage
has made a size 0 or too large. This module therefore checks the heaps first.
"""

from __future__ import annotations

import mmap
import struct
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .repair import FileError, require_regular

if TYPE_CHECKING:
    import h5py

DRIVER = "unlogged"
HEADER = struct.Struct("<4sB3xQ")  # signature, version, size of the heap with this header
OBJECT = struct.Struct("<HHIQ")  # index, references, reserved, size; index 0: free space, size including this header
MAX_SEARCHED = 1 << 26  # bytes at either end of a file: texts are written at the creation and when a run is resumed


def open_file(path: str | Path, *, locking: bool = False, **options: Any) -> h5py.File:
    """Open an HDF5 file for reading like ``h5py.File``, without HDF5's locks and separate from other handles.

    All handles of one process with the same driver share a state in HDF5: HDF5 rejects a second handle with other locks
    while a user's handle is open. The function uses HDF5's logging driver without a log, which reads like the default
    driver. A user's handles (h5py, xarray) then act like handles of another process. (Files are written with the
    default driver, since the allocation differs, and always as new files without other handles.)
    """
    import h5py

    _register_driver()
    return h5py.File(path, "r", driver=DRIVER, locking=locking, **options)


def open_to_read(path: str | Path, *, swmr: bool = False) -> h5py.File:
    """Open an HDF5 file for reading, after a check that HDF5 will not read it forever.

    swmr   whether a writer may have the file open (single writer, multiple readers)
    Raises FileError for a pipe, a device or a damaged heap of texts, and OSError for a file that is not HDF5.
    """
    require_sound_heaps(path)
    return open_file(path, swmr=swmr)


@cache
def _register_driver() -> None:
    """Register HDF5's logging driver without a log under the name DRIVER, once in each process."""
    import h5py

    h5py.register_driver(DRIVER, lambda access: access.set_fapl_log(b"", 0, 0))


def require_sound_heaps(path: str | Path) -> None:
    """Raise FileError for files that HDF5 would read forever: pipes, devices, and files with damaged heaps of texts.

    Files that are not HDF5 pass.
    """
    require_regular(path)
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        if size < HEADER.size:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for first, last in _parts(size):
                start = data.find(b"GCOL", first, last)
                while start >= 0:
                    if _never_ends(data, start, size):
                        raise FileError(f"{path}: damaged: the heap of texts at byte {start}")
                    start = data.find(b"GCOL", start + 4, last)


def _parts(size: int) -> list[tuple[int, int]]:
    """Return the byte ranges of a file that are searched for heaps: all ``size`` bytes, or both ends if it is large."""
    if size <= 2 * MAX_SEARCHED:
        return [(0, size)]
    return [(0, MAX_SEARCHED), (size - MAX_SEARCHED, size)]


def _never_ends(data: mmap.mmap, start: int, size: int) -> bool:
    """Return whether the heap of texts at byte ``start`` has an object of invalid size: HDF5 would loop forever."""
    if start + HEADER.size > size:
        return False
    _, version, length = HEADER.unpack_from(data, start)
    if version != 1 or not HEADER.size <= length <= size - start:
        return False  # no heap, or a heap that HDF5 rejects
    place, end = start + HEADER.size, start + length
    while end - place >= OBJECT.size:
        index, _, _, own = OBJECT.unpack_from(data, place)
        step = own if index == 0 else OBJECT.size + (own + 7) // 8 * 8
        if not 0 < step <= end - place:
            return True
        place += step
    return False
