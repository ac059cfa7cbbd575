"""Repair of the file of a writer that was killed.

HDF5 marks a file that is open for writing in its superblock and refuses it until the writer has closed it. A killed
writer never does; `repair` clears that mark.
"""

from __future__ import annotations

import errno
import os
import re
import struct
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from .replacing import is_special

_MAX_REASON = 300  # characters
SIGNATURE = b"\x89HDF\r\n\x1a\n"
SUPERBLOCK = struct.Struct(
    "<8sBBBBQQQQI"
)  # signature, version, sizes of offset and length, flags, 4 addresses, checksum


class FileError(Exception):
    """A run file or checkpoint cannot be used; the message is one line fit for a user."""


def reason(error: Exception) -> str:
    """The operating system's words for what went wrong, dug out of HDF5's error text where necessary."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)  # h5py puts HDF5's whole text beside some numbers
    found = re.search(r"errno = (\d+)", str(error))
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    return os.strerror(int(found[1])) if found else (text.splitlines() or [type(error).__name__])[0][:_MAX_REASON]


def repair(path: Path) -> None:
    """Mend the superblock of a file whose writer was killed; 48 bytes change, and nothing else.

    The caller holds the `Lock`, or nobody does. Clears the consistency flags and raises the end-of-file
    mark to the file's size: the writer's last flush left the tree sound (SWMR), but not these. A sound file
    is left untouched. Raises FileError if the file is not HDF5, or is shorter than it was when it was
    closed.
    """
    with open(path, "r+b") as file:
        superblock = _superblock(path, file)
        size = file.seek(0, os.SEEK_END)
        flags, end = superblock[4], superblock[7]
        if not flags:
            return
        _require_no_writer(path)
        if size < end:  # killed between allocating the space and writing to it: nothing there was committed
            with suppress(OSError):  # a file of that size may not be allowed: the space is then given back
                size = file.truncate(end)
        mended = SUPERBLOCK.pack(*superblock[:4], 0, *superblock[5:7], size, superblock[8], 0)
        file.seek(0)
        file.write(with_checksum(mended))
        file.flush()
        os.fsync(file.fileno())


def _require_no_writer(path: Path) -> None:
    """Raise FileError while another program, or a handle of the user's in this one, has a file open for writing."""
    from .opening import open_file

    try:
        open_file(path, locking=True).close()
    except OSError as error:  # of a killed writer's file in any case; HDF5 asks for its lock first
        if reason(error) == os.strerror(errno.EAGAIN):
            message = f"{path}: is open for writing in h5py or another program; close it there first"
            raise FileError(message) from None


def require_regular(path: str | Path) -> None:
    """Raise FileError for a device or a pipe: opening one may wait for ever."""
    if is_special(path):
        raise FileError(f"{path}: is a device or a pipe; expected a file")


def is_open_for_writing(path: Path) -> bool:
    """Whether HDF5's mark of a writer is set, of one that is alive or was killed.

    Raises FileError if the file is missing, unreadable, not HDF5, or cut short.
    """
    require_regular(path)
    try:
        with open(path, "rb") as file:
            superblock = _superblock(path, file)
            size = file.seek(0, os.SEEK_END)
    except OSError as error:
        raise FileError(f"{path}: cannot read it: {reason(error)}") from error
    if not superblock[4] and size < superblock[7]:
        raise FileError(f"{path}: truncated, {size} of {superblock[7]} bytes are there")
    return bool(superblock[4])


def with_checksum(data: bytes) -> bytes:
    """A file's bytes, or its superblock's alone, with the superblock's checksum as its other fields have it."""
    fields = data[: SUPERBLOCK.size - 4]
    return fields + struct.pack("<I", lookup3(fields)) + data[SUPERBLOCK.size :]


def lookup3(data: bytes) -> int:
    """Bob Jenkins' lookup3 hash (hashlittle) with initial value 0, the checksum of HDF5's metadata."""
    a = b = c = (0xDEADBEEF + len(data)) % 2**32
    words = struct.unpack(f"<{-(-len(data) // 12) * 3}I", data.ljust(-(-len(data) // 12) * 12, b"\0"))
    for i in range(0, len(words) - 3, 3):
        a, b, c = _mix(a + words[i], b + words[i + 1], c + words[i + 2])
    return _final(a + words[-3], b + words[-2], c + words[-1]) if words else c


def _rotate(x: int, bits: int) -> int:
    x %= 2**32
    return (x << bits | x >> (32 - bits)) % 2**32


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for bits in (4, 6, 8, 16, 19, 4):
        a, b, c = b, c + b, (a - c) ^ _rotate(c, bits)  # the three roles turn at each step
    return a % 2**32, b % 2**32, c % 2**32


def _final(a: int, b: int, c: int) -> int:
    for bits in (14, 11, 25, 16, 4, 14, 24):
        a, b, c = b, (c ^ b) - _rotate(b, bits), a
    return b % 2**32


def _superblock(path: Path, file: BinaryIO) -> tuple[Any, ...]:
    head = file.read(SUPERBLOCK.size)
    if len(head) < SUPERBLOCK.size or not head.startswith(SIGNATURE):
        raise FileError(f"{path}: not an HDF5 file")
    superblock = SUPERBLOCK.unpack(head)
    if superblock[1] == 3 and superblock[9] != lookup3(head[:-4]):
        raise FileError(f"{path}: damaged: its first {len(head)} bytes, which say where all else is")
    if superblock[1] != 3 or superblock[2:4] != (8, 8):
        raise FileError(f"{path}: not a run file of this package (HDF5 superblock version {superblock[1]}, expected 3)")
    return superblock
