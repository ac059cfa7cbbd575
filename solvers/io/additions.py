"""Additions of a user, copied into a file that takes the place of theirs."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from .own import NETCDF
from .schema import DAMAGE

if TYPE_CHECKING:
    import h5py


def copy_additions(old: h5py.Group, new: h5py.Group, replaced: Collection[str] = ()) -> None:
    """Copy attributes, groups, datasets and links that ``new`` lacks from ``old``, but for those in ``replaced``.

    Links are copied as links, without the bytes that they lead to. Raises ValueError for a group or dataset that
    cannot be read.
    """
    import h5py

    _copy_attributes(old, new)
    for name in old:
        link, known = old.get(name, getlink=True), new.get(name, getlink=True)
        if known is None and name not in replaced:
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
