"""Contents of this package in a run file, apart from what a user has added to it.

The attribute ``contents`` of a file lists the names of what this package has written: attributes as "@name", datasets
that have units as "name", the table of events as "events/", a line each. What is listed is checked. Other attributes,
groups and datasets are a user's: they are neither read nor changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from .schema import DAMAGE, EVENTS, is_text

if TYPE_CHECKING:
    import h5py

CONTENTS = "contents"
NETCDF = ("CLASS", "NAME", "REFERENCE_LIST", "DIMENSION_LIST", "DIMENSION_LABELS", "coordinates")  # attributes
EARLIER_TEXTS = frozenset({
    "manifold", "title", "case", "versions", "git_commit", "command", "start", "components", "segments", "fields",
    "device", "precision", "layers_of", "model_type", "model_layers", "model_heads", "model_width", "text", "drop",
    "writers",
})  # fmt: skip
# texts in files of versions that wrote no list


def list_contents(file: h5py.File) -> None:
    """List all that a new file holds."""
    datasets = [name for name, item in file.items() if "units" in item.attrs]
    events = [f"{EVENTS}/"] if "columns" in file.get(EVENTS, file).attrs else []
    _write_list(file, [*(f"@{name}" for name in file.attrs), f"@{CONTENTS}", *datasets, *events])


def list_attributes(file: h5py.File, names: Iterable[str]) -> None:
    """Add attributes to the list; a file of an earlier version, which has none, gets none."""
    listed = listed_contents(file)
    if listed is not None:
        _write_list(file, dict.fromkeys([*listed, *(f"@{name}" for name in names)]))


def listed_contents(file: h5py.File) -> list[str] | None:
    """Return the list, or None where an earlier version wrote the file. Raises ValueError for a list that is none."""
    if CONTENTS not in file.attrs:
        return None
    text = file.attrs[CONTENTS]
    if not is_text(text):
        raise ValueError(f"attribute {CONTENTS} is {text!r:.40}, no text")
    return str(text).split("\n")


def own_attributes(file: h5py.File) -> dict[str, Any]:
    """Return the attributes of this package; in files of earlier versions all that are texts or numbers."""
    listed = listed_contents(file)
    if listed is None:
        return readable_attributes(file)
    names = {name[1:] for name in listed if name.startswith("@")}
    return {name: plain(file.attrs[name]) for name in file.attrs if name in names}


def readable_attributes(owner: h5py.Group | h5py.Dataset) -> dict[str, Any]:
    """Return the attributes that are texts, numbers or lists of numbers; a user may have added others."""
    return {name: value for name, value in all_attributes(owner) if is_text(value) or _is_numeric(value)}


def own_datasets(file: h5py.File) -> list[str]:
    """Return the names of this package's datasets with units; in files of earlier versions all that look like them."""
    listed = listed_contents(file)
    if listed is not None:
        return [name for name in listed if not name.startswith("@") and not name.endswith("/")]
    return [name for name, item in file.items() if "units" in item.attrs and all(d.label for d in item.dims)]


def plain(value: Any) -> Any:
    """Return a NumPy scalar as Python's own, and text of fixed length as str."""
    value = value.item() if isinstance(value, np.generic) else value
    return value.decode() if isinstance(value, bytes) else value


def all_attributes(owner: h5py.Group | h5py.Dataset) -> Iterator[tuple[str, Any]]:
    """Yield names and values of the attributes that h5py can read."""
    for name in owner.attrs:
        try:
            yield name, plain(owner.attrs[name])
        except DAMAGE:  # of a type that NumPy has not, or bytes that are no UTF-8
            continue


def _is_numeric(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number or (isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iuf")


def _write_list(file: h5py.File, names: Iterable[str]) -> None:
    file.attrs[CONTENTS] = "\n".join(names)


def copy_additions(old: h5py.Group, new: h5py.Group) -> None:
    """Copy attributes, groups, datasets and links that ``new`` lacks from ``old``.

    Links are copied as links, without the bytes that they lead to. Raises ValueError for a group or dataset that
    cannot be read.
    """
    import h5py

    _copy_attributes(old, new)
    for name in old:
        link, known = old.get(name, getlink=True), new.get(name, getlink=True)
        if known is None:
            _copy(old, new, name, link)
        elif isinstance(link, h5py.HardLink) and isinstance(known, h5py.HardLink):
            _copy_inside(old[name], new[name])


def _copy(old: h5py.Group, new: h5py.Group, name: str, link: object) -> None:
    import h5py

    try:
        if isinstance(link, h5py.HardLink):
            old.copy(name, new, name)
        else:
            new[name] = link
    except DAMAGE as error:
        raise ValueError(f"{name}, which was added to the file, cannot be copied: {error}") from error


def _copy_inside(old: object, new: object) -> None:
    import h5py

    if isinstance(old, h5py.Group) and isinstance(new, h5py.Group):
        copy_additions(old, new)
    elif isinstance(old, h5py.Dataset) and isinstance(new, h5py.Dataset):
        _copy_attributes(old, new)


def _copy_attributes(old: h5py.Group | h5py.Dataset, new: h5py.Group | h5py.Dataset) -> None:
    """Copy the attributes that h5py can read, but for references of dimension scales."""
    for name in old.attrs:
        if name not in new.attrs and name not in NETCDF:
            with suppress(*DAMAGE):  # of a type that NumPy has not
                new.attrs[name] = old.attrs[name]
