"""Pool of local processes that run the points of a sweep.

A solver takes the cases of the points (TOML by number), and whether run files are kept; it yields each number with its
result as they come. A worker that dies takes nothing with it but its point, which is tried once more.

Why not a library's pool: after ``kill -9`` of one of two workers loky gives up every point that waits; Dask's
LocalCluster goes on, but with 146 MiB a worker and 60 MiB in the sweep, where this pool takes 113 and 15; pebble is
under the LGPL.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time as clock
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from typing import Any

from meanfield.components.loading import Source, loaded_sources
from meanfield.runtime.signals import terminate_as_interrupt
from meanfield.sweeping.point import FAILED, Result, solve_point

Solved = Generator[tuple[int, Result], None, None]
Solver = Callable[[Mapping[int, str], bool], Solved]
Task = tuple[str, bool, float | None, tuple[Source, ...]]  # the arguments of solve_point
TRIES = 2  # of a point whose worker dies: once may be another's fault, where memory is short
ENDING = 2.0  # seconds that a worker has to end after its step
ORPHANED = 60.0  # without a parent: its disk may be slow, and it has a folder to remove
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # as Dask's workers


class SolverLost(Exception):
    """The workers are lost, and points are left to solve. Its message is one line."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def with_processes(jobs: int, limit: float | None = None) -> Solver:
    """A solver in ``jobs`` processes, which share the cores and stop each point after ``limit`` seconds."""
    return lambda cases, keep: _solve_here(
        {n: (case, keep, limit, loaded_sources()) for n, case in cases.items()}, jobs
    )


def _solve_here(tasks: Mapping[int, Task], jobs: int) -> Solved:
    waiting, tries = sorted(tasks, reverse=True), dict.fromkeys(tasks, 0)
    threads, workers = max(cores() // jobs, 1), list[_Worker]()
    try:
        while waiting or any(worker.number is not None for worker in workers):
            _hand_out(waiting, tasks, jobs, threads, workers)
            ready = connection.wait([worker.pipe for worker in workers if worker.number is not None])
            for worker in [worker for worker in workers if worker.pipe in ready]:
                number, result = worker.answer()
                if result is not None:
                    yield number, result
                    continue
                workers.remove(worker)
                tries[number] += 1
                if tries[number] < TRIES:
                    waiting.append(number)
                else:
                    yield number, Result(FAILED, reason=f"its worker died {TRIES} times: {worker.death}")
    finally:
        for worker in workers:
            worker.process.terminate()  # all at once: each then has its last step to finish
        for worker in workers:
            worker.end()


def _hand_out(waiting: list[int], tasks: Mapping[int, Task], jobs: int, threads: int, workers: list[_Worker]) -> None:
    """Give what waits to idle workers, and start more of these, up to ``jobs``."""
    idle = [worker for worker in workers if worker.number is None]
    while waiting and (idle or len(workers) < jobs):
        if not idle:
            workers.append(_Worker(threads))
            idle.append(workers[-1])
        number = waiting.pop()
        idle.pop().give(number, tasks[number])


class _Worker:
    """A process that solves one point after another; ``number`` is the one that it has, None while it is idle."""

    def __init__(self, threads: int) -> None:
        context = get_context("spawn")  # a fork would share locks of threads that are not there
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, threads), daemon=True)
        with _environment(_ONE_THREAD), _without_main():
            self.process.start()
        theirs.close()  # so that its end is seen when it dies
        self.number: int | None = None

    def give(self, number: int, task: Task) -> None:
        self.number = number
        with suppress(OSError):  # it has died while it was idle: the end of its pipe says so
            self.pipe.send(task)

    def answer(self) -> tuple[int, Result | None]:
        """The point's number and its result, None where the worker has died."""
        number, self.number = self.number, None
        assert number is not None
        try:
            result: Result = self.pipe.recv()
            return number, result
        except (EOFError, OSError):
            self.process.join()
            return number, None

    @property
    def death(self) -> str:
        code = self.process.exitcode or 0
        return f"signal {-code}, as when memory runs out" if code == -9 else f"exit status {code}"

    def end(self) -> None:
        self.pipe.close()
        self.process.join(ENDING)
        self.process.kill()
        self.process.join()


def _serve(pipe: Connection, threads: int) -> None:
    """In a worker: solve what comes through the pipe, as long as the sweep itself lives."""
    if sys.stderr is not None:  # else 2 is whatever file came first, maybe the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # messages of runs would break the progress bar
    os.setpgid(0, 0)  # Ctrl-C on the terminal is for the sweep, which then ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _share_cores(threads)
    # The sweep has ended, or this worker is being stopped, also between its runs: the exception removes its folder.
    with suppress(EOFError, OSError, KeyboardInterrupt), terminate_as_interrupt():
        while True:
            pipe.send(solve_point(*pipe.recv()))


def _end_with_parent() -> None:
    """A sweep that is killed leaves no worker behind that goes on for hours."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    for pause in (ORPHANED, ENDING):
        os.kill(os.getpid(), signal.SIGTERM)  # a run stops after its step, then within it, and its folder is removed
        clock.sleep(pause)
    os._exit(1)


def _share_cores(threads: int) -> None:
    """Kernels count the cores when they are imported: let them see ``threads``, then give all back."""
    if not hasattr(os, "sched_setaffinity"):
        return
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(mine)[:threads])
    import solvers.backends.cpu  # noqa: F401

    os.sched_setaffinity(0, mine)


@contextmanager
def _without_main() -> Iterator[None]:
    """Processes that are started in the block do not run the user's script again, which they have no need of."""
    names = vars(sys.modules["__main__"])
    held: dict[str, Any] = {name: names[name] for name in ("__file__", "__spec__") if name in names}
    names.update(dict.fromkeys(held))
    try:
        yield
    finally:
        names.update(held)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for processes that are started in the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
