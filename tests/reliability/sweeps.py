"""Faults of sweeps: a pool's worker, the sweep itself, a Dask worker or the Dask scheduler dies at a random time.

The same command then continues, and the index equals that of the undisturbed sweep up to wall times. If only a
worker has died the sweep itself reaches this end; without a scheduler it ends with an error message.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

from tests.support.dask_cluster import Cluster
from tests.support.sweeping import CASE, SIX, contents

LONGER = '[set]\n"time.end" = 10.0\n"time.cfl" = 0.2\n'  # each point takes some tenths of a second
WAITING = 240.0  # seconds for a sweep on a busy machine
NOTES = b"a file of somebody else\n"
FINISHED, REFUSED, INTERRUPTED = 0, 2, 130


def undisturbed(folder: Path) -> tuple[Path, float]:
    """Return the index of a whole sweep, and the sweep's duration."""
    file, index = folder / "sweep.toml", folder / "sweep.h5"
    file.write_text("".join((SIX, LONGER, CASE)))
    for _ in range(2):  # the first run compiles
        index.unlink(missing_ok=True)
        began = time.monotonic()
        status, error = _ended(_started(file, index))
        assert status == FINISHED, f"the undisturbed sweep does not finish: {error}"
    return index, time.monotonic() - began


def disturbed(whole: Path, duration: float, work: Path, chance: random.Random) -> list[str]:
    """Run a sweep with one fault, continue it to its end, and return the differences."""
    file, index, mine = whole.with_suffix(".toml"), work / "sweep.h5", work / "sweep.points" / "notes.h5"
    mine.parent.mkdir()
    mine.write_bytes(NOTES)
    fault = chance.choice(sorted(FAULTS))
    wrong = [FAULTS[fault](file, index, duration, chance)]
    status, error = _ended(_started(file, index, "--retry"))
    if status != FINISHED:
        wrong.append(f"cannot continue: status {status}: {error}")
    elif contents(index) != contents(whole):
        wrong.append("the index differs")
    if mine.read_bytes() != NOTES or {path.name for path in mine.parent.iterdir()} != {mine.name}:
        wrong.append("files beside it are not as they were")
    if index.with_name("sweep.h5.lock").exists():
        wrong.append("its lock is left")
    return [f"{text} after {fault}".replace(str(work), "") for text in wrong if text]


def _started(file: Path, index: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "meanfield", "sweep", str(file), "-o", str(index), "--quiet", "--jobs", "2"]
    at_once = {**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}  # short waits for dead processes
    return subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True, env=at_once)


def _ended(sweep: subprocess.Popen[str]) -> tuple[int, str]:
    """Return the exit status of a sweep and its printed text; kill a sweep that does not end."""
    try:
        error = sweep.communicate(timeout=WAITING)[1]
    except subprocess.TimeoutExpired:
        sweep.kill()
        return 99, "it does not end"
    return sweep.returncode, error


def _judged(sweep: subprocess.Popen[str], *expected: int) -> str:
    """Return the fault in the end of a sweep, or an empty text."""
    status, error = _ended(sweep)
    return "" if status in expected and "Traceback" not in error else f"status {status}: {error[-200:]}"


def _signalled(number: int, *expected: int) -> Callable[..., str]:
    def fault(file: Path, index: Path, duration: float, chance: random.Random) -> str:
        sweep = _started(file, index)
        time.sleep(chance.uniform(0.0, 1.2 * duration))
        sweep.send_signal(number)
        return _judged(sweep, FINISHED, -number, *expected)

    return fault


def _worker(file: Path, index: Path, duration: float, chance: random.Random) -> str:
    """Kill one of the pool's workers, as soon as there is one."""
    sweep = _started(file, index)
    time.sleep(chance.uniform(0.0, 1.2 * duration))
    while sweep.poll() is None and not (workers := _workers_of(sweep.pid)):
        time.sleep(0.01)
    if sweep.poll() is None:
        with suppress(ProcessLookupError):
            os.kill(chance.choice(workers), signal.SIGKILL)
    return _judged(sweep, FINISHED)


def _workers_of(process: int) -> list[int]:
    found = []
    with suppress(FileNotFoundError):  # the process has ended
        for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
            with suppress(FileNotFoundError):
                if "spawn_main" in Path(f"/proc/{child}/cmdline").read_text():
                    found.append(int(child))
    return found


def _in_dask(victim: str, *expected: int) -> Callable[..., str]:
    def fault(file: Path, index: Path, duration: float, chance: random.Random) -> str:
        folder = index.parent / "dask"
        folder.mkdir()
        cluster = Cluster(folder)
        try:
            sweep = _started(file, index, "--dask", cluster.address)
            time.sleep(chance.uniform(0.0, 1.2 * duration))
            (cluster.scheduler if victim == "scheduler" else cluster.workers[0]).kill()
            return _judged(sweep, FINISHED, *expected)
        finally:
            cluster.stop()

    return fault


FAULTS: dict[str, Callable[[Path, Path, float, random.Random], str]] = {
    "SIGKILL of a pool's worker": _worker,
    "SIGKILL of the sweep": _signalled(signal.SIGKILL),
    "SIGTERM of the sweep": _signalled(signal.SIGTERM, INTERRUPTED),
    "Ctrl-C of the sweep": _signalled(signal.SIGINT, INTERRUPTED),
}
if find_spec("distributed") is not None:
    FAULTS["SIGKILL of a Dask worker"] = _in_dask("worker")
    FAULTS["SIGKILL of the Dask scheduler"] = _in_dask("scheduler", REFUSED)
