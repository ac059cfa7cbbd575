"""Sources: rates of change that are functions of the state, with the step that they allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..mesh.checks import check_array, check_call, check_finite, check_number
from ..mesh.mesh import Floats
from .term import Step

FIRST_ITERATIONS, ITERATIONS = 12, 2  # of the power method: from a random vector, and from the last one found
DIFFERENCE = 1e-7  # of the state, for a directional derivative
MARGIN = 1.2  # over the rate found, which iterations approach from below


class Source:
    """f(t, u), the rate of change of u (cells,) or (fields, cells): reactions, births, a force.

    f          an array like u, of float64 or float32
    fastest    bound of |∂f/∂u| where known; else the largest |eigenvalue| is found by power iterations on differences
               of f, two in each step from the last vector

    The longest step is 1/fastest: u ≥ 0 stays so where u decays. Raises TypeError and ValueError for another shape.
    """

    def __init__(self, f: Callable[[float, Floats], Floats], fastest: float | None = None) -> None:
        check_call("f", f)
        if fastest is not None:
            check_number("fastest", fastest)
        self.f, self.fastest = f, fastest
        self._vector: Any = None
        self._rate: Any = None

    def prepare(self, time: float, values: Floats) -> Step:
        rate = self.f(time, values)
        check_array("f(t, u)", rate, values.shape)
        if self._rate is None:
            check_finite("f(t, u)", rate)
        self._rate = rate
        fastest = self._fastest(time, values) if self.fastest is None else self.fastest
        return 1.0 / fastest if fastest > 0 else np.inf

    def rate(self, dt: float, rate: Floats) -> None:
        rate += self._rate

    def _fastest(self, time: float, values: Floats) -> float:
        """The largest |eigenvalue| of ∂f/∂u, by growth in power iterations, with a margin."""
        if self._vector is None or self._vector.shape != values.shape:
            self._vector = np.random.default_rng(0).choice([-1.0, 1.0], values.shape)
            count = FIRST_ITERATIONS
        else:
            count = ITERATIONS
        size = DIFFERENCE * (float(np.abs(values).max()) + DIFFERENCE)
        fastest = 0.0
        for _ in range(count):
            length = float(np.abs(self._vector).max())
            if not length > 0:
                self._vector = None
                return 0.0
            direction = self._vector / length
            self._vector = (self.f(time, values + size * direction) - self._rate) / size
            fastest = float(np.sqrt((self._vector**2).mean() / (direction**2).mean()))
        return MARGIN * fastest
