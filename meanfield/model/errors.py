"""Errors about arguments of the model as data, so that callers can report them under their own names."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, TypeVar

import numpy as np

from solvers.mesh.checks import check_unmasked

Entry = TypeVar("Entry")


class ArgumentError(ValueError):
    """Invalid argument of a function or class, with the message ``argument = value: expected ...``."""

    def __init__(self, argument: str, value: object, expected: str) -> None:
        super().__init__(f"{argument} = {value!r}: expected {expected}")
        self.argument, self.value, self.expected = argument, value, expected

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.argument, self.value, self.expected)


def one_of(argument: str, name: str, table: Mapping[str, Entry]) -> Entry:
    """Return the entry ``name`` of a table; raise ArgumentError for a name that the table lacks."""
    if not isinstance(name, str) or name not in table:
        raise ArgumentError(argument, name, f"one of {', '.join(table)}")
    return table[name]


def check_number(argument: str, value: Any) -> None:
    """Raise ArgumentError unless ``value`` is one finite real number."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if not is_number or not np.isfinite(float(value)):
        raise ArgumentError(argument, value, "a finite number")


def finite_array(argument: str, value: Any, axes: int) -> Any:
    """Return ``value`` as an array with ``axes`` axes.

    Raises ArgumentError for another number of axes, and for entries that are not finite real numbers. Raises ValueError
    for masked entries.
    """
    check_unmasked(argument, value)
    try:
        array = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(argument, value, f"an array of {axes} axes") from None
    if array.ndim != axes or array.dtype.kind not in "fiu":
        raise ArgumentError(argument, f"{array.dtype} of shape {array.shape}", f"numbers in an array of {axes} axes")
    if not np.isfinite(array).all():
        raise ArgumentError(argument, "not finite", "finite numbers")
    return array
