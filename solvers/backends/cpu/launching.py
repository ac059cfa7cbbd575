"""Compilation and launch of CPU kernels.

Every kernel takes ``(worker, workers, ...)`` and does that worker's share; :func:`launch` runs the shares on all cores.
Kernels gather (a cell sums its own sides, a ring its own modes), so results do not depend on the number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

from .caching import compiled

WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
INLINE_WORK = 20_000  # below this many items a kernel is done before a second thread has taken its share

kernel = compiled()
inline = compiled(inline="always")


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(WORKERS - 1, 1), thread_name_prefix="solvers")


def workers_for(work: int) -> int:
    """The number of workers that share so many items."""
    return WORKERS if work >= INLINE_WORK else 1


def launch(kernel: Callable[..., Any], work: int, *arguments: Any) -> list[Any]:
    """Run ``kernel(worker, workers, *arguments)`` for every worker; returns what each returned.

    ``work`` is the number of items that the kernel visits: with little work there is one worker.
    """
    workers = workers_for(work)
    if workers == 1:
        return [kernel(0, 1, *arguments)]
    others = [_pool().submit(kernel, worker, workers, *arguments) for worker in range(1, workers)]
    return [kernel(0, workers, *arguments), *(other.result() for other in others)]


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
