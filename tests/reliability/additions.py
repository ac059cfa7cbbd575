"""Additions of a user to a sound HDF5 file: attributes, groups, datasets and links."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

NAMES = ("mine", "note", "points", "fields", "segments", "text", "hand_over_time", "log_unit", "temperature")
ATTRIBUTES = ("hello", "\n= [", np.arange(6.0).reshape(2, 3), np.nan, 3, np.bytes_(b"\xff\xfe"), h5py.Empty("f"),
              np.zeros(2, dtype=[("a", "i4"), ("b", "f8")]), ["a", "b"])  # fmt: skip


def add_by_user(path: Path, chance: random.Random) -> None:
    """Add one attribute, group, dataset or link somewhere in a file."""
    with h5py.File(path, "r+", locking=False) as file:
        names: list[str] = []
        file.visit(names.append)
        owner = file if chance.random() < 0.4 else file[chance.choice(names)]
        if isinstance(owner, h5py.Dataset) or chance.random() < 0.4:
            owner.attrs[_free(owner.attrs, chance)] = chance.choice(ATTRIBUTES)
        else:
            chance.choice(ADDED)(owner, _free(owner, chance))


def names_in(data: bytes) -> set[str]:
    """Return the names of all attributes, groups, datasets and links in a file; none for a file of another format."""
    found: set[str] = set()

    def visit(name: str, link: object) -> None:
        found.add(name)
        if isinstance(link, h5py.HardLink):
            found.update(f"{name}@{attribute}" for attribute in file[name].attrs)

    if data.startswith(b"\x89HDF"):
        with h5py.File(io.BytesIO(data)) as file:
            found.update(f"@{attribute}" for attribute in file.attrs)
            file.visititems_links(visit)
    return found


def _free(names: object, chance: random.Random) -> str:
    return chance.choice([name for name in NAMES if name not in names])  # type: ignore[operator]


def _labelled(owner: h5py.Group, name: str) -> None:
    added = owner.create_dataset(name, data=np.zeros((7, 9)))
    added.attrs["units"] = "m"
    added.dims[0].label, added.dims[1].label = "time", "cell"


ADDED: tuple[Callable[[h5py.Group, str], object], ...] = (
    lambda owner, name: owner.create_group(f"{name}/deep/deeper"),
    lambda owner, name: owner.create_dataset(name, data=np.arange(5)),
    lambda owner, name: owner.create_dataset(name, data="words"),
    lambda owner, name: owner.create_dataset(name, data=np.full((2, 3), np.nan), chunks=True, compression="gzip"),
    lambda owner, name: owner.create_dataset(name, (4,), "f8", external=[("nowhere", 0, 32)]),
    lambda owner, name: owner.create_dataset(name, data=np.arange(3.0)).make_scale(name),
    lambda owner, name: owner.__setitem__(name, h5py.SoftLink("/nowhere")),
    lambda owner, name: owner.__setitem__(name, h5py.ExternalLink("nowhere.h5", "/a")),
    _labelled,
)  # fmt: skip
