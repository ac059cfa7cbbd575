"""Arrays of a mesh that are given by formula: rows by index, and the whole array at first access."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

import numpy as np

from ..backends import Backend, backend_on, name_of
from ..backends.protocol import Array

TILE = 1 << 16  # rows evaluated at a time

T = TypeVar("T", bound=Array)


@dataclass(frozen=True, eq=False)
class Lazy:
    """Array given by a formula for its rows, so that rows can be evaluated without the whole array.

    shape     shape of the whole array
    rows      function that returns rows (n, …) on the host for indices (n,)
    backend   backend of the device that holds the whole array
    number    floating-point format of the array; arrays of integers keep their format
    """

    shape: tuple[int, ...]
    rows: Callable[[Array], Array]
    backend: Backend
    number: type[np.floating[Any]] = np.float64

    def at(self, index: Array) -> Array:
        """Evaluate the rows of the array at indices of any shape, by its formula, on the host.

        In the result the axes of a row follow the axes of the indices.
        """
        rows = self.rows(index.reshape(-1)).reshape(*index.shape, *self.shape[1:])
        return rows.astype(self.number, copy=False) if rows.dtype.kind == "f" else rows

    def __reduce__(self) -> tuple[Any, ...]:
        return _lazy_array_on, (name_of(self.backend), self.shape, self.rows, self.number)

    @cached_property
    def array(self) -> Array:
        """Return the whole array on its device, evaluated at the first access and then kept."""
        whole = np.empty(self.shape, self.at(np.arange(1)).dtype)
        for begin in range(0, len(whole), TILE):
            part = whole[begin : begin + TILE]
            part[...] = self.at(np.arange(begin, begin + len(part)))
        whole.flags.writeable = False
        return self.backend.to_device(whole)


def _lazy_array_on(device: str, shape: tuple[int, ...], rows: Callable[[Array], Array], number: Any) -> Lazy:
    """Return a `Lazy` array whose device is given by name, for unpickling in another process."""
    return Lazy(shape, rows, backend_on(device), number)


class ArrayField(Generic[T]):
    """Descriptor of an array of a mesh: reading it returns the whole array, also if a :class:`Lazy` one is stored."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, mesh: Any, owner: type | None = None) -> T:
        if mesh is None:
            raise AttributeError(self.name)  # the field has no default
        value = vars(mesh)[self.name]
        return cast(T, value.array if isinstance(value, Lazy) else value)

    def __set__(self, mesh: Any, value: T | Lazy) -> None:
        vars(mesh)[self.name] = value
