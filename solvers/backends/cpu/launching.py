"""Compilation and launch of CPU kernels.

Every kernel takes ``(worker, workers, ...)`` and does that worker's share; :func:`launch` runs the shares on all cores.
Kernels gather (a cell sums its own sides, a ring its own modes), so results do not depend on the number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from typing import Any

import numpy as np

from .caching import compiled

WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
SHARE = 10_000  # minimum number of items of about 10 ns for each thread: a call of a thread takes up to half as long

kernel = compiled()
inline = compiled(inline="always")


@cache
def _pool() -> ThreadPoolExecutor:
    """Return the pool of threads that run parts of kernels, started on first use."""
    return ThreadPoolExecutor(max(WORKERS - 1, 1), "solvers")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of its parent's threads


def workers_for(work: int, relative_speed: int = 1) -> int:
    """Return the number of threads for ``work`` items of a kernel, one for little work.

    ``relative_speed`` items take as long as one item of most kernels.
    """
    return max(1, min(WORKERS, work // (relative_speed * SHARE)))


def launch(kernel: Callable[..., Any], work: int, *arguments: Any) -> list[Any]:
    """Run ``kernel(worker, workers, *arguments)`` for all workers in parallel; return the list of their results.

    ``work`` is the number of items that the kernel visits: little work has one worker. The calling thread runs the
    shares that no thread has started, as when other kernels occupy the cores.
    """
    workers = workers_for(work, getattr(kernel, "relative_speed", 1))
    if workers == 1:
        return [kernel(0, 1, *arguments)]
    shares = [_pool().submit(kernel, worker, workers, *arguments) for worker in range(1, workers)]
    try:
        results = [kernel(0, workers, *arguments)]
        for worker, share in enumerate(shares, 1):
            results.append(kernel(worker, workers, *arguments) if share.cancel() else share.result())
    except BaseException:
        wait([share for share in shares if not share.cancel()])  # no thread writes to the arguments afterward
        raise
    return results


@inline
def share(worker, workers, items):
    """Return the first item and the last + 1 of one worker, if ``items`` are divided evenly among ``workers``.

    Each worker has contiguous items.
    """
    return items * worker // workers, items * (worker + 1) // workers


@inline
def index(i):
    """Return an index as an unsigned integer: without a test for negative indices, loops use vector instructions."""
    return np.uint64(i)


@inline
def put(scattered, place, amount):
    """Add an amount to entry ``place`` of ``scattered``; on a GPU append both to a list, which is summed later."""
    scattered[place] += amount


@inline
def scratch(shape):
    """Return an uninitialized float64 array for temporary values of one thread.

    The shape is a literal in the code of the caller, as local arrays on a GPU require.
    """
    return np.empty(shape, np.float64)
