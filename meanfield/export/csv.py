"""Diagnostics as a CSV table: one row for each sample, one column for each number, in digits that restore the same
floats.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from solvers.io.run_file import FileError, Run
from solvers.mesh.mesh import Floats

AXES = "xyz"


def write_csv(run: Run, path: Path, diagnostics: Sequence[str] | None = None) -> None:
    """Write time and diagnostics, all or those named, to ``path``.

    Raises FileError for a run without samples, or without a named diagnostic.
    """
    if len(run.sample_times) == 0:
        raise FileError(f"{run.path}: holds no sample of the diagnostics yet")
    chosen = chosen_diagnostics(run, diagnostics)
    columns = [run.sample_times, *chosen.values()]
    table = np.concatenate([column.reshape(len(run.sample_times), -1) for column in columns], axis=1)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(column_names(chosen))
        writer.writerows(table.tolist())  # Python writes the fewest digits that restore a float


def chosen_diagnostics(run: Run, names: Sequence[str] | None) -> dict[str, Floats]:
    """Return the named diagnostics in this order, or all for None. Raises FileError for a missing diagnostic."""
    names = list(run.diagnostics) if names is None else names
    for name in names:
        if name not in run.diagnostics:
            raise FileError(f"{run.path}: has no diagnostic {name}; expected one of {', '.join(run.diagnostics)}")
    return {name: run.diagnostics[name] for name in names}


def column_names(diagnostics: Mapping[str, Floats]) -> list[str]:
    """Return the column names time, mass, …, centroid_x, centroid_y, …, power_0, power_1, …; beyond R³ centroid_0, …"""
    return ["time", *names_of_numbers(diagnostics)]


def names_of_numbers(columns: Mapping[str, Floats]) -> list[str]:
    """Return the names of the columns of arrays (rows, ...), without the time."""
    names = []
    for name, values in columns.items():
        for index in np.ndindex(values.shape[1:]):
            named = name == "centroid" and values.shape[1] <= len(AXES)
            parts = [AXES[i] if named else str(i) for i in index]
            names.append("_".join([name, *parts]))
    return names
