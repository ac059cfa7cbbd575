"""The diagnostics as a table: one row a sample, one column a number, in digits that give back the same floats."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from solvers.io.run_file import FileError, Run

AXES = "xyz"


def write_csv(run: Run, path: Path) -> None:
    """Write time and every diagnostic to ``path``. Raises FileError if there is no sample yet."""
    if len(run.sample_times) == 0:
        raise FileError(f"{run.path}: holds no sample of the diagnostics yet, so there is nothing to export")
    columns = [run.sample_times, *run.diagnostics.values()]
    table = np.concatenate([column.reshape(len(run.sample_times), -1) for column in columns], axis=1)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(column_names(run))
        writer.writerows(table.tolist())  # Python's floats are written in the fewest digits that are exact


def column_names(run: Run) -> list[str]:
    """Names of the columns: time, mass, …, centroid_x, centroid_y, …, power_0, power_1, …; beyond R³ centroid_0, …"""
    names = ["time"]
    for name, values in run.diagnostics.items():
        for index in np.ndindex(values.shape[1:]):
            named = name == "centroid" and values.shape[1] <= len(AXES)
            parts = [AXES[i] if named else str(i) for i in index]
            names.append("_".join([name, *parts]))
    return names
