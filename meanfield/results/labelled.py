"""Runs as xarray Datasets: dimensions, coordinates, units and names; snapshots are read on access."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from xarray import Dataset, Variable
from xarray.backends import BackendArray
from xarray.core.indexing import ExplicitIndexer, IndexingSupport, LazilyIndexedArray, explicit_indexing_adapter

from meanfield.domains.table import DOMAINS
from meanfield.results.rows import Snapshots
from solvers.io.reading import DatasetDescription
from solvers.io.run_file import Run
from solvers.remap.latitudes import average_on_grid, grid_edges

COORDINATES = ("cell_center", "cell_area", "weight", "ring_edge")  # positions of snapshots, and masses of tokens
RENAMED = {"sample": "time"}  # name of a dimension in older files


def snapshots_of(run: Run) -> Dataset:
    """Return a Dataset of ``density`` (time, cell) or ``position`` (time, token, d), with mesh variables.

    Angles, radii and other coordinates of the cells are those that the file names.
    """
    found, coordinates = {}, list(COORDINATES)
    for name, about in run.described().items():
        if "/" in name:  # belongs to a table
            continue
        values: Any = run.times
        if name == run.kind:
            values = LazilyIndexedArray(RunArray(run))
            coordinates += about.coordinates
        elif name != "time":
            values = run.variable(name, "fiuS")  # texts of tokens too
        found[name] = _variable(about, values)
    dataset = Dataset(found, attrs=dict(run.attributes))
    return dataset.set_coords([name for name in coordinates if name in found])


def on_grid(run: Run, grid: tuple[int, int]) -> Dataset:
    """Return a Dataset of the density (time, latitude, longitude) of a sphere, averaged on a regular grid.

    Raises ValueError for another domain, and for a grid that is not a pair of positive numbers.
    """
    if run.manifold not in DOMAINS or not DOMAINS[run.manifold].shows_rings:
        raise ValueError(f"grid = {grid!r}: only allowed for a density on the sphere, not for {run.manifold!r}")
    if np.shape(grid) != (2,) or not all(isinstance(count, Integral) and count > 0 for count in grid):
        raise ValueError(f"grid = {grid!r}: expected the numbers of latitudes and longitudes, such as (180, 360)")
    names, about = ("latitude", "longitude"), run.described()
    units = ("degrees_north", "degrees_east")
    edges = grid_edges(*grid)
    averages = np.empty((run.snapshots, *grid))
    for k in range(run.snapshots):
        averages[k] = average_on_grid(run.density(k), run.ring_cells, *grid)
    area = np.outer(np.diff(np.sin(np.radians(edges[0]))), np.diff(np.radians(edges[1])))
    axes = {
        name: (name, (edge[1:] + edge[:-1]) / 2, {"units": unit, "standard_name": name, "long_name": name})
        for name, edge, unit in zip(names, edges, units, strict=True)
    }
    coordinates = axes | {"time": _variable(about["time"], run.times), "cell_area": (names, area, {"units": "sr"})}
    density = Variable(("time", *names), averages, about["density"].attributes)
    return Dataset({"density": density}, coordinates, dict(run.attributes))


def diagnostics_of(run: Run) -> Dataset:
    """Return the Dataset of the diagnostics over time, with the numbers 0, 1, … along other dimensions."""
    about = run.described()
    columns = {"time": run.sample_times, **run.diagnostics}
    found = {name: _variable(about[f"diagnostics/{name}"], values) for name, values in columns.items()}
    lengths = {dim: length for variable in found.values() for dim, length in variable.sizes.items()}
    numbers = {dim: np.arange(length) for dim, length in lengths.items() if dim != "time"}
    return Dataset(found, coords={dim: (dim, values, {"long_name": dim}) for dim, values in numbers.items()})


def _variable(about: DatasetDescription, values: Any) -> Variable:
    """Return values as a variable of xarray, with the dimensions and the attributes of their dataset."""
    return Variable([RENAMED.get(dim, dim) for dim in about.dims], values, about.attributes)


class RunArray(BackendArray):
    """Snapshots (time, ...) of a run, read when xarray indexes them; a copy or pickle refers to the run file."""

    def __init__(self, run: Run) -> None:
        self._snapshots = Snapshots(run)
        self.shape, self.dtype = self._snapshots.shape, self._snapshots.dtype

    def __getitem__(self, key: ExplicitIndexer) -> Any:
        return explicit_indexing_adapter(key, self.shape, IndexingSupport.BASIC, self._snapshots.__getitem__)
