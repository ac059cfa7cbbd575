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
    """Write the times and diagnostics of a run, all or those named, to the CSV file ``path``, a row for each sample.

    Raises FileError for a run without samples, or without a named diagnostic.
    """
    if len(run.sample_times) == 0:
        raise FileError(f"{run.path}: holds no sample of the diagnostics yet")
    chosen = select_diagnostics(run, diagnostics)
    columns = [run.sample_times, *chosen.values()]
    table = np.concatenate([column.reshape(len(run.sample_times), -1) for column in columns], axis=1)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(column_names(chosen))
        writer.writerows(table.tolist())  # Python writes the fewest digits that restore a float


def select_diagnostics(run: Run, names: Sequence[str] | None) -> dict[str, Floats]:
    """Return the diagnostics ``names`` of a run, or all for None. Raises FileError for a missing diagnostic."""
    names = list(run.diagnostics) if names is None else names
    for name in names:
        if name not in run.diagnostics:
            raise FileError(f"{run.path}: has no diagnostic {name}; expected one of {', '.join(run.diagnostics)}")
    return {name: run.diagnostics[name] for name in names}


def column_names(diagnostics: Mapping[str, Floats]) -> list[str]:
    """Return the column names of a CSV table of diagnostics: time, and a name for each number of each diagnostic.

    Examples are mass, centroid_x, centroid_y, power_0, power_1; in more than three dimensions centroid_0.
    """
    return ["time", *names_of_numbers(diagnostics)]


def names_of_numbers(columns: Mapping[str, Floats]) -> list[str]:
    """Return a name for each number in a row of arrays (rows, ...), such as power_0 and power_1 for an array (rows, 2).

    The numbers of a centroid are named by x, y and z, if these are enough.
    """
    names = []
    for name, values in columns.items():
        for index in np.ndindex(values.shape[1:]):
            named = name == "centroid" and values.shape[1] <= len(AXES)
            parts = [AXES[i] if named else str(i) for i in index]
            names.append("_".join([name, *parts]))
    return names
