"""Computation of the points of an experiment: in this process, in further processes, or by the workers of Dask."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TypeVar

from meanfield.case.errors import CaseError
from meanfield.runtime.children import SAFE_PATH, can_start_python, environment

Item = TypeVar("Item")
Found = TypeVar("Found")


@dataclass(frozen=True)
class Workers:
    """Workers that compute the points of an experiment: ``jobs`` processes, or those of Dask.

    ``dask`` is the address "host:port" of a Dask scheduler.
    """

    jobs: int = 1
    dask: str | None = None

    def map(self, function: Callable[[Item], Found], items: Sequence[Item]) -> Iterator[Found]:
        """Yield ``function(item)`` for each item, in order, computed by the workers.

        Raises CaseError if a process dies or the connection to the scheduler is lost.
        """
        if self.dask is not None:
            yield from _with_dask(self.dask, function, items)
        elif self.jobs == 1 or not can_start_python():
            yield from map(function, items)
        else:
            spawned = multiprocessing.get_context("spawn")  # PyTorch's threads do not survive a fork
            try:
                with environment(SAFE_PATH):  # the pool starts its processes when tasks are submitted
                    pool = ProcessPoolExecutor(self.jobs, spawned)
                    results = pool.map(function, items)
                with pool:
                    yield from results
            except BrokenProcessPool:
                raise CaseError(f"jobs = {self.jobs}: a process died, possibly out of memory") from None


HERE = Workers()


def _with_dask(address: str, function: Callable[[Item], Found], items: Sequence[Item]) -> Iterator[Found]:
    """Yield the results of a function of each item, in their order, computed by a Dask cluster."""
    from distributed import KilledWorker

    from meanfield.sweeping.dask_pool import client_of

    with client_of(address) as client:
        futures = [client.submit(function, item, pure=False) for item in items]
        for future in futures:
            try:
                yield future.result()
            except CancelledError:
                raise CaseError(f"dask = {address}: lost the connection to the scheduler") from None
            except KilledWorker:
                raise CaseError(f"dask = {address}: workers died, possibly out of memory") from None
