"""Write lock of a run file, held by one process at a time.

A writer holds an advisory lock on ``FILE.lock``; the operating system drops it when the process dies, however it dies,
so a lock file that nobody holds is a leftover. A lock file says whose it is from its first moment on: any other file
of this name is somebody else's, and stays as it is.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from .repair import FileError, reason
from .replacing import new_file

MIN_WAIT = 0.5  # seconds: a reader that probes the lock or repairs holds it for milliseconds
MAX_WAIT = 60.0  # seconds: a reader that holds it longer has been stopped
_CONTENT = re.compile(r"process \d+ on [^\n]{0,255}")
_MAX_LENGTH = 400  # bytes of such a text


class Lock:
    """The right to write ``path``, held from construction to `release`.

    Raises FileError when another process holds it (naming that process), when ``FILE.lock`` is no lock file, or when
    the folder cannot be written.

    patience    seconds for which whoever holds the lock may be a reader, which probes it or repairs the file
    held_up     seconds after which a reader that holds it has been stopped
    """

    def __init__(self, path: Path, *, patience: float = MIN_WAIT, held_up: float = MAX_WAIT) -> None:
        self._name = lock_name(path)
        began = time.monotonic()
        while (lock := self._try(path)) is None:
            waited = time.monotonic() - began
            # A reader that probes the lock may be held up just then: that is no writer, and it is waited for.
            writer = holder(path) if waited > patience else None
            if writer is not None or waited > held_up:
                raise FileError(f"{path}: being written by {writer or 'another process'}")
            time.sleep(patience / 20)
        self._lock = lock

    def _try(self, path: Path) -> BinaryIO | None:
        """The locked file, or None if another process holds it or has just removed it."""
        try:
            if os.path.lexists(self._name) and not self._leftover_removed(path):
                return None
            return _create(self._name)
        except OSError as error:
            raise FileError(f"{path}: cannot lock it for writing: {reason(error)}") from error

    def _leftover_removed(self, path: Path) -> bool:
        """Remove the lock file of a process that has died. False where one is alive; FileError for another's file."""
        try:
            lock = _open(self._name, os.O_RDWR)
        except FileNotFoundError:
            return True
        if lock is None:
            raise FileError(f"{self._name}: is no lock file, and stays as it is; choose another name for {path}")
        with lock:
            free = _flock(lock, fcntl.LOCK_EX) and _same_file(lock, self._name)
            if free:
                self._name.unlink(missing_ok=True)  # while held, so that nobody's newer lock is removed
        return free

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
            if _same_file(self._lock, self._name):
                self._name.unlink(missing_ok=True)  # while still held, so that nobody's newer lock is removed
            self._lock.close()


def holder(path: Path) -> str | None:
    """Who is writing ``path`` now, as "process 123 on name", or None."""
    try:
        lock = _open(lock_name(path), os.O_RDONLY)
    except FileNotFoundError:
        return None
    if lock is None:
        return None
    with lock:
        if _flock(lock, fcntl.LOCK_SH):
            return None
        return lock.read(_MAX_LENGTH).decode(errors="replace")


def remove_leftover(path: Path) -> None:
    """Remove the lock file of a writer of ``path`` that was killed, if there is one and the folder lets it go."""
    if os.path.lexists(lock_name(path)):
        with suppress(FileError):
            Lock(path, held_up=MIN_WAIT).release()


def lock_name(path: Path) -> Path:
    return path.with_name(path.name + ".lock")


def _create(name: Path) -> BinaryIO | None:
    """A new lock file that is held and has its content before it has its name; None where the name is taken."""
    new = new_file(name)
    try:
        lock = _filled(new, os.O_RDWR)
        try:
            os.link(new, name, follow_symlinks=False)
        except OSError as error:
            lock.close()
            if isinstance(error, FileExistsError):
                return None
            return _create_in_place(name)  # a file system without hard links
        return lock
    finally:
        new.unlink(missing_ok=True)


def _create_in_place(name: Path) -> BinaryIO | None:
    try:
        return _filled(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    except FileExistsError:
        return None


def _filled(name: Path, mode: int) -> BinaryIO:
    """A lock file that this process holds."""
    lock = open(os.open(name, mode, 0o666), "r+b")  # noqa: SIM115
    _flock(lock, fcntl.LOCK_EX)
    lock.write(f"process {os.getpid()} on {platform.node()}".encode())
    lock.flush()
    return lock


def _open(name: Path, mode: int) -> BinaryIO | None:
    """A lock file, opened; None for a file that is none. Raises OSError where it is not there, or not ours to open."""
    if not stat.S_ISREG(os.lstat(name).st_mode):
        return None
    descriptor = os.open(name, mode | os.O_NOFOLLOW | os.O_NONBLOCK)
    file = open(descriptor, "r+b" if mode == os.O_RDWR else "rb")  # noqa: SIM115
    content = file.read(_MAX_LENGTH + 1)
    file.seek(0)
    if _CONTENT.fullmatch(content.decode(errors="replace")):
        return file
    file.close()
    return None


def _flock(lock: BinaryIO, kind: int) -> bool:
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _same_file(lock: BinaryIO, name: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock.fileno()), os.lstat(name))
    except FileNotFoundError:
        return False
