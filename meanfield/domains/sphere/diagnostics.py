"""Diagnostics of densities on the circle or sphere, one small function each, in the table at the foot.

Functions take several samples at once and return one value of each, (samples, ...).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from meanfield.clusters.near import merging_angle
from meanfield.clusters.on_cells import ClustersOfRows, find_clusters_of_rows
from meanfield.clusters.pairs import close_pairs, pairs_on_circle, pairs_on_sphere, resolved_degree, spectra
from meanfield.diagnostics.table import (
    ENTROPY,
    LENGTHS,
    Diagnostic,
    DiagnosticsTogether,
    Table,
    energy_entry,
    has_energy,
    heaviest_of_rows,
    only_if_named,
)
from meanfield.domains.sphere.causal import CausalVelocity
from meanfield.equation import Velocity
from meanfield.model import functionals
from meanfield.model.heads import steepness
from solvers.mesh.mesh import Floats, Mesh
from solvers.transforms.exponential import exponential_degree, exponential_gradient_multipliers
from solvers.transforms.harmonics import Harmonics, harmonic_transform


@dataclass(frozen=True)
class Samples:
    """Densities at ``times`` with the quantities shared by diagnostics, each computed at most once.

    ``by_label`` (samples, labels, cells) are the parts whose sum is the density, one for each label of a causal mask
    (position of tokens in the sequence), one part without a mask. ``degree`` is the last degree of the power,
    ``transform`` may have more. Clusters nearer than ``scale`` (radians) are one. The quantities of a sample are
    bitwise independent of the other samples.
    """

    mesh: Mesh
    velocity_at: Callable[[float], Velocity]
    transform: Harmonics
    degree: int
    times: Sequence[float]
    by_label: Floats
    scale: float = 0.0

    @cached_property
    def density(self) -> Floats:
        """Return the densities (samples, cells), summed over the labels of a causal mask."""
        return self.by_label[:, 0] if self.by_label.shape[1] == 1 else self.by_label.sum(axis=1)

    @cached_property
    def masses(self) -> Floats:
        """Return the masses of the cells (samples, cells)."""
        return self.density * self.mesh.volumes

    @cached_property
    def masses_by_label(self) -> Floats:
        """Return the masses of the cells for each label of a causal mask (samples, labels, cells)."""
        return self.by_label * self.mesh.volumes

    @cached_property
    def velocities(self) -> list[Velocity]:
        """Return the velocity field of each sample, as an operator on densities, at the time of the sample."""
        return [self.velocity_at(time) for time in self.times]

    @cached_property
    def normalizer_and_speed(self) -> tuple[Floats, Floats]:
        """Return Σ m Z e^{−log_bound} (samples,) and the root mean square speed (samples,) of the tokens.

        Z = Σ_h w_h Z_h are the sums of the kernels of all heads over the density, log_bound is the logarithm of the
        largest kernel, and m are the masses of the cells. Fields are computed for one sample after the other and not
        stored, unless all together are faster.
        """
        first, masses = self.velocities[0], self.masses_by_label.reshape(len(self.times), -1)
        if self.by_label.shape[1] == 1 and first.takes_rows and all(one is first for one in self.velocities):
            return _sums(masses, *first.of_rows(self.times, self.density))
        found = [_sums(row, *self.normalizer_and_velocity(k)) for k, row in enumerate(masses)]
        normalizers, speeds = zip(*found, strict=True)
        return np.array(normalizers), np.array(speeds)

    def normalizer_and_velocity(self, k: int) -> tuple[Floats, Floats]:
        """Return kernel sums Z e^{−log_bound} (labels·cells) and velocities X (labels·cells, d) of sample number ``k``.

        Each label of a causal mask attends to the density of the labels up to it. On the sphere X may be given by
        components along east and north, d = 2.
        """
        velocity, time, by_label = self.velocities[k], self.times[k], self.by_label[k]
        if len(by_label) > 1:
            return CausalVelocity(velocity, len(by_label)).normalizer_and_velocity(time, by_label)
        return velocity.normalizer_and_velocity(time, by_label[0])

    @cached_property
    def clusters(self) -> ClustersOfRows:
        """Return the clusters of each density."""
        return find_clusters_of_rows(self.mesh, self.density, reach=self.scale)

    @cached_property
    def spectra(self) -> Floats:
        """Return the mean square (samples, degrees) of the degree-l part of ρ/ρ̄, with the uniform density ρ̄."""
        return spectra(self.mesh, self.transform, self.masses)

    @cached_property
    def pairs(self) -> Floats:
        """Return the distribution (samples, bins) of ⟨x, y⟩ for two tokens x and y drawn at random."""
        if self.mesh.dimension == 1:
            return pairs_on_circle(self.masses)
        return pairs_on_sphere(self.mesh, self.masses, self.spectra)


def _sums(masses: Floats, normalizer: Floats, velocity: Floats) -> tuple[Floats, Floats]:
    """Return Σ m Z (...) and √Σ m|X|² (...) for masses m (..., n), kernel sums Z (..., n), velocities X (..., n, d)."""
    return functionals.weighted_sum(masses, normalizer), functionals.speed(masses, velocity)


def mass(samples: Samples) -> Floats:
    """Return the total mass ∫ρ of each sampled density (samples,)."""
    return np.asarray(samples.masses.sum(axis=-1))


def entropy(samples: Samples) -> Floats:
    """Return the entropies H = ∫ρ log ρ (samples,): log ρ̄ for the uniform density ρ̄, larger as tokens cluster."""
    return functionals.entropy(samples.masses, _log_areas(samples.mesh))


@lru_cache(maxsize=2)
def _log_areas(mesh: Mesh) -> Floats:
    """Return the logarithms of the areas of the cells (cells,)."""
    return np.asarray(np.log(mesh.volumes))


def energy(samples: Samples) -> Floats:
    """Return the interaction energies E = (1/2β) Σ_h w_h ∬ k_h ρρ (samples,) over heads h with kernels k_h.

    The definition is that of :func:`meanfield.model.functionals.energy`. Under a causal mask tokens of label s, their
    position in the sequence, attend to labels r ≤ s.
    """
    attentions, masses = [velocity.attention for velocity in samples.velocities], samples.masses_by_label

    def limit() -> Floats:
        """Return the limits of E (samples,) for β → 0 without its divergent constant."""
        pairs, points = zip(attentions, masses, strict=True), samples.mesh.centers
        return np.array([functionals.energy_limit(one.heads, one.kernel, weights, points) for one, weights in pairs])

    log_bounds, total = np.array([attention.log_bound for attention in attentions]), samples.normalizer_and_speed[0]
    return np.asarray(functionals.energy_of_sum(total, attentions[0].beta, log_bounds, limit))


def speed(samples: Samples) -> Floats:
    """Return the root mean square speeds √∫|X|²ρ (samples,) of the tokens.

    Under a causal mask, each label (position in the sequence) has its own velocity X.
    """
    return samples.normalizer_and_speed[1]


def centroid(samples: Samples) -> Floats:
    """Return the mean tokens ∫xρ (samples, d)."""
    return np.asarray((samples.masses[:, None] @ samples.mesh.centers)[:, 0])


def clusters(samples: Samples) -> Floats:
    """Return the numbers of clusters (samples,), which are found by persistence."""
    return samples.clusters.counts.astype(float)


def cluster_mass(samples: Samples) -> Floats:
    """Return the masses of the clusters (samples, 32), heaviest first; NaN where there are fewer."""
    return heaviest_of_rows(samples.clusters.counts, samples.clusters.masses)


def cluster_center(samples: Samples) -> Floats:
    """Return the centers of the clusters (samples, 32, d), unit vectors, in the order of their masses."""
    return heaviest_of_rows(samples.clusters.counts, samples.clusters.centers)


def pairs_close(samples: Samples) -> Floats:
    """Return the probabilities (samples,) of ⟨x, y⟩ ≥ 1 − 1e-3 for two tokens x and y drawn at random."""
    return close_pairs(samples.pairs)


def entropy_rate(samples: Samples) -> Floats:
    """Return the rates dH/dt = −∫ρ div X (samples,) at which attention with Q = K = V = I changes the entropy H.

    The part of noise, −κ∫|∇ρ|²/ρ, is not included. With Γ = (1/β) ∫e^{β⟨x,y⟩}ρ(y) dy: softmax −∫ρ ΔΓ/Z + β∫ρ|X|²,
    unnormalized −∫ρ ΔΓ = Σ_l (l(l+d−2) c_l/β) ‖ρ_l‖². At clusters the rate is d − 1 and (d − 1)e^β, although the
    entropy of a density in single cells no longer grows.
    """
    return np.array([_entropy_rate(samples, k) for k in range(len(samples.times))])


def _entropy_rate(samples: Samples, k: int) -> float:
    """Return the rate :func:`entropy_rate` of sample number ``k``."""
    mesh, attention, masses = samples.mesh, samples.velocities[k].attention, samples.masses[k]
    d, beta = mesh.centers.shape[1], attention.beta
    degree = exponential_degree(d, beta)
    transform = harmonic_transform(mesh, min(degree, mesh.cells // 2) if mesh.dimension == 1 else degree)
    coefficients = transform.analysis(masses - mesh.volumes / mesh.volume)
    l = np.arange(len(coefficients))
    factor = l * (l + d - 2) * exponential_gradient_multipliers(d, beta, len(l))  # multipliers of −ΔΓ e^{−|β|}
    spread = transform.synthesis(coefficients * (factor if mesh.dimension == 1 else factor[:, None]))
    if not attention.normalization.is_relative:
        return float(masses @ spread) * float(np.exp(0.0 if attention.rescaled else attention.log_bound))
    normalizer, velocity = samples.normalizer_and_velocity(k)
    occupied = masses > 0
    seen = np.maximum(normalizer, masses)[occupied]  # except for rounding, Z is at least the part of the cell itself
    rate = spread[occupied] / seen + beta * (velocity[occupied] ** 2).sum(axis=1)
    return float(masses[occupied] @ rate)


def power(samples: Samples) -> Floats:
    """Return the mean square (samples, degree) of the degree-l part of ρ/ρ̄, with the uniform density ρ̄.

    For degrees l > 0 this is the mean square of the degree-l part of ρ/ρ̄ − 1.
    """
    return samples.spectra[:, : samples.degree + 1]


def label_centroid(samples: Samples) -> Floats:
    """Return the mean token ∫xρ_s/∫ρ_s of each label s of a causal mask (samples, labels, d).

    A label is a position of tokens in the sequence, and ρ_s the density of its tokens.
    """
    masses = samples.masses_by_label
    return np.asarray(masses @ samples.mesh.centers / masses.sum(axis=2)[..., None])


def label_density(samples: Samples) -> Floats:
    """Return the density ρ_s of each label s of a causal mask (samples, labels, cells), of mass 1/labels.

    A label is a position of tokens in the sequence.
    """
    return samples.by_label


def diagnostics_round(
    names: Sequence[str],
    mesh: Mesh,
    velocity: Velocity | Callable[[float], Velocity],
    degrees: int | None = None,
    labels: int = 1,
) -> DiagnosticsTogether:
    """Return the diagnostics of a run on a circle or sphere, whose state is a density.

    names      from the table DIAGNOSTICS
    velocity   velocity, or time → velocity
    degrees    the last degree of the power; by default a few beyond the fastest growing degree
    labels     number of labels of a causal mask, positions of tokens in the sequence: densities are then (labels·cells)

    The entropy_rate is that of attention alone, of one head with Q = K = V = I, the kernel e^{β⟨x,y⟩} and layer norm
    post.
    """
    velocity_at = (lambda time: velocity.restricted_to_mass) if isinstance(velocity, Velocity) else velocity
    attention = velocity_at(0.0).attention
    # highest degree that the cells resolve
    max_degree = mesh.cells // 2 if mesh.dimension == 1 else len(mesh.ring_cells)
    last = min(max(16, attention.rate_degree + 4), max_degree) if degrees is None else degrees
    of_pairs = mesh.dimension == 2 and any(name.startswith("pairs") for name in names)
    transform = harmonic_transform(mesh, max(last, resolved_degree(mesh)) if of_pairs else last)
    scale = merging_angle(max(abs(steepness(attention.beta, head)) for head in attention.heads))

    def samples_of(times: Sequence[float], densities: Floats) -> Samples:
        return Samples(mesh, velocity_at, transform, last, times, densities.reshape(len(times), labels, -1), scale)

    table = DIAGNOSTICS | {
        "energy": energy_entry(energy, attention.log_bound),
        "clusters": DIAGNOSTICS["clusters"]._replace(attributes=(("scale", scale),)),
    }
    return DiagnosticsTogether(
        names,
        table,
        {"d": mesh.centers.shape[1], "degree": last + 1, "label": labels, "cell": mesh.cells, **LENGTHS},
        samples_of,
    )


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
    "pairs": Diagnostic(
        lambda samples: samples.pairs, "pair_bin", "probability of each bin of <x,y> for two tokens at random"
    ),
    "pairs_close": Diagnostic(pairs_close, "", "probability of <x,y> >= 0.999 for two tokens at random"),
    "label_centroid": Diagnostic(
        label_centroid, "label d", "mean token of each label", lambda case: case.attention.mask == "causal"
    ),
    "label_density": Diagnostic(
        label_density,
        "label cell",
        "density of each label",
        lambda case: case.attention.mask == "causal",
        default=only_if_named,
    ),
    "entropy_rate": Diagnostic(
        entropy_rate, "", "rate of the entropy by attention", lambda case: case.is_gradient_flow, default=only_if_named
    ),
}
