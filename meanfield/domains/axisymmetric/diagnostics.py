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
    """Density p (cells) of the polar angle at a time, with its velocity, β, and the product q k of the scales of Q
    and K.
    """

    velocity: AxisymmetricVelocity
    time: float
    density: Floats
    beta: float
    scales: float

    @property
    def attention(self) -> AxisymmetricAttention:
        return self.velocity.attention

    @cached_property
    def masses(self) -> Floats:
        return self.density * self.attention.mesh.volumes

    @cached_property
    def normalizer_and_velocity(self) -> tuple[Floats, Floats]:
        """Return ∫ e^{β⟨x,y⟩ − |β|} dμ(y), (cells), and v/s, (cells, 1)."""
        return self.velocity.normalizer_and_velocity(self.time, self.density)


def mass(sample: Polar) -> float:
    """Return ∫p dθ."""
    return float(sample.masses.sum())


def entropy(sample: Polar) -> float:
    """Return ∫ρ log ρ with respect to area: −log|S^{d−1}| for the uniform density, growing as tokens cluster."""
    return float(functionals.entropy(sample.masses, _log_areas(sample.attention.mesh, sample.attention.dimension)))


@lru_cache(maxsize=2)
def _log_areas(mesh: Mesh, dimension: int) -> Floats:
    """Return the logarithms of the areas of cells (cells,), which are zones of S^{d−1}."""
    return np.asarray(log_masses(mesh, dimension) + log_area(dimension))


def energy(sample: Polar) -> float:
    """Return E = (1/2β) ∬e^{β⟨Qx,Ky⟩}ρρ of ``functionals.energy``; at β = 0 ½ q k ⟨cos θ⟩²."""
    log_bound = abs(sample.beta * sample.scales)
    normalizer = sample.normalizer_and_velocity[0]

    def limit() -> float:
        return 0.5 * sample.scales * float(centroid(sample)[0]) ** 2

    return float(functionals.energy(sample.masses, normalizer, sample.beta, log_bound, limit))


def speed(sample: Polar) -> float:
    """Return the root mean square speed of the tokens."""
    return float(functionals.speed(sample.masses, sample.normalizer_and_velocity[1]))


def centroid(sample: Polar) -> Floats:
    """Return ∫cos θ p dθ, (1): the mean token along the axis."""
    return np.array([sample.masses @ np.cos(sample.attention.mesh.centers[:, 0])])


DIAGNOSTICS: Table = {
    "mass": Diagnostic(mass, "", "total mass"),
    "entropy": Diagnostic(entropy, "", "integral of rho log rho with respect to area", attributes=ENTROPY),
    "energy": Diagnostic(energy, "", "interaction energy"),
    "speed": Diagnostic(speed, "", "root mean square speed of the tokens"),
    "centroid": Diagnostic(centroid, "d", "mean token along the axis"),
}
