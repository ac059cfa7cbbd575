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
SHARE = 10_000  # minimum number of items, of some 10 ns, for each thread: to call a thread takes up to half as long

kernel = compiled()
inline = compiled(inline="always")


@cache
def _pool() -> ThreadPoolExecutor:
    """Return the threads that run shares of kernels, which start when they are first needed."""
    return ThreadPoolExecutor(max(WORKERS - 1, 1), "solvers")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a child has none of its parent's threads


def workers_for(work: int, light: int = 1) -> int:
    """Return the number of workers for ``work`` items, of which ``light`` take as long as one of most kernels."""
    return max(1, min(WORKERS, work // (light * SHARE)))


def launch(kernel: Callable[..., Any], work: int, *arguments: Any) -> list[Any]:
    """Run ``kernel(worker, workers, *arguments)`` for every worker; return the result of each.

    ``work`` is the number of items that the kernel visits: with little work there is one worker. Shares that no thread
    has begun, as where other kernels have the cores, are done by the calling thread.
    """
    workers = workers_for(work, getattr(kernel, "light", 1))
    if workers == 1:
        return [kernel(0, 1, *arguments)]
    shares = [_pool().submit(kernel, worker, workers, *arguments) for worker in range(1, workers)]
    try:
        results = [kernel(0, workers, *arguments)]
        for worker, share in enumerate(shares, 1):
            results.append(kernel(worker, workers, *arguments) if share.cancel() else share.result())
    except BaseException:
        wait([share for share in shares if not share.cancel()])  # after it no thread writes into the arguments
        raise
    return results


@inline
def share(worker, workers, items):
    """First and last + 1 of a worker's contiguous share."""
    return items * worker // workers, items * (worker + 1) // workers


@inline
def index(i):
    """An index that is not negative, and not tested for being so: loops over such indices use vector instructions."""
    return np.uint64(i)


@inline
def put(scattered, place, amount):
    """Add an amount to ``scattered`` at a place; a device first collects such amounts apart."""
    scattered[place] += amount


@inline
def scratch(shape):
    """Numbers of a worker's own in float64, not filled; the shape is written out where this is called."""
    return np.empty(shape, np.float64)


@inline
def rows_of_run():
    """Such numbers for up to 120 cells at a time, a row of each kind of number; for one cell on a device."""
    return np.empty((27, 120), np.float64)
