"""Diagnostics of clusters and of pairs of tokens, the same for a density and for particles."""

from __future__ import annotations

from typing import Protocol

from meanfield.clusters.on_cells import Clusters
from meanfield.clusters.pairs import close_pairs
from meanfield.diagnostics.table import heaviest
from solvers.mesh.mesh import Floats


class Clustered(Protocol):
    """A state with its clusters, and the distribution (bins) of ⟨x, y⟩ for two of its tokens, see clusters/pairs.py."""

    @property
    def clusters(self) -> Clusters: ...

    @property
    def pairs(self) -> Floats: ...


def clusters(sample: Clustered) -> float:
    """Number of clusters by persistence; of particles, of their directions."""
    return float(sample.clusters.count)


def cluster_mass(sample: Clustered) -> Floats:
    """(32) masses of the clusters, heaviest first; NaN where there are fewer."""
    return heaviest(sample.clusters.masses)


def cluster_center(sample: Clustered) -> Floats:
    """(32, d) centers of the clusters, unit vectors, in the order of their masses."""
    return heaviest(sample.clusters.centers)


def pairs(sample: Clustered) -> Floats:
    """(64) P(z in bin), z = ⟨x, y⟩ of two tokens at random, of particles two different ones: P(i, j) ∝ m_i m_j."""
    return sample.pairs


def pairs_close(sample: Clustered) -> float:
    """P(⟨x, y⟩ ≥ 1 − 1e-3) of two such tokens."""
    return float(close_pairs(sample.pairs))
