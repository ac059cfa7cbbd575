"""Runs as xarray Datasets: dimensions, coordinates, units and names; snapshots are read when they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from solvers.io.run_file import Run

if TYPE_CHECKING:
    from xarray import Dataset

    from solvers.io.reading import Floats

COORDINATES = ("cell_center", "cell_area", "weight", "ring_edge")  # where snapshots are, and their masses


def snapshots_of(run: Run) -> Dataset:
    """``density`` (time, cell) or ``position`` (time, token, d), and what the file keeps of its mesh."""
    from xarray import Dataset, Variable
    from xarray.core.indexing import LazilyIndexedArray

    found = {}
    for name, about in run.described().items():
        if name.startswith("diagnostics/"):
            continue
        values: Any = run.times
        if name == run.kind:
            values = LazilyIndexedArray(_backend_array(run))
        elif name != "time":
            values = run.variable(name)
        found[name] = Variable(about.dims, values, about.attributes)
    dataset = Dataset(found, attrs=dict(run.attributes))
    return dataset.set_coords([name for name in COORDINATES if name in found])


def diagnostics_of(run: Run) -> Dataset:
    """Each diagnostic over ``sample``, of which ``time`` is an index: ``.sel(time=3, method="nearest")``."""
    from xarray import Dataset, Variable

    about = run.described()
    columns = {"time": run.sample_times, **run.diagnostics}
    found = {}
    for name, values in columns.items():
        entry = about[f"diagnostics/{name}"]
        found[name] = Variable(entry.dims, values, entry.attributes)
    return Dataset(found).set_coords("time").set_xindex("time")


def _backend_array(run: Run) -> Any:
    """The snapshots of a run as xarray wants arrays that it indexes before it reads them."""
    from xarray.backends import BackendArray
    from xarray.core.indexing import IndexingSupport, explicit_indexing_adapter

    class Snapshots(BackendArray):
        shape, dtype = (run.snapshots, *run.snapshot_shape), np.dtype(float)

        def __getitem__(self, key: Any) -> Any:
            return explicit_indexing_adapter(key, self.shape, IndexingSupport.BASIC, _rows)

    def _rows(key: tuple[Any, ...]) -> Floats:
        rows = run.rows(key[0])
        return rows[(slice(None), *key[1:])] if isinstance(key[0], slice) else rows[key[1:]]

    return Snapshots()
