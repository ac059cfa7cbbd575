"""Sources: rates of change that are plain functions of time and field."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..mesh.checks import check_array, check_call
from ..mesh.mesh import Floats
from .advection import Step


class Source:
    """f(t, u) as an explicit term, pointwise or not.

    f         (time, values) → rate of change, of the values' shape
    fastest   largest rate |∂f/∂u|, which bounds an explicit step; None leaves the step to the control of its error
    Raises TypeError for what is no function, ValueError for a ``fastest`` ≤ 0, or for rates of another shape.
    """

    def __init__(self, f: Callable[[float, Floats], Floats], fastest: float | None = None) -> None:
        check_call("f", f)
        if fastest is not None and not fastest > 0:
            raise ValueError(f"fastest = {fastest!r}: expected a number > 0, or None")
        self.f, self._step = f, np.inf if fastest is None else 1.0 / fastest
        self._rate: Floats = np.zeros(0)

    def prepare(self, time: float, values: Floats) -> Step:
        rate = self.f(time, values)
        name = getattr(self.f, "__name__", "f")
        if np.shape(rate) != values.shape:
            raise ValueError(f"{name} gives an array of shape {np.shape(rate)}: expected {values.shape}")
        check_array(name, rate, values.shape)
        self._rate = rate
        return self._step

    def rate(self, dt: float, rate: Floats) -> None:
        rate += self._rate
