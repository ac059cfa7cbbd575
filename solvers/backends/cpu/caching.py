"""Compiled kernels on disk, by Numba, for several processes that compile at the same time.

Numba reads a function's index, adds a signature under the next free name, and writes the index and then the code,
in files of their own. Of two processes that do so at once one loses its signature, or the index names the other's
code: then every call from there on fails ("can't unbox array"), in every process, until the cache is deleted.
Functions of :func:`compiled` are read and written under a lock, and each is compiled by one process, whose code the
others read; other functions that Numba caches are left as they are.
"""

from __future__ import annotations

import fcntl
import gc
import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUTargetOptions
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys

LONGEST_WAIT = 60.0  # seconds for another process to compile a function, which takes at most ten: it may be suspended


def compiled(*, apart: bool = False, light: int = 1, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Decorator: compile by Numba without Python's lock, on first use, and keep the code on disk; options as njit's.

    apart   whether no array that the function writes shares memory with another argument: its loops use vector
            instructions then, without being asked whether it does, and numbers out of arrays stay in registers
    light   how many items of a kernel take as long as one of most kernels, some 10 ns
    """
    compiler = njit(nogil=True, error_model="numpy", **options)

    def compile_lazily(function: Callable[..., Any]) -> Any:
        dispatcher = compiler(function)
        dispatcher._cache = LockedCache(function)
        dispatcher.light = light
        dispatcher.compile = partial(_compile, dispatcher)
        if apart:
            dispatcher._compiler.targetdescr = _APART
        return dispatcher

    return compile_lazily


def _compile(dispatcher: Any, signature: Any) -> Any:
    """Numba's, which loads code or compiles and saves it, while no other process does so with the same function.

    Numba's own lock comes first, as it does where one function calls another: two threads cannot wait for each other.
    """
    with global_compiler_lock, dispatcher._cache.alone(), _keeping_garbage():
        return type(dispatcher).compile(dispatcher, signature)


@contextmanager
def _keeping_garbage() -> Iterator[None]:
    """Without Python's search for cycles, which takes a twentieth of a compilation and finds few before its end."""
    searching = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if searching:
            gc.enable()


class _ArraysApart(CPUTargetOptions):
    """Options of functions whose arguments are apart in memory: Numba knows the flag and has no option for it."""

    def finalize(self, flags: Any, options: Any) -> None:
        super().finalize(flags, options)
        flags.noalias = True


_APART = SimpleNamespace(
    options=_ArraysApart, typing_context=cpu_target.typing_context, target_context=cpu_target.target_context
)


class LockedFiles(IndexDataCacheFile):
    """The index and the code of one function, written and read while no other process writes them."""

    def save(self, key: Any, data: Any) -> None:
        with self._locked("ab", fcntl.LOCK_EX):
            super().save(key, data)

    def load(self, key: Any) -> Any:
        with self._locked("rb", fcntl.LOCK_SH):
            return super().load(key)

    @contextmanager
    def _locked(self, mode: str, kind: int) -> Iterator[None]:
        """A lock on the function's files; none where there is no file to lock, or its disk knows no locks."""
        try:
            lock = open(f"{self._index_path}.lock", mode)  # noqa: SIM115
        except OSError:  # nothing was ever written, or is being read from where nothing can be
            yield
            return
        with lock:
            with suppress(OSError):
                fcntl.flock(lock, kind)
            yield


def stamp_of(file: str) -> str:
    """A hash of the sources of all kernels here, and of the file of one elsewhere: Numba's is of one file alone.

    Code is kept as long as no source changes, also where the same version is installed again; a change of a function
    that others have inlined is one of all.
    """
    package = Path(__file__).parent
    return _hash(_kernels()) + ("" if package in Path(file).parents else _hash((Path(file),)))


@cache
def _kernels() -> tuple[Path, ...]:
    return tuple(sorted(Path(__file__).parent.rglob("*.py")))


@cache
def _hash(files: tuple[Path, ...]) -> str:
    found = hashlib.sha256()
    for file in files:
        found.update(file.read_bytes() + b"\0")
    return found.hexdigest()


class LockedCache(FunctionCache):
    """Numba's cache of one function, in such files."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        # Numba makes the files within its constructor; they hold three values and nothing that is open.
        self._cache_file.__class__ = LockedFiles
        self._cache_file._source_stamp = stamp_of(function.__code__.co_filename)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """As Numba's, without the tables of all functions that it compiles: code on disk needs its run time alone."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Wait until no other process compiles the function, and keep others waiting; no longer than LONGEST_WAIT."""
        lock = self._lock()
        if lock is None:
            yield
            return
        with lock:
            give_up = time.monotonic() + LONGEST_WAIT
            while not _locked_now(lock) and time.monotonic() < give_up:
                time.sleep(0.01)
            yield

    def is_missing(self) -> bool:
        """Whether code of the function could be on disk and is not, nor does another process compile it now."""
        lock = None if self._cache_file._load_index() else self._lock()
        if lock is None:
            return False
        with lock:
            return _locked_now(lock)

    def _lock(self) -> IO[bytes] | None:
        """An opened file to lock, or none where nothing can be written."""
        path = f"{self._cache_file._index_path}.compiling"
        try:
            with suppress(FileNotFoundError):
                return open(path, "ab")
            self._impl.locator.ensure_cache_path()
            return open(path, "ab")
        except OSError:
            return None


def _locked_now(file: IO[bytes]) -> bool:
    """Whether the file is locked for this process until it is closed; also where its disk knows no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True
