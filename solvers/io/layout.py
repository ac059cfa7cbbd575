"""Layout of a run file: netCDF-4, with named dimensions as HDF5 dimension scales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..mesh.mesh import Mesh
from .schema import EVENTS, SNAPSHOT, TABLES, TRIANGLES

if TYPE_CHECKING:
    import h5py

_CHUNK_ROWS = 2**20  # of datasets that are written once
COMPLEX = "_PFNC_DOUBLE_COMPLEX_TYPE"  # type {r, i} of complex numbers, as h5netcdf and netCDF4 name it
CHUNK_BYTES = 8192  # of a diagnostics column: small, since a chunk is rewritten as it fills


@dataclass(frozen=True)
class Column:
    """Column of a table over time in a run file: a number in each row, or an array with named dimensions.

    Parameters
    ----------
    name : str
        Name of the dataset.
    dims : tuple of (str, int), optional
        Name and length of each dimension after that of the rows, such as ``(("degree", 9),)``; by default none.
    units : str, optional
        Units in the notation of UDUNITS, "1" for none.
    long_name : str, optional
        Description; by default the name.
    attributes : tuple of (str, str or float), optional
        Names and values of further attributes of the dataset.
    table : str, optional
        Group of the dataset: "diagnostics", or "events" with times of its own.

    Examples
    --------
    >>> from solvers import Column
    >>> Column("power", (("degree", 9),), long_name="power in each degree").shape
    (9,)
    """

    name: str
    dims: tuple[tuple[str, int], ...] = ()
    units: str = "1"
    long_name: str = ""
    attributes: tuple[tuple[str, str | float], ...] = ()
    table: str = "diagnostics"

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape of the column in one row of the table; () for a number."""
        return tuple(length for _, length in self.dims)


@dataclass(frozen=True)
class Variable:
    """Array that a run file stores once, with the mesh: values with named dimensions, units and a description.

    ``is_coordinate``: whether the array is a coordinate of the density, such as an angle (cells,).
    """

    name: str
    dims: tuple[str, ...]
    values: NDArray[np.float64]
    units: str = "1"
    long_name: str = ""
    is_coordinate: bool = False


@dataclass(frozen=True, eq=False)
class Points:
    """Weighted points, stored instead of a mesh.

    Attributes
    ----------
    weights : (n,) array
        Masses of the points.
    dimension : int
        Number d of coordinates of a position.
    manifold : str
        Name of the manifold in the file.
    time_name : str
        Description of the time in the file.
    name : str
        Name of one point, and of the dimension along the points.
    position : str
        Description of a position in the file.
    """

    weights: NDArray[np.float64]
    dimension: int
    manifold: str = "particles"
    time_name: str = "model time"
    name: str = "point"
    position: str = "radius times direction"


Space = Mesh | Points


@dataclass(frozen=True)
class Measure:
    """Measure to which densities on a mesh refer.

    units     units of the cell sizes
    density   description (``long_name``) of a density with respect to the measure
    """

    units: str
    density: str


def lay_out(
    file: h5py.File,
    space: Space,
    columns: Sequence[Column],
    variables: Sequence[Variable] = (),
    measure: Measure | None = None,
    fields: Sequence[str] = (),
    is_complex: bool = False,
) -> None:
    """Create all datasets of a new run file: those of the mesh or the points with values, those over time empty.

    columns      columns of the tables of diagnostics and events
    variables    further arrays, stored with the mesh
    fields       names of the fields on the cells after the first one, which is stored as the density
    is_complex   whether the fields on the cells are complex
    Raises ValueError for columns or fields whose names or dimensions contradict each other.
    """
    time_name = _time_name(space)
    _dataset(file, "time", ("time",), np.empty(0), "1", time_name)
    scales = {"time": _scale(file["time"], "time")}
    if is_complex:
        file[COMPLEX] = np.dtype(np.complex128)
    if isinstance(space, Points):
        _lay_out_points(file, space, scales)
    else:
        _lay_out_cells(file, space, measure or _MEASURES.get(space.manifold, _PLAIN), scales)
    for field in fields:
        if field in file or field in ("checkpoint", *TABLES):
            raise ValueError(f"fields: {field!r} occurs twice, or is a name of the file's own")
        _describe(_snapshots(file, field, (len(file["cell_area"]),)), ("time", "cell"), "1", field)
    for variable in variables:
        for dim, length in zip(variable.dims, variable.values.shape, strict=True):
            if dim not in scales:
                scales[dim] = _dimension(file, dim, length)
        _dataset(file, variable.name, variable.dims, variable.values, variable.units, variable.long_name)
    if coordinates := [variable.name for variable in variables if variable.is_coordinate]:
        file["density"].attrs["coordinates"] = " ".join(coordinates)  # convention of CF
    _attach(file, scales)
    _lay_out_checkpoint(file.create_group("checkpoint"))
    for table, row in TABLES.items():
        of_table = [column for column in columns if column.table == table]
        if of_table or table != EVENTS:
            _lay_out_table(file.create_group(table), of_table, row, time_name)


def _lay_out_checkpoint(group: h5py.Group) -> None:
    """Create an empty dataset for the bytes of the last checkpoint, in a group of its own, since it is not a result."""
    scales = {"byte": _dimension(group, "byte", None)}
    place = group.create_dataset("bytes", shape=(0,), maxshape=(None,), chunks=(CHUNK_BYTES,), dtype=np.uint8)
    place.attrs["long_name"] = "state from which a run continues exactly"
    place.dims[0].label = "byte"
    _attach(group, scales)


def _lay_out_points(file: h5py.File, points: Points, scales: dict[str, h5py.Dataset]) -> None:
    """Create the datasets of weighted points in a run file: masses, and empty positions over time.

    scales   dimension scales of the file by name, which are extended
    """
    count, d, name = len(points.weights), points.dimension, points.name
    scales |= {name: _dimension(file, name, count), "d": _dimension(file, "d", d)}
    position = _snapshots(file, SNAPSHOT[points.manifold], (count, d))
    _describe(position, ("time", name, "d"), "1", f"position of each {name}, {points.position}")
    _dataset(file, "weight", (name,), points.weights, "1", f"mass of each {name}")


def _lay_out_cells(file: h5py.File, mesh: Mesh, measure: Measure, scales: dict[str, h5py.Dataset]) -> None:
    """Create the datasets of a mesh in a run file: centers, sizes and rings of cells, an empty density over time.

    scales   dimension scales of the file by name, which are extended
    """
    for name, length in (("cell", mesh.cells), ("d", mesh.ambient_dimension), ("ring", len(mesh.ring_cells))):
        scales[name] = _dimension(file, name, length)
    if len(mesh.ring_edges):
        _dataset(file, "ring_edge", ("ring_edge",), mesh.ring_edges, "rad", "polar angle between rings of latitude")
        scales["ring_edge"] = _scale(file["ring_edge"], "ring_edge")
    density = _snapshots(file, "density", (mesh.cells,))
    _describe(density, ("time", "cell"), "1" if measure.units == "1" else f"{measure.units}-1", measure.density)
    _dataset(file, "cell_center", ("cell", "d"), mesh.centers, "1", "centroid of each cell, on the manifold")
    _dataset(file, "cell_area", ("cell",), mesh.volumes, measure.units, "length, area or measure of each cell")
    _dataset(file, "ring_cells", ("ring",), mesh.ring_cells, "1", "cells in each ring, from north to south")
    if mesh.manifold == "triangles":
        from ..mesh.simplices.triangulation import triangles_of

        corners = triangles_of(mesh)
        scales |= {"triangle": _dimension(file, "triangle", len(corners)), "corner": _dimension(file, "corner", 3)}
        _dataset(file, TRIANGLES, ("triangle", "corner"), corners, "1", "cells at the corners of each triangle")


def _snapshots(file: h5py.File, name: str, shape: tuple[int, ...]) -> h5py.Dataset:
    """Create an empty dataset of snapshots of this shape; it grows by one compressed chunk for each snapshot.

    Its numbers are complex if the file has the type COMPLEX.
    """
    return file.create_dataset(
        name,
        shape=(0, *shape),
        maxshape=(None, *shape),
        chunks=(1, *shape),
        dtype=file.get(COMPLEX, np.float64),
        shuffle=True,
        fletcher32=True,  # each chunk is written once: a killed writer leaves no wrong checksum
        compression="gzip",
        compression_opts=1,  # levels 4 to 9 do not compress densities further
    )


_PLAIN = Measure("1", "density with respect to cell_area")
_MEASURES = {  # of this package's meshes, by manifold
    "circle": Measure("rad", "density with respect to surface area"),
    "sphere": Measure("sr", "density with respect to surface area"),
}


def _time_name(space: Space) -> str:
    """Return the name of the time axis in a file."""
    return space.time_name if isinstance(space, Points) else "model time"


def _lay_out_table(group: h5py.Group, columns: Sequence[Column], row: str, time_name: str) -> None:
    """Create the empty datasets of a table over time: one for the times of its rows, and one for each column.

    The numbers 0, 1, … are the coordinate of each dimension after that of the rows.

    row   name of the dimension along the rows; "time" if the times are the coordinate of this dimension
    Raises ValueError for a column that occurs twice or has a reserved name, and for dimensions of two lengths.
    """
    import h5py

    lengths: dict[str, int | None] = {row: None}
    taken = {"time", row}
    for column in columns:
        if column.name in taken:
            raise ValueError(
                f"column {column.name!r} occurs twice, or has a reserved name ({', '.join(sorted({'time', row}))})"
            )
        taken.add(column.name)
        for name, length in column.dims:
            if lengths.setdefault(name, length) != length:
                raise ValueError(f"column {column.name!r}: dimension {name!r} has lengths {lengths[name]} and {length}")
    if clash := taken & (lengths.keys() - {row}):
        raise ValueError(f"{sorted(clash)} cannot be both columns and dimensions")
    for column in (Column("time", long_name=time_name), *columns):
        _dataset(
            group,
            column.name,
            (row, *(name for name, _ in column.dims)),
            np.empty((0, *column.shape)),
            column.units,
            column.long_name or column.name,
        )
        group[column.name].attrs.update(dict(column.attributes))
        if "time" not in (column.name, row):
            group[column.name].attrs["coordinates"] = "time"  # convention of CF
    _attach(group, {name: _scale_of_table(group, name, length) for name, length in lengths.items()})
    group.attrs["columns"] = np.array([column.name for column in columns], dtype=h5py.string_dtype())


def _scale_of_table(group: h5py.Group, name: str, length: int | None) -> h5py.Dataset:
    """Return the dimension scale of a table for the dimension ``name``; length None is that of the growing rows."""
    if name == "time":
        return _scale(group["time"], "time")
    if length is None:
        return _dimension(group, name, None)
    numbers = group.create_dataset(name, data=np.arange(length, dtype=np.int32))
    numbers.attrs["long_name"] = name
    return _scale(numbers, name)


def _dataset(
    group: h5py.Group, name: str, dims: Sequence[str], values: NDArray[Any], units: str, long_name: str
) -> None:
    """Create a dataset that holds ``values``; without values, an empty dataset that grows along the first dimension."""
    if len(values):
        rows = min(len(values), _CHUNK_ROWS)
        dataset = group.create_dataset(name, data=values, chunks=(rows, *values.shape[1:]), fletcher32=True)
    else:
        rows = max(CHUNK_BYTES // (8 * int(np.prod(values.shape[1:]))), 1)
        dataset = group.create_dataset(
            name,
            shape=values.shape,
            maxshape=(None, *values.shape[1:]),
            chunks=(rows, *values.shape[1:]),
            dtype=np.float64,
            fillvalue=np.nan,
            compression="gzip" if rows == 1 else None,  # long rows are mostly empty entries
            compression_opts=1 if rows == 1 else None,
        )
    _describe(dataset, dims, units, long_name)


def _describe(dataset: h5py.Dataset, dims: Sequence[str], units: str, long_name: str) -> None:
    """Set the units, the description and the names of the dimensions of a dataset."""
    dataset.attrs["units"] = units
    dataset.attrs["long_name"] = long_name
    for axis, name in enumerate(dims):
        dataset.dims[axis].label = name


def _scale(dataset: h5py.Dataset, name: str) -> h5py.Dataset:
    """Make a dataset the HDF5 dimension scale of the dimension ``name``, and return the dataset."""
    dataset.make_scale(name)
    return dataset


def _dimension(group: h5py.Group, name: str, length: int | None) -> h5py.Dataset:
    """Create a netCDF dimension without coordinates, as an empty HDF5 dimension scale; length None lets it grow."""
    scale = group.create_dataset(
        name,
        shape=(length or 0,),
        maxshape=(length,),
        chunks=(1024,) if length is None else None,
        dtype=np.int8,
    )
    return _scale(scale, f"This is a netCDF dimension but not a netCDF variable. {length or 0:9d}")


def _attach(group: h5py.Group, scales: Mapping[str, h5py.Dataset]) -> None:
    """Attach the dimension scales ``scales`` to the datasets of a group, by the names of the datasets' dimensions."""
    for dataset in group.values():
        if dataset.name == f"/{COMPLEX}":
            continue
        for dimension in dataset.dims if dataset.name.split("/")[-1] not in scales else ():
            dimension.attach_scale(scales[dimension.label])
