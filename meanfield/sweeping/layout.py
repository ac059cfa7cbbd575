"""HDF5 layout of the index of a sweep, see :mod:`meanfield.sweeping.index`, and of a file of some of its points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from meanfield.case.overrides import inline
from meanfield.sweeping.case import Sweep
from meanfield.sweeping.columns import (
    Columns,
    create_columns,
    fill_columns,
    names_in,
    write_columns,
    write_outcomes,
)
from meanfield.sweeping.scalars import axes, long_name
from meanfield.sweeping.sources import MergedResults
from solvers.io.schema import listed_columns
from solvers.io.writing import bytes_of_file

if TYPE_CHECKING:
    import h5py

_BLOCK = 1 << 22  # bytes of the rows that are assembled at once


def image_of_points(columns: Columns, identity: str) -> bytes:
    """Return the bytes of an HDF5 file with the results of some runs; ``identity`` is the hash of their sweep."""

    def fill(file: h5py.File) -> None:
        """Write the identity of the sweep and the columns of the results."""
        file.attrs["identity"] = identity
        write_columns(file, columns)

    return bytes_of_file(fill)


@dataclass(frozen=True)
class Parameters:
    """Values of the keys that vary between the points of a sweep.

    values    numbers or texts (points,), by key
    spacings  spacing of the values, "log", "linear", "seeds" or "list", by key
    manifold  manifold of the domain of the points
    """

    values: Mapping[str, NDArray[Any]]
    spacings: Mapping[str, str]
    manifold: str

    @classmethod
    def of(cls, sweep: Sweep) -> Parameters:
        """Return the values of the varied keys of a sweep."""
        values = {key: _column([row[key] for row in sweep.rows]) for key in sweep.keys}
        return cls(values, sweep.spacings, sweep.points[0].case.domain.manifold)


def lay_out_index(file: h5py.File, parameters: Parameters, results: MergedResults) -> None:
    """Write the index of a sweep, one row for each point (run): varied keys, states and results.

    Results are written in blocks of rows that bound the memory.
    """
    shapes, count = results.shapes, results.count
    _lay_out_parameters(file, parameters)
    write_outcomes(file, results.outcomes)
    rows = 1 << (max(1, _BLOCK // max(8 * sum(map(math.prod, shapes.values())), 1)).bit_length() - 1)
    create_columns(file, count, shapes, rows)
    for first in range(0, count, rows):
        last = min(first + rows, count)
        fill_columns(file, slice(first, last), results.block(first, last, shapes))
    for name in names_in("result", shapes):
        file["result"][name].attrs["long_name"] = long_name(name)
    _name_dimensions(file, parameters.manifold)


def _lay_out_parameters(file: h5py.File, parameters: Parameters) -> None:
    """Write one dataset (points,) for each varied key, with the spacing of the key as its attribute."""
    import h5py

    text = h5py.string_dtype()
    for key, values in parameters.values.items():
        data = file.create_dataset(f"parameters/{key}", data=values, dtype=text if values.dtype == object else None)
        data.attrs["spacing"] = parameters.spacings[key]


def _column(values: list[Any]) -> Any:
    """Return the values of a key at all points (runs) as an array of numbers, or as an array of texts.

    Values other than texts are then written in TOML.
    """
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return np.array(values)
    return np.array([value if isinstance(value, str) else inline(value) for value in values], dtype=object)


def _name_dimensions(file: h5py.File, manifold: str) -> None:
    """Attach dimension scales to the datasets of a sweep's index, as netCDF-4 does.

    The first axis of all datasets has the scale ``point``, with the varied keys as coordinates. Other axes have names.
    """
    point = file["point"]
    point.make_scale("point")
    keys = list(file["parameters"])
    for key in keys:
        file[key] = file["parameters"][key]  # the same dataset, where readers look for coordinates
    of_points = [file[name] for name in ("status", "reason", "exit_status", "wall_time", "samples/count", *keys)]
    for group, first in (("result", 1), ("samples", 2)):
        for name in listed_columns(file[group]):
            dataset = file[group][name]
            of_points.append(dataset)
            if first == 2:
                dataset.dims[1].attach_scale(_scale(file[group], "sample", dataset.shape[1]))
            for axis, inner in enumerate(axes(name, dataset.ndim - first, manifold), first):
                dataset.dims[axis].attach_scale(_scale(file[group], inner, dataset.shape[axis]))
    for dataset in of_points:
        dataset.dims[0].attach_scale(point)
        if dataset.name.strip("/") not in keys:
            dataset.attrs["coordinates"] = " ".join(keys)


def _scale(group: h5py.Group, name: str, length: int) -> h5py.Dataset:
    """Return the dimension scale of an HDF5 group with a name and a length, created if it is missing.

    The name gets the length as a suffix if another scale has the name.
    """
    if name in group and len(group[name]) != length:
        name = f"{name}_{length}"
    if name not in group:
        group.create_dataset(name, data=np.arange(length)).make_scale(name)
    return group[name]
