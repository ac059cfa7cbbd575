"""Functionals of a state, the same for densities, particles and atoms: entropy, interaction energy, speed.

Arrays are on the host: masses m (n,) of cells or tokens, and what is known at each.
"""

from __future__ import annotations

import numpy as np

from solvers.mesh.mesh import Floats

MAX_EXPONENT = 700.0  # of the largest kernel: e^709 is the largest double


def entropy(masses: Floats, log_areas: Floats) -> float:
    """H = ∫ρ log ρ = Σ m (log m − log a), a the area of each cell: log ρ̄ for the uniform density, its least value.

    With respect to surface area on every domain. Only logarithms of areas appear, for those of a sphere in many
    dimensions are out of range.
    """
    held = masses > 0
    return float(masses[held] @ (np.log(masses[held]) - log_areas[held]))


def energy_log_unit(log_bound: float) -> float:
    """log of the unit in which energies are kept: 0, or ``log_bound`` where e^{log_bound} is out of range."""
    return 0.0 if log_bound <= MAX_EXPONENT else log_bound


def energy(masses: Floats, normalizer: Floats, beta: float, log_bound: float, mean: Floats) -> float:
    """E = (1/2β) ∬ k ρρ = (1/2β) Σ m Z, in units of e^{energy_log_unit(log_bound)}.

    normalizer   Z e^{−log_bound} (n,)
    log_bound    logarithm of the largest k
    mean         ∫xρ (d,), for the limit of β → 0 less its constant, ½|∫xρ|²
    """
    if beta == 0:
        return 0.5 * float((mean**2).sum())
    return float(masses @ normalizer) / (2 * beta) * float(np.exp(log_bound - energy_log_unit(log_bound)))


def speed(masses: Floats, velocity: Floats) -> float:
    """Root mean square speed √∫|X|²ρ = √(Σ m |X|²) of velocities X (n, d)."""
    return float(np.sqrt(masses @ (velocity**2).sum(axis=1)))
