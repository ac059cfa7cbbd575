"""Base of all sections of a case, the types of their values, and what is wrong with them as data."""

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
Problem = tuple[str, object, str]  # key, value, what was expected
Problems = Iterator[Problem]


class Key(NamedTuple):
    """What a key of a section is, an example of its value, and its unit where it has one."""

    description: str
    example: object
    unit: str = ""


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of a case file; unknown keys are refused. ``about`` describes the keys that the class has of its own."""

    about: ClassVar[Mapping[str, Key]] = {}


def tag_of(section: Any) -> str:
    """The word by which a case chooses this section among its kind."""
    return str(section.__struct_config__.tag)


OWN: dict[str, dict[str, type[Section]]] = {"reaction": {}, "feed_forward": {}, "initial": {}, "tokens": {}}
"""Sections of components that are loaded, by their kind and name."""


def matrix_problem(key: str, matrix: Matrix, d: int) -> Problems:
    """A matrix has to be d×d."""
    if [len(row) for row in matrix] != [d] * d:
        yield key, matrix, f"a {d}×{d} matrix"


def any_of(choices: tuple[str, ...]) -> str:
    """``"a", "b" or "c"``."""
    return ", ".join(f'"{choice}"' for choice in choices[:-1]) + (" or " if choices[1:] else "") + f'"{choices[-1]}"'
