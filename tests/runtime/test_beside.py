"""Diagnostics that a thread finds beside the steps of a run."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from meanfield.case.load import load
from meanfield.diagnostics.table import DiagnosticsTogether
from meanfield.running import run
from meanfield.runtime import beside
from meanfield.runtime.beside import Begun, thread_beside
from solvers.backends.cpu.launching import launch
from solvers.io.reading import read

CASE = ["domain.resolution=14", "time.end=8", "output.samples=40", "output.snapshots=3"]


@pytest.fixture
def with_idle_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever machine this is; and samples wait for each other, however slow it is."""
    monkeypatch.setattr(beside, "WORKERS", 2)
    monkeypatch.setattr("meanfield.runtime.recorder.MAX_COST", np.inf)
    monkeypatch.setattr("meanfield.runtime.recorder.MAX_WAIT", np.inf)
    monkeypatch.setattr("meanfield.runtime.recorder.MAX_SAMPLES", 4)


def test_there_is_a_thread_where_steps_leave_a_core_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside, "WORKERS", 3)
    for workers, is_idle in ((1, True), (2, True), (3, False)):
        monkeypatch.setattr(beside, "workers_for", lambda cells, needed=workers: needed)
        assert (thread_beside(1000) is not None) == is_idle


@pytest.mark.usefixtures("with_idle_core")
def test_begins_at_once_and_has_one_worker() -> None:
    may_go_on = threading.Event()

    def find() -> tuple[int, list[int]]:
        may_go_on.wait()
        return threading.get_ident(), launch(lambda worker, workers: workers, 10**9)

    thread = thread_beside(100)
    assert thread is not None
    with thread:
        begun = Begun(find, thread)
        assert not begun.is_ready
        may_go_on.set()
        ident, workers = begun.found()
    assert begun.is_ready
    assert begun.seconds > 0
    assert ident != threading.get_ident()
    assert workers == [1]


def test_without_a_thread_it_is_found_when_asked_for() -> None:
    begun = Begun(threading.get_ident, None)
    assert begun.is_ready
    assert begun.found() == threading.get_ident()


def test_what_it_raises_is_raised_where_it_is_asked_for() -> None:
    with ThreadPoolExecutor(1) as thread:
        for where in (None, thread):
            with pytest.raises(ZeroDivisionError):
                Begun(lambda: 1 // 0, where).found()


def files_equal(one: Path, other: Path) -> None:
    first, second = read(one), read(other)
    assert first.sample_times.tolist() == second.sample_times.tolist()
    for name, values in first.diagnostics.items():
        assert values.tobytes() == second.diagnostics[name].tobytes(), name


OTHERS = {  # ways to a sample's velocity
    "rows": [],
    "matrices": ["attention.query=[[1, 0, 0], [0, 1.2, 0.1], [0, 0, 0.9]]"],
    "causal": ['attention.mask="causal"', "domain.labels=2"],
}


@pytest.mark.usefixtures("with_idle_core")
@pytest.mark.parametrize("changes", OTHERS.values(), ids=OTHERS.keys())
def test_a_run_has_the_same_numbers_with_a_thread(
    changes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It shares what moves the density with the steps, and none of their memory."""
    case = load("metastable_sphere", [*CASE, *changes])
    threads, of_states = set[str](), DiagnosticsTogether.of_states

    def noting(self: DiagnosticsTogether, times: list[float], states: list[np.ndarray]) -> object:
        threads.add(threading.current_thread().name.split("_")[0])
        return of_states(self, times, states)

    monkeypatch.setattr(DiagnosticsTogether, "of_states", noting)
    run(case, tmp_path / "a.h5", quiet=True)
    assert threads == {"beside"}
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("beside")]  # it ends with the run
    monkeypatch.setattr("meanfield.runtime.recorder.thread_beside", lambda cells: None)
    run(case, tmp_path / "b.h5", quiet=True)
    assert threads == {"beside", threading.current_thread().name}
    files_equal(tmp_path / "a.h5", tmp_path / "b.h5")


@pytest.mark.usefixtures("with_idle_core")
def test_what_fails_in_the_thread_is_raised_at_its_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those before it are written."""
    path, times = tmp_path / "run.h5", list[int]()
    run(load("metastable_sphere", CASE), path, quiet=True)
    whole, values = read(path), DiagnosticsTogether.values

    def failing(self: DiagnosticsTogether, sample: object, *more: object) -> object:
        if max(sample.times) >= 2.0:  # type: ignore[attr-defined]
            raise ArithmeticError("of a test")
        times.append(len(sample.times))  # type: ignore[attr-defined]
        return values(self, sample, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(DiagnosticsTogether, "values", failing)
    with pytest.raises(ArithmeticError):
        run(load("metastable_sphere", CASE), path, quiet=True, overwrite=True)
    found = read(path)
    assert max(times) > 1
    assert found.sample_times.tolist() == [time for time in whole.sample_times if time < 2.0]
