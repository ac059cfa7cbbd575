"""Verification of a file: it is read whole; damaged parts are listed, with the parts that are valid."""

from __future__ import annotations

from pathlib import Path

from solvers.io.repair import FileError
from solvers.io.run_file import read
from solvers.io.verifying import verify


def report(path: str | Path, of_sweep: bool = False) -> str:
    """Read a run file, or the index of a sweep, whole and return one line on it. Raises FileError if it is damaged."""
    if of_sweep:
        from meanfield.sweeping.results import read_points

        return f"{path}: sound: {read_points(path)} points were read whole"
    run = read(path)
    found = verify(run)
    good = f"{found.snapshots} of {run.snapshots} snapshots, {len(run.sample_times)} samples of the diagnostics"
    if found.damaged:
        raise FileError(f"{path}: damaged: {'; '.join(found.damaged)}; valid: {good}")
    how = "and their checksums are right" if found.checked else "of a file that is not closed, or has no checksums"
    return f"{path}: sound: {good} were read, {how}"
