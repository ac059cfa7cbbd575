"""Diagnostics of atoms: exact sums over point masses, one small function each, in the table at the foot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from meanfield.clusters.pairs import close_pairs, pairs_of_points
from meanfield.diagnostics.table import heaviest
from meanfield.domains.atoms.handover import clusters_of
from meanfield.domains.atoms.velocity import Atoms, AtomVelocity
from meanfield.domains.particles import diagnostics as particles
from meanfield.domains.particles.diagnostics import cluster_scale
from meanfield.model import functionals
from solvers.mesh.mesh import Floats


@dataclass(frozen=True)
class AtomSample:
    """Atoms at a time, their velocity, and the number of degrees of the power spectrum.

    Atoms are the point masses that replace collapsed clusters.
    """

    velocity: AtomVelocity
    time: float
    atoms: Atoms
    degrees: int

    @cached_property
    def clusters(self) -> Atoms:
        """Return the clusters of atoms, heaviest first, each as one point mass; atoms that have merged are one."""
        found = clusters_of(self.atoms, cluster_scale(self.velocity.particles))
        order = np.argsort(-found.masses, kind="stable")
        return Atoms(found.positions[order], found.masses[order])

    @property
    def pairs(self) -> Floats:
        """Return the distribution (bins) of ⟨x, y⟩ for two random atoms x and y, which may be the same atom."""
        return pairs_of_points(self.atoms.positions, self.atoms.masses, different=False)


def energy(sample: AtomSample) -> float:
    """Return the interaction energy (1/2β) Σ_ij m_i m_j e^{β⟨x_i,x_j⟩} of atoms x with masses m, as for particles.

    Atoms are the point masses that replace collapsed clusters.
    """
    atoms = sample.atoms
    velocity = replace(sample.velocity.particles, masses=atoms.masses)
    return particles.energy(particles.ParticleSample(velocity, sample.time, atoms.positions, atoms.masses))


def speed(sample: AtomSample) -> float:
    """Return the root mean square speed √(Σ m|X|²) of atoms, the point masses that replace collapsed clusters.

    The sum over atoms is accurate also far below the rounding of a sum over particles.
    """
    velocities = sample.velocity.velocities(sample.time, sample.atoms.positions, sample.atoms.masses)
    return float(functionals.speed(sample.atoms.masses, velocities))


def power(sample: AtomSample) -> Floats:
    """Return the mean squares (degrees) of the degree-l parts of the density of atoms, relative to the uniform one.

    The mean squares are N_l Σ_ij m_i m_j P_l(⟨x_i,x_j⟩) over the atoms x with masses m: P_l = cos lφ, N_l = 2, N_0 = 1
    on S¹; Legendre, N_l = 2l + 1 on S².
    """
    x, m = sample.atoms.positions, sample.atoms.masses
    cosines, l = np.clip(x @ x.T, -1.0, 1.0), np.arange(sample.degrees)[:, None, None]
    if x.shape[1] == 2:
        sizes, waves = np.where(l == 0, 1.0, 2.0), np.cos(l * np.arccos(cosines))
    else:
        sizes, waves = 2.0 * l + 1.0, scipy.special.eval_legendre(l, cosines)
    return np.asarray(np.einsum("lij,i,j->l", sizes * waves, m, m))


Value = float | Floats
DIAGNOSTICS: dict[str, Callable[[AtomSample], Value]] = {
    "mass": lambda sample: float(sample.atoms.masses.sum()),
    "entropy": lambda sample: np.nan,  # ∫ρ log ρ of point masses is infinite
    "entropy_rate": lambda sample: np.nan,
    "energy": energy,
    "speed": speed,
    "centroid": lambda sample: np.asarray(sample.atoms.masses @ sample.atoms.positions),
    "clusters": lambda sample: float(sample.clusters.count),
    "cluster_mass": lambda sample: heaviest(sample.clusters.masses),
    "cluster_center": lambda sample: heaviest(sample.clusters.positions),
    "pairs": lambda sample: sample.pairs,
    "pairs_close": lambda sample: float(close_pairs(sample.pairs)),
    "power": power,
}
