"""Compilation and launch of CPU kernels.

Every kernel takes ``(worker, workers, ...)`` and does that worker's share; :func:`launch` runs the shares on all cores.
Kernels gather (a cell sums its own sides, a ring its own modes), so results do not depend on the number of workers.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue
from typing import Any

import numpy as np
from numba import types

from .caching import compiled

WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
SHARE = 5_000  # items, of some 10 ns, that a thread has to have: to call it takes about as long as most of these
PATIENCE = 500_000  # nanoseconds of looking before a thread sleeps: to wake it, and its core, takes up to as long
HEAD_START = 20  # looks, of half a microsecond, so that who gives a share has left Python's lock when it is begun
NAP = 1e-4  # seconds

kernel = compiled()
inline = compiled(inline="always")
_pass_on = types.ExternalFunction("sched_yield", types.int32())  # the core to another thread, if there is one
_read_clock = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.voidptr))
_CLOCK = time.CLOCK_MONOTONIC

_GIVEN, _DONE, _PLACES = 0, 8, 16  # numbers of the last share that was given and done, apart in the processor's cache


@inline
def _nanoseconds(seconds):
    """The time now; seconds (2,) are work space, as the system has it."""
    _read_clock(_CLOCK, seconds.ctypes)
    return seconds[0] * 1_000_000_000 + seconds[1]


@compiled()
def _next_share(flags, done, patience, head_start):
    """Say that a share is done; whether another one is given before so many nanoseconds have passed."""
    flags[_DONE] = done
    seconds = np.empty(2, np.int64)
    end = _nanoseconds(seconds) + patience
    while flags[_GIVEN] == done:
        if _nanoseconds(seconds) > end:
            return False
        _pass_on()
    for _ in range(head_start):
        _pass_on()
    return True


@compiled()
def _is_done(flags, patience):
    """Whether the share that was given is done before so many nanoseconds have passed."""
    if flags[_DONE] == flags[_GIVEN]:
        return True
    seconds = np.empty(2, np.int64)
    end = _nanoseconds(seconds) + patience
    while flags[_DONE] != flags[_GIVEN]:
        if _nanoseconds(seconds) > end:
            return False
        _pass_on()
    return True


class _Helper:
    """A thread that does shares of kernels, one after the other; within a step the next one comes while it looks.

    A share that it has not begun can be taken back: it may be asleep, or its core be busy.
    """

    def __init__(self, number: int) -> None:
        self._flags = np.zeros(_PLACES, np.int64)
        self._shares: deque[tuple[Callable[..., Any], tuple[Any, ...]]] = deque(maxlen=1)
        self._outcome: tuple[Any, BaseException | None] = None, None
        self._is_taken_back = False
        self._asleep, self._wake = False, SimpleQueue[None]()
        _next_share(self._flags, 0, 0, 0)  # compiled, and kept on disk, before the process may end
        threading.Thread(target=self._serve, name=f"solvers-{number}", daemon=True).start()

    @property
    def is_free(self) -> bool:
        return bool(self._flags[_GIVEN] == self._flags[_DONE])

    def give(self, function: Callable[..., Any], *arguments: Any) -> None:
        """A share to be done, if it is free."""
        self._is_taken_back = False
        self._shares.append((function, arguments))
        self._flags[_GIVEN] += 1
        if self._asleep:
            self._wake.put(None)

    def wait(self) -> None:
        """Until its share is done, if that has begun; else it is taken back."""
        if self._is_taken_back or self._take_back() is not None:
            return
        if not _is_done(self._flags, PATIENCE):
            while not self.is_free:
                time.sleep(NAP)

    def outcome(self) -> Any:
        """What the share returned, which is done here unless it has begun; raises what it raised."""
        if (share := self._take_back()) is not None:
            function, arguments = share
            return function(*arguments)
        self.wait()
        (returned, error), self._outcome = self._outcome, (None, None)
        if error is not None:
            raise error
        return returned

    def _take_back(self) -> tuple[Callable[..., Any], tuple[Any, ...]] | None:
        try:
            share = self._shares.pop()
        except IndexError:
            return None
        self._is_taken_back = True  # and it is not free before it has seen that
        return share

    def _serve(self) -> None:
        done = 0
        while True:
            if not _next_share(self._flags, done, PATIENCE, HEAD_START):
                self._asleep = True
                if self._flags[_GIVEN] == done:  # what is given from now on wakes it
                    self._wake.get()
                self._asleep = False
                continue
            try:
                function, arguments = self._shares.pop()
            except IndexError:
                done += 1
                continue
            try:
                self._outcome = function(*arguments), None
            except BaseException as error:  # raised again by who waits
                self._outcome = None, error
            del function, arguments  # memory of theirs, until the next comes
            done += 1


class _Crew:
    """Helpers of one kernel at a time, which begin when they are first needed."""

    def __init__(self) -> None:
        self.at_work = threading.Lock()
        self._helpers: list[_Helper] = []

    def free_helpers(self, count: int) -> list[_Helper] | None:
        """So many; none while one still does what somebody has given up to wait for."""
        while len(self._helpers) < count:
            self._helpers.append(_Helper(len(self._helpers) + 1))
        helpers = self._helpers[:count]
        return helpers if all(helper.is_free for helper in helpers) else None


_crew = cache(_Crew)
_here = threading.local()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_crew.cache_clear)  # a child has none of its parent's threads


def workers_for(work: int, light: int = 1) -> int:
    """The number of workers that share so many items, of which ``light`` take as long as one of most kernels."""
    return max(1, min(WORKERS, work // (light * SHARE)))


def use_one_core() -> None:
    """Kernels that this thread launches have one worker from now on: the other cores are not for them."""
    _here.is_alone = True


def launch(kernel: Callable[..., Any], work: int, *arguments: Any) -> list[Any]:
    """Run ``kernel(worker, workers, *arguments)`` for every worker; returns what each returned.

    ``work`` is the number of items that the kernel visits: with little work there is one worker. While another thread's
    kernel is at work this one does all shares.
    """
    light = getattr(kernel, "light", 1)
    # most launches of a small mesh need no count
    if work < 2 * light * SHARE or (workers := workers_for(work, light)) == 1 or hasattr(_here, "is_alone"):
        return [kernel(0, 1, *arguments)]
    crew = _crew()
    if crew.at_work.acquire(blocking=False):
        try:
            helpers = crew.free_helpers(workers - 1)
            if helpers is not None:
                return _launch_with(helpers, kernel, arguments)
        finally:
            crew.at_work.release()
    return [kernel(worker, workers, *arguments) for worker in range(workers)]


def _launch_with(helpers: list[_Helper], kernel: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Any]:
    workers = len(helpers) + 1
    try:
        for worker, helper in enumerate(helpers, 1):
            helper.give(kernel, worker, workers, *arguments)
        return [kernel(0, workers, *arguments), *(helper.outcome() for helper in helpers)]
    finally:
        for helper in helpers:
            helper.wait()


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
    """Such numbers for up to 80 cells at a time, a row of each kind of number; for one cell on a device."""
    return np.empty((26, 80), np.float64)
