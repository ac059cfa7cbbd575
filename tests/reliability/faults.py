"""Faults of the machine during runs of every kind: the continued run equals the undisturbed one.

A child process runs a case while it is killed, ended, stopped for a while, or runs out of disk or memory, at random
times, one or more times. The remaining files must be readable, and the run, resumed to its end, bitwise equal. One
in 25 is a sweep with a dying process, :mod:`tests.reliability.sweeps`. The figure of merit is the number of runs
that differ, or cannot be read or resumed.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from meanfield.case.load import load
from solvers.backends.cpu import launching
from solvers.io.repair import FileError
from solvers.io.run_file import read
from tests.support.status import resume, run

from . import sweeps

OFTEN = ["output.snapshots=20", "output.samples=60", "output.checkpoint=0.01"]
KINDS: dict[str, tuple[str, list[str]]] = {  # shipped cases, shortened to some tenths of a second
    "circle": ("growth_circle", ["domain.resolution=128", "time.end=3", *OFTEN]),
    "sphere": ("growth_sphere", ["domain.resolution=12", "time.end=4", *OFTEN]),
    "points": ("merging_pair_circle", ["domain.resolution=64", *OFTEN]),
    "noise": ("noise_above", ["domain.resolution=64", "time.end=5", *OFTEN]),
    "reaction": ("reaction", ["domain.resolution=64", *OFTEN]),
    "causal": ("causal", ["domain.resolution=64", *OFTEN]),
    "heads": ("heads", ["domain.resolution=12", *OFTEN]),
    "axisymmetric": ("collapse_high_dimension", ["domain.resolution=64", "time.end=2", *OFTEN]),
    "line": ("contraction_line", ["domain.resolution=128", "time.end=1", *OFTEN]),
    "free radius": ("blow_up_plane", ["domain.resolution=16", "domain.radii=32", "time.end=0.5", *OFTEN]),
    "particles": ("tokens_high_dimension", ["domain.count=32", "domain.dimension=3", "time.end=4", *OFTEN]),
    "random particles": (
        "tokens_high_dimension",
        ["domain.count=32", "domain.dimension=3", "time.end=2", "stabilizers.noise=0.01", *OFTEN],
    ),
    "field": ("representation_field", ["domain.count=32", "time.end=1", *OFTEN]),
    "layers": ("representation_drift", ["domain.count=64", "time.layers=60", *OFTEN]),
    "handover": ("merging_far_circle", ["domain.resolution=48", *OFTEN]),
}
SWEEPS = 0.04  # share of all runs: each sweep takes as long as many other runs
MAX_FAULTS = 4  # maximum number of faults of one run before it may end
WAITING = 120.0  # seconds for a child on a busy machine
SWEEP = "sweep"
NOTES = b"a file of somebody else\n"
MEGABYTE = 2**20


def failures(folder: Path, count: int, seed: int = 0) -> Counter[str]:
    """Disturb ``count`` runs, and return the failures by frequency. ``folder`` is empty."""
    chance, found = random.Random(seed), Counter[str]()
    undisturbed: dict[str, tuple[Path, float]] = {}
    launching.WORKERS = 1  # a forked child has no threads of its parent
    for number in range(count):
        name = chance.choice(sorted(KINDS)) if chance.random() > SWEEPS else SWEEP
        if name not in undisturbed:
            undisturbed[name] = sweeps.undisturbed(folder) if name == SWEEP else _undisturbed(name, folder)
        work = folder / f"{number}"
        work.mkdir()
        whole, duration = undisturbed[name]
        is_sweep = name == SWEEP
        for wrong in (sweeps.disturbed if is_sweep else partial(_disturbed, name))(whole, duration, work, chance):
            found[f"{name}: {wrong}"] += 1
    return found


def _undisturbed(name: str, folder: Path) -> tuple[Path, float]:
    """Return the whole run and its duration; afterwards the children of this process have all kernels compiled."""
    path = folder / f"{name}.h5"
    for _ in range(2):
        path.unlink(missing_ok=True)
        began = time.monotonic()
        assert _go_on(name, path) == 0, f"the undisturbed run of {name} does not finish"
    return path, time.monotonic() - began


def _disturbed(name: str, whole: Path, duration: float, work: Path, chance: random.Random) -> list[str]:
    """Run a case with some faults, resume it to its end, and return the differences."""
    path, mine = work / "run.h5", work / "run.h5.notes"
    mine.write_bytes(NOTES)
    faults = []
    for _ in range(chance.randint(1, MAX_FAULTS)):
        faults.append(chance.choice(sorted(FAULTS)))
        FAULTS[faults[-1]](lambda: _go_on(name, path), duration, whole.stat().st_size, chance)
        if path.exists():
            try:
                read(path)
            except FileError as error:
                return [f"cannot be read after {'+'.join(faults)}: {error}".replace(str(work), "")]
    status = _ended(_child(lambda: _go_on(name, path)))
    if status != 0:
        return [f"cannot continue after {'+'.join(faults)}: status {status}"]
    wrong = _differences(whole, path)
    if mine.read_bytes() != NOTES or (work / "run.h5.lock").exists():
        wrong.append("files beside it are not as they were")
    return [f"{text} after {'+'.join(faults)}" for text in wrong]


def _go_on(name: str, path: Path) -> int:
    return resume(path, quiet=True) if path.exists() else run(load(*KINDS[name]), path, quiet=True)


def _differences(whole: Path, path: Path) -> list[str]:
    one, other = read(whole), read(path)
    pairs = {"times": (one.times, other.times), "sample times": (one.sample_times, other.sample_times)}
    pairs |= {column: (values, other.diagnostics[column]) for column, values in one.diagnostics.items()}
    if one.snapshots == other.snapshots:
        pairs |= {f"snapshot {k}": (one.snapshot(k), other.snapshot(k)) for k in range(one.snapshots)}
    return [f"{name} differ" for name, (a, b) in pairs.items() if not np.array_equal(a, b, equal_nan=True)]


def _child(work: Callable[[], int]) -> int:
    """Start a process that does some work and exits with the returned status; 1, silently, for an error."""
    process = os.fork()
    if process:
        return process
    status = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.default_int_handler)
        status = work()
    except (FileError, MemoryError, OSError):
        status = 2
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _ended(process: int) -> int:
    """Return the exit status of a child, or minus its signal; kill a child that does not end, with status 99."""
    deadline = time.monotonic() + WAITING
    while time.monotonic() < deadline:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return 99


def _signalled(*numbers: int, pause: float = 0.0) -> Callable[..., None]:
    def fault(work: Callable[[], int], duration: float, size: int, chance: random.Random) -> None:
        process = _child(work)
        time.sleep(chance.uniform(0.0, 1.2 * duration))
        for number in numbers:
            if os.waitpid(process, os.WNOHANG)[0]:
                return  # the process had ended
            os.kill(process, number)
            time.sleep(chance.uniform(0.0, pause))
        _ended(process)

    return fault


def _limited(kind: int, least: int, most: Callable[[int], int]) -> Callable[..., None]:
    def fault(work: Callable[[], int], duration: float, size: int, chance: random.Random) -> None:
        room = chance.randint(least, most(size))

        def limited() -> int:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            sys.dont_write_bytecode = True  # truncated bytecode would stay and break other processes
            used = 0 if kind == resource.RLIMIT_FSIZE else _address_space()
            resource.setrlimit(kind, (used + room, resource.getrlimit(kind)[1]))
            return work()

        _ended(_child(limited))

    return fault


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[0]) * resource.getpagesize()


FAULTS: dict[str, Callable[[Callable[[], int], float, int, random.Random], None]] = {
    "SIGKILL": _signalled(signal.SIGKILL),
    "SIGTERM": _signalled(signal.SIGTERM),
    "SIGTERM twice": _signalled(signal.SIGTERM, signal.SIGTERM, pause=0.01),
    "Ctrl-C": _signalled(signal.SIGINT),
    "SIGSTOP": _signalled(signal.SIGSTOP, signal.SIGCONT, pause=0.05),
    "SIGSTOP, SIGKILL": _signalled(signal.SIGSTOP, signal.SIGKILL, pause=0.05),
    "full disk": _limited(resource.RLIMIT_FSIZE, 0, lambda size: size),
    "memory": _limited(resource.RLIMIT_AS, MEGABYTE, lambda size: 64 * MEGABYTE),
}
