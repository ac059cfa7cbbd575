"""Index of a sweep in other formats: a CSV table with a row for each point, or one netCDF-4 file with all results."""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from meanfield.export.csv import names_of_numbers
from meanfield.sweeping.layout import Parameters, lay_out_index
from meanfield.sweeping.results import SweepResults
from solvers.io.run_file import FileError
from solvers.io.writing import new_file_on_disk

_POINT, _STATE = ["point"], ["status", "reason", "wall_time"]


def write_sweep_csv(found: SweepResults, path: Path, diagnostics: Sequence[str] | None = None) -> None:
    """Write a CSV row for each point of a sweep to ``path``: number, keys, status, reason, seconds, and scalars.

    A point is one run of the sweep. Scalars, all or those named, are the final diagnostics and further results of the
    index; missing values are empty. Raises FileError for an unknown scalar.
    """
    names = list(found.scalars) if diagnostics is None else diagnostics
    for name in names:
        if name not in found.scalars:
            raise FileError(f"{found.path}: has no scalar {name}; expected one of {', '.join(found.scalars)}")
    scalars = {name: found.scalars[name] for name in names}
    count = len(found.status)
    numbers = np.concatenate(
        [np.empty((count, 0)), *(values.reshape(count, -1) for values in scalars.values())], axis=1
    )
    keys = [values.tolist() for values in found.parameters.values()]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*_POINT, *found.parameters, *_STATE, *names_of_numbers(scalars)])
        for point, row in enumerate(numbers):
            state = found.status[point], found.reasons[point], float(found.wall_times[point])
            values = ["" if np.isnan(value) else value for value in row.tolist()]
            writer.writerow([point, *(values_of_key[point] for values_of_key in keys), *state, *values])


def write_sweep_netcdf(found: SweepResults, path: Path) -> None:
    """Write the index of a sweep, and the results in files beside it, as one netCDF-4 file with a stable layout.

    /result and /samples are groups along the dimension ``point``, one run each, whose coordinates are the keys.
    """
    manifold = str(tomllib.loads(found.attributes["case"])["domain"]["manifold"])
    with new_file_on_disk(path) as file:
        file.attrs.update(found.attributes)
        lay_out_index(file, Parameters(found.parameters, found.spacings, manifold), found.results)
