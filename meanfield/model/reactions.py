"""Local reactions R[ρ]: multiplication and removal of tokens in place.

    linear       R = rate ρ                              mass grows as e^{rate t}
    logistic     R = rate ρ (1 − ρ/(capacity ρ̄))         ρ tends to capacity times the uniform density everywhere
    replicator   R = rate ρ (f(x) − ∫fρ/∫ρ)              the mass is kept; tokens fitter than the mean multiply

These are the textbook forms; the papers do not specify the reaction.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from meanfield.model.errors import ArgumentError, check_number
from solvers.mesh.mesh import Floats, Mesh
from solvers.terms.term import Step

_PART = 0.2  # rate · step: at cfl = ½ the error of Runge–Kutta 3 is (0.1)³/24 of the rate, as in linear_stability

Growth = Callable[[Floats], Floats | float]


class Reaction:
    """Reaction R[ρ] = ρ g[ρ], an explicit term; ``growth`` returns g (cells,) or a number for a density (cells).

    ``fastest`` is the rate at which ρ relaxes to g = 0, which does not follow from g. Raises ArgumentError for a growth
    that is no function, and a rate that is no finite number.
    """

    def __init__(self, growth: Growth, fastest: float = 0.0) -> None:
        if not callable(growth):
            raise ArgumentError("growth", growth, "a function of the density")
        check_number("fastest", fastest)
        self.growth, self._fastest = growth, abs(fastest)
        self._rate: Floats = np.zeros(0)

    def prepare(self, time: float, values: Floats) -> Step:
        growth = self.growth(values)
        self._rate = growth * values
        with np.errstate(divide="ignore"):
            step: Step = np.divide(_PART, np.maximum(np.abs(growth).max(), self._fastest))
            return step

    def rate(self, dt: float, rate: Floats) -> None:
        rate += self._rate


def reaction_linear(rate: float) -> Reaction:
    """Return the reaction R = rate ρ. Raises ArgumentError for a rate that is no finite number."""
    check_number("rate", rate)
    return Reaction(partial(_constant, rate))


def reaction_logistic(mesh: Mesh, rate: float, capacity: float = 1.0) -> Reaction:
    """Return the reaction R = rate ρ (1 − ρ/(capacity ρ̄)), ρ̄ = 1/|S|.

    Raises ArgumentError unless rate is finite and capacity positive.
    """
    check_number("rate", rate)
    check_number("capacity", capacity)
    if capacity <= 0:
        raise ArgumentError("capacity", capacity, "a number > 0")
    equilibrium = capacity / mesh.volume
    return Reaction(partial(_logistic, rate, equilibrium), rate)


def reaction_replicator(mesh: Mesh, rate: float, fitness: Floats) -> Reaction:
    """Return the reaction R = rate ρ (f − ∫fρ/∫ρ) for a fitness f (cells).

    Raises ArgumentError for a rate that is no finite number.
    """
    check_number("rate", rate)
    return Reaction(partial(_replicator, rate, mesh.volumes, fitness))


def _constant(rate: float, density: Floats) -> float:
    return rate


def _logistic(rate: float, equilibrium: float, density: Floats) -> Floats:
    return rate * (1.0 - density / equilibrium)


def _replicator(rate: float, volumes: Floats, fitness: Floats, density: Floats) -> Floats:
    masses = density * volumes
    gain: Floats = rate * (fitness - (masses @ fitness) / masses.sum())
    return gain


def fitness_quadratic(mesh: Mesh, vector: Floats, matrix: Floats) -> Floats:
    """Return f(x) = ⟨a,x⟩ + ½⟨x,Mx⟩ at cell centers, (cells,), for a = ``vector`` (d,) and M = ``matrix`` (d, d)."""
    x = mesh.backend.to_host(mesh.centers)
    return mesh.backend.to_device(x @ vector + 0.5 * np.einsum("ni,ij,nj->n", x, matrix, x))
