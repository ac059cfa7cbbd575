"""Cost of sums over all pairs of points, relative to torch's attention, and of the rates of particles."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.measure import Figure, both_timed, timed
from meanfield.domains.particles.initial import tokens_uniform
from meanfield.domains.particles.velocity import ParticleVelocity
from solvers.backends import host_backend
from solvers.transforms.pairwise import exponential_sums

BETA = 4.0
SIZES = ((2, 10_000), (3, 20_000), (16, 10_000), (128, 10_000))  # dimension and tokens
BESIDE_TORCH = (128, 10_000)
TARGETS = {(3, np.float64): 1.2}  # nanoseconds per pair


def pairs(sizes: tuple[tuple[int, int], ...] = SIZES, beside_torch: tuple[int, int] = BESIDE_TORCH) -> list[Figure]:
    """Measure the time per pair of sums of attention over all pairs of tokens, in float64 and float32.

    The speed relative to torch, and the time of the velocities of particles, are given too. ``sizes`` are pairs of
    dimension and number of tokens.
    """
    figures = []
    for number in (np.float64, np.float32):
        for d, count in sizes:
            seconds = timed(_sums(d, count, number))
            name = f"sums over {count}² pairs, d = {d}, {number.__name__}: time of each pair"
            figures.append(Figure.of(name, 1e9 * seconds / count**2, "ns", most=TARGETS.get((d, number))))
    figures.append(_speed_relative_to_torch(*beside_torch))
    for d, count in (sizes[1], sizes[-1]):
        figures.append(Figure.of(f"rates of {count} particles, d = {d}", timed(_rates(d, count)), "s"))
    return figures


def _rates(d: int, count: int) -> Callable[[], object]:
    velocity, tokens, radii = ParticleVelocity(BETA), tokens_uniform(count, d), np.ones(count)
    return lambda: velocity.rates(0.0, tokens, radii)


def _sums(d: int, count: int, number: Any) -> Callable[[], object]:
    points = tokens_uniform(count, d).astype(number)
    weights = np.full(count, 1 / count, number)
    return lambda: exponential_sums(number(BETA) * points, points, weights)


def _speed_relative_to_torch(d: int, count: int) -> Figure:
    """Return the speed of the sums over all pairs relative to torch's scaled_dot_product_attention, in float32."""
    name = f"sums over {count}² pairs, d = {d}, float32: speed relative to torch's attention"
    if find_spec("torch") is None:
        return Figure(name, None, "×", least=0.8, note="skipped: torch is not installed (pip install torch)")
    torch = import_module("torch")
    torch.set_num_threads(host_backend().WORKERS)
    points = torch.from_numpy(tokens_uniform(count, d).astype(np.float32))[None, None]

    def attend() -> None:
        torch.nn.functional.scaled_dot_product_attention(BETA * points, points, points, scale=1.0)

    own, theirs = both_timed(_sums(d, count, np.float32), attend)
    return Figure.of(name, theirs / own, "×", least=0.8)
