"""Base of all sections of a case, the types of their values, and faults of sections as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
from msgspec import Meta

Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
Seed = Annotated[int, Meta(ge=0)]
Vector = tuple[float, ...]
Matrix = tuple[Vector, ...]
Problem = tuple[str, object, str]  # key, value, expected value
Problems = Iterator[Problem]


class Key(NamedTuple):
    """Description of a key of a section, with an example of a value and a unit if there is one."""

    description: str
    example: object
    unit: str = ""


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Table of a case file; unknown keys raise an error. ``about`` describes the keys that the class itself adds."""

    about: ClassVar[Mapping[str, Key]] = {}


def tag_of(section: Any) -> str:
    """Return the word by which a case selects a variant of a section, such as "circle" for a section [domain]."""
    return str(section.__struct_config__.tag)


OWN: dict[str, dict[str, type[Section]]] = {"reaction": {}, "feed_forward": {}, "initial": {}, "tokens": {}}
"""Sections of loaded components, by kind and name."""


def matrix_problem(key: str, matrix: Matrix, d: int) -> Problems:
    """Yield a fault of a case unless the matrix given by ``key`` is d×d."""
    if [len(row) for row in matrix] != [d] * d:
        yield key, matrix, f"a {d}×{d} matrix"


def any_of(choices: tuple[str, ...]) -> str:
    """Return several choices as text for a message, such as ``"a", "b" or "c"``."""
    return ", ".join(f'"{choice}"' for choice in choices[:-1]) + (" or " if choices[1:] else "") + f'"{choices[-1]}"'
