"""Shares of kernels in several threads: sizes of the shares, failures in one of them, and forked processes."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from solvers.backends.cpu import cells, launching
from solvers.backends.cpu.launching import SHARE, launch, workers_for


@pytest.fixture
def three_workers(monkeypatch: pytest.MonkeyPatch):
    """Set three workers, two of which are threads of this test's own."""
    monkeypatch.setattr(launching, "WORKERS", 3)
    launching._pool.cache_clear()
    yield
    launching._pool.cache_clear()


def test_every_worker_has_enough_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "WORKERS", 16)
    assert [workers_for(work) for work in (0, 2 * SHARE - 1, 2 * SHARE, 5 * SHARE, 99 * SHARE)] == [1, 1, 2, 5, 16]
    assert workers_for(5 * SHARE, relative_speed=2) == 2


def test_shares_in_other_threads(three_workers: None) -> None:
    """Every share has its own thread, in the order of the workers; a light kernel with as much work stays in this
    thread."""
    met = threading.Barrier(3, timeout=60.0)

    def kernel(worker: int, workers: int, number: int) -> tuple[int, int, int, str]:
        met.wait()
        return worker, workers, number, threading.current_thread().name

    returned = launch(kernel, 3 * SHARE, 7)
    assert [found[:3] for found in returned] == [(0, 3, 7), (1, 3, 7), (2, 3, 7)]
    assert {found[3] for found in returned[1:]} == {"solvers_0", "solvers_1"}
    ones = np.ones(3 * SHARE)
    assert len(launch(cells.advance, len(ones), ones, ones.copy(), ones.copy(), 0.1, 0.1, -np.inf)) == 1


def test_what_fails_in_another_thread_is_raised_here(three_workers: None) -> None:
    def kernel(worker: int, workers: int) -> int:
        if worker == 2:
            raise ZeroDivisionError("in a share")
        return worker

    for _ in range(2):  # the threads still run
        with pytest.raises(ZeroDivisionError, match="in a share"):
            launch(kernel, 3 * SHARE)
    assert launch(lambda worker, workers: worker, 3 * SHARE) == [0, 1, 2]


def test_arguments_are_not_kept(three_workers: None) -> None:
    class Weighted(np.ndarray):
        pass

    array, gone = np.ones(3).view(Weighted), threading.Event()
    launch(lambda worker, workers, array: None, 3 * SHARE, array)
    weakref.finalize(array, gone.set)
    del array
    assert gone.wait(60.0)


def test_kernels_of_several_threads(three_workers: None) -> None:
    """Kernels of several threads share the workers, also a kernel launched within a share: no thread blocks forever."""
    wrong: list[object] = []

    def inner(worker: int, workers: int, number: int) -> tuple[int, int]:
        return worker, number

    def outer(worker: int, workers: int, number: int) -> list[tuple[int, int]]:
        return launch(inner, 2 * SHARE, 10 * number + worker)

    def many(thread: int) -> None:
        for k in range(200):
            number = 1000 * thread + k
            expected = [[(0, 10 * number + share), (1, 10 * number + share)] for share in range(3)]
            found = launch(outer, 3 * SHARE, number)
            if found != expected:
                wrong.append((found, expected))

    threads = [threading.Thread(target=many, args=(k,), daemon=True) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
        assert not thread.is_alive()
    assert wrong == []


def test_what_fails_here_waits_for_the_other_shares(three_workers: None) -> None:
    """No other share writes to an array any more when the error is raised."""
    written, met = np.zeros(3), threading.Barrier(3, timeout=60.0)

    def kernel(worker: int, workers: int) -> None:
        met.wait()
        if worker == 0:
            raise ZeroDivisionError
        time.sleep(0.05)
        written[worker] = 1.0

    with pytest.raises(ZeroDivisionError):
        launch(kernel, 3 * SHARE)
    assert written.tolist() == [0.0, 1.0, 1.0]


def test_what_no_thread_has_begun_is_done_here(three_workers: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares run here when other kernels hold the threads, and do not run at all when this share fails."""
    threads = list[str]()

    def kernel(worker: int, workers: int, fails: bool) -> int:
        threads.append(threading.current_thread().name)
        if fails:
            raise ZeroDivisionError
        return worker

    here, let_go = threading.current_thread().name, threading.Event()
    with ThreadPoolExecutor(1) as busy, monkeypatch.context() as with_busy_threads:
        with_busy_threads.setattr(launching, "_pool", lambda: busy)
        busy.submit(let_go.wait, 60.0)
        try:
            assert launch(kernel, 3 * SHARE, False) == [0, 1, 2]
            with pytest.raises(ZeroDivisionError):
                launch(kernel, 3 * SHARE, True)
        finally:
            let_go.set()
    assert threads == 4 * [here]


def _sum_of_shares() -> None:
    assert launch(lambda worker, workers: worker, 3 * SHARE) == [0, 1, 2]


def test_a_forked_process_has_threads_of_its_own(three_workers: None) -> None:
    """A child has no threads of its parent, for which it would wait forever."""
    _sum_of_shares()
    child = multiprocessing.get_context("fork").Process(target=_sum_of_shares)
    child.start()
    child.join(60.0)
    assert child.exitcode == 0


ENDS = """
import threading
from solvers.backends.cpu import launching
launching.WORKERS = 3
launching.launch(lambda worker, workers: None, 3 * launching.SHARE)
assert threading.active_count() > 1
"""


def test_a_process_ends_with_its_threads() -> None:
    done = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, text=True, timeout=60.0, check=True)
    assert done.stderr == ""
