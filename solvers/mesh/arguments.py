"""Checks of the numbers that make a mesh."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_count(name: str, value: Any, minimum: int, maximum: int | None = None) -> None:
    """Raise TypeError unless ``value`` is a whole number, ValueError unless it is in this range."""
    expected = f"expected a whole number >= {minimum}" if maximum is None else f"expected {minimum} to {maximum}"
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} = {value!r}: {expected}")
    if value < minimum or (maximum is not None and value > maximum):
        raise ValueError(f"{name} = {value}: {expected}")


def check_real(name: str, value: Any) -> None:
    """Raise TypeError unless ``value`` is one real number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} = {value!r}: expected a number")
