"""Global heaps of an HDF5 file, in which texts lie: they are walked through here before HDF5 does so.

A heap is a row of objects, each of which has its size. HDF5 steps from one to the next, and never ends where damage has
made a step 0 or one that leads back.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

from .repair import FileError, require_regular

HEADER = struct.Struct("<4sB3xQ")  # signature, version, size of the heap with this header
OBJECT = struct.Struct("<HHIQ")  # index, references, reserved, size; index 0 is free space, whose size has this header
MAX_SEARCHED = 1 << 26  # bytes at either end of a file: texts are written with its layout, and when it is gone on with


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
