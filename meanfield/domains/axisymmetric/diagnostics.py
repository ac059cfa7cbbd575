"""Diagnostics of a distribution of the polar angle on S^{d−1}, one small function each, in the table at the foot."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from meanfield.diagnostics.table import ENTROPY, Diagnostic, Table
from meanfield.domains.axisymmetric.equation import AxisymmetricAttention, AxisymmetricVelocity
from meanfield.model import functionals
from solvers.mesh.mesh import Floats, Mesh
from solvers.transforms.polar import log_area, log_masses


@dataclass(frozen=True)
class Polar:
    """Density (cells,) of the polar angle at a time, with its velocity, β, and the product of the scales of Q and K."""

    velocity: AxisymmetricVelocity
    time: float
    density: Floats
    beta: float
    scales: float

    @property
    def attention(self) -> AxisymmetricAttention:
        """Return the attention of the velocity."""
        return self.velocity.attention

    @cached_property
    def masses(self) -> Floats:
        """Return the masses (cells,) of the cells."""
        return self.density * self.attention.mesh.volumes

    @cached_property
    def normalizer_and_velocity(self) -> tuple[Floats, Floats]:
        """Return kernel sums (cells,) and the angular velocity (cells, 1) of tokens at the polar angles of the cells.

        The kernel sums are ∫ e^{β⟨x,y⟩ − |β|} dμ(y) over the tokens y.
        """
        return self.velocity.normalizer_and_velocity(self.time, self.density)


def mass(sample: Polar) -> float:
    """Return the total mass ∫p dθ of the density p of the polar angle."""
    return float(sample.masses.sum())


def entropy(sample: Polar) -> float:
    """Return the entropy ∫ρ log ρ with respect to the area of the sphere, which grows as tokens cluster.

    The entropy is −log|S^{d−1}| for the uniform density.
    """
    return float(functionals.entropy(sample.masses, _log_areas(sample.attention.mesh, sample.attention.dimension)))


@lru_cache(maxsize=2)
def _log_areas(mesh: Mesh, dimension: int) -> Floats:
    """Return the logarithms (cells,) of the areas of the zones of S^{d−1} that are the cells of the polar angle."""
    return np.asarray(log_masses(mesh, dimension) + log_area(dimension))


def energy(sample: Polar) -> float:
    """Return the interaction energy E = (1/2β) ∬e^{β⟨Qx,Ky⟩}ρρ of an axisymmetric density ρ.

    The definition is that of :func:`meanfield.model.functionals.energy`; Q and K are numbers q and k. At β = 0 E is ½ q
    k ⟨cos θ⟩².
    """
    log_bound = abs(sample.beta * sample.scales)
    normalizer = sample.normalizer_and_velocity[0]

    def limit() -> float:
        """Return the limit of E for β → 0 without its divergent constant."""
        return 0.5 * sample.scales * float(centroid(sample)[0]) ** 2

    return float(functionals.energy(sample.masses, normalizer, sample.beta, log_bound, limit))


def speed(sample: Polar) -> float:
    """Return the root mean square speed of the tokens, in radians per unit time."""
    return float(functionals.speed(sample.masses, sample.normalizer_and_velocity[1]))


def centroid(sample: Polar) -> Floats:
    """Return the mean token along the axis, ∫cos θ p dθ, as an array (1)."""
    return np.array([sample.masses @ np.cos(sample.attention.mesh.centers[:, 0])])


DIAGNOSTICS: Table = {
    "mass": Diagnostic(mass, "", "total mass"),
    "entropy": Diagnostic(entropy, "", "integral of rho log rho with respect to area", attributes=ENTROPY),
    "energy": Diagnostic(energy, "", "interaction energy"),
    "speed": Diagnostic(speed, "", "root mean square speed of the tokens"),
    "centroid": Diagnostic(centroid, "d", "mean token along the axis"),
}
