"""Sources: rates of change that are functions of the state, with the step that they allow."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..mesh.checks import check_array, check_call, check_finite
from ..mesh.mesh import Floats
from .term import Step

ITERATIONS = 3  # of the power method, from the same vector each time, so that a run goes on exactly from any state
DIFFERENCE = 1e-7  # of the state, for a directional derivative
MARGIN = 1.3  # over the rate found, which iterations approach from below


class Source:
    """f(t, u), the rate of change of u (cells,) or (fields, cells): reactions, births, a force.

    f          an array like u, of float64 or float32
    fastest    bound of |∂f/∂u| where known; else the largest |eigenvalue| is found by power iterations on differences
               of f, three in each step, so that f is called four times

    The longest step is 1/fastest: u ≥ 0 stays so where u decays. Raises TypeError and ValueError for another shape.
    """

    def __init__(self, f: Callable[[float, Floats], Floats], fastest: float | None = None) -> None:
        check_call("f", f)
        if fastest is not None and not fastest > 0:
            raise ValueError(f"fastest = {fastest!r}: expected a number > 0, or None")
        self.f, self.fastest = f, fastest
        self._rate: Any = None

    def prepare(self, time: float, values: Floats) -> Step:
        rate = self.f(time, values)
        name = getattr(self.f, "__name__", "f")
        if np.shape(rate) != values.shape:
            raise ValueError(f"{name} gives an array of shape {np.shape(rate)}: expected {values.shape}")
        check_array(name, rate, values.shape)
        if self._rate is None:
            check_finite(name, rate)
        self._rate = rate
        fastest = self._fastest(time, values) if self.fastest is None else self.fastest
        return 1.0 / fastest if fastest > 0 else np.inf

    def rate(self, dt: float, rate: Floats) -> None:
        rate += self._rate

    def _fastest(self, time: float, values: Floats) -> float:
        """The largest |eigenvalue| of ∂f/∂u, by growth in power iterations, with a margin."""
        vector: Any = _signs(values.shape)
        size = DIFFERENCE * (float(np.abs(values).max()) + DIFFERENCE)
        fastest = 0.0
        for _ in range(ITERATIONS):
            direction = vector / float(np.abs(vector).max())
            vector = (self.f(time, values + size * direction) - self._rate) / size
            fastest = float(np.sqrt((vector**2).mean() / (direction**2).mean()))
            if not fastest > 0:
                return 0.0
        return MARGIN * fastest


@lru_cache(maxsize=8)
def _signs(shape: tuple[int, ...]) -> Floats:
    """±1 at random, the same each time."""
    return np.random.default_rng(0).choice([-1.0, 1.0], shape)
