"""Runs killed without warning at fifty random times: nothing is lost, and all end as if undisturbed."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path

import h5py
import numpy as np
import pytest
from support.noisy_circle import SECTIONS
from support.status import DONE, resume, run

from meanfield.analysis.info import describe
from meanfield.case.load import parse
from meanfield.cli.parser import main
from solvers.io import run_file
from solvers.io.repair import is_open_for_writing
from solvers.io.run_file import Run, RunFile, read

CASE = f"""
title = "A case that writes all the time"
{SECTIONS}
[time]
end = 6.0
cfl = 0.25
[output]
snapshots = 40
samples = 120
checkpoint = 0.01
"""
SERIES, KILLS = 10, 5  # fifty kills, in parts for several cores
BETWEEN = 0.02  # seconds from a snapshot to the next, on an idle machine
Start = Callable[[Path, int, float], BaseProcess]


def run_and_die(path: Path, snapshots: int, wait: float) -> None:
    """Run the case, or the rest of it, in a child, killed ``wait`` seconds after the file holds ``snapshots``
    snapshots.

    The child has its own timer, checked by the kernel: a test that polls the file would be late on a busy machine,
    sometimes after the end. The timer's signal ends the process as SIGKILL does, and is not handled.
    """
    sys.stderr = open(os.devnull, "w")  # noqa: SIM115

    def then_die(method: Callable[..., None]) -> Callable[..., None]:
        def dying(file: RunFile, *arguments: object, **options: object) -> None:
            method(file, *arguments, **options)
            if file.snapshots >= snapshots and signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0):
                signal.setitimer(signal.ITIMER_REAL, wait)

        return dying

    run_file.FLUSH_EVERY = 0.0  # data are written at once, as when snapshots are seconds apart
    RunFile.__init__ = then_die(RunFile.__init__)
    RunFile.write_snapshot = then_die(RunFile.write_snapshot)
    sys.exit(resume(path, quiet=True) if path.exists() else run(parse(CASE), path, quiet=True))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return the undisturbed run, during which kernels are compiled."""
    path = tmp_path_factory.mktemp("whole") / "run.h5"
    assert run(parse(CASE), path, quiet=True) == DONE
    return read(path)


@pytest.fixture(scope="module")
def start() -> Start:
    """Return a function that starts or continues the run in a separate process with a fast start."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pytest", "scipy.fft", "h5py", "meanfield.cli.parser", "meanfield.running"])

    def start(*arguments: object) -> BaseProcess:
        process = context.Process(target=run_and_die, args=arguments)
        process.start()
        return process

    return start


def killed(path: Path, start: Start, snapshots: int, wait: float) -> bool:
    """Run and be killed ``wait`` seconds after the file holds ``snapshots`` snapshots; return False if the run had
    ended."""
    process = start(path, snapshots, wait)
    process.join()
    assert process.exitcode in (DONE, -signal.SIGALRM)
    return process.exitcode != DONE


def inspect(path: Path, whole: Run, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return the file right after a kill, and assert that it is known as killed, readable, and a beginning of the whole
    run.

    A kill may meet a process that has closed its file and not ended yet: then the file has to be complete.
    """
    assert main(["info", str(path), "--json"]) == 0
    if (state := json.loads(capsys.readouterr().out)["state"]) == "finished":
        assert_whole(path, whole)
    else:
        assert state == "killed"
    assert not is_open_for_writing(path)
    found = read(path)
    assert_beginning(found, whole)
    with h5py.File(path) as plain:
        np.testing.assert_array_equal(plain["time"][: found.snapshots], found.times)
        for k in range(found.snapshots):
            assert plain["density"][k].tobytes() == whole.density(k).tobytes()
    return found


def assert_beginning(found: Run, whole: Run) -> None:
    """Assert that every existing snapshot and sample has the bytes of the whole run's."""
    assert found.times.tobytes() == whole.times[: found.snapshots].tobytes()
    for k in range(found.snapshots):
        assert found.density(k).tobytes() == whole.density(k).tobytes(), f"snapshot {k}"
    samples = len(found.sample_times)
    assert found.sample_times.tobytes() == whole.sample_times[:samples].tobytes()
    for name, values in found.diagnostics.items():
        assert values.tobytes() == whole.diagnostics[name][:samples].tobytes(), name


def assert_whole(path: Path, whole: Run) -> None:
    found = read(path)
    assert (found.snapshots, len(found.sample_times)) == (whole.snapshots, len(whole.sample_times))
    assert_beginning(found, whole)
    assert found.attributes["stop_reason"] == "finished"


@pytest.mark.sampled(1)
@pytest.mark.slow
@pytest.mark.parametrize("series", range(SERIES))
def test_killed_at_random_moments_and_resumed(
    series: int, tmp_path: Path, whole: Run, start: Start, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five kills are spread from before the first snapshot to after the last checkpoint; every run ends as if
    undisturbed."""
    moments, reached = random.Random(series), []
    while len(reached) < KILLS:
        path = tmp_path / f"{len(reached)}.h5"
        if not killed(path, start, moments.randrange(whole.snapshots), moments.uniform(0, BETWEEN)):
            path.unlink()  # the run ended before the kill
            continue
        reached.append(inspect(path, whole, capsys).snapshots)
        assert resume(path, quiet=True) == DONE
        assert_whole(path, whole)
    print(f"snapshots at the kills: {sorted(reached)}")
    assert max(reached) > min(reached) + whole.snapshots // 4, "the kills do not spread over the run"


def test_killed_again_and_again(tmp_path: Path, whole: Run, start: Start, capsys: pytest.CaptureFixture[str]) -> None:
    """A run is killed at six consecutive starts, early and late."""
    path, moments, reached = tmp_path / "run.h5", random.Random(0), 0
    for _ in range(6):
        assert killed(path, start, reached + moments.randrange(whole.snapshots // 8), moments.uniform(0, BETWEEN))
        reached = inspect(path, whole, capsys).snapshots
    assert resume(path, quiet=True) == DONE
    assert_whole(path, whole)


def test_killed_just_before_its_end_is_recorded(tmp_path: Path, whole: Run) -> None:
    """All is computed and checkpointed, but the file does not state this yet: resume has only that left to do."""
    path = tmp_path / "run.h5"
    assert run(parse(CASE), path, quiet=True) == DONE
    with RunFile.append(path):
        killed_then = path.read_bytes()
    path.write_bytes(killed_then)
    assert describe(path)["state"] == "killed"
    assert resume(path, quiet=True) == DONE
    assert_whole(path, whole)
