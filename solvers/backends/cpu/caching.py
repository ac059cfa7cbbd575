"""Compilation of CPU kernels by Numba's public interface, and the folder of the compiled code.

The folder is ``NUMBA_CACHE_DIR`` if set, else a folder of this package in the user's cache, never beside the sources,
where an uninstallation would leave it. Every set of sources, version of Numba and version of Python has a subfolder,
since Numba does not detect the change of a function that another file calls. Numba separates the code for different
processors. Kernels are compiled in memory if no folder is writable.
"""

from __future__ import annotations

import hashlib
import logging
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numba
from filelock import FileLock
from numba import njit
from platformdirs import user_cache_path

LONGEST_WAIT = 60.0  # seconds for another process to compile a function: ten at most, but it may be suspended
_PROBE_BYTES = 4096  # written to detect a full disk
_UNREADABLE = (OSError, EOFError, pickle.UnpicklingError)  # for files of code that a crash or a user has truncated
_settings: Any = numba.config  # has no types
_decorating, _compiling = threading.RLock(), threading.RLock()


def compiled(*, relative_speed: int = 1, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that compiles a function by Numba on first use, without Python's lock.

    Options are those of Numba's njit.

    relative_speed   number of items of a kernel that take as long as one item of most kernels, about 10 ns
    """

    def compile_lazily(function: Callable[..., Any]) -> Any:
        folder = kernel_folder()
        with _numba_set(folder):
            dispatcher = njit(nogil=True, error_model="numpy", cache=folder is not None, **options)(function)
        dispatcher.relative_speed = relative_speed
        dispatcher.compile = partial(_compile, dispatcher)
        return dispatcher

    return compile_lazily


@contextmanager
def _numba_set(folder: Path | None) -> Iterator[None]:
    """Set Numba's cache folder and switch its compilation on for the block; restore the user's settings at its end."""
    with _decorating:
        before = _settings.CACHE_DIR, _settings.DISABLE_JIT
        _settings.CACHE_DIR, _settings.DISABLE_JIT = str(folder or ""), 0
        try:
            yield
        finally:
            _settings.CACHE_DIR, _settings.DISABLE_JIT = before


@cache
def kernel_folder() -> Path | None:
    """Return the folder where compiled kernels are saved; None, after a warning, if it cannot be written."""
    parent = _folder_of_versions()
    folder = parent / f"{sys.implementation.cache_tag}-numba-{numba.__version__}-{_hash_of_sources()}"
    try:
        if not folder.is_absolute():
            raise OSError("expected an absolute path")  # for a user without a home folder
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_PROBE_BYTES))
    except OSError as error:
        _warn(parent, error.strerror or str(error))
        return None
    return folder


def _folder_of_versions() -> Path:
    """Return the folder of the compiled kernels of all versions; a relative path for a user without a home folder."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen).absolute()
    try:
        return user_cache_path("solvers") / "kernels"
    except RuntimeError:  # the system does not know the user, as in some containers
        return Path("~/.cache/solvers/kernels")


def _hash_of_sources() -> str:
    """Return a hash of the source files of all backends, which names the folder of their compiled code."""
    found = hashlib.sha256()
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        found.update(file.read_bytes() + b"\0")
    return found.hexdigest()[:16]


@cache
def _warn(folder: Path, reason: str) -> None:
    """Log a warning that kernels are compiled in memory, since a folder cannot be used for some reason.

    Each warning is logged once.
    """
    consequence = "each process compiles its own; NUMBA_CACHE_DIR names another folder"
    logging.getLogger("solvers").warning("%s: cannot keep compiled kernels (%s); %s", folder, reason, consequence)


def _compile(dispatcher: Any, signature: Any) -> Any:
    """Load the code of a kernel for argument types (``signature``), or compile and save it, under a lock.

    Numba's own files are not safe without a lock for each function: two processes that add a signature choose the same
    file.
    """
    compile_now = partial(type(dispatcher).compile, dispatcher, signature)
    folder = dispatcher.stats.cache_path
    if folder is None:
        return compile_now()
    function = dispatcher.py_func
    name = f"{Path(function.__code__.co_filename).stem}.{function.__qualname__}-{function.__code__.co_firstlineno}"
    with _compiling, _hold_lock(Path(folder, f"{name}.lock")):
        try:
            return compile_now()
        except _UNREADABLE as error:
            _warn(Path(folder).parents[1], getattr(error, "strerror", None) or str(error))
            for file in Path(folder).glob(f"{name}.*.nbi"):
                with suppress(OSError):
                    file.unlink()
            return compile_now()  # if the code cannot be written, Numba keeps it in memory


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    """Hold a file as a lock among processes for the block; continue without it if it cannot be held.

    Some disks do not support locks, and waiting for a lock ends after LONGEST_WAIT seconds.
    """
    lock = FileLock(path, timeout=LONGEST_WAIT)
    with suppress(OSError, NotImplementedError):
        lock.acquire(poll_interval=0.01)
    try:
        yield
    finally:
        lock.release()
