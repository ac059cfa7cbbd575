"""Start-up times of whole processes, by wall time."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import meanfield
from benchmarks import measure
from benchmarks.measure import Figure, Spread

SMALL_CASE = ["domain.resolution=8", "time.end=0.1", "output.snapshots=1"]
MAIN_RUN = ["run", "metastable_sphere", "--overwrite", "--quiet", "-o", "main.h5"]
SMALL_RUN = ["run", "uniform", "--set", *SMALL_CASE, "--overwrite", "--quiet", "-o", "run.h5"]


def startup() -> list[Figure]:
    """Measure ``meanfield --help``, a small run with and without compilation, and README's main example."""
    with tempfile.TemporaryDirectory() as folder:

        def command(arguments: list[str], cache: object = "cache") -> float:
            return seconds_of(arguments, folder, {**os.environ, "NUMBA_CACHE_DIR": str(Path(folder, str(cache)))})

        first = Spread.of([command(SMALL_RUN, k) for k in range(measure.REPEATS)])
        command(SMALL_RUN)
        again = Spread.of([command(SMALL_RUN) for _ in range(measure.REPEATS)])
        main_job = Spread.of([command(MAIN_RUN) for _ in range(measure.REPEATS)])
        help_text = Spread.of([command(["--help"]) for _ in range(measure.REPEATS)])
    return [
        Figure.of("start-up: meanfield --help", help_text, "s", most=0.3),
        Figure.of("start-up: first run, which compiles the kernels", first, "s", most=20.0),
        Figure.of("start-up: the same run with compiled kernels", again, "s", most=1.0),
        Figure.of("main example of the README, 8630 cells to t = 150: whole command", main_job, "s", most=8.0),
    ]


def seconds_of(arguments: list[str], folder: str, environment: dict[str, str] | None = None) -> float:
    """Return the wall time of one ``meanfield`` command of the imported package, with cached bytecode.

    Raises CalledProcessError where the command fails.
    """
    environment = {**(os.environ if environment is None else environment)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["PYTHONPATH"] = str(Path(meanfield.__file__).parents[1])
    command, began = [sys.executable, "-m", "meanfield", *arguments], time.perf_counter()
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    return time.perf_counter() - began
