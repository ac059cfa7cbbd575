"""Opening of HDF5 files for reading, whatever else has them open in this process.

Texts lie in global heaps, rows of objects each of which has its size. HDF5 steps from one to the next, and never ends
where damage has made a step 0 or one that leads back: heaps are walked through here first.
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
OBJECT = struct.Struct("<HHIQ")  # index, references, reserved, size; index 0 is free space, whose size has this header
MAX_SEARCHED = 1 << 26  # bytes at either end of a file: texts are written with its layout, and when it is gone on with


def open_file(path: str | Path, *, locking: bool = False, **options: Any) -> h5py.File:
    """Open a file for reading as ``h5py.File`` does, without HDF5's locks and apart from handles of other libraries.

    All handles of a file that one process opens with one driver share a state in HDF5: a second handle with other
    locks is refused while a user's is open. The driver here is HDF5's logging driver without a log, which reads as the
    default driver does. So a user's handles (h5py, xarray) act like those of another process. (It allocates otherwise:
    files are written with the default driver, always as new files, which nobody has open.)
    """
    import h5py

    _register_driver()
    return h5py.File(path, "r", driver=DRIVER, locking=locking, **options)


def open_to_read(path: str | Path, *, swmr: bool = False) -> h5py.File:
    """Open for reading. Raises FileError for a pipe, a device and a heap without end, OSError for what is no HDF5."""
    require_sound_heaps(path)
    return open_file(path, swmr=swmr)


@cache
def _register_driver() -> None:
    import h5py

    h5py.register_driver(DRIVER, lambda access: access.set_fapl_log(b"", 0, 0))


def require_sound_heaps(path: str | Path) -> None:
    """Raise FileError for what HDF5 would read without end: a pipe, a device, a heap that leads back.

    What is no HDF5 file passes.
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
    if size <= 2 * MAX_SEARCHED:
        return [(0, size)]
    return [(0, MAX_SEARCHED), (size - MAX_SEARCHED, size)]


def _never_ends(data: mmap.mmap, start: int, size: int) -> bool:
    if start + HEADER.size > size:
        return False
    _, version, length = HEADER.unpack_from(data, start)
    if version != 1 or not HEADER.size <= length <= size - start:
        return False  # no heap, or one that HDF5 refuses
    place, end = start + HEADER.size, start + length
    while end - place >= OBJECT.size:
        index, _, _, own = OBJECT.unpack_from(data, place)
        step = own if index == 0 else OBJECT.size + (own + 7) // 8 * 8
        if not 0 < step <= end - place:
            return True
        place += step
    return False
