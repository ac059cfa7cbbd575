"""Write lock of a run file, held by one process at a time.

A writer locks ``FILE.lock``, which names the writer. The operating system drops the lock when the process dies, however
it dies: a lock file that nobody holds is a leftover. Another file of this name is somebody else's, and stays as it is.
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

PATIENCE = 0.5  # seconds: a reader that probes the lock or repairs the file holds it for milliseconds
PROBES, PAUSE = 5, 1e-3  # of a reader, for one in another process may probe the lock at the same moment
ANOTHER = "another process"
_CONTENT = re.compile(r"process \d+ on [^\n]{0,255}")
_MAX_LENGTH = 400  # bytes of such a text
_probing = threading.Lock()  # readers in one process probe a lock one after the other


class Lock:
    """The right to write ``path``, held from construction to `release`.

    Raises FileError when another process holds it after ``patience`` seconds (naming that process), when ``FILE.lock``
    is no lock file, or when the folder cannot be written.
    """

    def __init__(self, path: Path, *, patience: float = PATIENCE) -> None:
        self._name, deadline = lock_name(path), time.monotonic() + patience
        try:
            while (file := _locked(path, self._name)) is None:
                if time.monotonic() > deadline:
                    raise FileError(f"{path}: being written by {holder(path) or ANOTHER}")
                time.sleep(patience / 20)
            self._file = file
            with self.kept_if_well():
                file.truncate(0)
                file.write(f"process {os.getpid()} on {platform.node()}".encode())
        except OSError as error:
            raise FileError(f"{path}: cannot lock it for writing: {reason(error)}") from error

    @property
    def released(self) -> bool:
        return self._file.closed

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
        if self._file.closed or not _is_named(self._file, self._name):
            self._file.close()
            return
        try:
            self._name.unlink(missing_ok=True)  # while it is held, so that nobody's newer lock is removed
        except PermissionError:
            self._file.close()
            with suppress(PermissionError):  # Windows removes a file that nobody has open
                self._name.unlink(missing_ok=True)
        self._file.close()


def holder(path: Path) -> str | None:
    """Return who is writing ``path`` now, as "process 123 on name", or None."""
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
        except OSError:  # not ours to read: the lock file of another user is one that is held
            break
        time.sleep(PAUSE)
    return writer or ANOTHER


def remove_leftover(path: Path) -> None:
    """Remove the lock file of a writer of ``path`` that was killed, if there is one and the folder lets it go."""
    if os.path.lexists(lock_name(path)):
        with suppress(FileError):
            Lock(path).release()


def lock_name(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _locked(path: Path, name: Path) -> BinaryIO | None:
    """Return the lock file, held; None if another process holds it or has just removed it."""
    if os.path.lexists(name) and _writer_in(name) is None:
        raise FileError(f"{name}: is no lock file, and stays as it is; choose another name for {path}")
    file = open(name, "a+b", buffering=0)  # noqa: SIM115
    if lock_descriptor(file.fileno(), blocking=False) and _is_named(file, name):
        return file
    file.close()
    return None


def _writer_in(name: Path) -> str | None:
    """Return the writer that a lock file names, "" before it has its content; None for a file of somebody else."""
    if not stat.S_ISREG(os.lstat(name).st_mode):
        return None
    with open(name, "rb", buffering=0) as file:
        file.seek(1)  # nobody else can read the first byte on Windows, where it is what is locked
        rest = file.read(_MAX_LENGTH).decode(errors="replace")
    writer = rest and f"p{rest}"
    return writer if not writer or _CONTENT.fullmatch(writer) else None


def _is_named(file: BinaryIO, name: Path) -> bool:
    """Return whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(name))
    except FileNotFoundError:
        return False
