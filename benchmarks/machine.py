"""Description of the machine of the measurements: processor, cores, versions."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import meanfield
from benchmarks.transforms import ducc0_installed
from solvers.backends import host_backend


def machine() -> dict[str, Any]:
    """Return the number of cores used, the processor's name and the operating system."""
    return {"cores": host_backend().WORKERS, "processor": _processor(), "system": platform.system()}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that influence the measured times."""
    packages = ["numpy", "scipy", "numba", *(["ducc0"] if ducc0_installed() else [])]
    ours = {"Python": platform.python_version(), "meanfield": meanfield.__version__}
    return ours | {name: version(name) for name in packages}


def commit() -> str:
    """Return the short name of the current commit, with a + for modified files; "unknown" without git."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
