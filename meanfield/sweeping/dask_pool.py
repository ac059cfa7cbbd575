"""Pool of Dask workers that run the points of a sweep, with the interface of `meanfield.sweeping.local_pool`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from meanfield.case.errors import CaseError, install
from meanfield.components.loading import loaded_sources
from meanfield.runtime.messages import print_message
from meanfield.sweeping.local_pool import Solved, Solver, SolverLost
from meanfield.sweeping.point import FAILED, Result, solve_point

if TYPE_CHECKING:
    from distributed import Client

_GONE = ("cancelled", "lost")  # states of a future that no scheduler knows any more
CONNECTING = 10.0  # seconds that a scheduler has to answer


def with_dask(address: str) -> Solver:
    """A solver on the workers of the Dask scheduler at ``address``, "host:port"; it gives lost points to others.

    Raises CaseError where Dask is not installed or no scheduler answers; the solver SolverLost where the scheduler
    goes. It waits for workers, and says so where there is none to begin with.
    """
    client = _client(address)
    solve = with_client(client, f"--dask {address}")

    def solve_and_leave(cases: Mapping[int, str], keep: bool) -> Solved:
        with client:
            yield from solve(cases, keep)

    return solve_and_leave


def with_client(client: Client, name: str = "client") -> Solver:
    """A solver on the workers of a client of Dask, which stays open; ``name`` is what messages call it."""

    def solve(cases: Mapping[int, str], keep: bool) -> Solved:
        from distributed import as_completed

        if not client.nthreads():
            address = client.scheduler_info()["address"]
            print_message(f"{name}: its scheduler has no worker; waiting for one: dask worker {address}")
        sources = loaded_sources()
        futures = {
            client.submit(solve_point, case, keep, None, sources, pure=False): number for number, case in cases.items()
        }
        for future in as_completed(list(futures), loop=client.loop):
            if future.status in _GONE:
                raise SolverLost(f"{name}: the scheduler has gone")
            yield futures.pop(future), _result(future)
            future.release()  # the scheduler need not keep it

    return solve


def _client(address: str) -> Client:
    try:
        from distributed import Client
        from distributed.comm import get_address_host_port
    except ModuleNotFoundError:
        raise CaseError(f"--dask: Dask is not installed; install it with: {install('sweep')}") from None
    for handler in logging.getLogger("distributed").handlers:
        handler.setLevel(logging.CRITICAL)  # it logs tracebacks of connections that break, which is said in a line here
    try:
        get_address_host_port(address)  # a client with an address that is none complains when it is collected
    except (ValueError, TypeError) as error:
        raise CaseError(f"--dask {address}: expected host:port ({error})") from None
    try:
        return Client(address, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError) as error:
        raise CaseError(f"--dask {address}: no scheduler answers: {' '.join(str(error).split())}") from None


def _result(future: Any) -> Result:
    """What a worker returned; a point that took several workers with it has failed."""
    error = future.exception()
    if error is None:
        result: Result = future.result()
        return result
    return Result(FAILED, reason=f"{type(error).__name__}: {' '.join(str(error).split())}")
