"""Stand-in for CuPy's arrays in the simulator: a NumPy array that refuses implicit copies to the host.

As with CuPy, operators, ufuncs and the functions of :func:`on_device` give arrays on the device, also of one number.
Arrays of the host are refused among their arguments, and so are ``np.asarray`` and what else CuPy does not take (the
tables at the foot). NumPy's own functions are refused too: array code takes them from its backend, ``xp``. What
does go to the host, by :meth:`StandIn.get` or as a number or a truth value, is counted; and so is, by itself, where
CuPy has to wait for the size of what is chosen.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin


class StandIn(NDArrayOperatorsMixin):
    """An array on the simulated device; ``transfers`` counts the copies of all arrays to the host, ``waits`` sizes."""

    __slots__ = ("held",)  # CuPy's arrays take no other attribute, and no flag can be set

    transfers = 0
    waits = 0

    def __init__(self, array: np.ndarray) -> None:
        _refuse(array.dtype.char not in FORMATS, f"format {array.dtype}")
        self.held = array

    def get(self) -> np.ndarray:
        """Return a copy on the host."""
        StandIn.transfers += 1
        return self.held.copy()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.held.__array_interface__, "version": 3}

    def __array__(self, *arguments: Any, **options: Any) -> np.ndarray:
        raise TypeError(f"an array {self.held.shape} on the device would be copied to the host unseen")

    def __array_ufunc__(self, ufunc: Any, method: str, *arguments: Any, **options: Any) -> Any:
        held, name = _inside(arguments), ufunc.__name__
        known = name in SPECIAL or (name not in ABSENT and getattr(np, name, None) is ufunc)
        _refuse(not known, f"ufunc {name}")
        _refuse(method != "__call__", f"{name}.{method}")  # CuPy has some methods of some ufuncs
        _refuse(not options.keys() <= UFUNC_OPTIONS, f"{name} with {', '.join(options)}")
        _refuse(not all(isinstance(one, (StandIn, *NUMBERS)) for one in arguments), "other than arrays and numbers")
        return _outside(ufunc(*held, **_inside(options)))

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        raise TypeError(f"NumPy's {function.__name__} of an array on the device: expected that of the backend's xp")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # NumPy's own protocols for an array's memory
            raise AttributeError(name)
        if name in SHAPES:
            return getattr(self.held, name)
        if name == "flags":  # CuPy's flags do not include writeable
            flags = self.held.flags
            return SimpleNamespace(
                **{part: flags[part.upper()] for part in ("c_contiguous", "f_contiguous", "owndata")}
            )
        if name in PARTS:
            return _outside(getattr(self.held, name))
        method = getattr(self.held, name)
        _refuse(not callable(method) or name in ABSENT | UNSEEN, f"{name} of an array")

        def call(*arguments: Any, **options: Any) -> Any:
            _check_call(name, (self, *arguments), options)
            return _outside(method(*_inside(arguments), **_inside(options)))

        return call

    def __getitem__(self, index: Any) -> Any:
        StandIn.waits += _has_mask(index)
        return _outside(self.held[_inside(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        held = _inside(value)
        _refuse(not isinstance(value, (StandIn, *NUMBERS)), f"a {type(value).__name__} to assign")
        StandIn.waits += _has_mask(index)
        self.held[_inside(index)] = held

    def __len__(self) -> int:
        return len(self.held)

    def __bool__(self) -> bool:
        return bool(self.get())

    def __float__(self) -> float:
        return float(self.get())

    def __int__(self) -> int:
        return int(self.get())


def on_device(namespace: Any, name: str) -> Any:
    """Return a function of one of NumPy's namespaces for arrays on the device; types and numbers as they are."""
    _refuse(name in ABSENT, f"function {name}")
    function = getattr(namespace, name)
    if not callable(function) or isinstance(function, type):
        return function

    def call(*arguments: Any, **options: Any) -> Any:
        held = _inside(arguments)
        if isinstance(function, np.ufunc):
            return _outside(function(*arguments, **options))
        _check_call(name, arguments, options)
        return _outside(function(*held, **_inside(options)))

    return call


def _check_call(name: str, arguments: Any, options: dict[str, Any]) -> None:
    """Refuse a call that CuPy's function or method of this name does not take; count a wait for a size."""
    _refuse(name in ABSENT, f"function {name}")
    untaken = options.keys() & UNTAKEN.get(name, set())
    _refuse(bool(untaken), f"{name} with {', '.join(sorted(untaken))}")
    _refuse(options.get("kind") not in (None, "stable"), f"{name} with kind = {options.get('kind')!r}")
    counts = [*arguments, *options.values()][1:2] if name == "repeat" else []
    _refuse(any(isinstance(count, StandIn) for count in counts), "repeat by an array of counts")
    StandIn.waits += name in SIZED or (name == "where" and len(arguments) == 1)


def _has_mask(index: Any) -> bool:
    """Return whether an index selects by truth values."""
    return any(getattr(one, "dtype", None) == np.bool_ for one in (index if isinstance(index, tuple) else (index,)))


def _refuse(wrong: bool, what: str) -> None:
    if wrong:
        raise TypeError(f"CuPy does not take {what}")


def _inside(value: Any) -> Any:
    """Return the array in a stand-in, also within tuples, lists and dictionaries; refuse a host array."""
    if isinstance(value, StandIn):
        return value.held
    if isinstance(value, np.ndarray):
        raise TypeError(f"an array {value.shape} of the host meets one on the device")
    if isinstance(value, (tuple, list)):
        return type(value)(map(_inside, value))
    return {key: _inside(one) for key, one in value.items()} if isinstance(value, dict) else value


def _outside(value: Any) -> Any:
    """Return NumPy's arrays and numbers as stand-ins."""
    if isinstance(value, (np.ndarray, np.generic)):
        return StandIn(np.asarray(value))
    return type(value)(map(_outside, value)) if isinstance(value, (tuple, list)) else value


FORMATS = "?bBhHiIlLqQefdFD"  # characters of the dtypes that a device supports
NUMBERS = (bool, int, float, complex, np.generic)
SHAPES = {"shape", "dtype", "ndim", "size", "itemsize", "nbytes", "strides"}
PARTS = {"T", "real", "imag"}
SIZED = {"flatnonzero", "nonzero", "argwhere", "unique", "compress", "extract"}  # the size depends on the values

# Functions that CuPy 14 lacks and array code might use, by names and signatures.
ABSENT = {"block", "insert", "geomspace", "unstack", "spacing", "vecdot", "matvec", "vecmat", "vector_norm",
          "matrix_norm", "multi_dot", "svdvals", "setflags"}  # fmt: skip
UNSEEN = {"item", "tolist", "tobytes"}  # copies to the host, for which :meth:`StandIn.get` exists
SPECIAL = {"erf", "erfc"}  # from SciPy and cupyx.scipy.special
UFUNC_OPTIONS = {"out", "dtype", "casting"}
_CHOSEN = {"where", "initial"}
UNTAKEN = dict.fromkeys(("all", "any", "max", "min", "mean", "sum", "prod", "std", "var"), _CHOSEN)
UNTAKEN |= {"einsum": {"out", "order", "casting"}, "rfft": {"out"}, "irfft": {"out"}, "broadcast_to": {"subok"}}
