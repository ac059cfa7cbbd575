"""Pool of Dask workers that run the points of a sweep, with the interface of `meanfield.sweeping.local_pool`."""

from __future__ import annotations

import logging
import math
import time as clock
from typing import TYPE_CHECKING, Any

from meanfield.case.errors import CaseError, install
from meanfield.components.loaded import Source
from meanfield.runtime.messages import print_message
from meanfield.sweeping.local_pool import SolverLost
from meanfield.sweeping.point import FAILED, PointResult
from meanfield.sweeping.separate_process import solve_in_separate_process
from meanfield.sweeping.tasks import Solved, Solver, Task, Work, as_text
from meanfield.sweeping.together import merge_groups, solve_task

if TYPE_CHECKING:
    from distributed import Client

_LOST = ("cancelled", "lost")  # states of a future that the scheduler has lost
CONNECTING = 10.0  # seconds until a connection to a scheduler fails
_IN_FLIGHT = 3  # tasks of each thread on the scheduler at once: no thread is idle, and the sweep keeps the rest
_MOMENT = 1.0  # seconds for which the number of threads is cached
_MAX_TOGETHER, _PER_THREAD = 32, 8  # largest number of points of a task; least number of tasks of each thread


def with_dask(address: str) -> Solver:
    """Return a solver, a generator of the results of runs, that uses the Dask scheduler at ``address``, "host:port".

    Other workers take over lost runs. Raises CaseError where Dask is not installed or no scheduler answers; the
    solver raises SolverLost where the scheduler ends. Without workers the solver prints a message and waits for one.
    """
    client = client_of(address)
    solve = with_client(client, f"--dask {address}")

    def solve_and_leave(work: Work) -> Solved:
        with client:
            yield from solve(work)

    return solve_and_leave


def with_client(client: Client, name: str = "client") -> Solver:
    """Return a solver, a generator of the results of points, that uses a Dask client, called ``name`` in messages.

    The client stays open. Where a task of several points (runs) kills its workers, each of its points is tried alone.
    """

    def solve(work: Work) -> Solved:
        """Yield the results of the points of a sweep from the workers of the client."""
        from distributed import as_completed

        threads = _Threads(client, name)
        if not threads():
            address = client.scheduler_info()["address"]
            print_message(f"{name}: its scheduler has no worker; waiting for one: dask worker {address}")
        at_once = min(_MAX_TOGETHER, max(1, len(work.numbers) // (_PER_THREAD * max(threads(), 1))))
        tasks, sources = work.tasks(1 if work.limit is not None else at_once), work.sources
        futures: dict[Any, Task] = {}
        completed = as_completed([], loop=client.loop)

        def submit(task: Task) -> None:
            future = client.submit(solve_on_worker, as_text(task), work.keep, work.limit, sources, pure=False)
            futures[future] = task
            completed.add(future)

        def fill() -> None:
            while len(futures) < _IN_FLIGHT * max(threads(), 1):
                task = next(tasks, None)
                if task is None:
                    return
                submit(task)

        fill()
        while futures:
            future = next(completed)
            if future.status in _LOST:
                raise SolverLost(f"{name}: lost the connection to the scheduler")
            task, error = futures.pop(future), future.exception()
            if error is None:
                yield future.result()
            elif len(task) > 1:
                for number, case in task.items():
                    submit({number: case})
            else:
                yield dict.fromkeys(task, _failure(error))
            future.release()  # lets the scheduler free the result
            fill()

    return solve


class _Threads:
    """Number of threads of all Dask workers, cached for a second; raises SolverLost where no scheduler answers."""

    def __init__(self, client: Client, name: str) -> None:
        self._client, self._name, self._asked, self._count = client, name, -math.inf, 0

    def __call__(self) -> int:
        if clock.monotonic() - self._asked > _MOMENT:
            try:
                self._count = sum(self._client.nthreads().values())
            except OSError:
                raise SolverLost(f"{self._name}: lost the connection to the scheduler") from None
            self._asked = clock.monotonic()
        return self._count


def solve_on_worker(
    cases: dict[int, str], keep: bool, limit: float | None, components: tuple[Source, ...]
) -> dict[int, PointResult]:
    """Return the results of all points (runs) of a task by number; this function is called on a Dask worker.

    With a time limit a separate process is used, because threads of workers cannot be stopped.
    """
    if limit is not None:
        return solve_in_separate_process(cases, keep, limit, components)
    return merge_groups(solve_task(cases, keep, None, components))


def client_of(address: str) -> Client:
    """Return a Dask client of the scheduler at an address "host:port".

    Raises CaseError where Dask is not installed or no scheduler answers.
    """
    try:
        from distributed import Client
        from distributed.comm.addressing import get_address_host_port
    except ModuleNotFoundError:
        raise CaseError(f"--dask: Dask is not installed; install it with: {install('sweep')}") from None
    for handler in logging.getLogger("distributed").handlers:
        handler.setLevel(logging.CRITICAL)  # one line is printed here instead of tracebacks
    try:
        get_address_host_port(address)  # a client with an invalid address prints errors at garbage collection
    except (ValueError, TypeError) as error:
        raise CaseError(f"--dask {address}: expected host:port ({error})") from None
    try:
        return Client(address, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError) as error:
        raise CaseError(f"--dask {address}: no scheduler answers: {' '.join(str(error).split())}") from None


def _failure(error: BaseException) -> PointResult:
    """Return the result of a run that killed several Dask workers: status "failed", with the error as its reason."""
    return PointResult(FAILED, reason=f"{type(error).__name__}: {' '.join(str(error).split())}")
