"""Provenance of a file: versions, commit, machine, start."""

from __future__ import annotations

import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path

from meanfield import __version__
from meanfield.case.case import Case
from meanfield.case.load import to_toml
from meanfield.components.in_case import components_attribute

PACKAGES = ("numpy", "scipy", "numba", "h5py")


def provenance(case: Case, command: str) -> dict[str, str | int]:
    """Return the attributes of a run file that record its origin, such as case, versions, commit, command and start."""
    return {
        "title": case.title,
        "case": to_toml(case),
        "versions": _versions(),
        "git_commit": _git_commit(),
        "command": command.encode(errors="backslashreplace").decode(),  # names of files that are not UTF-8
        "seed": getattr(case.initial, "seed", -1),
        "start": datetime.now(UTC).isoformat(timespec="seconds"),
        **components_attribute(case),
    }


@cache
def _versions() -> str:
    """Return the versions of Python, of this package and of numerical libraries as one text; the result is cached."""
    ours = [f"python {platform.python_version()}", f"meanfield {__version__}"]
    return ", ".join([*ours, *(f"{name} {version(name)}" for name in PACKAGES)])


@cache
def _git_commit() -> str:
    """Return the git commit of the source folder, empty for an installed package or without git; cached."""
    source = Path(__file__).resolve().parents[1]
    if not (source.parent / ".git").exists():
        return ""
    try:
        done = subprocess.run(
            ["git", "-C", str(source), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):  # without git, the versions have to suffice
        return ""
    return done.stdout.strip()
