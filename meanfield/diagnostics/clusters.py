"""Diagnostics of clusters and of pairs of tokens, shared by densities and particles."""

from __future__ import annotations

from typing import Protocol

from meanfield.clusters.on_cells import Clusters
from meanfield.clusters.pairs import close_pairs
from meanfield.diagnostics.table import heaviest
from solvers.mesh.mesh import Floats


class ClusteredState(Protocol):
    """State with its clusters, and the distribution (bins) of ⟨x, y⟩ for two random tokens, see clusters/pairs.py."""

    @property
    def clusters(self) -> Clusters: ...

    @property
    def pairs(self) -> Floats: ...


def clusters(sample: ClusteredState) -> float:
    """Return the number of clusters, found by persistence; for particles these are clusters of directions."""
    return float(sample.clusters.count)


def cluster_mass(sample: ClusteredState) -> Floats:
    """Return the masses of the clusters (32), heaviest first; NaN where there are fewer."""
    return heaviest(sample.clusters.masses)


def cluster_center(sample: ClusteredState) -> Floats:
    """Return the centers of the clusters (32, d), unit vectors, in the order of their masses."""
    return heaviest(sample.clusters.centers)


def pairs(sample: ClusteredState) -> Floats:
    """Return the probability of each of 64 bins of z = ⟨x, y⟩ for two random tokens x and y.

    In a run of particles, x and y are different: a pair (i, j), i ≠ j, has a probability ∝ m_i m_j with the masses m.
    """
    return sample.pairs


def pairs_close(sample: ClusteredState) -> float:
    """Return the probability that two random tokens x and y are close, ⟨x, y⟩ ≥ 1 − 1e-3.

    In a run of particles, x and y are different particles.
    """
    return float(close_pairs(sample.pairs))
