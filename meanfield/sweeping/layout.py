"""HDF5 layout of the index of a sweep and of the file of a single point, see :mod:`meanfield.sweeping.index`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.case.overrides import inline
from meanfield.sweeping.case import Sweep
from meanfield.sweeping.point import Result
from meanfield.sweeping.scalars import axes, long_name, scalars
from solvers.io.schema import dataset_of, group_of, require_size
from solvers.io.writing import bytes_of_file
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    import h5py

WAITING = "waiting"
_CHECKED: dict[str, Any] = {"fletcher32": True}  # the file is written at once and whole


def image_of_point(result: Result, identity: str) -> bytes:
    """The bytes of the file of a single point."""

    def fill(file: h5py.File) -> None:
        file.attrs["identity"] = identity
        write_point(file, result)

    return bytes_of_file(fill)


def write_point(group: h5py.Group, result: Result) -> None:
    """A result as a group: its tables, and attributes."""
    for name, values in result.tables.items():
        group.create_dataset(name, data=values, **_CHECKED if np.size(values) else {})
    group.attrs.update(
        status=result.status, exit_status=result.exit_status, reason=result.reason, wall_time=result.wall_time
    )


def read_point(group: h5py.Group) -> Result:
    """What ``write_point`` has written."""
    about = group.attrs
    return Result(
        str(about["status"]),
        int(about["exit_status"]),
        str(about["reason"]),
        float(about["wall_time"]),
        {name: _values(group, name) for name in group},
    )


def groups_of_points(file: h5py.File) -> Iterator[tuple[str, h5py.Group]]:
    """Names and groups of the points of an index, none where it has none yet. Raises ValueError for links elsewhere."""
    points = group_of(file, "points") if file.get("points", getlink=True) is not None else {}
    return ((name, group_of(points, name)) for name in points)


def _values(group: h5py.Group, name: str) -> Floats:
    dataset = dataset_of(group, name)
    require_size(dataset, group.file.id.get_filesize())
    return np.asarray(dataset[:], dtype=float)


def lay_out_points(file: h5py.File, sweep: Sweep, results: Mapping[int, Result]) -> None:
    """Parameters, states and results, a row a point."""
    import h5py

    count, text = len(sweep.points), h5py.string_dtype()
    for key in sweep.keys:
        values = _column([point.values[key] for point in sweep.points])
        data = file.create_dataset(f"parameters/{key}", data=values, dtype=text if values.dtype == object else None)
        data.attrs["spacing"] = sweep.spacings[key]
    found = [results.get(number, Result(WAITING)) for number in range(count)]
    for name, values in (
        ("status", [result.status for result in found]),
        ("reason", [result.reason for result in found]),
    ):
        file.create_dataset(name, data=np.array(values, dtype=object), dtype=text)
    file["exit_status"] = np.array([result.exit_status for result in found])
    file["wall_time"] = np.array([result.wall_time for result in found])
    file["wall_time"].attrs["units"] = "s"
    _lay_out_scalars(file.create_group("result"), count, {k: scalars(result.tables) for k, result in results.items()})
    _name_dimensions(file, count, sweep.points[0].case.domain.manifold)


def _name_dimensions(file: h5py.File, count: int, manifold: str) -> None:
    """As netCDF-4 has it: everything is along ``point``, with the keys as coordinates; other axes have names, too."""
    point = file.create_dataset("point", data=np.arange(count))
    point.make_scale("point")
    keys = list(file["parameters"])
    for key in keys:
        file[key] = file["parameters"][key]  # the same dataset: coordinates are looked for where the dimension is
    columns = [file[name] for name in ("status", "reason", "exit_status", "wall_time", *keys)]
    for dataset in (*columns, *file["result"].values()):
        dataset.dims[0].attach_scale(point)
        if dataset.name.strip("/") not in keys:
            dataset.attrs["coordinates"] = " ".join(keys)
        for axis, name in enumerate(axes(dataset.name.rpartition("/")[2], dataset.ndim - 1, manifold), 1):
            dataset.dims[axis].attach_scale(_scale(file["result"], name, dataset.shape[axis]))


def _scale(group: h5py.Group, name: str, length: int) -> h5py.Dataset:
    """The dimension of that name and length, as others may have it already."""
    if name in group and len(group[name]) != length:
        name = f"{name}_{length}"
    if name not in group:
        group.create_dataset(name, data=np.arange(length)).make_scale(name)
    return group[name]


def _column(values: list[Any]) -> Any:
    """Numbers as such, other values as text; what is no text already as TOML has it."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return np.array(values)
    return np.array([value if isinstance(value, str) else inline(value) for value in values], dtype=object)


def _lay_out_scalars(group: h5py.Group, count: int, rows: Mapping[int, Mapping[str, Any]]) -> None:
    """A dataset for each name, as large as the largest value; NaN where a point has none or a smaller one."""
    for name in dict.fromkeys(name for row in rows.values() for name in row):
        shapes = [row[name].shape for row in rows.values() if name in row]
        values = np.full((count, *np.max(shapes, axis=0).astype(int)), np.nan)
        for number, row in rows.items():
            if name in row:
                place: tuple[Any, ...] = (number, *(slice(length) for length in row[name].shape))
                values[place] = row[name]
        group.create_dataset(name, data=values, **_CHECKED).attrs["long_name"] = long_name(name)
