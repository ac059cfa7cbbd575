"""Attention among many tokens on the circle and the sphere: time, error, and cost relative to direct sums."""

from __future__ import annotations

import numpy as np

from benchmarks.measure import CORES, Figure, both_timed, timed
from benchmarks.transforms import ducc0_at_points, ducc0_installed
from meanfield.domains.particles.initial import tokens_uniform
from meanfield.domains.particles.velocity import ParticleVelocity
from solvers.mesh.mesh import Floats
from solvers.transforms.exponential import exponential_degree
from solvers.transforms.pairwise import exponential_sums

BETA = 10.0
COUNT, SAMPLED = 1_000_000, 1000


def tokens(count: int = COUNT, sampled: int = SAMPLED) -> list[Figure]:
    """Measure the time of the attention A of all ``count`` tokens, and its error at ``sampled`` tokens.

    Ratios to the times of direct sums and of ducc0's transforms are given too.
    """
    figures = []
    for d, place in ((2, "circle"), (3, "sphere")):
        for name, points in (("uniform", tokens_uniform(count, d)), ("clustered", _clustered(count, d))):
            figures += _figures(f"attention among {count} tokens on the {place}, {name}, β = {BETA:g}", points, sampled)
    return figures


def _figures(name: str, points: Floats, sampled: int) -> list[Figure]:
    velocity, count = ParticleVelocity(BETA), len(points)
    few = points[:: max(count // sampled, 1)]
    masses = np.full(count, 1 / count)

    def direct() -> Floats:
        _, normalizer, sums = exponential_sums(BETA * few, points, masses)
        return sums / normalizer[:, None]

    seconds = timed(lambda: velocity.output_at(points))
    pairs = timed(direct) * (count / len(few))
    error = np.linalg.norm(velocity.output_at(points)[:: max(count // sampled, 1)] - direct(), axis=1).max()
    return [
        Figure.of(name, seconds, "s", most=2.0 if count <= COUNT else None),
        Figure(f"{name}: error against direct sums at {len(few)} tokens", float(error), "1", most=1e-9),
        Figure.of(f"{name}: time of direct sums relative to it", pairs / seconds, "×"),
        *_time_relative_to_ducc0(name, points, velocity),
    ]


def _time_relative_to_ducc0(name: str, points: Floats, velocity: ParticleVelocity) -> list[Figure]:
    """Return a list with one figure: the ratio of the processor time of attention to that of ducc0's transforms.

    Both use the same points. The list is empty on the circle and without ducc0.
    """
    if points.shape[1] != 3 or not ducc0_installed():
        return []
    peer = ducc0_at_points(points, exponential_degree(3, BETA))
    own, other = both_timed(lambda: velocity.output_at(points), peer, clock=CORES)
    return [Figure.of(f"{name}: processor time relative to ducc0's transforms", own / other, "×", most=1.6)]


def _clustered(count: int, d: int) -> Floats:
    """Return tokens (count, d) in three clusters of width 0.05, with one in a hundred uniformly distributed."""
    random = np.random.default_rng(1)
    centers = tokens_uniform(3, d, seed=2)[random.integers(3, size=count)]
    points = centers + 0.05 * random.standard_normal((count, d))
    points[::100] = random.standard_normal((len(points[::100]), d))
    return np.asarray(points / np.linalg.norm(points, axis=1)[:, None])
