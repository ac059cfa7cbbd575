"""Checks of the arguments of time integration: each message names the argument, its value and the expectation."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from ..mesh.checks import check_unmasked
from ..mesh.mesh import Floats

NUMBERS = (np.float32, np.float64)
ROUNDING = 1e-6  # relative to the largest value, also for densities in float32


def check_until(until: float, time: float) -> None:
    """Raise ValueError for an end that is not finite or lies before the state's time."""
    if not math.isfinite(until):
        raise ValueError(f"until = {until}: expected a finite time")
    if not math.isfinite(time):
        raise ValueError(f"state.time = {time}: expected a finite time")
    if until < time:
        raise ValueError(f"until = {until}: expected a time >= state.time = {time}")


def check_values(values: Floats, terms: Iterable[object]) -> None:
    """Raise ValueError for values with a wrong dtype or memory layout, a wrong length, or non-finite numbers.

    terms   terms whose attribute ``mesh``, if present, gives the expected length
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


def check_nonnegative(name: str, values: Floats, terms: Iterable[object]) -> None:
    """Raise ValueError for values below zero by more than rounding, if a term requires a density >= 0."""
    for term in terms:
        if getattr(term, "nonnegative", False) and float(values.min()) < -ROUNDING * float(abs(values).max()):
            expected = f"expected a density >= 0, by nonnegative=True of {type(term).__name__}"
            raise ValueError(f"{name} of least value {float(values.min()):.6g}: {expected}")


def check_positive(**numbers: float) -> None:
    """Raise ValueError with the name of the first number that is not finite and > 0."""
    for name, number in numbers.items():
        if not (isinstance(number, (int, float, np.number)) and 0 < number < math.inf):
            raise ValueError(f"{name} = {number!r}: expected a finite number > 0")


def check_tolerances(rtol: float, atol: float, values: Floats) -> None:
    """Raise ValueError for tolerances below the rounding error of a step, which no step would meet."""
    rounding = 4 * float(np.finfo(values.dtype).eps)
    size = float((values.astype(np.float64) ** 2).mean()) ** 0.5  # the root mean square
    if rtol < rounding and atol < rounding * size:
        raise ValueError(
            f"rtol = {rtol:g}, atol = {atol:g}: expected rtol >= {rounding:.2g} or atol >= {rounding * size:.2g},"
            " the rounding of a step"
        )


def check_methods(name: str, term: object, methods: tuple[str, ...]) -> None:
    """Raise TypeError for a term without these methods."""
    if not all(callable(getattr(term, method, None)) for method in methods) or isinstance(term, type):
        raise TypeError(f"{name} = {term!r}: expected an object with the methods {' and '.join(methods)}")
