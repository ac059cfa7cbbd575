"""Densities on a regular grid as netCDF-4 with CF names: latitude and longitude, on the circle the angle.

The grid of the sphere has a row for each ring; each row has as many columns as the ring with most cells. Rings have
base · 2^level cells, so every cell of the mesh consists of whole rectangles of the grid in (cos θ, φ). Regridding
therefore copies the value of each cell without interpolation, and preserves mass and extrema.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from meanfield import __version__
from meanfield.domains.domain import load
from meanfield.domains.table import DOMAINS, kind_of
from solvers.io.run_file import FileError, Run
from solvers.io.writing import bytes_of_file, discard, open_shared

if TYPE_CHECKING:
    import h5py

Floats = NDArray[np.float64]
RUN_ATTRIBUTES = ("title", "case", "command", "git_commit", "stop_reason")  # run attributes that are copied


@dataclass(frozen=True)
class Axis:
    """Coordinate of a regular grid: ``edges`` (cells + 1,) of its cells ascending, with netCDF ``attributes``."""

    edges: Floats
    attributes: Mapping[str, str]

    @property
    def middles(self) -> Floats:
        """Return the middles (cells,) of the cells along an axis of a grid."""
        return (self.edges[1:] + self.edges[:-1]) / 2

    @property
    def bounds(self) -> Floats:
        """Return the lower and upper edges (cells, 2) of the cells along an axis of a grid."""
        return np.stack([self.edges[:-1], self.edges[1:]], axis=1)


@dataclass(frozen=True)
class Grid:
    """Regular grid: axes by name, areas of the cells, and the function that regrids a density (cells,).

    area    (*shape,) length or area of each cell, in units of ``per``
    regrid  cell averages on the mesh → (*shape,) cell averages on the grid
    """

    axes: Mapping[str, Axis]
    area: Floats
    per: str
    regrid: Callable[[Floats], Floats]


def sphere_grid(ring_cells: NDArray[np.int32]) -> Grid:
    """Return the latitude × longitude grid of rings with these numbers of cells from the north pole.

    The grid runs from south to north, and eastward from 0.
    """
    rings, columns = len(ring_cells), int(ring_cells.max())
    theta = np.linspace(0.0, np.pi, rings + 1)
    height = 2 * np.sin((theta[1:] + theta[:-1]) / 2) * math.sin(np.pi / rings / 2)  # cos θ₁ − cos θ₂, exact
    repeats = np.repeat(columns // ring_cells, ring_cells)  # columns covered by each cell

    def regrid(density: Floats) -> Floats:
        return np.repeat(density, repeats).reshape(rings, columns)[::-1]

    north = {"units": "degrees_north", "standard_name": "latitude", "long_name": "latitude", "axis": "Y"}
    east = {"units": "degrees_east", "standard_name": "longitude", "long_name": "longitude", "axis": "X"}
    return Grid(
        axes={
            "lat": Axis(np.linspace(-90.0, 90.0, rings + 1), north),
            "lon": Axis(np.linspace(0.0, 360.0, columns + 1), east),
        },
        area=np.repeat(height[::-1, None] * (2 * np.pi / columns), columns, axis=1),
        per="sr",
        regrid=regrid,
    )


def circle_grid(ring_cells: NDArray[np.int32]) -> Grid:
    """Return the regular grid of the angle on the circle, whose cells are those of the mesh."""
    cells = int(ring_cells[0])
    angle = Axis(np.linspace(0.0, 2 * np.pi, cells + 1), {"units": "rad", "long_name": "angle"})
    return Grid(
        axes={"angle": angle},
        area=np.full(cells, 2 * np.pi / cells),
        per="rad",
        regrid=lambda density: density,
    )


def write_netcdf(run: Run, path: Path) -> None:
    """Write the density of every snapshot of a run to the netCDF file ``path``, on a regular grid.

    Raises FileError for a run without snapshots, and for tokens, fields and manifolds that have no such grid.
    """
    if run.snapshots == 0:
        raise FileError(f"{run.path}: holds no snapshot yet")
    if run.is_solution:
        raise FileError(
            f"{run.path}: contains fields on cells and needs no export: the file is netCDF-4; open it in xarray "
            'with engine="h5netcdf"'
        )
    kind = kind_of(run.manifold)
    if kind.has_tokens:
        raise FileError(
            f"{run.path}: contains particles and needs no export: the file is netCDF-4; open it in xarray "
            'with engine="h5netcdf"'
        )
    if kind.netcdf is None:
        only = ", ".join(name for name, other in DOMAINS.items() if other.netcdf)
        raise FileError(f"{run.path}: manifold {run.manifold!r}; netcdf export supports {only} only")
    grid: Grid = load(kind.netcdf)(run.ring_cells)
    path.write_bytes(_image(run, grid))
    file = open_shared(path)  # opened in a mode in which `discard` is safe
    density = file["density"]
    try:
        for k in range(run.snapshots):
            density[k] = grid.regrid(run.density(k))
        file.flush()
    except BaseException:
        discard(file)  # otherwise HDF5 would retry the failed write and crash
        raise
    file.close()


def _image(run: Run, grid: Grid) -> bytes:
    """Return the bytes of the netCDF file of a run, complete except for the densities.

    The file is laid out in memory, where HDF5 meets no disk errors.
    """

    def fill(file: h5py.File) -> None:
        """Write the attributes and variables of the netCDF file, without densities."""
        _lay_out(file, grid, run.times)
        file.attrs["Conventions"] = "CF-1.11"
        file.attrs["source"] = f"meanfield {__version__}"
        for name in RUN_ATTRIBUTES:
            if name in run.attributes:
                file.attrs[name] = run.attributes[name]

    return bytes_of_file(fill)


def _lay_out(file: h5py.File, grid: Grid, times: Floats) -> None:
    """Create all variables of a netCDF file of densities on a grid, with their values except for the density."""
    # Time is a dimensionless depth without a CF standard name: the standard name "time" requires a calendar.
    scales = {"time": _variable(file, "time", times, {"units": "1", "long_name": "model time", "axis": "T"})}
    for name, axis in grid.axes.items():
        scales[name] = _variable(file, name, axis.middles, {**axis.attributes, "bounds": f"{name}_bnds"})
    for name, scale in scales.items():
        scale.make_scale(name)
    pair = file.create_dataset("bnds", shape=(2,), dtype=np.int8)
    pair.make_scale(f"This is a netCDF dimension but not a netCDF variable. {2:9d}")  # text of the format
    for name, axis in grid.axes.items():
        _attach(_variable(file, f"{name}_bnds", axis.bounds, {}), scales[name], pair)
    named = {"units": grid.per, "standard_name": "cell_area", "long_name": "length or area of each cell"}
    _attach(_variable(file, "cell_area", grid.area, named), *(scales[name] for name in grid.axes))
    shape = tuple(len(axis.middles) for axis in grid.axes.values())
    density = file.create_dataset(
        "density",
        shape=(len(times), *shape),
        chunks=(1, *shape),
        dtype=np.float64,
        shuffle=True,
        compression="gzip",
        compression_opts=1,
    )
    density.attrs["units"] = f"{grid.per}-1"
    density.attrs["long_name"] = "density of tokens with respect to surface area"
    density.attrs["cell_methods"] = " ".join(f"{name}:" for name in grid.axes) + " mean"
    density.attrs["cell_measures"] = "area: cell_area"
    _attach(density, *scales.values())


def _variable(file: h5py.File, name: str, values: Floats, attributes: Mapping[str, str]) -> h5py.Dataset:
    """Create a dataset with these values and attributes, and return it."""
    dataset = file.create_dataset(name, data=values)
    for key, value in attributes.items():
        dataset.attrs[key] = value
    return dataset


def _attach(dataset: h5py.Dataset, *scales: h5py.Dataset) -> None:
    """Attach a dimension scale to each dimension of a dataset, in order."""
    for dimension, scale in zip(dataset.dims, scales, strict=True):
        dimension.attach_scale(scale)
