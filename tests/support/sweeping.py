"""Shared parts of tests of sweeps: small sweep files, a solver without workers, and sweeps in separate processes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from meanfield.sweeping import local_pool
from meanfield.sweeping.tasks import Solver

CASE = """
[case.domain]
manifold = "circle"
resolution = 48
[case.attention]
beta = 4.0
[case.initial]
kind = "perturbed"
amplitude = 0.1
[case.time]
end = 0.5
[case.output]
snapshots = 2
samples = 5
[case.reaction]  # of nothing: cases with one are solved one by one
kind = "linear"
rate = 0.0
"""
SIX = """
title = "Six"
[keys]
"attention.beta" = [2.0, 4.0, 9.0]
"initial.seed" = {seeds = 2}
"""
SLOW = '[set]\n"time.end" = 2.0\n"time.cfl" = 0.04\n'  # a point takes a hundred steps or more


def write(path: Path, *parts: str) -> Path:
    path.write_text("".join(parts))
    return path


def in_this_process(jobs: int) -> Solver:
    """Return a solver without workers, which take seconds to start."""
    return lambda work: local_pool.in_this_process(work, work.tasks())


def contents(path: Path) -> dict[str, Any]:
    """Return every dataset in an index except the wall times, as bytes or texts."""
    found: dict[str, Any] = {}

    def visit(name: str, node: Any) -> None:
        if isinstance(node, h5py.Dataset) and name != "wall_time" and not node.external:
            values = np.asarray(node[()])
            found[name] = values.tolist() if node.dtype == object else (node.shape, values.tobytes())

    with h5py.File(path) as file:
        file.visititems(visit)
    return found


def statuses(path: Path) -> list[str]:
    with h5py.File(path) as file:
        return [status.decode() for status in file["status"][:]]


STARTED = """
import sys
from meanfield.sweeping.driver import sweep
from meanfield.sweeping.index import Index

def put_and_wait(*arguments, put=Index.put):
    put(*arguments)
    print(flush=True)
    sys.stdin.readline()

if __name__ == "__main__":
    Index.put = put_and_wait
    a = sys.argv[1:]
    sys.exit(sweep(a[0], a[1], jobs=int(a[2]), dask=a[3] if len(a) > 3 else None))
"""


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start `meanfield sweep` in a separate process, which waits after each point and so cannot end too soon."""
    command, pipe = [sys.executable, "-c", STARTED, *map(str, arguments)], subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def let_go_on(process: subprocess.Popen[str], points: int) -> None:
    """Let the process continue for ``points`` points."""
    assert process.stdin is not None
    process.stdin.write("\n" * points)
    process.stdin.flush()


def wait_for_points(process: subprocess.Popen[str], count: int) -> None:
    """Wait until ``count`` more points have been written into the index, or into files beside it."""
    assert process.stdout is not None
    for _ in range(count):
        assert process.stdout.readline(), process.stderr and process.stderr.read()
