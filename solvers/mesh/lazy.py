"""Arrays of a mesh that are given by formula: rows by their numbers, the whole when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

import numpy as np

from ..backends import Backend, backend_on, name_of
from ..backends.protocol import Array

TILE = 1 << 16  # rows that are made at a time

T = TypeVar("T", bound=Array)


@dataclass(frozen=True, eq=False)
class Lazy:
    """An array by its rows.

    shape     of the whole
    rows      makes rows (n, …) on the host from their numbers (n,)
    backend   of the device that the whole is on
    number    the format of what is not an integer
    """

    shape: tuple[int, ...]
    rows: Callable[[Array], Array]
    backend: Backend
    number: type[np.floating[Any]] = np.float64

    def at(self, index: Array) -> Array:
        """Rows (…, …) on the host by their numbers, of any shape."""
        rows = self.rows(index.reshape(-1)).reshape(*index.shape, *self.shape[1:])
        return rows.astype(self.number, copy=False) if rows.dtype.kind == "f" else rows

    def __reduce__(self) -> tuple[Any, ...]:
        return _lazy_on, (name_of(self.backend), self.shape, self.rows, self.number)

    @cached_property
    def array(self) -> Array:
        """The whole, kept from then on."""
        whole = np.empty(self.shape, self.at(np.arange(1)).dtype)
        for begin in range(0, len(whole), TILE):
            part = whole[begin : begin + TILE]
            part[...] = self.at(np.arange(begin, begin + len(part)))
        whole.flags.writeable = False
        return self.backend.to_device(whole)


def _lazy_on(device: str, shape: tuple[int, ...], rows: Callable[[Array], Array], number: Any) -> Lazy:
    return Lazy(shape, rows, backend_on(device), number)


class ArrayField(Generic[T]):
    """A field of a mesh that holds an array, or a :class:`Lazy` one, of which reading gives the whole."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, mesh: Any, owner: type | None = None) -> T:
        if mesh is None:
            raise AttributeError(self.name)  # the field has no default
        value = vars(mesh)[self.name]
        return cast(T, value.array if isinstance(value, Lazy) else value)

    def __set__(self, mesh: Any, value: T | Lazy) -> None:
        vars(mesh)[self.name] = value
