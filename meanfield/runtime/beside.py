"""What is found beside the steps of a run, by a thread on a core that they leave idle."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from solvers.backends.cpu.launching import WORKERS, use_one_core, workers_for

Found = TypeVar("Found")


class Begun(Generic[Found]):
    """What ``find()`` returns: a thread begins with it at once; without a thread it is found when it is asked for."""

    def __init__(self, find: Callable[[], Found], thread: ThreadPoolExecutor | None) -> None:
        self.seconds = 0.0  # that it has taken
        self._find = find
        self._future = None if thread is None else thread.submit(self._timed)

    @property
    def is_ready(self) -> bool:
        """Whether there is nothing to wait for."""
        return self._future is None or self._future.done()

    def found(self) -> Found:
        """Waits for it; raises what ``find`` raises."""
        return self._timed() if self._future is None else self._future.result()

    def _timed(self) -> Found:
        began = time.monotonic()
        found = self._find()
        self.seconds = time.monotonic() - began
        return found


def thread_beside(cells: int) -> ThreadPoolExecutor | None:
    """A thread, where steps of a state of so many cells leave a core idle; its kernels have one worker."""
    if workers_for(cells) >= WORKERS:
        return None
    return ThreadPoolExecutor(1, "beside", initializer=use_one_core)
