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
    """Reaction R[ρ] = ρ g[ρ], an explicit term: tokens multiply where g > 0 and are removed where g < 0.

    Parameters
    ----------
    growth : function (density) -> (cells,) array or float
        Relative growth rate g, per unit of time, of a density (cells,).
    fastest : float
        Rate at which ρ relaxes to g = 0, if known. It limits the time step near such a state, where g itself is small;
        the logistic g = a(1 − ρ) has the rate a. 0 suffices where g does not depend on ρ.

    Raises
    ------
    ValueError
        If ``growth`` is no function, or if ``fastest`` is no finite number.

    Examples
    --------
    Logistic growth ∂ₜρ = ρ(1 − ρ) from ρ = 1/2 has the solution 1/(1 + e^{−t}):

    >>> import numpy as np
    >>> import meanfield as mf
    >>> from solvers import Equation, circle, solve
    >>> mesh = circle(8)
    >>> logistic = mf.Reaction(lambda density: 1 - density, fastest=1.0)
    >>> solution = solve(Equation(mesh, [logistic]), np.full(8, 0.5), (0.0, 1.0), times=[1.0])
    >>> bool(abs(solution.u[-1] - 1 / (1 + np.exp(-1.0))).max() < 1e-4)
    True
    """

    def __init__(self, growth: Growth, fastest: float = 0.0) -> None:
        if not callable(growth):
            raise ArgumentError("growth", growth, "a function of the density")
        check_number("fastest", fastest)
        self.growth, self._fastest = growth, abs(fastest)
        self._rate: Floats = np.zeros(0)

    def prepare(self, time: float, values: Floats) -> Step:
        """Evaluate the reaction R = ρg at a density ρ (cells,); return the time step 0.2/max(``|g|``, ``fastest``)."""
        growth = self.growth(values)
        self._rate = growth * values
        with np.errstate(divide="ignore"):
            step: Step = np.divide(_PART, np.maximum(np.abs(growth).max(), self._fastest))
            return step

    def rate(self, dt: float, rate: Floats) -> None:
        """Add the reaction R at the prepared density to the rate of change ``rate`` (cells,) in place."""
        rate += self._rate


def reaction_linear(rate: float) -> Reaction:
    """Return the reaction R = rate ρ, in which every token multiplies at one rate."""
    return Reaction(partial(_constant, rate))


def reaction_logistic(mesh: Mesh, rate: float, capacity: float = 1.0) -> Reaction:
    """Return the logistic reaction R = rate ρ (1 − ρ/(capacity ρ̄)), with the uniform density ρ̄.

    ρ̄ has mass 1 on the mesh.
    """
    equilibrium = capacity / mesh.volume
    return Reaction(partial(_logistic, rate, equilibrium), rate)


def reaction_replicator(mesh: Mesh, rate: float, fitness: Floats) -> Reaction:
    """Return the replicator reaction R = rate ρ (f − ∫fρ/∫ρ) for a fitness f (cells), which keeps the mass."""
    return Reaction(partial(_replicator, rate, mesh.volumes, fitness))


def _constant(rate: float, density: Floats) -> float:
    """Return the relative growth rate of the linear reaction."""
    return rate


def _logistic(rate: float, equilibrium: float, density: Floats) -> Floats:
    """Return the relative growth rate (cells,) of the logistic reaction, 0 at the density ``equilibrium``."""
    return rate * (1.0 - density / equilibrium)


def _replicator(rate: float, volumes: Floats, fitness: Floats, density: Floats) -> Floats:
    """Return the relative growth rate (cells,) of the replicator reaction with the ``fitness`` (cells,)."""
    masses = density * volumes
    gain: Floats = rate * (fitness - (masses @ fitness) / masses.sum())
    return gain


def fitness_quadratic(mesh: Mesh, vector: Floats, matrix: Floats) -> Floats:
    """Return the fitness f(x) = ⟨a,x⟩ + ½⟨x,Mx⟩ at the cell centers x, (cells,).

    a is ``vector`` (d,) and M is ``matrix`` (d, d).
    """
    x = mesh.backend.to_host(mesh.centers)
    return mesh.backend.to_device(x @ vector + 0.5 * np.einsum("ni,ij,nj->n", x, matrix, x))
