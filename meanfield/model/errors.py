"""Errors about arguments of the model, as data, so that callers can report them under their own names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

Entry = TypeVar("Entry")


class ArgumentError(ValueError):
    """``argument = value: expected ...``, for an argument of a function or class of Python."""

    def __init__(self, argument: str, value: object, expected: str) -> None:
        super().__init__(f"{argument} = {value!r}: expected {expected}")
        self.argument, self.value, self.expected = argument, value, expected


def one_of(argument: str, name: str, table: Mapping[str, Entry]) -> Entry:
    """The entry of a table. Raises ArgumentError for a name that it lacks."""
    if name not in table:
        raise ArgumentError(argument, name, f"one of {', '.join(table)}")
    return table[name]
