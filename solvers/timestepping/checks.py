"""Checks of the arguments of time integration: each message names the argument, its value and the expectation."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..mesh.checks import check_unmasked
from ..mesh.mesh import Floats

NUMBERS = (np.float32, np.float64, np.complex128)
ROUNDING = 1e-6  # relative to the largest value, also for densities in float32


def check_until(until: float, time: float) -> None:
    """Raise ValueError unless the end time ``until`` and the state's ``time`` are finite and in this order."""
    if not math.isfinite(until):
        raise ValueError(f"until = {until}: expected a finite time")
    if not math.isfinite(time):
        raise ValueError(f"state.time = {time}: expected a finite time")
    if until < time:
        raise ValueError(f"until = {until}: expected a time >= state.time = {time}")


def check_values(values: Floats, terms: Iterable[object]) -> None:
    """Raise ValueError unless the values of a state are finite numbers in an array that the kernels can use.

    The array is contiguous and writable, of float32, float64 or complex128, and its length is that of the meshes.

    terms   terms whose attribute ``mesh``, if present, gives the expected number of cells
    """
    dtype = getattr(values, "dtype", type(values).__name__)
    if dtype not in NUMBERS:
        raise ValueError(f"state.values of {dtype}: expected an array of float32 or float64")
    check_unmasked("state.values", values)
    if values.ndim == 0:
        raise ValueError("state.values of shape (): expected (cells) or (cells, components)")
    flags = getattr(values, "flags", None)
    if not getattr(flags, "c_contiguous", True):
        raise ValueError(f"state.values of strides {values.strides}: expected a contiguous array")
    if not getattr(flags, "writeable", True):
        raise ValueError("state.values is read-only: expected an array that can be written to")
    for term in terms:
        cells = getattr(getattr(term, "mesh", None), "cells", None)
        if cells not in (None, len(values), values.shape[-1], values.size):
            name = type(term).__name__
            raise ValueError(f"state.values of shape {values.shape}: expected {cells} cells, as the mesh of {name} has")
    if not bool(np.isfinite(values).all()):
        lost = int(values.size - np.isfinite(values).sum())
        raise ValueError(f"state.values: {lost} of {values.size} not finite: expected finite numbers")


def as_state(values: Floats, is_complex: bool) -> Floats:
    """Return a copy of numbers, contiguous: complex128 for complex ones or on request, else float32 or float64."""
    kind: Any = np.complex128 if is_complex or values.dtype.kind == "c" else np.float64
    return np.array(values, dtype=np.float32 if values.dtype == np.float32 and not is_complex else kind, order="C")


def check_complex(name: str, values: Floats, equation: Any) -> None:
    """Raise TypeError if ``values`` are complex, and a term of the equation needs real numbers.

    Terms with limiters and terms of densities need real numbers. The message calls the values ``name``.
    """
    for term in (*equation.terms, *getattr(equation.stiff, "terms", (equation.stiff,))):
        if getattr(term, "only_real", False) or getattr(term, "nonnegative", False):
            check_real(name, values, type(term).__name__)


def check_real(name: str, values: Floats, user: str) -> None:
    """Raise TypeError if ``values`` are complex, where ``user`` needs real numbers.

    The message calls the values ``name``.
    """
    if values.dtype.kind == "c":
        raise TypeError(f"{name} of {values.dtype}: expected real numbers for {user}")


def check_nonnegative(name: str, values: Floats, terms: Iterable[object]) -> None:
    """Raise ValueError if a term requires a density and ``values`` are below zero by more than rounding.

    The message calls the values ``name``.
    """
    for term in terms:
        if getattr(term, "nonnegative", False) and float(values.min()) < -ROUNDING * float(abs(values).max()):
            expected = f"expected a density >= 0, by nonnegative=True of {type(term).__name__}"
            raise ValueError(f"{name} of least value {float(values.min()):.6g}: {expected}")


def check_positive(**numbers: float) -> None:
    """Raise ValueError unless all keyword arguments are finite numbers > 0; the message names the first that is not."""
    for name, number in numbers.items():
        if not (isinstance(number, (int, float, np.number)) and 0 < number < math.inf):
            raise ValueError(f"{name} = {number!r}: expected a finite number > 0")


def check_tolerances(rtol: float, atol: float, values: Floats) -> None:
    """Raise ValueError if ``rtol`` and ``atol`` are below the rounding error of a step for ``values``.

    No step would meet such tolerances.
    """
    rounding = 4 * float(np.finfo(values.dtype).eps)
    size = float((np.abs(values).astype(np.float64) ** 2).mean()) ** 0.5  # the root mean square
    if rtol < rounding and atol < rounding * size:
        raise ValueError(
            f"rtol = {rtol:g}, atol = {atol:g}: expected rtol >= {rounding:.2g} or atol >= {rounding * size:.2g},"
            " the rounding of a step"
        )


def check_methods(name: str, term: object, methods: tuple[str, ...]) -> None:
    """Raise TypeError unless a term is an object, not a class, with the given methods; ``name`` is for the message."""
    if not all(callable(getattr(term, method, None)) for method in methods) or isinstance(term, type):
        raise TypeError(f"{name} = {term!r}: expected an object with the methods {' and '.join(methods)}")
