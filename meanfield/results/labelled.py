"""Runs as xarray Datasets: dimensions, coordinates, units and names; snapshots are read on access."""

from __future__ import annotations

from typing import Any

import numpy as np
from xarray import Dataset, Variable
from xarray.backends import BackendArray
from xarray.core.indexing import ExplicitIndexer, IndexingSupport, LazilyIndexedArray, explicit_indexing_adapter

from solvers.io.reading import Floats
from solvers.io.run_file import Run

COORDINATES = ("cell_center", "cell_area", "weight", "ring_edge")  # positions of snapshots, and masses of tokens


def snapshots_of(run: Run) -> Dataset:
    """Return a Dataset of ``density`` (time, cell) or ``position`` (time, token, d), with mesh variables."""
    found = {}
    for name, about in run.described().items():
        if "/" in name:  # belongs to a table
            continue
        values: Any = run.times
        if name == run.kind:
            values = LazilyIndexedArray(RunArray(run))
        elif name != "time":
            values = run.variable(name, "fiuS")  # texts of tokens too
        found[name] = Variable(about.dims, values, about.attributes)
    dataset = Dataset(found, attrs=dict(run.attributes))
    return dataset.set_coords([name for name in COORDINATES if name in found])


def diagnostics_of(run: Run) -> Dataset:
    """Return the Dataset of the diagnostics over ``sample``, indexed by time: ``.sel(time=3, method="nearest")``."""
    about = run.described()
    columns = {"time": run.sample_times, **run.diagnostics}
    found = {}
    for name, values in columns.items():
        entry = about[f"diagnostics/{name}"]
        found[name] = Variable(entry.dims, values, entry.attributes)
    return Dataset(found).set_coords("time").set_xindex("time")


class RunArray(BackendArray):
    """Snapshots (time, ...) of a run, read when xarray indexes them; a copy or pickle refers to the run file."""

    def __init__(self, run: Run) -> None:
        self._run, self.dtype = run, np.dtype(float)
        self.shape = (run.snapshots, *run.snapshot_shape)

    def __getitem__(self, key: ExplicitIndexer) -> Any:
        return explicit_indexing_adapter(key, self.shape, IndexingSupport.BASIC, self._rows)

    def _rows(self, key: tuple[Any, ...]) -> Floats:
        rows = self._run.rows(key[0])
        return rows[(slice(None), *key[1:])] if isinstance(key[0], slice) else rows[key[1:]]
