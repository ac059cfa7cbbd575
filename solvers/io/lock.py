"""Write lock of a run file, held by one process at a time.

A writer locks ``FILE.lock``, which names the writer. The operating system releases the lock when the process ends in
any way: a lock file without a lock is a leftover. Another file of this name is never changed.
"""

from __future__ import annotations

import os
import platform
import re
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from filelock import lock_descriptor

from .repair import FileError, reason

TIMEOUT = 0.5  # seconds: a reader that probes the lock or repairs the file holds it for milliseconds
PROBES, PAUSE = 5, 1e-3  # of a reader, since a reader in another process may probe the lock simultaneously
ANOTHER = "another process"
_CONTENT = re.compile(r"process \d+ on [^\n]{0,255}")
_MAX_LENGTH = 400  # bytes of such a text
_probing = threading.Lock()  # serializes the probes of readers in one process


class Lock:
    """Write lock of the run file ``path``, held from construction to `release`.

    Raises FileError if another process holds the lock after ``timeout`` seconds (naming that process), if ``FILE.lock``
    is no lock file, or if the folder cannot be written.
    """

    def __init__(self, path: Path, *, timeout: float = TIMEOUT) -> None:
        self._name, deadline = lock_name(path), time.monotonic() + timeout
        try:
            while (file := _open_locked(path, self._name)) is None:
                if time.monotonic() > deadline:
                    raise FileError(f"{path}: being written by {holder(path) or ANOTHER}")
                time.sleep(timeout / 20)
            self._file = file
            with self.released_on_error():
                file.truncate(0)
                file.write(f"process {os.getpid()} on {platform.node()}".encode())
        except OSError as error:
            raise FileError(f"{path}: cannot lock it for writing: {reason(error)}") from error

    @property
    def released(self) -> bool:
        """Return whether the lock has been released."""
        return self._file.closed

    @contextmanager
    def released_on_error(self) -> Iterator[None]:
        """Release the lock if the ``with`` block raises an exception."""
        try:
            yield
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Release the lock, and remove the lock file. A second call does nothing."""
        if self._file.closed or not _is_named(self._file, self._name):
            self._file.close()
            return
        try:
            self._name.unlink(missing_ok=True)  # while the lock is held, so that no newer lock is removed
        except PermissionError:
            self._file.close()
            with suppress(PermissionError):  # Windows removes only closed files
                self._name.unlink(missing_ok=True)
        self._file.close()


def holder(path: Path) -> str | None:
    """Return the process that is writing the run file ``path``, as "process 123 on name"; None if there is none."""
    name, writer = lock_name(path), None
    for _ in range(PROBES):
        try:
            if (writer := _writer_in(name)) is None:
                return None
            with _probing, open(name, "rb") as file:
                if lock_descriptor(file.fileno(), blocking=False):
                    return None
        except FileNotFoundError:
            return None
        except OSError:  # no permission: the lock file of another user counts as held
            break
        time.sleep(PAUSE)
    return writer or ANOTHER


def remove_leftover(path: Path) -> None:
    """Remove the lock file of a killed writer of ``path``, if there is one and the folder is writable."""
    if os.path.lexists(lock_name(path)):
        with suppress(FileError):
            Lock(path).release()


def lock_name(path: Path) -> Path:
    """Return the path of the lock file of a run file."""
    return path.with_name(path.name + ".lock")


def _open_locked(path: Path, name: Path) -> BinaryIO | None:
    """Return the lock file of ``path``, open and locked; None if another process holds or has just removed it.

    Raises FileError if the file ``name`` exists and is no lock file.
    """
    with suppress(FileNotFoundError):  # there is none, or another process has just removed it
        if _writer_in(name) is None:
            raise FileError(f"{name}: is not a lock file and is not replaced; choose another name for {path}")
    file = open(name, "a+b", buffering=0)  # noqa: SIM115
    if lock_descriptor(file.fileno(), blocking=False) and _is_named(file, name):
        return file
    file.close()
    return None


def _writer_in(name: Path) -> str | None:
    """Return the process that a lock file names; "" for an empty file, None for a file that is no lock file."""
    if not stat.S_ISREG(os.lstat(name).st_mode):
        return None
    with open(name, "rb", buffering=0) as file:
        file.seek(1)  # on Windows the first byte is locked and unreadable for others
        rest = file.read(_MAX_LENGTH).decode(errors="replace")
    writer = rest and f"p{rest}"
    return writer if not writer or _CONTENT.fullmatch(writer) else None


def _is_named(file: BinaryIO, name: Path) -> bool:
    """Return whether ``name`` still refers to an open file, which another process may have removed or replaced."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(name))
    except FileNotFoundError:
        return False
