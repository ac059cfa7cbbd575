"""Start-up as a user meets it: whole processes, by the wall."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measure import Figure

SMALL_CASE = ["domain.resolution=8", "time.end=0.1", "output.snapshots=1"]
SMALL_RUN = ["run", "uniform", "--set", *SMALL_CASE, "--overwrite", "--quiet", "-o", "run.h5"]


def startup() -> list[Figure]:
    """``meanfield --help``; a small run that has to compile every kernel it uses; the same run again."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder, "numba"))}
        first = seconds_of(SMALL_RUN, folder, environment)
        again = min(seconds_of(SMALL_RUN, folder, environment) for _ in range(3))
        help_text = min(seconds_of(["--help"], folder, environment) for _ in range(5))
    return [
        Figure("start-up: meanfield --help", help_text, "s", most=0.3),
        Figure("start-up: first run ever, compiling", first, "s", most=20.0),
        Figure("start-up: the same run again", again, "s", most=2.0),
    ]


def seconds_of(arguments: list[str], folder: str, environment: dict[str, str] | None = None) -> float:
    """Wall time of one ``meanfield`` command. Raises CalledProcessError where it fails."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "meanfield", *arguments]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return time.perf_counter() - began
