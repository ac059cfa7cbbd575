"""Free-energy barrier between a metastable density and a saddle, and the mean time of escape of n tokens.

n tokens of unnormalized attention with noise, dx_i = (v/β)∇Z(x_i) dt + √(2κ) dW_i on S^{d−1}, are reversible with the
Gibbs measure e^{nE[μ]/κ} of their empirical measure μ. The density follows the gradient flow of the free energy

    F[ρ] = κ ∫ρ log ρ − v E[ρ] ,   E[ρ] = (1/2β) ∬ e^{β⟨x,y⟩} ρ(x) ρ(y) dx dy

and the probability of a density is e^{−nF/κ} (Dawson and Gärtner 1987). The mean time of escape over a saddle is

    T(n) ≈ (2π/λ) (Z_well/Z_saddle) e^{nΔF/κ}                                       for n → ∞

with the positive rate λ of the saddle (Eyring, Kramers; in many dimensions Langer 1969). Z are Gaussian integrals over
fluctuations about a stationary density, derived here. The fluctuations ν = √n(μ − ρ) of independent tokens are white
noise. With K of :mod:`meanfield.analysis.branches.rates`, the mean of e^{½⟨ν,Kν⟩} is |det(I − K)|^{−1/2}. Rotations of
a density with an axis are neutral. They contribute the volume of the orbit, |S^{d−1}| (nR/2π)^{(d−1)/2}, where
R = ∫ρ |∂ log ρ|² for a rotation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from meanfield.analysis.branches.equilibria import Equilibria, Equilibrium
from meanfield.analysis.branches.rates import StationaryDensity, project_matrix
from meanfield.model.functionals import energy_of_sum, entropy
from solvers.mesh.mesh import Floats

MAX_ORDER = 64  # of perturbations about the axis
NEGLIGIBLE = 1e-8  # contribution of an order to a logarithm, below which higher orders are left out


@dataclass(frozen=True)
class Barrier:
    """Barrier between a metastable density and a saddle, and the mean time of escape for n → ∞.

    Attributes
    ----------
    well : Equilibrium
        Metastable density.
    saddle : Equilibrium
        Stationary density with one unstable direction.
    height : float
        ΔF/κ, the difference of the free energies divided by the noise.
    rate : float
        Positive growth rate λ of the saddle, in the time of a case that is not rescaled.
    log_prefactor : float
        Logarithm of T e^{−nΔF/κ} n^{−power} for n → ∞.
    power : float
        Power of n in the prefactor: −(d − 1)/2 from the uniform density, 0 from a density with an axis.
    well_slope, saddle_slope : float
        Means of |∇ log ρ|² over the metastable density and over the saddle.
    """

    well: Equilibrium
    saddle: Equilibrium
    height: float
    rate: float
    log_prefactor: float
    power: float
    well_slope: float
    saddle_slope: float

    def log_time(self, n: float) -> float:
        """Return the logarithm of the asymptotic mean time of escape of ``n`` tokens, by Eyring and Kramers."""
        return self.log_prefactor + self.power * math.log(n) + self.height * n


def barrier_between(equations: Equilibria, well: Equilibrium, saddle: Equilibrium) -> Barrier:
    """Return the barrier between two stationary densities with the same noise; the saddle has an axis."""
    noise, d = well.noise, equations.dimension
    height = (
        free_energy(equations, saddle.log_density, noise) - free_energy(equations, well.log_density, noise)
    ) / noise
    (of_well, axis_of_well), (of_saddle, axis_of_saddle) = (_fluctuations(equations, one) for one in (well, saddle))
    log_prefactor = math.log(2 * math.pi / saddle.fastest) + (of_saddle - of_well) / 2
    half = (d - 1) / 2
    if axis_of_well:
        power, log_prefactor = 0.0, log_prefactor + half * math.log(axis_of_well / axis_of_saddle)
    else:
        log_surface = math.log(2) + d / 2 * math.log(math.pi) - math.lgamma(d / 2)
        power, log_prefactor = -half, log_prefactor - log_surface - half * math.log(axis_of_saddle / (2 * math.pi))
    slopes = (d - 1) * axis_of_well, (d - 1) * axis_of_saddle
    return Barrier(well, saddle, height, saddle.fastest, log_prefactor, power, *slopes)


def free_energy(equations: Equilibria, u: Floats, noise: float) -> float:
    """Return the free energy F = κ∫ρ log ρ − vE of the density e^u, u at the nodes, relative to the uniform density.

    The densities are relative to the uniform one, with its normalized measure, so that F has no constant term.
    """
    masses = equations.weights * np.exp(u)
    total = float(masses @ equations.kernel(0) @ masses)
    value = equations.gain * equations.beta
    energy = energy_of_sum(total, equations.beta, 0.0, lambda: 0.0)
    return float(noise * entropy(masses, np.log(equations.weights)) - value * energy)


def harmonics_of_order(dimension: int, m: int) -> int:
    """Return the number of independent harmonics of order m about an axis of S^{d−1}, d = ``dimension``."""
    if dimension == 2:
        return int(m <= 1)
    return math.comb(m + dimension - 2, m) - (math.comb(m + dimension - 4, m - 2) if m >= 2 else 0)


def _fluctuations(equations: Equilibria, state: Equilibrium) -> tuple[float, float]:
    """Return log |det(I − K)| without the neutral directions of a stationary density, and R of its rotations.

    R = ∫ρ |∂ log ρ|² is the squared length of an infinitesimal rotation, 0 for the uniform density.
    """
    masses = equations.weights * np.exp(state.log_density)
    density = StationaryDensity(equations, masses, state.noise)
    total = 0.0
    for m in range(MAX_ORDER):
        operator, scale = density.operator(m)
        neutral = density.neutral(m)
        projected = operator if neutral is None else project_matrix(operator, neutral * scale)
        part = harmonics_of_order(equations.dimension, m) * float(
            np.log(np.abs(1 - np.linalg.eigvalsh(projected))).sum()
        )
        total += part
        if m > 1 and abs(part) < NEGLIGIBLE:
            break
    rotation = density.neutral(1)
    return total, 0.0 if rotation is None else float(masses @ rotation**2) / (equations.dimension - 1)
