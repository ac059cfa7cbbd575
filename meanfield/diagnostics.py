"""What is measured of a density on the circle or sphere, one small function each, in the table at the foot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.causal import CausalVelocity
from meanfield.clusters import find_clusters
from meanfield.diagnostics_table import Diagnostics, Table
from meanfield.equation import Velocity
from solvers.harmonics import Harmonics, harmonic_transform
from solvers.mesh import Floats, Mesh

LARGEST_BETA = 700.0  # beyond it e^β is out of range and the energy is stored in units of e^β


@dataclass(frozen=True)
class Sample:
    """A density (cells) with all that the diagnostics want to know of it, found at most once.

    ``by_label`` (labels, cells) is what it is the sum of, one label unless attention has a causal mask.
    """

    mesh: Mesh
    law: Velocity
    transform: Harmonics
    time: float
    density: Floats
    by_label: Floats

    @cached_property
    def masses(self) -> Floats:
        return self.density * self.mesh.volumes

    @cached_property
    def normalizer_and_velocity(self) -> tuple[Floats, Floats]:
        normalizer, output = self.law.attention.normalizer_and_output(self.density)
        return normalizer, self.law.of_output(self.time, output)


def mass(sample: Sample) -> float:
    """∫ρ."""
    return float(sample.masses.sum())


def entropy(sample: Sample) -> float:
    """H = ∫ρ log ρ, log ρ̄ for the uniform density and growing as tokens cluster."""
    held = sample.density > 0
    return float(sample.masses[held] @ np.log(sample.density[held]))


def energy(sample: Sample) -> float:
    """E = (1/2β) ∬e^{β⟨x,y⟩}ρρ; at β = 0 its limit less the constant, ½|∫xρ|². In units of e^β for |β| > 700."""
    attention = sample.law.attention
    beta = attention.beta
    if beta == 0:
        return 0.5 * float((centroid(sample) ** 2).sum())
    scaled = float(sample.masses @ sample.normalizer_and_velocity[0]) / (2 * beta)
    return scaled * float(np.exp(attention.log_bound)) if attention.log_bound <= LARGEST_BETA else scaled


def speed(sample: Sample) -> float:
    """Root mean square speed of the tokens, √∫|X|²ρ, each label's by what it sees."""
    labels = len(sample.by_label)
    if labels > 1:
        square = (CausalVelocity(sample.law, labels)(sample.time, sample.by_label) ** 2).sum(axis=1)
        return float(np.sqrt((sample.by_label * sample.mesh.volumes).reshape(-1) @ square))
    square = (sample.normalizer_and_velocity[1] ** 2).sum(axis=1)
    return float(np.sqrt(sample.masses @ square))


def centroid(sample: Sample) -> Floats:
    """∫xρ, (d)."""
    return np.asarray(sample.masses @ sample.mesh.centers)


def clusters(sample: Sample) -> float:
    """Number of clusters by persistence."""
    return float(find_clusters(sample.mesh, sample.density).count)


def power(sample: Sample) -> Floats:
    """(degree) mean square of the degree-l part of ρ/ρ̄, of the departure from the uniform density beyond degree 0."""
    uniform = sample.mesh.volumes / sample.mesh.volume
    parts = sample.transform.power(sample.masses - uniform)
    parts[0] = mass(sample) ** 2
    return parts


def label_centroid(sample: Sample) -> Floats:
    """∫xρ_s/∫ρ_s of each label, (labels, d): its mean token."""
    masses = sample.by_label * sample.mesh.volumes
    return np.asarray(masses @ sample.mesh.centers / masses.sum(axis=1)[:, None])


def diagnostics_round(
    names: Sequence[str],
    mesh: Mesh,
    law: Velocity | Callable[[float], Velocity],
    degrees: int | None = None,
    labels: int = 1,
) -> Diagnostics:
    """The diagnostics of a run on a circle or sphere.

    names     from the table DIAGNOSTICS
    law       the velocity, or for each time the one that holds then
    degrees   the last degree of the power; by default some beyond those that grow fastest
    labels    of a causal mask: densities are then (labels·cells)
    """
    law_at = (lambda time: law) if isinstance(law, Velocity) else law
    attention = law_at(0.0).attention
    most = mesh.cells // 2 if mesh.dimension == 1 else len(mesh.ring_cells)  # what the cells can tell apart
    last = min(max(16, attention.rate_degree + 4), most) if degrees is None else degrees
    transform = harmonic_transform(mesh, last)

    def look(time: float, density: Floats) -> Sample:
        by_label = density.reshape(labels, -1)
        total = by_label[0] if labels == 1 else by_label.sum(axis=0)
        return Sample(mesh, law_at(time), transform, time, total, by_label)

    table = dict(DIAGNOSTICS)
    if attention.log_bound > LARGEST_BETA:
        table["energy"] = (energy, "", "interaction energy, in units of e^beta")
    return Diagnostics(names, table, {"d": mesh.centers.shape[1], "degree": last + 1, "label": labels}, look)


DIAGNOSTICS: Table = {
    "mass": (mass, "", "total mass"),
    "entropy": (entropy, "", "integral of rho log rho"),
    "energy": (energy, "", "interaction energy"),
    "speed": (speed, "", "root mean square speed of the tokens"),
    "centroid": (centroid, "d", "mean token"),
    "clusters": (clusters, "", "number of clusters by persistence"),
    "label_centroid": (label_centroid, "label d", "mean token of each label"),
    "power": (power, "degree", "mean square of the degree-l part of rho over its mean"),
}
