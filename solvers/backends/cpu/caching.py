"""Numba's compiled kernels on disk, for several processes that compile at the same time.

Numba reads a function's index, adds a signature under the next free name, and writes the index and then the code,
in files of their own. Of two processes that do so at once one loses its signature, or the index names the other's
code: then every call from there on fails ("can't unbox array"), in every process, until the cache is deleted.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from inspect import unwrap
from typing import Any

from numba.core.caching import IndexDataCacheFile

_save, _load = unwrap(IndexDataCacheFile.save), unwrap(IndexDataCacheFile.load)  # Numba's, were this loaded twice


def save_one_by_one() -> None:
    """Have Numba write a function's index and code, and read them, while no other process writes them."""
    for name, method in (("save", _save_alone), ("load", _load_whole)):
        setattr(IndexDataCacheFile, name, method)


@wraps(_save)
def _save_alone(files: IndexDataCacheFile, key: Any, data: Any) -> None:
    with _held(files, "ab", fcntl.LOCK_EX):
        _save(files, key, data)


@wraps(_load)
def _load_whole(files: IndexDataCacheFile, key: Any) -> Any:
    with _held(files, "rb", fcntl.LOCK_SH):
        return _load(files, key)


@contextmanager
def _held(files: IndexDataCacheFile, mode: str, kind: int) -> Iterator[None]:
    """A lock on a function's files; none where there is no file to lock, or its disk knows no locks."""
    try:
        lock = open(f"{files._index_path}.lock", mode)  # noqa: SIM115
    except OSError:  # nothing was ever written, or is being read from where nothing can be
        yield
        return
    with lock:
        with suppress(OSError):
            fcntl.flock(lock, kind)
        yield
