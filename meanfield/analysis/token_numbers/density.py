"""Run of the density beside the tokens: its snapshots, their moments and its final clusters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from meanfield.analysis.snapshot_clusters import cluster_finder
from meanfield.analysis.token_numbers.distances import Distances
from meanfield.analysis.token_numbers.predicted import fastest_rate, observable_values, unit_vectors_at
from meanfield.case.case import Case
from meanfield.running import run_in_memory
from solvers.mesh.mesh import Floats

NO_CLUSTERS = -1  # of a density about an axis


class DensityRun:
    """Run of the density of a case, with the distances from tokens to it.

    times      (times,) of the snapshots
    distances  positions (times, n, d) of tokens → Wasserstein distances (times,)
    rate       fastest growth rate about the uniform density, NaN unless the density begins near it
    clusters   final number of clusters, or NO_CLUSTERS
    """

    def __init__(self, case: Case, order: int) -> None:
        self._run, self._names = run_in_memory(case), case.domain.formula
        self.times, self.distances = self._run.times, Distances(self._run, order)
        self.rate = fastest_rate(case, self._masses(0), self._uniform_masses())
        self.clusters = cluster_finder(self._run)(len(self.times) - 1).count if case.domain.is_closed else NO_CLUSTERS

    def moments(self, observables: Sequence[str]) -> Floats:
        """Return the means ∫φρ (times, m) of observables φ, given by formulas."""
        values = observable_values(observables, unit_vectors_at(self._run.cell_centers), self._names)
        return np.array([values @ self._masses(k) for k in range(len(self.times))])

    def _masses(self, k: int) -> Floats:
        """Return the masses (cells,) of snapshot k, with the sum 1."""
        masses = self._run.density(k) * self._run.cell_areas
        return np.asarray(masses / masses.sum())

    def _uniform_masses(self) -> Floats:
        """Return the masses (cells,) of the uniform density, with the sum 1."""
        areas = self._run.cell_areas
        if self._run.cell_centers.shape[1] == 1:
            areas = self._run.variable("uniform") * areas
        return np.asarray(areas / areas.sum())
