"""Checks of the numbers that define a mesh."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

MAX_FACES = 3 * 10**8  # 10⁸ cells of a box; a circle of so many takes 30 GB. Sides have numbers of 32 bits


def check_count(name: str, value: Any, minimum: int, maximum: int | None = None) -> None:
    """Raise TypeError unless ``value`` is a whole number, ValueError unless minimum ≤ value ≤ maximum."""
    expected = f"expected a whole number >= {minimum}" if maximum is None else f"expected {minimum} to {maximum}"
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} = {value!r}: {expected}")
    if value < minimum or (maximum is not None and value > maximum):
        raise ValueError(f"{name} = {value}: {expected}")


def check_sides(name: str, value: Any, faces: int) -> None:
    """Raise ValueError for a mesh of more ``faces`` than MAX_FACES.

    name, value   argument that causes this number of faces, for the message
    The check precedes the allocation of arrays.
    """
    if faces > MAX_FACES:
        raise ValueError(f"{name} = {value}: expected a mesh of at most {MAX_FACES} faces")


def check_product(name: str, cells: Any) -> None:
    """Raise ValueError for a box or torus with so many ``cells`` along its axes that it has more than MAX_FACES faces.

    name   name of the argument for the message
    Such a mesh has at least one face per cell. Entries of other types are left to later checks.
    """
    if all(isinstance(count, (int, np.integer)) for count in cells):
        check_sides(name, cells, math.prod(map(int, cells)))


def check_real(name: str, value: Any) -> None:
    """Raise TypeError unless ``value`` is one real number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} = {value!r}: expected a number")
