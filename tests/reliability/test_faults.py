"""Faults: a quick selection with a fixed seed; the long one is ``python -m tests.reliability faults``."""

import subprocess
import sys
from pathlib import Path


def test_disturbed_runs_are_the_undisturbed_ones() -> None:
    """A separate process runs the harness, since the harness forks."""
    command = [sys.executable, "-m", "tests.reliability", "faults", "--count", "4", "--seed", "1"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("faults: 0 failures in 4, seed 1, ")
