"""Pool of local processes that run the points of a sweep.

A solver takes `Work` and yields results by number as they arrive, those of points that are solved together at once. A
few batches of small points are solved in this process, because a worker takes longer to start. If a worker dies, only
its current points are affected: each of them is tried once more, alone.

Alternatives among libraries: after ``kill -9`` of one of two workers loky abandons all waiting points. Dask's
LocalCluster continues, but takes 146 MiB for each worker and 60 MiB in the sweep, where this pool takes 113 and 15.
pebble is under the LGPL.
"""

from __future__ import annotations

import os
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

from meanfield.case.errors import CaseError
from meanfield.runtime.children import SAFE_PATH, can_start_python, environment
from meanfield.runtime.signals import signals_deferred, terminate_as_interrupt, terminate_main_thread
from meanfield.sweeping.point import FAILED, PointResult
from meanfield.sweeping.tasks import Solved, Solver, Task, Work, as_text
from meanfield.sweeping.together import solve_task
from solvers.backends import host_backend

TRIES = 2  # attempts at a point whose worker dies: one death may have another cause, such as short memory
ENDING = 2.0  # seconds that a worker has to finish its step and end
ORPHANED = 60.0  # the same without a parent: the disk may be slow, and the worker has a folder to remove
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")  # as Dask's workers


class SolverLost(CaseError):
    """Loss of all worker processes while points are unsolved. The message is one line."""


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def with_processes(jobs: int) -> Solver:
    """Return a solver, a generator of the results of points, that uses ``jobs`` local processes, which share the cores.

    The solver uses this process alone where Python cannot be started, or for a few batches of small points (runs).
    """

    def solve(work: Work) -> Solved:
        """Return the results of the points of a sweep, from this process where there are few points."""
        tasks, few = work.tasks(), work.few
        if not can_start_python():
            return in_this_process(work, tasks)
        first = list(islice(tasks, few + 1))
        if len(first) <= few and all(len(task) > 1 for task in first):
            return in_this_process(work, first)
        return _solve_locally(work, chain(first, tasks), jobs)

    return solve


def in_this_process(work: Work, tasks: Iterable[Task]) -> Solved:
    """Yield the results of tasks, solved one after another in this process."""
    for task in tasks:
        yield from solve_task(task, work.keep, work.limit)


def _solve_locally(work: Work, tasks: Iterator[Task], jobs: int) -> Solved:
    """Yield the results of tasks that up to ``jobs`` worker processes on this machine solve.

    A point (run) whose worker dies is tried once more, alone, and then fails.
    """
    tries, again = Counter[int](), list[Task]()
    threads, workers = max(cores() // jobs, 1), list[_Worker]()
    try:
        while _assign_tasks(work, again, tasks, jobs, threads, workers):
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
            worker.process.terminate()  # all at once, so that each worker can finish its last step
        for worker in workers:
            worker.end()


def _assign_tasks(
    work: Work, again: list[Task], tasks: Iterator[Task], jobs: int, threads: int, workers: list[_Worker]
) -> bool:
    """Give tasks to idle workers, start up to ``jobs`` workers if needed, and return whether any worker has a task.

    ``again`` are the tasks that are tried once more.
    """
    idle = [worker for worker in workers if not worker.task]
    while idle or len(workers) < jobs:
        task = again.pop() if again else next(tasks, None)
        if task is None:
            break
        if not idle:
            with signals_deferred():  # a signal in the middle of a start would end in a traceback
                workers.append(_Worker(threads))
            idle.append(workers[-1])
        idle.pop().give(task, work)
    return any(worker.task for worker in workers)


class _Worker:
    """Worker process that solves one task after another; ``task`` has its unsolved points, and is empty while idle."""

    def __init__(self, threads: int) -> None:
        context = get_context("spawn")  # a fork would copy locks held by threads that the child lacks
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, threads), daemon=True)
        with environment(_ONE_THREAD | SAFE_PATH), _without_main():
            self.process.start()
        theirs.close()  # so that this process detects the end of the worker
        self.task: Task = {}

    def give(self, task: Task, work: Work) -> None:
        """Send a task to the worker."""
        self.task = dict(task)
        with suppress(OSError):  # a worker that died while idle: answer() detects the closed pipe
            self.pipe.send((as_text(task), work.keep, work.limit, work.sources))

    def answer(self) -> dict[int, PointResult] | None:
        """Wait for results of some of the worker's points (runs) and return them, or None where the worker has died."""
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
        """Return the cause of the worker's end as text: a signal or an exit status."""
        code = self.process.exitcode or 0
        return f"signal {-code}, possibly out of memory" if code == -9 else f"exit status {code}"

    def end(self) -> None:
        """End the worker: wait ENDING seconds for its own end, then kill it."""
        self.pipe.close()
        self.process.join(ENDING)
        self.process.kill()
        self.process.join()


def _serve(pipe: Connection, threads: int) -> None:
    """Solve the tasks that arrive through the pipe, and send their results, until the sweep ends; runs in a worker."""
    if sys.stderr is not None:  # otherwise descriptor 2 is the first file opened, which may be the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # messages of runs would break the progress bar
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # Ctrl-C on the terminal reaches the sweep, which then ends its workers
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _share_cores(threads)
    # At the end of the sweep, or a stop of this worker between runs too, the exception removes the worker's folder.
    with suppress(EOFError, OSError, KeyboardInterrupt), terminate_as_interrupt():
        while True:
            for results in solve_task(*pipe.recv()):
                pipe.send(results)


def _end_with_parent() -> None:
    """End this worker process when its parent, the sweep, is killed; otherwise it could continue for hours."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    for pause in (ORPHANED, ENDING):
        terminate_main_thread()  # first stops a run after its step, then within the step; the folder is removed
        clock.sleep(pause)
    os._exit(1)


def _share_cores(threads: int) -> None:
    """Import the kernels while only ``threads`` cores are visible to this process, then make all its cores visible.

    The kernels count cores at import.
    """
    if not hasattr(os, "sched_setaffinity"):
        return
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(mine)[:threads])
    host_backend()  # imports the kernels
    os.sched_setaffinity(0, mine)


@contextmanager
def _without_main() -> Iterator[None]:
    """Keep processes that are started in the block from running the user's script again."""
    names = vars(sys.modules["__main__"])
    hidden: dict[str, Any] = {name: names[name] for name in ("__file__", "__spec__") if name in names}
    names.update(dict.fromkeys(hidden))
    try:
        yield
    finally:
        names.update(hidden)
