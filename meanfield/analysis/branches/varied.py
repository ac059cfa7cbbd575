"""Continuation parameters of branches of stationary densities: the noise κ, the inverse temperature β, V = vI."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from meanfield.analysis.branches.equilibria import NODES, Equilibria, Equilibrium
from meanfield.model.linear_stability import growth_rates
from solvers.mesh.mesh import Floats

BETAS = np.geomspace(1e-3, 600.0, 400)  # β among which neutral values are searched


@dataclass(frozen=True)
class NoiseParameter:
    """Variation of the noise κ at fixed β along a branch of stationary densities.

    The methods take the value p > 0 of the varied parameter, as those of the other parameters do.
    """

    at: Equilibria
    name = "noise"

    def equilibria(self, p: float) -> Equilibria:
        """Return the discretized equations of stationary densities at the noise p."""
        return self.at

    def critical(self, degree: int) -> float:
        """Return the critical noise of a degree; raise ValueError if the degree decays even without noise."""
        critical = self.at.critical_noise(degree)
        if critical <= 0:
            expected = "expected one that grows without noise"
            raise ValueError(f"degree {degree}: {expected}, got critical noise {critical:.6g}")
        return critical

    def residual(self, u: Floats, p: float) -> tuple[Floats, Floats, Floats]:
        """Return the residual u − log f[u] of the stationary equation, and its derivatives by u and by log p.

        u (nodes,) is the logarithm of the density; see `Equilibria.residual`.
        """
        return self.at.residual(u, p)

    def rounding(self, p: float) -> float:
        """Return the rounding error of u, the logarithm of a stationary density, at the noise p."""
        return self.at.rounding(p)

    def equilibrium(self, u: Floats, p: float) -> Equilibrium:
        """Return the stationary density e^u at the noise p, with its linear stability."""
        return self.at.equilibrium(u, p)

    def parameter(self, point: Equilibrium) -> float:
        """Return the noise at which a density is stationary."""
        return point.noise


@dataclass(frozen=True)
class BetaParameter:
    """Variation of β at fixed noise; the branch begins at the neutral β nearest to ``near`` in its logarithm."""

    dimension: int
    noise: float
    near: float
    normalization: str = "softmax"
    value: float = 1.0
    nodes: int = NODES
    name = "beta"

    def equilibria(self, p: float) -> Equilibria:
        return _equilibria(self.dimension, p, self.normalization, self.value, self.nodes)

    def critical(self, degree: int) -> float:
        """Return the β at which a degree is neutral; raise ValueError if there is none.

        Of several such β, the one with the smallest |log(β/near)| is returned, where ``near`` is the attribute.
        """
        from scipy.optimize import brentq

        def excess(beta: float) -> float:
            rate = growth_rates(self.dimension, beta, [degree], self.normalization, 0.0, self.value)[0]
            return float(rate / (degree * (degree + self.dimension - 2)) / self.noise - 1)

        above = np.array([excess(beta) > 0 for beta in BETAS])
        crossed = np.flatnonzero(above[:-1] != above[1:])
        if len(crossed) == 0:
            raise ValueError(f"degree {degree}: expected one that is neutral at some beta, at the noise of the case")
        roots = [float(brentq(excess, BETAS[k], BETAS[k + 1], xtol=1e-14, rtol=1e-14)) for k in crossed]
        return min(roots, key=lambda beta: abs(np.log(beta / self.near)))

    def residual(self, u: Floats, p: float) -> tuple[Floats, Floats, Floats]:
        at = self.equilibria(p)
        residual, by_u, _ = at.residual(u, self.noise)
        return residual, by_u, at.by_log_beta(u, self.noise)

    def rounding(self, p: float) -> float:
        return self.equilibria(p).rounding(self.noise)

    def equilibrium(self, u: Floats, p: float) -> Equilibrium:
        return self.equilibria(p).equilibrium(u, self.noise)

    def parameter(self, point: Equilibrium) -> float:
        return point.beta


@dataclass(frozen=True)
class ValueParameter:
    """Variation of v of V = vI at fixed noise and β along a branch of stationary densities.

    States are those of v = 1 at the noise κ/v, and rates are v times the rates of those states.
    """

    at: Equilibria  # equations for v = 1
    noise: float
    name = "value"

    def equilibria(self, p: float) -> Equilibria:
        return self.at

    def critical(self, degree: int) -> float:
        """Return the value v at which a degree is neutral; raise ValueError if it decays even without noise."""
        return self.noise / NoiseParameter(self.at).critical(degree)

    def residual(self, u: Floats, p: float) -> tuple[Floats, Floats, Floats]:
        residual, by_u, by_log_noise = self.at.residual(u, self.noise / p)
        return residual, by_u, -by_log_noise

    def rounding(self, p: float) -> float:
        return self.at.rounding(self.noise / p)

    def equilibrium(self, u: Floats, p: float) -> Equilibrium:
        found = self.at.equilibrium(u, self.noise / p)
        faster = tuple(replace(spectrum, rates=p * spectrum.rates) for spectrum in found.spectra)
        return replace(found, noise=self.noise, value=p, spectra=faster)

    def parameter(self, point: Equilibrium) -> float:
        return point.value


ContinuationParameter = NoiseParameter | BetaParameter | ValueParameter


@lru_cache(maxsize=2)
def _equilibria(dimension: int, beta: float, normalization: str, value: float, nodes: int) -> Equilibria:
    """Return the equations of stationary densities, stored for repeated calls with the same arguments."""
    return Equilibria(dimension, beta, normalization, value, nodes)
