"""Diagnostics of tokens as particles, one small function each, in the table at the foot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from meanfield.clusters.among_tokens import find_clusters_of_tokens
from meanfield.clusters.modes import count_modes
from meanfield.clusters.near import merging_angle
from meanfield.clusters.on_cells import Clusters
from meanfield.clusters.pairs import pairs_of_points
from meanfield.clusters.parts import between_parts
from meanfield.diagnostics import unbounded
from meanfield.diagnostics.clusters import cluster_center, cluster_mass, clusters, pairs, pairs_close
from meanfield.diagnostics.overflow import OVERFLOW
from meanfield.diagnostics.table import LENGTHS, Diagnostic, Diagnostics, Table, energy_entry, has_energy, only_if_named
from meanfield.domains.particles.sequence import SequenceDiffusion
from meanfield.domains.particles.systems import system_of
from meanfield.domains.particles.velocity import ParticleVelocity, steepest_of
from meanfield.model import functionals
from meanfield.model.heads import apply_factor
from meanfield.model.layer_norm import LAYER_NORMS
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from meanfield.case.case import Case

MAX_LEADERS = 2048  # number of tokens above which leaders are searched in a subset
BLOCK = 8000  # number of pairs of tokens at a time
EQUAL_ATTENTION = 1e-9
OF_ATTENTION = ("energy", "speed")  # diagnostics that need sums over all pairs of tokens


@dataclass(frozen=True)
class ParticleSample:
    """Tokens at points (n, d), x = rθ, with masses (n,) at a time, and the velocity that moves them.

    A sequence also has the initial positions ``start`` (n, d) and the diffusion ``along`` the sequence. ``scale`` is
    the angle within which tokens join a cluster, by default given by the velocity. Quantities that several diagnostics
    use are computed at most once.
    """

    velocity: ParticleVelocity
    time: float
    points: Floats
    masses: Floats
    start: Floats | None = None
    along: SequenceDiffusion | None = None
    scale: float | None = None

    @cached_property
    def radii(self) -> Floats:
        """Return the radii |x| (n,) of the tokens."""
        return np.asarray(np.linalg.norm(self.points, axis=1))

    @cached_property
    def directions(self) -> Floats:
        """Return the directions θ = x/|x| (n, d) of the tokens, in their number format; 0 for a token at the origin."""
        return self.points / np.where(self.radii > 0, self.radii, 1.0)[:, None]

    @cached_property
    def attention_points(self) -> Floats:
        """Return the points y (n, d) between which attention acts.

        The points are the directions of the tokens, or without layer norm the positions of the tokens.
        """
        return self.points if self.velocity.sees_positions else self.directions

    @cached_property
    def normalizer_and_output(self) -> tuple[Floats, Floats]:
        """Return the kernel sums (n,) and the attention (n, d) of the tokens, as the velocity defines them."""
        system = system_of(self.velocity, *self.attention_points.shape)
        if system is None:
            return self.velocity.normalizer_and_output(self.attention_points)
        normalizer, output = system.normalizer_and_output(np.zeros(1, dtype=np.intp), self.attention_points[None])
        return normalizer[0], output[0]

    def set_attention(self, normalizer: Floats, output: Floats) -> None:
        """Set the cached result of :meth:`normalizer_and_output` to values computed for many samples at once."""
        vars(self)["normalizer_and_output"] = normalizer, output

    @cached_property
    def clusters(self) -> Clusters:
        """Return the clusters of the directions of the tokens."""
        return find_clusters_of_tokens(self.directions, self.masses, self.scale or cluster_scale(self.velocity))

    @cached_property
    def pairs(self) -> Floats:
        """Return the distribution (bins) of ⟨x, y⟩ for the directions of two different random tokens."""
        return pairs_of_points(self.directions, self.masses)


def energy(sample: ParticleSample) -> float:
    """Return the interaction energy E = (1/2β) Σ_h w_h Σ_ij m_i m_j e^{β⟨Q_h y_i, K_h y_j⟩} of tokens with masses m.

    The sum is over j ≤ i under a causal mask. The points y are directions of the tokens, or positions without layer
    norm. Other kernels replace the exponential, see ``functionals.energy``.
    """
    velocity = sample.velocity

    def limit() -> float:
        """Return the limit of E for β → 0 without its divergent constant."""
        masses, points = sample.masses[None], sample.attention_points
        if velocity.causal:
            masses, points = sample.masses[:, None], points[:, None]
        return functionals.energy_limit(velocity.heads, velocity.kernel_record, masses, points)

    normalizer = sample.normalizer_and_output[0]
    return float(functionals.energy(sample.masses, normalizer, velocity.beta, velocity.log_bound, limit))


def speed(sample: ParticleSample) -> float:
    """Return the root mean square speed √Σ m_i |ẋ_i|² of tokens; in a sequence including diffusion from neighbors."""
    velocity, directions, output = sample.velocity, sample.directions, sample.normalizer_and_output[1]
    if velocity.feed_forward is not None:
        output = output + velocity.feed_forward(sample.attention_points)
    moved = velocity.norm.velocity(sample.time, sample.radii, directions, output, velocity.gate)
    if sample.along is not None:
        moved = moved + sample.along.for_tokens(velocity.norm.keeps_radius(sample.time)).rate(sample.points)
    return float(functionals.speed(sample.masses, moved))


def leaders(sample: ParticleSample) -> float:
    """Return the number of tokens to which others attend most, |{argmax_j ⟨Q y_i, K y_j⟩ : i}|, by the first head.

    This number is the rank of the attention matrix with all weight of a row at its maximum. In one dimension the
    attention matrix converges to such a matrix, whose nonzero columns are the leaders (Geshkovski, Letrouit,
    Polyanskiy, Rigollet 2305.05465). Among tokens with equal attention, to EQUAL_ATTENTION of the largest |⟨Q y_i, K
    y_j⟩|, the first one counts: tokens that have merged have one leader. With Q = K = I on the sphere, each token
    attends most to its own position. Of more than MAX_LEADERS tokens, an evenly spaced subset of MAX_LEADERS is used.
    """
    chosen = np.arange(len(sample.attention_points))
    if len(chosen) > MAX_LEADERS:
        chosen = np.arange(MAX_LEADERS) * len(chosen) // MAX_LEADERS
    head, points, first = sample.velocity.heads[0], sample.attention_points[chosen], np.empty_like(chosen)
    query = apply_factor(head.query, points) * np.sign(sample.velocity.beta or 1.0)
    key, rows = apply_factor(head.key, points).T, max(BLOCK // len(points), 1)
    blocks = [slice(start, start + rows) for start in range(0, len(points), rows)]
    largest = 0.0
    for block in blocks:
        between_parts()
        largest = max(largest, float(np.abs(query[block] @ key).max()))
    same = EQUAL_ATTENTION * largest
    for block in blocks:
        between_parts()
        seen = query[block] @ key
        if sample.velocity.causal:
            seen[np.arange(len(points)) > np.arange(len(points))[block, None]] = -np.inf
        first[block] = (seen >= seen.max(axis=1, keepdims=True) - same).argmax(axis=1)
    return float(len(np.unique(first)))


def drift(sample: ParticleSample) -> float:
    """Return 1 − Σ m_i ⟨θ_i(t), θ_i(0)⟩ of the directions θ of tokens: 0 where they are kept, 1 where uncorrelated."""
    assert sample.start is not None
    start = unit_vectors(sample.start)
    return float(sample.masses @ (1.0 - np.einsum("nd,nd->n", sample.directions, start)))


def roughness(sample: ParticleSample) -> float:
    """Return ∫|∂ₓu|² dx over a sequence whose tokens are samples of a field u(x), by differences of neighbors."""
    assert sample.along is not None
    steps = sample.along.differences(sample.points)
    return float((steps**2).sum()) * len(sample.points) / sample.along.length


@lru_cache(maxsize=4)
def cluster_scale(velocity: ParticleVelocity) -> float:
    """Return the angle (radians) within which tokens join a cluster, by the largest |β|‖QᵀK‖ of all heads."""
    return merging_angle(steepest_of(velocity))


def modes(sample: ParticleSample) -> float:
    """Return the number of modes (local maxima) of the kernel density Σ_j m_j e^{b⟨x, θ_j⟩} of token directions θ.

    b is the largest |β|‖QᵀK‖ of all heads, so that the bandwidth is 1/√b.
    """
    return float(count_modes(sample.directions.astype(float, copy=False), sample.masses, steepest_of(sample.velocity)))


def position(sample: ParticleSample) -> Floats:
    """Return the positions (n, d) of the tokens."""
    return np.array(sample.points, dtype=float)


def _has_angles(case: Case) -> bool:
    """Return whether d > 1 in a case: in one dimension directions are 1 and −1, which form no clusters by angle."""
    return case.domain.d > 1


def _may_attend_to_others(case: Case) -> bool:
    """Return whether tokens of a case may attend most to the position of another token.

    With Q = qI, K = kI and qk > 0 each token attends most to its own position if the positions are unit vectors.
    """
    attends_to_itself = case.attention.is_scalar and case.attention.scales > 0
    return not attends_to_itself or LAYER_NORMS[case.stabilizers.layer_norm].sees_positions


def diagnostics_particles(
    names: Sequence[str],
    velocity: ParticleVelocity | Callable[[float], ParticleVelocity],
    masses: Floats,
    dimension: int,
    start: Floats | None = None,
    along: SequenceDiffusion | None = None,
) -> Diagnostics:
    """Return the diagnostics of a run of particles, whose state is positions x = rθ (n, d) of the tokens.

    names       from the table DIAGNOSTICS
    velocity    velocity of the tokens, or time → velocity; with the same masses
    masses      (n,) of sum 1
    dimension   d of the R^d of the tokens
    start       (n, d) initial positions, for drift
    along       diffusion along the sequence of tokens
    """
    velocity_at = (lambda time: velocity) if isinstance(velocity, ParticleVelocity) else velocity
    first = velocity_at(0.0)
    scale = cluster_scale(first)  # one scale for all times, as the file has one attribute

    def sample_of(time: float, positions: Floats) -> ParticleSample:
        return ParticleSample(velocity_at(time), time, positions, masses, start, along, scale)

    with np.errstate(divide="ignore"):
        bandwidth = float(np.divide(1.0, np.sqrt(steepest_of(first))))
    table = DIAGNOSTICS | {
        "energy": energy_entry(energy, first.log_bound, OVERFLOW if first.sees_positions else ()),
        "clusters": DIAGNOSTICS["clusters"]._replace(attributes=(("scale", scale),)),
        "modes": DIAGNOSTICS["modes"]._replace(attributes=(("bandwidth", bandwidth),)),
    }
    return Diagnostics(names, table, {"d": dimension, "token": len(masses), **LENGTHS}, sample_of)


DIAGNOSTICS: Table = {
    "mass": unbounded.DIAGNOSTICS["mass"],
    "energy": Diagnostic(energy, "", "interaction energy", has_energy),
    "speed": Diagnostic(speed, "", "root mean square speed of the tokens"),
    "centroid": unbounded.DIAGNOSTICS["centroid"],
    "variance": unbounded.DIAGNOSTICS["variance"]._replace(possible=lambda case: case.tokens_have_radius),
    "radius": unbounded.DIAGNOSTICS["radius"]._replace(possible=lambda case: case.tokens_have_radius),
    "clusters": Diagnostic(
        clusters, "", "number of clusters of directions by angular single linkage and persistence", _has_angles
    ),
    "modes": Diagnostic(
        modes,
        "",
        "number of modes of the kernel density of directions",
        _has_angles,
        default=only_if_named,
        sums_pairs=True,
    ),
    "cluster_mass": Diagnostic(cluster_mass, "cluster", "mass of each cluster, heaviest first", _has_angles),
    "cluster_center": Diagnostic(cluster_center, "cluster d", "center of each cluster", _has_angles),
    "pairs": Diagnostic(
        pairs, "pair_bin", "probability of each bin of <x,y> for two different tokens", _has_angles, sums_pairs=True
    ),
    "pairs_close": Diagnostic(
        pairs_close, "", "probability of <x,y> >= 0.999 for two different tokens", _has_angles, sums_pairs=True
    ),
    "leaders": Diagnostic(
        leaders,
        "",
        "number of tokens that some token attends to most",
        lambda case: case.attention.pattern is None,
        _may_attend_to_others,
        sums_pairs=True,
    ),
    "position": Diagnostic(position, "token d", "positions of the tokens", default=only_if_named),
    "drift": Diagnostic(drift, "", "1 - mean cosine of a token with its start", lambda case: case.sequence is not None),
    "roughness": Diagnostic(
        roughness,
        "",
        "integral of |du/dx|^2 over the sequence",
        lambda case: case.sequence is not None,
        attributes=OVERFLOW,
    ),
}
