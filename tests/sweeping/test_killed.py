"""Sweeps and their workers killed and interrupted: nothing is lost, and nothing is computed twice."""

from __future__ import annotations

import multiprocessing
import multiprocessing.util
import os
import signal
import subprocess
import time as clock
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from support.sweeping import (
    CASE,
    SIX,
    SLOW,
    contents,
    in_this_process,
    let_go_on,
    start,
    statuses,
    wait_for_points,
    write,
)

from meanfield.case.load import parse
from meanfield.sweeping import local_pool as sweep_workers
from meanfield.sweeping import together
from meanfield.sweeping.driver import DONE, INTERRUPTED, sweep
from meanfield.sweeping.files import points_folder
from meanfield.sweeping.results import describe_sweep, read_sweep
from meanfield.sweeping.tasks import Work

SNAPSHOTS = '"output.snapshots" = 100000\n'  # more than a point keeps in memory, so that it has a folder
PATIENCE = 120.0  # seconds for a process to end: it takes a few, but machines are shared


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Solve sweeps in this process."""
    monkeypatch.setattr("meanfield.sweeping.driver.with_processes", in_this_process)


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """Return a sweep file of six points that take long enough to be killed."""
    return write(tmp_path / "slow.toml", SIX, SLOW, CASE)


def children_of(process: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """Return the processes that solve points for a sweep."""
    return [child for child in children_of(process.pid) if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to find the workers")
def test_workers_and_the_sweep_killed(slow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The index is whole after kill -9 of a worker, then of the sweep, and the rest is computed once."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # the folder of a killed worker's point stays
    whole, index = tmp_path / "whole.h5", tmp_path / "slow.h5"
    process = start(slow, index, 2)
    wait_for_points(process, 1)
    os.kill(workers_of(process)[0], signal.SIGKILL)
    let_go_on(process, 2)
    wait_for_points(process, 2)
    process.kill()
    process.wait()
    kept = read_sweep(index)  # with the files beside it
    assert len(kept.done) == 3
    assert "6, 3 done, 3 waiting" in describe_sweep(index)
    assert sweep(slow, index, jobs=2, quiet=True) == DONE
    monkeypatch.setattr("meanfield.sweeping.driver.with_processes", in_this_process)
    assert sweep(slow, whole, quiet=True) == DONE
    assert contents(index) == contents(whole)
    after = read_sweep(index)  # wall times are the former ones: nothing was computed twice
    np.testing.assert_array_equal(after.wall_times[kept.done], kept.wall_times[kept.done])
    assert not points_folder(index).exists()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to find the workers")
def test_workers_do_not_outlive_a_sweep_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The points would take minutes; the workers' folders are removed."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    file = write(tmp_path / "long.toml", SIX, SLOW.replace("2.0", "1e5"), SNAPSHOTS, CASE)
    process = start(file, tmp_path / "long.h5", 1)
    while not list(tmp_path.glob("meanfield-*/run.h5")):
        assert process.poll() is None
        clock.sleep(0.05)
    (worker,) = workers_of(process)
    process.kill()
    process.wait()
    wait_for_end(worker)
    assert not list(tmp_path.glob("meanfield-*"))


def work_in(task: dict[int, str], *_: object) -> None:
    """Imitate a point far from a run, whose folder takes time to be removed."""
    with TemporaryDirectory(dir=task[0]) as own:
        try:
            Path(own, "begun").touch()
            clock.sleep(PATIENCE)
        finally:
            clock.sleep(0.3)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc to find the workers")
@pytest.mark.parametrize("killed", ["the worker is ended", "the sweep is killed"])
def test_a_worker_removes_its_folder_whenever_it_ends(killed: str, tmp_path: Path, monkeypatch: Any) -> None:
    """The folder is removed outside a run too, however long that takes when no process waits for it."""
    fork = multiprocessing.get_context("fork")
    monkeypatch.setattr(sweep_workers, "get_context", lambda _: fork)
    monkeypatch.setattr(sweep_workers, "solve_task", work_in)
    monkeypatch.setattr(sweep_workers, "as_text", dict)
    monkeypatch.setattr(sweep_workers, "ENDING", 0.0)

    def work() -> None:
        worker = sweep_workers._Worker(1)
        worker.give({0: str(tmp_path)}, Work([0], lambda number: parse(CASE.replace("case.", ""))))
        worker.process.join()

    sweeping = fork.Process(target=work)
    sweeping.start()
    while not list(tmp_path.glob("*/begun")):
        assert sweeping.is_alive()
        clock.sleep(0.01)
    (worker,) = children_of(sweeping.pid)
    os.kill(*(worker, signal.SIGTERM) if killed == "the worker is ended" else (sweeping.pid, signal.SIGKILL))
    sweeping.join()
    wait_for_end(worker)
    assert not list(tmp_path.iterdir())


def wait_for_end(process: int) -> None:
    """Wait until the process has ended; one that has just started first imports its modules."""
    deadline = clock.monotonic() + PATIENCE
    while (status := Path(f"/proc/{process}/status")).exists() and "Z (zombie)" not in status.read_text():
        assert clock.monotonic() < deadline, "a worker has outlived its sweep"
        clock.sleep(0.01)


@pytest.mark.usefixtures("at_once")
def test_interrupted_and_gone_on_with(slow: Path, tmp_path: Path) -> None:
    index = tmp_path / "slow.h5"
    process = start(slow, index, 2)
    wait_for_points(process, 1)
    process.send_signal(signal.SIGINT)
    assert process.wait() == INTERRUPTED
    assert process.stderr is not None
    assert "continue with the same command" in process.stderr.read()
    assert statuses(index).count("done") == 1
    assert not points_folder(index).exists()
    assert sweep(slow, index, quiet=True) == DONE
    assert statuses(index) == ["done"] * 6


def test_an_interrupt_while_a_worker_starts(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """The interrupt comes once the worker has all of its data, without which the worker would print a traceback."""
    spawn, started = multiprocessing.util.spawnv_passfds, list[int]()

    def interrupted(path: bytes, arguments: list[str], descriptors: list[int]) -> int:
        child = int(spawn(path, arguments, descriptors))
        if not started and any("spawn_main" in str(argument) for argument in arguments):
            started.append(child)
            os.kill(os.getpid(), signal.SIGINT)
        return child

    monkeypatch.setattr(multiprocessing.util, "spawnv_passfds", interrupted)
    with pytest.raises(KeyboardInterrupt):
        next(sweep_workers.with_processes(1)(Work(range(2), lambda number: parse(CASE.replace("case.", "")))))
    assert started
    assert not multiprocessing.active_children()
    with suppress(ChildProcessError):  # the process has ended
        os.waitpid(started[0], 0)
    assert capfd.readouterr().err == ""


def test_a_point_that_never_ends_is_stopped_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A single worker solves both: it is not killed, but continues with the next point."""
    cases = [parse(CASE.replace("case.", ""), [f"time.end={end}"]) for end in (1e9, 0.01)]
    monkeypatch.setattr(sweep_workers, "get_context", lambda _: multiprocessing.get_context("fork"))
    solved = list(sweep_workers.with_processes(1)(Work(range(2), cases.__getitem__, keep=True, limit=0.5)))
    assert [list(results) for results in solved] == [[0], [1]]
    assert solved[0][0].status == "over time"
    assert solved[1][1].status in ("done", "over time")  # over time, on a slow machine, after its first step


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_point_that_kills_its_worker_twice_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory may be too small for one point: the others are solved."""
    cases = [parse(CASE.replace("case.", ""), [f"title={title}"]) for title in ("one", "die", "two")]
    monkeypatch.setattr(sweep_workers, "get_context", lambda _: multiprocessing.get_context("fork"))
    solve = together.solve_point
    monkeypatch.setattr(together, "solve_point", lambda case, *rest: die() if "die" in case else solve(case, *rest))
    results = together.merge_groups(sweep_workers.with_processes(2)(Work(range(3), cases.__getitem__)))
    assert [results[number].status for number in range(3)] == ["done", "failed", "done"]
    assert results[1].reason == "its worker died 2 times: signal 9, possibly out of memory"
