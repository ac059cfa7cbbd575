"""Attributes of a run file: facts of the run beside its data, and those that change while others read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .layout import Points, Space
from .own import CONTENTS, list_attributes
from .reading import SCHEMA_VERSION
from .schema import CHANGING, STOP_REASONS
from .writers import WRITERS

if TYPE_CHECKING:
    import h5py

Attribute = str | int | float | Sequence[int] | Sequence[float]
RESERVED = ("schema_version", "manifold", "resolution", CONTENTS, WRITERS)


def root_attributes(space: Space, attributes: Mapping[str, Attribute]) -> dict[str, Any]:
    """``attributes`` and those that every file has."""
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
    """Points, rings of a sphere, or cells."""
    if isinstance(space, Points):
        return len(space.weights)
    return len(space.ring_cells) if space.dimension == 2 else space.cells


def check_attributes(attributes: Mapping[str, Attribute]) -> None:
    """ValueError for a reserved name, or a value that is neither text nor numbers."""
    for name, value in attributes.items():
        if name in RESERVED:
            raise ValueError(f"attribute {name} is reserved")
        if not isinstance(value, str) and np.asarray(value).dtype.kind not in "iuf":
            raise ValueError(f"attribute {name}: {value!r}, expected text, a number or a list of numbers")
        _check_stop_reason(name, value)


def create_attributes(file: h5py.File, attributes: Mapping[str, Any]) -> None:
    """Create attributes, or replace them by such of another type or length."""
    import h5py

    for name, value in attributes.items():
        if name in CHANGING:
            dtype = h5py.string_dtype("utf-8", CHANGING[name])
            file.attrs.create(name, _text_of_fixed_length(name, value), dtype=dtype)
        else:
            file.attrs[name] = value
    list_attributes(file, attributes)


def overwrite_attributes(file: h5py.File, attributes: Mapping[str, Attribute]) -> None:
    """Overwrite in place, all that may be done under the eyes of readers: numbers, and CHANGING texts.

    Raises ValueError for others, and for those that the file does not have.
    """
    check_attributes(attributes)
    for name, value in attributes.items():
        old = file.attrs.get(name)
        if name in CHANGING and isinstance(value, str):
            file.attrs.modify(name, _text_of_fixed_length(name, value))
        elif old is None or isinstance(old, str | bytes) or isinstance(value, str) or np.shape(old) != np.shape(value):
            raise ValueError(f"attribute {name}: {old!r} cannot become {value!r}, expected the like")
        else:
            file.attrs.modify(name, value)


def _text_of_fixed_length(name: str, value: str) -> np.bytes_:
    """UTF-8, cut to the room that there is for ``name``."""
    return np.bytes_(value.encode()[: CHANGING[name]].decode(errors="ignore").encode())


def _check_stop_reason(name: str, value: Any) -> None:
    if name == "stop_reason" and value not in STOP_REASONS:
        raise ValueError(f"stop_reason: {value!r}, expected one of {', '.join(STOP_REASONS)}")
