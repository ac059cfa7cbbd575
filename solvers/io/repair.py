"""Repair of the file of a killed writer.

HDF5 marks a file that is open for writing in the superblock and rejects the file until the writer has closed it. A
killed writer leaves the mark; `repair` clears it.
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
    """Error of a run file or a checkpoint that cannot be used; the message is one line for the user.

    Examples
    --------
    >>> from solvers import FileError, read
    >>> try:
    ...     read("absent.h5")
    ... except FileError as error:
    ...     print(error)
    absent.h5: cannot read it: No such file or directory
    """


def reason(error: Exception) -> str:
    """Return the operating system's message for an error, extracted from HDF5's text if necessary."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)  # h5py appends HDF5's whole text to some numbers
    found = re.search(r"errno = (\d+)", str(error))
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    return os.strerror(int(found[1])) if found else (text.splitlines() or [type(error).__name__])[0][:_MAX_REASON]


def repair(path: Path) -> None:
    """Repair the superblock (HDF5's header of 48 bytes) of a file whose writer was killed; other data are unchanged.

    No process other than the caller may hold the `Lock`. Clears the consistency flags and raises the end-of-file mark
    to the file's size: the last flush of the writer left the tree valid (SWMR), but not these fields. A valid file is
    unchanged. Raises FileError if the file is not HDF5, or is shorter than at its closing.
    """
    with open(path, "r+b") as file:
        superblock = _superblock(path, file)
        size = file.seek(0, os.SEEK_END)
        flags, end = superblock[4], superblock[7]
        if not flags:
            return
        _require_no_writer(path)
        if size < end:  # killed between allocation and write: nothing there was committed
            with suppress(OSError):  # the size may be forbidden: the allocation is then dropped
                size = file.truncate(end)
        repaired = SUPERBLOCK.pack(*superblock[:4], 0, *superblock[5:7], size, superblock[8], 0)
        file.seek(0)
        file.write(with_checksum(repaired))
        file.flush()
        os.fsync(file.fileno())


def _require_no_writer(path: Path) -> None:
    """Raise FileError while another program, or a handle in this process, has the file open for writing."""
    from .opening import open_file

    try:
        open_file(path, locking=True).close()
    except OSError as error:  # always raised for the file of a killed writer; HDF5 requests its lock first
        if reason(error) == os.strerror(errno.EAGAIN):
            message = f"{path}: is open for writing in h5py or another program; close it there first"
            raise FileError(message) from None


def require_regular(path: str | Path) -> None:
    """Raise FileError for a device or a pipe, which might block at opening."""
    if is_special(path):
        raise FileError(f"{path}: is a device or a pipe; expected a file")


def is_open_for_writing(path: Path) -> bool:
    """Return whether a file has HDF5's mark of a writer, which is set during writing and remains after a kill.

    Raises FileError if the file is missing, unreadable, not HDF5, or truncated.
    """
    require_regular(path)
    try:
        with open(path, "rb") as file:
            superblock = _superblock(path, file)
            size = file.seek(0, os.SEEK_END)
    except OSError as error:
        raise FileError(f"{path}: cannot read it: {reason(error)}") from error
    if not superblock[4] and size < superblock[7]:
        raise FileError(f"{path}: truncated, it has {size} of {superblock[7]} bytes")
    return bool(superblock[4])


def with_checksum(data: bytes) -> bytes:
    """Return the bytes of an HDF5 file or of its superblock, with the superblock's checksum computed anew."""
    fields = data[: SUPERBLOCK.size - 4]
    return fields + struct.pack("<I", lookup3(fields)) + data[SUPERBLOCK.size :]


def lookup3(data: bytes) -> int:
    """Return Bob Jenkins' lookup3 hash (hashlittle) with initial value 0, the checksum of HDF5's metadata."""
    a = b = c = (0xDEADBEEF + len(data)) % 2**32
    words = struct.unpack(f"<{-(-len(data) // 12) * 3}I", data.ljust(-(-len(data) // 12) * 12, b"\0"))
    for i in range(0, len(words) - 3, 3):
        a, b, c = _mix(a + words[i], b + words[i + 1], c + words[i + 2])
    return _final(a + words[-3], b + words[-2], c + words[-1]) if words else c


def _rotate(x: int, bits: int) -> int:
    """Return the lower 32 bits of ``x`` rotated to the left by a number of bits."""
    x %= 2**32
    return (x << bits | x >> (32 - bits)) % 2**32


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    """Return three 32-bit words after one mixing step of the lookup3 hash."""
    for bits in (4, 6, 8, 16, 19, 4):
        a, b, c = b, c + b, (a - c) ^ _rotate(c, bits)  # the three roles rotate at each step
    return a % 2**32, b % 2**32, c % 2**32


def _final(a: int, b: int, c: int) -> int:
    """Return the lookup3 hash after the final mixing of three 32-bit words."""
    for bits in (14, 11, 25, 16, 4, 14, 24):
        a, b, c = b, (c ^ b) - _rotate(b, bits), a
    return b % 2**32


def _superblock(path: Path, file: BinaryIO) -> tuple[Any, ...]:
    """Return the fields of a file's HDF5 superblock; raise FileError if it is damaged or has another version than 3."""
    head = file.read(SUPERBLOCK.size)
    if len(head) < SUPERBLOCK.size or not head.startswith(SIGNATURE):
        raise FileError(f"{path}: not an HDF5 file")
    superblock = SUPERBLOCK.unpack(head)
    if superblock[1] == 3 and superblock[9] != lookup3(head[:-4]):
        raise FileError(f"{path}: damaged: its first {len(head)} bytes, the superblock")
    if superblock[1] != 3 or superblock[2:4] != (8, 8):
        raise FileError(f"{path}: not a run file of this package (HDF5 superblock version {superblock[1]}, expected 3)")
    return superblock
