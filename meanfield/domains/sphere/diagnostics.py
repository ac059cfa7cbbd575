"""Diagnostics of a density on the circle or sphere, one small function each, in the table at the foot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from meanfield.clusters.on_cells import Clusters, find_clusters
from meanfield.clusters.pairs import pairs_of_density
from meanfield.diagnostics.clusters import cluster_center, cluster_mass, clusters, pairs, pairs_close
from meanfield.diagnostics.table import ENTROPY, LENGTHS, Diagnostic, Diagnostics, Table, energy_entry, has_energy
from meanfield.domains.sphere.causal import CausalVelocity
from meanfield.equation import Velocity
from meanfield.model import functionals
from meanfield.model.errors import ArgumentError
from meanfield.model.heads import multiple
from solvers.mesh.mesh import Floats, Mesh
from solvers.transforms.exponential import exponential_degree, exponential_gradient_multipliers
from solvers.transforms.harmonics import Harmonics, harmonic_transform


@dataclass(frozen=True)
class Sample:
    """A density (cells) with all that the diagnostics want to know of it, found at most once.

    ``by_label`` (labels, cells) is what it is the sum of, one label unless attention has a causal mask.
    """

    mesh: Mesh
    velocity: Velocity
    transform: Harmonics
    time: float
    density: Floats
    by_label: Floats

    @cached_property
    def masses(self) -> Floats:
        return self.density * self.mesh.volumes

    @cached_property
    def masses_by_label(self) -> Floats:
        """(labels, cells)"""
        return self.by_label * self.mesh.volumes

    @cached_property
    def normalizer_and_velocity(self) -> tuple[Floats, Floats]:
        """Σ_h w_h Z_h e^{−log_bound} (labels·cells) and X (labels·cells, d), each label's by what it sees."""
        if len(self.by_label) > 1:
            return CausalVelocity(self.velocity, len(self.by_label)).normalizer_and_velocity(self.time, self.by_label)
        normalizer, output = self.velocity.attention.normalizer_and_output(self.density)
        return normalizer, self.velocity.of_output(self.time, output)

    @cached_property
    def clusters(self) -> Clusters:
        return find_clusters(self.mesh, self.density)

    @cached_property
    def pairs(self) -> Floats:
        return pairs_of_density(self.mesh, self.masses)


def mass(sample: Sample) -> float:
    """∫ρ."""
    return float(sample.masses.sum())


def entropy(sample: Sample) -> float:
    """H = ∫ρ log ρ, log ρ̄ for the uniform density and growing as tokens cluster."""
    return functionals.entropy(sample.masses, _log_areas(sample.mesh))


@lru_cache(maxsize=2)
def _log_areas(mesh: Mesh) -> Floats:
    """(cells,) logarithms of the areas."""
    return np.asarray(np.log(mesh.volumes))


def energy(sample: Sample) -> float:
    """E of :func:`meanfield.model.functionals.energy`; under a causal mask ρ(s, x) attends to ρ(r, y) with r ≤ s."""
    attention, masses = sample.velocity.attention, sample.masses_by_label

    def limit() -> float:
        return functionals.energy_limit(attention.heads, attention.kernel, masses, sample.mesh.centers)

    normalizer = sample.normalizer_and_velocity[0]
    return functionals.energy(masses.reshape(-1), normalizer, attention.beta, attention.log_bound, limit)


def speed(sample: Sample) -> float:
    """Root mean square speed of the tokens, √∫|X|²ρ, each label's by what it sees."""
    return functionals.speed(sample.masses_by_label.reshape(-1), sample.normalizer_and_velocity[1])


def centroid(sample: Sample) -> Floats:
    """∫xρ, (d)."""
    return np.asarray(sample.masses @ sample.mesh.centers)


def entropy_rate(sample: Sample) -> float:
    """dH/dt = −∫ρ div X by attention with Q = K = V = I, without the part of noise, −κ∫|∇ρ|²/ρ.

    With Γ = (1/β) ∫e^{β⟨x,y⟩}ρ(y) dy: softmax −∫ρ ΔΓ/Z + β∫ρ|X|², unnormalized −∫ρ ΔΓ = Σ_l (l(l+d−2) c_l/β) ‖ρ_l‖².
    At clusters d − 1 and (d − 1)e^β, where the entropy of a density in single cells grows no more.
    """
    mesh, attention = sample.mesh, sample.velocity.attention
    d, beta = mesh.centers.shape[1], attention.beta
    degree = exponential_degree(d, beta)
    transform = harmonic_transform(mesh, min(degree, mesh.cells // 2) if mesh.dimension == 1 else degree)
    coefficients = transform.analysis(sample.masses - mesh.volumes / mesh.volume)
    l = np.arange(len(coefficients))
    factor = l * (l + d - 2) * exponential_gradient_multipliers(d, beta, len(l))  # of −ΔΓ e^{−|β|}
    spread = transform.synthesis(coefficients * (factor if mesh.dimension == 1 else factor[:, None]))
    if not attention.normalization.is_relative:
        return float(sample.masses @ spread) * float(np.exp(0.0 if attention.rescaled else attention.log_bound))
    normalizer, velocity = sample.normalizer_and_velocity
    held = sample.masses > 0
    seen = np.maximum(normalizer, sample.masses)[held]  # Z is no less than a cell's own part, but for rounding
    rate = spread[held] / seen + beta * (velocity[held] ** 2).sum(axis=1)
    return float(sample.masses[held] @ rate)


def power(sample: Sample) -> Floats:
    """(degree) mean square of the degree-l part of ρ/ρ̄, of the departure from the uniform density beyond degree 0."""
    uniform = sample.mesh.volumes / sample.mesh.volume
    parts = sample.transform.power(sample.masses - uniform)
    parts[0] = mass(sample) ** 2
    return parts


def label_centroid(sample: Sample) -> Floats:
    """∫xρ_s/∫ρ_s of each label, (labels, d): its mean token."""
    masses = sample.masses_by_label
    return np.asarray(masses @ sample.mesh.centers / masses.sum(axis=1)[:, None])


def label_density(sample: Sample) -> Floats:
    """(labels, cells) ρ_s of each label, of mass 1/labels."""
    return sample.by_label


def diagnostics_round(
    names: Sequence[str],
    mesh: Mesh,
    velocity: Velocity | Callable[[float], Velocity],
    degrees: int | None = None,
    labels: int = 1,
) -> Diagnostics:
    """The diagnostics of a run on a circle or sphere.

    names     from the table DIAGNOSTICS
    velocity  velocity, or time → velocity
    degrees   the last degree of the power; by default some beyond those that grow fastest
    labels    of a causal mask: densities are then (labels·cells)

    Raises ValueError for an entropy_rate of attention other than with Q = K = V = I and layer norm post. That the
    kernel is e^{β⟨x,y⟩}, and that there is no feed-forward network, is assumed, not checked.
    """
    velocity_at = (lambda time: velocity) if isinstance(velocity, Velocity) else velocity
    attention = velocity_at(0.0).attention
    if "entropy_rate" in names and not _has_entropy_rate(velocity_at(0.0), labels):
        raise ArgumentError("names", "entropy_rate", "others but for one head of Q = K = V = I and layer norm post")
    most = mesh.cells // 2 if mesh.dimension == 1 else len(mesh.ring_cells)  # what the cells resolve
    last = min(max(16, attention.rate_degree + 4), most) if degrees is None else degrees
    transform = harmonic_transform(mesh, last)

    def sample_of(time: float, density: Floats) -> Sample:
        by_label = density.reshape(labels, -1)
        total = by_label[0] if labels == 1 else by_label.sum(axis=0)
        return Sample(mesh, velocity_at(time), transform, time, total, by_label)

    table = DIAGNOSTICS | {"energy": energy_entry(energy, attention.log_bound)}
    return Diagnostics(
        names,
        table,
        {"d": mesh.centers.shape[1], "degree": last + 1, "label": labels, "cell": mesh.cells, **LENGTHS},
        sample_of,
    )


def _has_entropy_rate(velocity: Velocity, labels: int) -> bool:
    """Whether X = ∇Γ/Z or ∇Γ."""
    attention = velocity.attention
    head = attention.heads[0]
    ones = all(multiple(matrix) == 1.0 for matrix in (head.query, head.key, head.value)) and head.weight == 1.0
    plain = not attention.normalization.is_two_sided and velocity.norm.name == "post" and labels == 1
    return plain and ones and len(attention.heads) == 1


DIAGNOSTICS: Table = {
    "mass": Diagnostic(mass, "", "total mass"),
    "entropy": Diagnostic(entropy, "", "integral of rho log rho", attributes=ENTROPY),
    "energy": Diagnostic(energy, "", "interaction energy", has_energy),
    "speed": Diagnostic(speed, "", "root mean square speed of the tokens"),
    "centroid": Diagnostic(centroid, "d", "mean token"),
    "clusters": Diagnostic(clusters, "", "number of clusters by persistence"),
    "power": Diagnostic(power, "degree", "mean square of the degree-l part of rho over its mean"),
    "cluster_mass": Diagnostic(cluster_mass, "cluster", "mass of each cluster, heaviest first"),
    "cluster_center": Diagnostic(cluster_center, "cluster d", "center of each cluster"),
    "pairs": Diagnostic(pairs, "pair_bin", "probability of each bin of <x,y> for two tokens at random"),
    "pairs_close": Diagnostic(pairs_close, "", "probability of <x,y> >= 0.999 for two tokens at random"),
    "label_centroid": Diagnostic(
        label_centroid, "label d", "mean token of each label", lambda case: case.attention.mask == "causal"
    ),
    "label_density": Diagnostic(
        label_density,
        "label cell",
        "density of each label",
        lambda case: case.attention.mask == "causal",
        default=False,
    ),
    "entropy_rate": Diagnostic(
        entropy_rate, "", "rate of the entropy by attention", lambda case: case.is_gradient_flow, default=False
    ),
}
