"""Attributes of a run file: facts of the run, attributes that change under readers, and writers.

The attribute ``contents`` of a file lists the names of what this package has written: attributes as "@name", datasets
that have units as "name", the table of events as "events/", one in each line. Listed contents are checked. Other
attributes, groups and datasets belong to a user: they are neither read nor changed.

The attribute ``writers`` has a line for the run that has created the file, and one for each continuation. Checkpoints
beside a file carry the identity of their writer, so that checkpoints of another run are recognized.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .layout import Points, Space
from .schema import CHANGING, DAMAGE, EVENTS, SCHEMA_VERSION, STOP_REASONS, is_text

if TYPE_CHECKING:
    import h5py

Attribute = str | int | float | Sequence[int] | Sequence[float]
CONTENTS = "contents"
NETCDF = ("CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "DIMENSION_LABELS", "coordinates")  # attributes
WRITERS = "writers"
RESERVED = ("schema_version", "manifold", "resolution", CONTENTS, WRITERS)


def root_attributes(space: Space, attributes: Mapping[str, Attribute]) -> dict[str, Any]:
    """Return the attributes of a new run file by name: ``attributes``, and defaults of those that every file has."""
    return {
        "schema_version": SCHEMA_VERSION,
        "manifold": space.manifold,
        "resolution": _resolution(space),
        "stop_reason": "running",
        "message": "",
        "digest": "",
        "wall_time": 0.0,
        **attributes,
    }


def _resolution(space: Space) -> int:
    """Return the attribute ``resolution`` of a file: the number of points, of rings of a surface, or else of cells."""
    if isinstance(space, Points):
        return len(space.weights)
    return len(space.ring_cells) if space.dimension == 2 else space.cells


def check_attributes(attributes: Mapping[str, Attribute]) -> None:
    """Raise ValueError for an attribute with a reserved name, or with a value that is neither text nor numbers.

    An unknown value of ``stop_reason`` raises ValueError too.
    """
    for name, value in attributes.items():
        if name in RESERVED:
            raise ValueError(f"attribute {name} is reserved")
        if not isinstance(value, str) and np.asarray(value).dtype.kind not in "iuf":
            raise ValueError(f"attribute {name}: {value!r}, expected text, a number or a list of numbers")
        _check_stop_reason(name, value)


def create_attributes(file: h5py.File, attributes: Mapping[str, Any]) -> None:
    """Create attributes of a run file, or replace attributes of another type or length.

    Texts that change during a run (CHANGING) get a fixed length, so that they can be overwritten in place. The names
    are added to the attribute ``contents``, if the file has it.
    """
    import h5py

    for name, value in attributes.items():
        if name in CHANGING:
            dtype = h5py.string_dtype("utf-8", CHANGING[name])
            file.attrs.create(name, _text_of_fixed_length(name, value), dtype=dtype)
        else:
            file.attrs[name] = value
    list_attributes(file, attributes)


def overwrite_attributes(file: h5py.File, attributes: Mapping[str, Attribute]) -> None:
    """Overwrite attributes in place while readers have the file open: numbers, and texts of fixed length (CHANGING).

    Raises ValueError for other attributes, and for attributes that the file lacks.
    """
    check_attributes(attributes)
    for name, value in attributes.items():
        old = file.attrs.get(name)
        if name in CHANGING and isinstance(value, str):
            file.attrs.modify(name, _text_of_fixed_length(name, value))
        elif old is None or isinstance(old, str | bytes) or isinstance(value, str) or np.shape(old) != np.shape(value):
            raise ValueError(f"attribute {name}: {old!r} cannot become {value!r}, expected the same type and shape")
        else:
            file.attrs.modify(name, value)


def _text_of_fixed_length(name: str, value: str) -> np.bytes_:
    """Return ``value`` in UTF-8, cut to the number of bytes that is reserved for the attribute ``name``."""
    return np.bytes_(value.encode()[: CHANGING[name]].decode(errors="ignore").encode())


def _check_stop_reason(name: str, value: Any) -> None:
    """Raise ValueError if the attribute is ``stop_reason`` and its value is none of STOP_REASONS."""
    if name == "stop_reason" and value not in STOP_REASONS:
        raise ValueError(f"stop_reason: {value!r}, expected one of {', '.join(STOP_REASONS)}")


def list_contents(file: h5py.File) -> None:
    """Write the names of all attributes, datasets with units and tables of a new file to its attribute ``contents``."""
    datasets = [name for name, item in file.items() if "units" in item.attrs]
    events = [f"{EVENTS}/"] if "columns" in file.get(EVENTS, file).attrs else []
    _write_list(file, [*(f"@{name}" for name in file.attrs), f"@{CONTENTS}", *datasets, *events])


def list_attributes(file: h5py.File, names: Iterable[str]) -> None:
    """Add names of attributes to the attribute ``contents``, which lists what this package has written to the file.

    A file without ``contents`` is unchanged.
    """
    if CONTENTS in file.attrs:
        _write_list(file, dict.fromkeys([*listed_contents(file), *(f"@{name}" for name in names)]))


def listed_contents(file: h5py.File) -> list[str]:
    """Return the names in a file's attribute ``contents``, which lists what this package has written to the file.

    Attributes are listed as "@name", datasets as "name", and the table of events as "events/". Raises ValueError for a
    file without such a text.
    """
    text = file.attrs.get(CONTENTS)
    if not is_text(text):
        raise ValueError(f"attribute {CONTENTS} is {text!r:.40}, expected a text")
    return str(text).split("\n")


def own_attributes(file: h5py.File) -> dict[str, Any]:
    """Return by name the attributes of a file that this package has written, without those that a user has added."""
    names = {name[1:] for name in listed_contents(file) if name.startswith("@")}
    return {name: plain(file.attrs[name]) for name in file.attrs if name in names}


def readable_attributes(owner: h5py.Group | h5py.Dataset) -> dict[str, Any]:
    """Return by name those attributes of a group or dataset that are texts, numbers or lists of numbers.

    Attributes of other types, which a user may have added, are omitted.
    """
    return {name: value for name, value in all_attributes(owner) if is_text(value) or _is_numeric(value)}


def own_datasets(file: h5py.File) -> list[str]:
    """Return the names of the datasets with units that this package has written to a file."""
    return [name for name in listed_contents(file) if not name.startswith("@") and not name.endswith("/")]


def plain(value: Any) -> Any:
    """Convert a NumPy scalar to a Python scalar, and text of fixed length to str; return any other value unchanged."""
    value = value.item() if isinstance(value, np.generic) else value
    return value.decode() if isinstance(value, bytes) else value


def all_attributes(owner: h5py.Group | h5py.Dataset) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of each attribute of a group or dataset that h5py can read."""
    for name in owner.attrs:
        try:
            yield name, plain(owner.attrs[name])
        except DAMAGE:  # a type unknown to NumPy, or invalid UTF-8
            continue


def _is_numeric(value: Any) -> bool:
    """Return whether the value of an attribute is a real number or a one-dimensional array of real numbers."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number or (isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iuf")


def _write_list(file: h5py.File, names: Iterable[str]) -> None:
    """Write names, one in each line, to the attribute ``contents`` of a file."""
    file.attrs[CONTENTS] = "\n".join(names)


def copy_additions(old: h5py.Group, new: h5py.Group) -> None:
    """Copy every attribute, group, dataset and link that ``old`` has and ``new`` lacks from ``old`` to ``new``.

    Links are copied as links, without their targets. Raises ValueError for a group or dataset that cannot be read.
    """
    import h5py

    _copy_attributes(old, new)
    for name in old:
        link, known = old.get(name, getlink=True), new.get(name, getlink=True)
        if known is None:
            _copy(old, new, name, link)
        elif isinstance(link, h5py.HardLink) and isinstance(known, h5py.HardLink):
            _copy_missing(old[name], new[name])


def _copy(old: h5py.Group, new: h5py.Group, name: str, link: object) -> None:
    """Copy one object or link with its name from one group to another; raise ValueError if it cannot be read."""
    import h5py

    try:
        if isinstance(link, h5py.HardLink):
            old.copy(name, new, name)
        else:
            new[name] = link
    except DAMAGE as error:
        raise ValueError(f"{name}, which was added to the file, cannot be copied: {error}") from error


def _copy_missing(old: object, new: object) -> None:
    """Copy what ``new`` lacks from an object ``old``: the contents of a group, or the attributes of a dataset."""
    import h5py

    if isinstance(old, h5py.Group) and isinstance(new, h5py.Group):
        copy_additions(old, new)
    elif isinstance(old, h5py.Dataset) and isinstance(new, h5py.Dataset):
        _copy_attributes(old, new)


def _copy_attributes(old: h5py.Group | h5py.Dataset, new: h5py.Group | h5py.Dataset) -> None:
    """Copy the attributes of ``old`` that ``new`` lacks to ``new``.

    Attributes of netCDF for dimension scales, and attributes that h5py cannot read, are omitted.
    """
    for name in old.attrs:
        if name not in new.attrs and name not in NETCDF:
            with suppress(*DAMAGE):  # a type unknown to NumPy
                new.attrs[name] = old.attrs[name]


@dataclass(frozen=True)
class Writer:
    """Writer of a run file: the run that has created the file, or one of its continuations.

    identity    random text
    snapshots   number of snapshots in the file when the writer began
    samples     number of samples of the diagnostics at that time
    """

    identity: str
    snapshots: int = 0
    samples: int = 0


def new_writer(snapshots: int = 0, samples: int = 0) -> Writer:
    """Return a `Writer` with a new random identity, for a file that has these numbers of snapshots and samples."""
    return Writer(secrets.token_hex(16), snapshots, samples)


def writers_as_text(writers: Sequence[Writer]) -> str:
    """Return the value of the attribute ``writers`` of a file: a line with identity and counts for each writer."""
    return "\n".join(f"{writer.identity} {writer.snapshots} {writer.samples}" for writer in writers)


def writers_from_text(text: str) -> tuple[Writer, ...]:
    """Return the writers of a file from the text of its attribute ``writers``; raise ValueError for an invalid text."""
    return tuple(_writer(line) for line in text.split("\n"))


def _writer(line: str) -> Writer:
    """Return the writer that one line of the attribute ``writers`` describes; raise ValueError for an invalid line."""
    identity, *counts = line.split(" ")
    if len(counts) != 2 or not all(count.isdecimal() and len(count) < 19 for count in counts):
        raise ValueError(f"attribute {WRITERS} is damaged")
    return Writer(identity, *map(int, counts))
