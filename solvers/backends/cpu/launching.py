"""Compilation and launch of CPU kernels.

Every kernel takes ``(worker, workers, ...)`` and does that worker's share; :func:`launch` runs the shares on all cores.
Kernels gather (a cell sums its own sides, a ring its own modes), so results do not depend on the number of workers.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue
from typing import Any

import numpy as np

from .caching import compiled

WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
SHARE = 10_000  # items, of some 10 ns, that a thread has to have: to wake it takes about as long as most of these

kernel = compiled()
inline = compiled(inline="always")


@cache
def _jobs() -> SimpleQueue[Any]:
    """What other threads have to do: (function, arguments, queue of its outcome); they wait for it from then on."""
    jobs = SimpleQueue[Any]()
    for worker in range(1, WORKERS):
        threading.Thread(target=_serve, args=(jobs,), name=f"solvers-{worker}", daemon=True).start()
    return jobs


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_jobs.cache_clear)  # a child has none of its parent's threads


def _serve(jobs: SimpleQueue[Any]) -> None:
    """Do what comes; queues of C wake a thread in less time than an executor with its futures."""
    while True:
        function, arguments, outcome = jobs.get()
        try:
            outcome.put((function(*arguments), None))
        except BaseException as error:  # raised again by who waits
            outcome.put((None, error))
        del function, arguments, outcome  # memory of theirs, until the next comes


def workers_for(work: int, light: int = 1) -> int:
    """The number of workers that share so many items, of which ``light`` take as long as one of most kernels."""
    return max(1, min(WORKERS, work // (light * SHARE)))


def launch(kernel: Callable[..., Any], work: int, *arguments: Any) -> list[Any]:
    """Run ``kernel(worker, workers, *arguments)`` for every worker; returns what each returned.

    ``work`` is the number of items that the kernel visits: with little work there is one worker.
    """
    workers = workers_for(work, getattr(kernel, "light", 1))
    if workers == 1:
        return [kernel(0, 1, *arguments)]
    outcomes = [SimpleQueue[Any]() for _ in range(1, workers)]
    for worker, outcome in enumerate(outcomes, 1):
        _jobs().put((kernel, (worker, workers, *arguments), outcome))
    returned = [kernel(0, workers, *arguments)]
    for outcome in outcomes:
        value, error = outcome.get()
        if error is not None:
            raise error
        returned.append(value)
    return returned


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
