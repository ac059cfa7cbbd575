"""Runs of tokens for all numbers n and all seeds, reduced to distances, observables and clusters as they arrive."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meanfield.analysis.token_numbers.cases import of_seed
from meanfield.analysis.token_numbers.distances import Distances
from meanfield.case.case import Case
from meanfield.case.errors import CaseError
from meanfield.clusters.among_tokens import find_clusters_of_tokens
from meanfield.domains.common.model_of_case import heads_by_layer
from meanfield.domains.particles.diagnostics import cluster_scale
from meanfield.domains.particles.setup import particle_velocity
from meanfield.runtime.signals import Interrupted
from meanfield.sweeping.local_pool import with_processes
from meanfield.sweeping.point import FINISHED, PointResult
from meanfield.sweeping.progress import SweepProgress, solve
from meanfield.sweeping.tasks import Work
from solvers.mesh.mesh import Floats


@dataclass(frozen=True, eq=False)
class TokenRuns:
    """Results of the runs of tokens.

    distance   (sizes, seeds, times) Wasserstein distances to the density
    moments    (sizes, seeds, times, m) means Σ φ(x_i)/n of the observables φ
    clusters   (sizes, seeds) final numbers of clusters
    """

    distance: Floats
    moments: Floats
    clusters: NDArray[np.intp]


def run_tokens(
    cases: Sequence[Case],
    seeds: Sequence[int],
    distances: Distances,
    observe: Callable[[Floats], Floats],
    jobs: int,
    quiet: bool,
) -> TokenRuns:
    """Run each case of tokens, one for each n, with each seed, in ``jobs`` processes, and return the reduced results.

    ``observe`` returns the observables (m, n) of tokens at positions (n, d).

    Raises CaseError for a run that fails or explodes, and Interrupted after Ctrl-C or SIGTERM.
    """
    count, shape = len(cases) * len(seeds), (len(cases), len(seeds))
    scale = cluster_scale(particle_velocity(cases[0], heads_by_layer(cases[0])[0]))
    rows: dict[int, tuple[Floats, Floats, int]] = {}

    def case_of(number: int) -> Case:
        size, seed = divmod(number, len(seeds))
        return of_seed(cases[size], seeds[seed])

    def reduce(number: int, result: PointResult) -> tuple[Floats, Floats, int]:
        """Return distances (times,), moments (times, observables) and the final number of clusters of a run."""
        if result.exit_status != FINISHED:
            case = case_of(number)
            raise CaseError(f"{case.domain.count} tokens, seed {seeds[number % len(seeds)]}: {result.reason}")
        positions = result.tables["position"]
        moments = np.stack([observe(points).mean(axis=-1) for points in positions])
        last, masses = positions[-1], np.full(positions.shape[1], 1 / positions.shape[1])
        clusters = find_clusters_of_tokens(last, masses, scale).count
        return distances(positions), moments, clusters

    def collect(results: Mapping[int, PointResult]) -> None:
        for number, result in results.items():
            rows[number] = reduce(number, result)

    title = cases[0].title or "tokens"
    progress = SweepProgress(title, count, 0, quiet)
    try:
        solve(Work(range(count), case_of), with_processes(min(jobs, count)), progress, collect)
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {len(rows)} of {count} runs of tokens were done, and none is kept") from None
    columns = [np.array([rows[number][part] for number in range(count)]) for part in range(3)]
    distance, moments, clusters = (column.reshape(*shape, *column.shape[1:]) for column in columns)
    return TokenRuns(distance, moments, clusters)
