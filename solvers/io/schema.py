"""Schema of a run file: attributes, datasets, shapes and types, all stored in the file itself.

A file may be untrusted or damaged, so that all its claims are checked before use. Datasets with bytes in other files
(external storage, an external link, a virtual source) are rejected, and so are shapes that exceed the file's size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import h5py

SCHEMA_VERSION = 1
DAMAGE = (
    OSError,
    RuntimeError,
    KeyError,
    IndexError,
    ValueError,
    TypeError,
    AttributeError,
    OverflowError,
    MemoryError,
)
# exceptions of h5py and NumPy for invalid bytes; also UnicodeDecodeError, a ValueError
CHANGING = {
    "stop_reason": 32,
    "message": 1000,
    "digest": 64,  # of a closed file, see `solvers.io.verifying.digest`; empty under writing
}  # bytes; text of fixed length can be overwritten while readers have the file open
STOP_REASONS = ("running", "finished", "interrupted", "failed")
EVENTS = "events"
TABLES = {"diagnostics": "time", EVENTS: "event"}  # groups of rows over time, and the dimension of their rows
TRIANGLES = "triangles"  # dataset of the corners of a triangulation, (triangles, 3) numbers of cells
LOCATION = "checkpoint/bytes"  # dataset of the last checkpoint in a file
SNAPSHOT = {"particles": "position"}  # dataset of snapshots by manifold; "density" on a mesh
_ATTRIBUTES: dict[str, Callable[[Any], bool]] = {
    "manifold": lambda value: isinstance(value, str),
    "resolution": lambda value: type(value) is int and value >= 0,
    "stop_reason": lambda value: value in STOP_REASONS,
    "message": lambda value: isinstance(value, str),
    "digest": lambda value: isinstance(value, str),
    "writers": lambda value: isinstance(value, str),
    "wall_time": lambda value: isinstance(value, int | float) and math.isfinite(value),
}
_CELLS = {
    "time": ("time",), "density": ("time", "cell"), "cell_center": ("cell", "d"), "cell_area": ("cell",),
    "ring_cells": ("ring",), "diagnostics/time": ("time",),
}  # fmt: skip
_PARTICLES = {
    "time": ("time",), "position": ("time", "point", "d"), "weight": ("point",), "diagnostics/time": ("time",),
}  # fmt: skip
_GROWING = (
    "time",
    "event",
)  # dimensions that a killed writer may leave longer in some datasets than in others
_INTEGERS = ("ring_cells",)
_MAX_COMPRESSION = 1100  # deflate expands one byte to at most 1032
_UNWRITTEN = 1 << 24  # bytes of a dataset that may exist in the writer's memory only: chunks cached by HDF5


def dataset_of(group: h5py.Group, name: str) -> h5py.Dataset:
    """Return the dataset at the path ``name`` in a group; raise ValueError unless its bytes are in this file."""
    import h5py

    found = _find_object(group, name, "dataset")
    if not isinstance(found, h5py.Dataset):
        raise ValueError(f"{name} is not a dataset")
    if found.is_virtual or found.external:
        raise ValueError(f"{name} takes its values from another file; expected them in the file itself")
    return found


def group_of(group: h5py.Group, name: str) -> h5py.Group:
    """Return the group at the path ``name`` in a group; raise ValueError unless it exists in this file."""
    import h5py

    found = _find_object(group, name, "group")
    if not isinstance(found, h5py.Group):
        raise ValueError(f"{name} is not a group")
    return found


def _find_object(group: h5py.Group, name: str, kind: str) -> Any:
    """Return the object at the path ``name`` in a group; raise ValueError if it is absent or a link elsewhere.

    kind   word for the object in the message
    """
    import h5py

    found: Any = group
    for part in name.split("/"):
        link = found.get(part, getlink=True) if isinstance(found, h5py.Group) else None
        if link is None:
            raise ValueError(f"it has no {kind} {name}")
        if not isinstance(link, h5py.HardLink):
            raise ValueError(f"{name} is a link to another place; expected a {kind} in the file itself")
        found = found[part]
    return found


def require_size(dataset: h5py.Dataset, size: int) -> None:
    """Raise ValueError for a dataset whose shape exceeds what its stored bytes in a file of ``size`` bytes can hold.

    Reading such a dataset would fill the memory with values that were never written. The tolerance beyond the stored
    bytes covers rows that a writer has not flushed.
    """
    stored = min(dataset.id.get_storage_size(), size)
    room = (_MAX_COMPRESSION if dataset.compression else 1) * stored + size + _UNWRITTEN
    chunk = int(np.prod(dataset.chunks or (0,), dtype=object)) * dataset.dtype.itemsize
    claimed = int(np.prod(dataset.shape or (0,), dtype=object)) * dataset.dtype.itemsize
    if min(chunk, claimed) > room or claimed > room + chunk:
        raise ValueError(f"{dataset.name} claims {dataset.shape} values, more than the file can hold")


def faults(file: h5py.File, attributes: Mapping[str, Any], size: int) -> Iterator[str]:
    """Yield a description of each fault that keeps an HDF5 file of ``size`` bytes from being a run file.

    attributes   attributes by name that this package has written to the file
    """
    for name, is_right in _ATTRIBUTES.items():
        if name not in attributes or not is_right(attributes[name]):
            yield f"attribute {name} is {attributes.get(name, 'missing')!r:.40}"
    for name, value in attributes.items():  # a recorded solution may have lists of numbers
        if isinstance(value, str) and not is_text(value):
            yield f"attribute {name} is {value!r:.40}, no text"
        if not isinstance(value, str | int | float) and (name in CHANGING or "fields" not in attributes):
            yield f"attribute {name} is {value!r:.40}, no text or number"
    lengths: dict[str, int] = {}
    datasets = _PARTICLES if attributes.get("manifold") in SNAPSHOT else _CELLS
    for name, dims in datasets.items():
        yield from _faults_of(file, name, dims, lengths, size)
    try:
        names = rows_of(file)
    except DAMAGE as error:
        yield f"the list of diagnostics is damaged ({_first_line(error)})"
        return
    for name in names:
        if name not in datasets:
            yield from _faults_of(file, name, (TABLES[name.split("/")[0]], ...), lengths, size)


def is_text(value: Any) -> bool:
    """Return whether a value is valid text; h5py represents bytes that are no UTF-8 by surrogate characters."""
    return isinstance(value, str) and (value.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in value))


def columns_of(file: h5py.File, table: str = "diagnostics") -> list[str]:
    """Return the names of the columns of a table in a run file, "diagnostics" or "events", in their order.

    A group "events" outside the list ``contents`` belongs to a user; its columns are not returned.
    """
    listed = table != EVENTS or f"{EVENTS}/" in str(file.attrs.get("contents", "")).split("\n")
    return listed_columns(file[table]) if listed else []


def rows_of(file: h5py.File) -> list[str]:
    """Return the names of the datasets of all tables over time: "diagnostics/time", "diagnostics/mass", …."""
    tables = {table: columns_of(file, table) for table in TABLES}
    return [f"{table}/{name}" for table, names in tables.items() if names for name in ("time", *names)]


def listed_columns(group: h5py.Group) -> list[str]:
    """Return the names of the columns of a table, which its group lists in the attribute ``columns``."""
    names = group.attrs["columns"]
    return [name.decode() if isinstance(name, bytes) else str(name) for name in np.atleast_1d(names)]


def _faults_of(file: h5py.File, name: str, dims: tuple[Any, ...], lengths: dict[str, int], size: int) -> Iterator[str]:
    """Yield a description of each fault of one dataset, and record the lengths of its dimensions in ``lengths``.

    dims      expected names of the dimensions; ... at the end stands for any further dimensions
    lengths   length of each dimension by name, in the datasets read before and in this one
    size      size of the file in bytes
    """
    try:
        dataset = dataset_of(file, name)
        require_size(dataset, size)
    except DAMAGE as error:
        yield _first_line(error)
        return
    expected = "iu" if name in _INTEGERS else "fc" if name == "density" and "fields" in file.attrs else "f"
    if dataset.dtype.kind not in expected or (dataset.dtype.kind in "fc" and dataset.dtype not in (float, complex)):
        yield f"{name} holds {dataset.dtype}"
    fixed = dims[:-1] if dims[-1] is ... else dims
    if dataset.ndim < len(fixed) or (dims[-1] is not ... and dataset.ndim != len(fixed)):
        yield f"{name} has shape {dataset.shape}"
        return
    for dim, length in zip(fixed, dataset.shape, strict=False):
        if dim not in _GROWING and lengths.setdefault(dim, length) != length:
            yield f"{name} has {length} of {dim}, other datasets {lengths[dim]}"


def _first_line(error: Exception) -> str:
    """Return the first line of an error's message, cut to 160 characters."""
    lines = str(error.args[0] if error.args else error).splitlines()
    return lines[0][:160] if lines else type(error).__name__
