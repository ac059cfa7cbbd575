"""What is measured of a law of the polar angle on S^{d−1}, one small function each, in the table at the foot."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.diagnostics.table import Diagnostic, Table
from meanfield.domains.axisymmetric.equation import AxisymmetricAttention, AxisymmetricVelocity
from solvers.mesh.mesh import Floats
from solvers.transforms.polar import log_masses


@dataclass(frozen=True)
class Polar:
    """A law p (cells) of the polar angle at a time, and how it moves."""

    law: AxisymmetricVelocity
    time: float
    density: Floats

    @property
    def attention(self) -> AxisymmetricAttention:
        return self.law.attention

    @cached_property
    def masses(self) -> Floats:
        return self.density * self.attention.mesh.volumes


def mass(sample: Polar) -> float:
    """∫p dθ."""
    return float(sample.masses.sum())


def entropy(sample: Polar) -> float:
    """∫p log(p/p̄) dθ, relative to the uniform density: 0 for it, growing as tokens cluster."""
    mesh, held = sample.attention.mesh, sample.masses > 0
    log_uniform = log_masses(mesh, sample.attention.dimension)
    return float(sample.masses[held] @ (np.log(sample.masses[held]) - log_uniform[held]))


def energy(sample: Polar) -> float:
    """(1/2β) ∬e^{β(⟨x,y⟩ − 1)}ρρ; at β = 0 its limit less the constant, ½⟨cos θ⟩². In units of e^{|β|} for any β."""
    beta = sample.attention.beta
    if beta == 0:
        return 0.5 * float(centroid(sample)[0]) ** 2
    return float(sample.masses @ sample.attention.normalizer_and_velocity(sample.density)[0]) / (2 * beta)


def speed(sample: Polar) -> float:
    """Root mean square speed of the tokens."""
    return float(np.sqrt(sample.masses @ sample.law(sample.time, sample.density)[:, 0] ** 2))


def centroid(sample: Polar) -> Floats:
    """∫cos θ p dθ, (1): the mean token along the axis."""
    return np.array([sample.masses @ np.cos(sample.attention.mesh.centers[:, 0])])


DIAGNOSTICS: Table = {
    "mass": Diagnostic(mass, "", "total mass"),
    "entropy": Diagnostic(entropy, "", "entropy relative to the uniform density, integral of p log(p / uniform)"),
    "energy": Diagnostic(energy, "", "interaction energy, in units of e^|beta|"),
    "speed": Diagnostic(speed, "", "root mean square speed of the tokens"),
    "centroid": Diagnostic(centroid, "d", "mean token along the axis"),
}
