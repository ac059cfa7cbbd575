"""Diagnostics: what is measured of a density along a run, one small function each, in the table at the foot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from meanfield.attention import Attention
from meanfield.clusters import find_clusters
from meanfield.stability import fastest_degree
from solvers.harmonics import Harmonics, harmonic_transform
from solvers.mesh import Floats, Mesh
from solvers.output import Column

LARGEST_BETA = 700.0  # beyond it e^β is out of range and the energy is stored in units of e^β


@dataclass(frozen=True)
class Sample:
    """A density with all that the diagnostics want to know of it, found at most once."""

    mesh: Mesh
    attention: Attention
    transform: Harmonics
    density: Floats

    @cached_property
    def masses(self) -> Floats:
        return self.density * self.mesh.volumes

    @cached_property
    def normalizer_and_velocity(self) -> tuple[Floats, Floats]:
        return self.attention.normalizer_and_velocity(self.density)


def mass(sample: Sample) -> float:
    """∫ρ."""
    return float(sample.masses.sum())


def entropy(sample: Sample) -> float:
    """H = ∫ρ log ρ, log ρ̄ for the uniform density and growing as tokens cluster."""
    held = sample.density > 0
    return float(sample.masses[held] @ np.log(sample.density[held]))


def energy(sample: Sample) -> float:
    """E = (1/2β) ∬e^{β⟨x,y⟩}ρρ; at β = 0 its limit less the constant, ½|∫xρ|². In units of e^β for |β| > 700."""
    beta = sample.attention.beta
    if beta == 0:
        return 0.5 * float((centroid(sample) ** 2).sum())
    scaled = float(sample.masses @ sample.normalizer_and_velocity[0]) / (2 * beta)
    return scaled * float(np.exp(abs(beta))) if abs(beta) <= LARGEST_BETA else scaled


def speed(sample: Sample) -> float:
    """Root mean square speed of the tokens, √∫|X|²ρ."""
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


class Diagnostics:
    """The chosen diagnostics of a run: their columns in its file, and their values at a density.

    names   from the table DIAGNOSTICS
    """

    def __init__(self, names: Sequence[str], mesh: Mesh, attention: Attention) -> None:
        self.names, self.mesh, self.attention = tuple(names), mesh, attention
        fastest = fastest_degree(mesh.centers.shape[1], attention.beta, attention.value)
        most = mesh.cells // 2 if mesh.dimension == 1 else len(mesh.ring_cells)  # what the cells can tell apart
        self.transform = harmonic_transform(mesh, min(max(16, fastest + 4), most))

    @property
    def columns(self) -> list[Column]:
        lengths = {"d": self.mesh.centers.shape[1], "degree": self.transform.degree + 1}
        columns = []
        for name in self.names:
            _, dimension, long_name = DIAGNOSTICS[name]
            if name == "energy" and abs(self.attention.beta) > LARGEST_BETA:
                long_name += ", in units of e^beta"
            dims = ((dimension, lengths[dimension]),) if dimension else ()
            columns.append(Column(name, dims, "1", long_name))
        return columns

    def __call__(self, density: Floats) -> dict[str, float | Floats]:
        sample = Sample(self.mesh, self.attention, self.transform, density)
        return {name: DIAGNOSTICS[name][0](sample) for name in self.names}


DIAGNOSTICS: dict[str, tuple[Callable[[Sample], float | Floats], str, str]] = {
    "mass": (mass, "", "total mass"),
    "entropy": (entropy, "", "integral of rho log rho"),
    "energy": (energy, "", "interaction energy"),
    "speed": (speed, "", "root mean square speed of the tokens"),
    "centroid": (centroid, "d", "mean token"),
    "clusters": (clusters, "", "number of clusters by persistence"),
    "power": (power, "degree", "mean square of the degree-l part of rho over its mean"),
}
