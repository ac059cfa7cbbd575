"""Escapes of n tokens from a metastable density, simulated for several n: systems in batches, batches in threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass

import numpy as np

from meanfield.analysis.branches.equilibria import Equilibria, Equilibrium
from meanfield.analysis.escapes.replicas import MAX_TOKENS, Passages, TokenSystem, first_passages
from meanfield.analysis.escapes.waiting_times import WaitingTime
from solvers.mesh.mesh import Floats

_ANGLES = 4096  # of the table from which angles to the axis are drawn

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Batch:
    """Systems of n tokens that are simulated in one array.

    Attributes
    ----------
    system : TokenSystem
        Equations of each system.
    seeds : range
        Numbers of the systems among those with the same n.
    until : float
        Time at which a simulation without escape ends.
    """

    system: TokenSystem
    seeds: range
    until: float


def batches_of(system: TokenSystem, seeds: int, until: float) -> list[Batch]:
    """Return ``seeds`` systems with the equations ``system`` in batches of at most MAX_TOKENS tokens.

    A batch has at least one system. Simulations without an escape end at the time ``until``.
    """
    size = max(1, MAX_TOKENS // system.count)
    return [Batch(system, range(first, min(first + size, seeds)), until) for first in range(0, seeds, size)]


def simulate_escapes(
    equations: Equilibria,
    well: Equilibrium,
    threshold: float,
    batches: Sequence[Batch],
    jobs: int,
    progress: Progress | None,
    stop: Callable[[], bool],
) -> list[WaitingTime]:
    """Return the waiting time for each n of ``batches``, simulated from independent tokens of the density ``well``.

    An escape is the first passage of the length of the mean token through ``threshold``. ``jobs`` batches are simulated
    at once. Simulations end after the current step when ``stop`` returns True; those that have not begun are left out.
    """
    upward, total, done = threshold > well.order, sum(len(batch.seeds) for batch in batches), 0
    passages: dict[int, list[Passages]] = {}

    def solve(batch: Batch) -> Passages | None:
        if stop():
            return None
        random = np.random.default_rng([batch.system.count, batch.seeds.start])
        positions = draw_tokens(random, equations, well, len(batch.seeds), batch.system.count)
        seed = int(random.integers(2**63))
        return first_passages(batch.system, positions, threshold, upward, batch.until, seed, stop)

    with ThreadPoolExecutor(jobs) as pool:
        running = {pool.submit(solve, batch): batch for batch in batches}
        for future in as_completed(running):
            found, batch = future.result(), running[future]
            if found is not None:
                passages.setdefault(batch.system.count, []).append(found)
            done += len(batch.seeds)
            if progress is not None:
                progress(done, total)
    return [_waiting_time(n, passages[n]) for n in sorted(passages)]


def draw_tokens(
    random: np.random.Generator, equations: Equilibria, state: Equilibrium, systems: int, count: int
) -> Floats:
    """Return independent tokens (systems, count, d) of an axisymmetric density, with the axis e₁."""
    from scipy.interpolate import CubicSpline

    d = equations.dimension
    nodes = np.arccos(equations.nodes[::-1])
    edges = np.linspace(0.0, np.pi, _ANGLES + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    weights = np.exp(CubicSpline(nodes, state.log_density[::-1])(middles)) * np.sin(middles) ** (d - 2)
    cumulative = np.append(0.0, np.cumsum(weights))
    angles = np.interp(random.random((systems, count)) * cumulative[-1], cumulative, edges)
    across = random.standard_normal((systems, count, d - 1))
    across /= np.linalg.norm(across, axis=-1, keepdims=True)
    return np.concatenate([np.cos(angles)[..., None], np.sin(angles)[..., None] * across], axis=-1)


def _waiting_time(n: int, passages: Sequence[Passages]) -> WaitingTime:
    """Return the statistics of the waiting time of n tokens from the first passages of several groups of replicas."""
    return WaitingTime(
        n,
        sum(len(one.times) for one in passages),
        sum(int(one.passed.sum()) for one in passages),
        float(sum(one.times.sum() for one in passages)),
    )
