"""A stand-in for the device's arrays in the simulator: a NumPy array that does not let itself be copied unseen.

As with CuPy, NumPy's functions and operators give arrays on the device, also of one number; arrays of the host are
refused among their arguments, and so is ``np.asarray``. What does go to the host, by :meth:`StandIn.get` or as a
number or a truth value, is counted; and so is, by itself, where CuPy has to wait for the size of what is chosen.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

SHAPES = ("shape", "dtype", "ndim", "size", "itemsize", "nbytes", "strides", "flags")
SIZED = (np.flatnonzero, np.nonzero, np.argwhere, np.unique, np.compress, np.extract)  # of a size that the values tell


class StandIn(NDArrayOperatorsMixin):
    """An array on the simulated device; ``transfers`` counts the copies of any of them to the host, ``waits`` sizes."""

    transfers = 0
    waits = 0

    def __init__(self, array: np.ndarray) -> None:
        self.held = array

    def get(self) -> np.ndarray:
        """A copy on the host."""
        StandIn.transfers += 1
        return self.held.copy()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.held.__array_interface__, "version": 3}

    def __array__(self, *arguments: Any, **options: Any) -> np.ndarray:
        raise TypeError(f"an array {self.held.shape} on the device would be copied to the host unseen")

    def __array_ufunc__(self, ufunc: Any, method: str, *arguments: Any, **options: Any) -> Any:
        return _outside(getattr(ufunc, method)(*_inside(arguments), **_inside(options)))

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        StandIn.waits += function in SIZED
        return _outside(function(*_inside(arguments), **_inside(options)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # NumPy's own ways to an array's memory
            raise AttributeError(name)
        found = getattr(self.held, name)
        if not callable(found):
            return found if name in SHAPES else _outside(found)
        return lambda *arguments, **options: _outside(found(*_inside(arguments), **_inside(options)))

    def __getitem__(self, index: Any) -> Any:
        StandIn.waits += getattr(index, "dtype", None) == np.dtype(bool)
        return _outside(self.held[_inside(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        self.held[_inside(index)] = _inside(value)

    def __len__(self) -> int:
        return len(self.held)

    def __bool__(self) -> bool:
        return bool(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __int__(self) -> int:
        return int(self.get())


def _inside(value: Any) -> Any:
    """What a stand-in holds, within tuples, lists and dictionaries too; an array of the host is refused."""
    if isinstance(value, StandIn):
        return value.held
    if isinstance(value, np.ndarray):
        raise TypeError(f"an array {value.shape} of the host meets one on the device")
    if isinstance(value, (tuple, list)):
        return type(value)(map(_inside, value))
    return {key: _inside(one) for key, one in value.items()} if isinstance(value, dict) else value


def _outside(value: Any) -> Any:
    """Arrays and numbers of NumPy as stand-ins."""
    if isinstance(value, (np.ndarray, np.generic)):
        return StandIn(np.asarray(value))
    return type(value)(map(_outside, value)) if isinstance(value, (tuple, list)) else value
