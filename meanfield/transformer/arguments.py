"""Validation of function arguments: names separated by commas, and integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.case.errors import CaseError

DROPS = ("special", "first")  # tokens that may be dropped


def names_of(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names in a string, separated by commas, or in a sequence."""
    return tuple(name.strip() for name in names.split(",") if name.strip()) if isinstance(names, str) else tuple(names)


def require_drops(drop: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of tokens to be left out, "special" or "first". Raises CaseError for another name."""
    for name in names_of(drop):
        if name not in DROPS:
            raise CaseError(f"drop = {name}: expected one of {', '.join(DROPS)}")
    return names_of(drop)


def require_integers(least: int, **values: object) -> None:
    """Raise CaseError, with the name of the argument, if one of ``values`` is not an integer of at least ``least``."""
    for name, value in values.items():
        if not (isinstance(value, int | np.integer) and value >= least):
            raise CaseError(f"{name} = {value!r}: expected an integer >= {least}")
