"""Time step while a density is near the uniform one, where its modes grow or decay and nothing flows yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from solvers.mesh.mesh import Floats, Mesh
from solvers.terms.advection import Step

ACCURACY = 5.0  # rates in a step: at cfl = ½ Runge–Kutta 3 errs by (0.1)³/24 of the rate
MAX_DENSITY = 2.0  # of the mean: below, a density counts as near the uniform one
Near = bool | np.bool_ | npt.NDArray[np.bool_]  # () where the state is: looking at it may mean waiting


class HasRates(Protocol):
    """Attention whose fastest growth or decay of a mode about the uniform density is ``rate``, of ``rate_degree``."""

    rate: float
    rate_degree: int


class LinearRegime:
    """A term without a rate of change: bounds the time step by the fastest of |λ_l| + κ l(l + d − 2).

    attention   its linear rates λ_l
    noise       κ ≥ 0
    dimension   d of the space around the sphere
    is_near     values → whether the density is near the uniform one
    """

    def __init__(self, attention: HasRates, noise: float, dimension: int, is_near: Callable[[Floats], Near]) -> None:
        degree = attention.rate_degree
        fastest = attention.rate + noise * degree * (degree + dimension - 2)
        self._step = 1.0 / (ACCURACY * fastest) if fastest > 0 else np.inf
        self._is_near = is_near

    def prepare(self, time: float, values: Floats) -> Step:
        return np.where(self._is_near(values), self._step, np.inf)

    def rate(self, dt: float, rate: Floats) -> None:
        """Adds nothing."""


def below_twice_the_mean(mesh: Mesh) -> Callable[[Floats], Near]:
    """Whether no cell of a density (cells) has MAX_DENSITY times the mean."""

    def is_near(values: Floats) -> Near:
        mean = mesh.backend.dot(mesh.volumes, values) / mesh.volume
        near: Near = values.max() < MAX_DENSITY * mean
        return near

    return is_near
