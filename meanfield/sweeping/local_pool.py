"""Pool of local processes that run the points of a sweep.

A solver takes `Work` and yields results by number as they come, those of points that are solved together at once. Few
batches of small points are solved in this process: a worker takes longer to start. A worker that dies takes nothing
with it but what it was solving: each of these points is tried once more, alone.

Why not a library's pool: after ``kill -9`` of one of two workers loky gives up every point that waits; Dask's
LocalCluster continues, but with 146 MiB a worker and 60 MiB in the sweep, where this pool takes 113 and 15; pebble is
under the LGPL.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time as clock
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain, islice
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from typing import Any

from meanfield.runtime.children import SAFE_PATH, can_start_python, environment
from meanfield.runtime.signals import signals_deferred, terminate_as_interrupt
from meanfield.sweeping.point import FAILED, PointResult
from meanfield.sweeping.tasks import Solved, Solver, Task, Work, as_text
from meanfield.sweeping.together import solve_task
from solvers.backends import host_backend

TRIES = 2  # of a point whose worker dies: once may be another's fault, where memory is short
ENDING = 2.0  # seconds that a worker has to end after its step
ORPHANED = 60.0  # without a parent: its disk may be slow, and it has a folder to remove
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # as Dask's workers


class SolverLost(Exception):
    """The workers are lost, and points are left to solve. Its message is one line."""


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def with_processes(jobs: int) -> Solver:
    """Return a solver in ``jobs`` processes, which share the cores; in this process where Python cannot be started."""

    def solve(work: Work) -> Solved:
        tasks, few = work.tasks(), work.few
        if not can_start_python():
            return in_this_process(work, tasks)
        first = list(islice(tasks, few + 1))
        if len(first) <= few and all(len(task) > 1 for task in first):
            return in_this_process(work, first)
        return _solve_here(work, chain(first, tasks), jobs)

    return solve


def in_this_process(work: Work, tasks: Iterable[Task]) -> Solved:
    """Results of tasks without any worker."""
    for task in tasks:
        yield from solve_task(task, work.keep, work.limit)


def _solve_here(work: Work, tasks: Iterator[Task], jobs: int) -> Solved:
    tries, again = Counter[int](), list[Task]()
    threads, workers = max(cores() // jobs, 1), list[_Worker]()
    try:
        while _hand_out(work, again, tasks, jobs, threads, workers):
            ready = connection.wait([worker.pipe for worker in workers if worker.task])
            for worker in [worker for worker in workers if worker.pipe in ready]:
                results = worker.answer()
                if results is not None:
                    yield results
                    continue
                workers.remove(worker)
                tries.update([*worker.task])
                again += [{number: case} for number, case in worker.task.items() if tries[number] < TRIES]
                given_up = [number for number in worker.task if tries[number] >= TRIES]
                if given_up:
                    reason = f"its worker died {TRIES} times: {worker.death}"
                    yield {number: PointResult(FAILED, reason=reason) for number in given_up}
    finally:
        for worker in workers:
            worker.process.terminate()  # all at once: each then has its last step to finish
        for worker in workers:
            worker.end()


def _hand_out(
    work: Work, again: list[Task], tasks: Iterator[Task], jobs: int, threads: int, workers: list[_Worker]
) -> bool:
    """Give what waits to idle workers, and start more of these, up to ``jobs``; whether any is at work."""
    idle = [worker for worker in workers if not worker.task]
    while idle or len(workers) < jobs:
        task = again.pop() if again else next(tasks, None)
        if task is None:
            break
        if not idle:
            with signals_deferred():  # a worker that is left half started ends in a traceback
                workers.append(_Worker(threads))
            idle.append(workers[-1])
        idle.pop().give(task, work)
    return any(worker.task for worker in workers)


class _Worker:
    """A process that solves one task after another; ``task`` is what it has still to solve, empty while it is idle."""

    def __init__(self, threads: int) -> None:
        context = get_context("spawn")  # a fork would share locks of threads that are not there
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, threads), daemon=True)
        with environment(_ONE_THREAD | SAFE_PATH), _without_main():
            self.process.start()
        theirs.close()  # so that its end is seen when it dies
        self.task: Task = {}

    def give(self, task: Task, work: Work) -> None:
        self.task = dict(task)
        with suppress(OSError):  # it has died while it was idle: the end of its pipe says so
            self.pipe.send((as_text(task), work.keep, work.limit, work.sources))

    def answer(self) -> dict[int, PointResult] | None:
        """Results of some of its points, None where it has died."""
        try:
            results: dict[int, PointResult] = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            return None
        for number in results:
            del self.task[number]
        return results

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
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # Ctrl-C on the terminal is for the sweep, which then ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _share_cores(threads)
    # The sweep has ended, or this worker is being stopped, also between its runs: the exception removes its folder.
    with suppress(EOFError, OSError, KeyboardInterrupt), terminate_as_interrupt():
        while True:
            for results in solve_task(*pipe.recv()):
                pipe.send(results)


def _end_with_parent() -> None:
    """A sweep that is killed leaves no worker behind that continues for hours."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    for pause in (ORPHANED, ENDING):
        _terminate_main_thread()  # a run stops after its step, then within it, and its folder is removed
        clock.sleep(pause)
    os._exit(1)


def _terminate_main_thread() -> None:
    """Raise SIGTERM in the main thread, out of a system call where the system can do that."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, signal.SIGTERM)
    else:
        signal.raise_signal(signal.SIGTERM)


def _share_cores(threads: int) -> None:
    """Kernels count the cores when they are imported: let them see ``threads``, then give all back."""
    if not hasattr(os, "sched_setaffinity"):
        return
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(mine)[:threads])
    host_backend()  # imported here
    os.sched_setaffinity(0, mine)


@contextmanager
def _without_main() -> Iterator[None]:
    """Processes that are started in the block do not run the user's script again, which they have no need of."""
    names = vars(sys.modules["__main__"])
    hidden: dict[str, Any] = {name: names[name] for name in ("__file__", "__spec__") if name in names}
    names.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        names.update(hidden)
