"""What keeps one writer to a file, and what mends the file of a writer that was killed.

A writer holds an advisory lock on ``FILE.lock``; the operating system drops it when the process dies,
however it dies, so a lock file that nobody holds is a leftover. HDF5 marks a file that is open for writing
in its superblock and refuses it until the writer has closed it. A killed writer never does; `repair` clears
that mark.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

SIGNATURE = b"\x89HDF\r\n\x1a\n"
SUPERBLOCK = struct.Struct(
    "<8sBBBBQQQQI"
)  # signature, version, sizes of offset and length, flags, 4 addresses, checksum
PATIENCE = 0.5  # seconds: a reader that probes the lock or repairs holds it for milliseconds
HELD_UP = 60.0  # seconds: a reader that holds it longer has been stopped


class FileError(Exception):
    """A run file or checkpoint cannot be used; the message is one line fit for a user."""


def reason(error: Exception) -> str:
    """The operating system's words for what went wrong, dug out of HDF5's error text where necessary."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)  # h5py puts HDF5's whole text beside some numbers
    found = re.search(r"errno = (\d+)", str(error))
    return os.strerror(int(found[1])) if found else str(error).splitlines()[0]


class Lock:
    """The right to write ``path``, held from construction to `release`.

    Raises FileError when another process holds it (naming that process) or when the folder cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._name = _lock_name(path)
        began = time.monotonic()
        while (lock := self._try(path)) is None:
            waited = time.monotonic() - began
            # A reader that probes the lock may be held up just then: that is no writer, and it is waited for.
            writer = holder(path) if waited > PATIENCE else None
            if writer is not None or waited > HELD_UP:
                raise FileError(f"{path}: being written by {writer or 'another process'}")
            time.sleep(PATIENCE / 20)
        self._lock = lock
        self._lock.truncate(0)
        self._lock.write(f"process {os.getpid()} on {platform.node()}".encode())
        self._lock.flush()

    def _try(self, path: Path) -> BinaryIO | None:
        """The locked file, or None if another process holds it or has just removed it."""
        try:
            lock = open(os.open(self._name, os.O_RDWR | os.O_CREAT, 0o666), "r+b")  # noqa: SIM115
        except OSError as error:
            raise FileError(f"{path}: cannot lock it for writing: {reason(error)}") from error
        if _flock(lock, fcntl.LOCK_EX) and _same_file(lock, self._name):
            return lock
        lock.close()
        return None

    @property
    def released(self) -> bool:
        return self._lock.closed

    @contextmanager
    def kept_if_well(self) -> Iterator[None]:
        """Give the right back if the block raises."""
        try:
            yield
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Give the right back. A second call does nothing."""
        if not self._lock.closed:
            self._name.unlink(missing_ok=True)  # while still held, so that nobody's newer lock is removed
            self._lock.close()


def holder(path: Path) -> str | None:
    """Who is writing ``path`` now, as "process 123 on name", or None."""
    try:
        lock = open(_lock_name(path), "rb")  # noqa: SIM115
    except FileNotFoundError:
        return None
    with lock:
        if _flock(lock, fcntl.LOCK_SH):
            return None
        return lock.read().decode() or "another process"


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
        if size < end:  # killed between allocating the space and writing to it: nothing there was committed
            file.truncate(end)
        mended = SUPERBLOCK.pack(*superblock[:4], 0, *superblock[5:7], max(size, end), superblock[8], 0)
        file.seek(0)
        file.write(mended[:-4] + struct.pack("<I", lookup3(mended[:-4])))
        file.flush()
        os.fsync(file.fileno())


def is_open_for_writing(path: Path) -> bool:
    """Whether HDF5's mark of a writer is set, of one that is alive or was killed.

    Raises FileError if the file is missing, unreadable, not HDF5, or cut short.
    """
    try:
        with open(path, "rb") as file:
            superblock = _superblock(path, file)
            size = file.seek(0, os.SEEK_END)
    except OSError as error:
        raise FileError(f"{path}: cannot read it: {reason(error)}") from error
    if not superblock[4] and size < superblock[7]:
        raise FileError(f"{path}: truncated, {size} of {superblock[7]} bytes are there")
    return bool(superblock[4])


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


def _superblock(path: Path, file: BinaryIO) -> tuple:
    head = file.read(SUPERBLOCK.size)
    if len(head) < SUPERBLOCK.size or not head.startswith(SIGNATURE):
        raise FileError(f"{path}: not an HDF5 file")
    superblock = SUPERBLOCK.unpack(head)
    if superblock[1] != 3 or superblock[2:4] != (8, 8):
        raise FileError(f"{path}: not a run file of this package (HDF5 superblock version {superblock[1]}, expected 3)")
    return superblock


def _lock_name(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _flock(lock: BinaryIO, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _same_file(lock: BinaryIO, name: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock.fileno()), os.stat(name))
    except FileNotFoundError:
        return False
