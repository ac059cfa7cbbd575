"""Clusters nearer to each other than the kernel of attention resolves: they count as one cluster, they have merged.

    s = 1/√(β‖QᵀK‖), at most ¼ rad

For Q = K = V = I and two clusters collapsed to points an angle θ apart, the energy of the pair is ∝ e^{β cos θ}. For
unnormalized attention it grows at a rate ∝ sin² θ e^{2β cos θ}, fastest at θ = 1/√β for large β; for softmax attention
and equal masses, fastest at 1.1/√β (derived here).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

SCALE = 0.25  # radians, the largest s

Labels = NDArray[np.intp]


def merging_angle(steepness: float) -> float:
    """Return the angle s (radians) below which two clusters are one, for a kernel of ``steepness`` β‖QᵀK‖ ≥ 0."""
    return min(SCALE, float(max(1.0, steepness) ** -0.5))


def groups_within(points: Floats, angle: float) -> Labels:
    """Return the number (k,) of the group of each unit vector (k, d): chains with gaps below ``angle`` are groups.

    Groups are numbered in the order of their first members.
    """
    return _linked(points, 2 * np.sin(angle / 2), "distance")


def groups_of_number(points: Floats, count: int) -> Labels:
    """Return the group (k,) of each unit vector (k, d), for ``count`` groups separated by the largest gaps.

    The method is single linkage. Groups are numbered in the order of their first members.
    """
    return _linked(points, count, "maxclust")


def _linked(points: Floats, limit: float, criterion: str) -> Labels:
    """Return labels (n,) of the single-linkage clusters of points (n, d), in the order of their first points."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist

    if len(points) < 2:
        return np.zeros(len(points), dtype=np.intp)
    labels = fcluster(linkage(pdist(points), "single"), limit, criterion)
    _, first, group = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[group]


def sums_of_groups(groups: Labels, masses: Floats, centers: Floats) -> tuple[Floats, Floats]:
    """Return the masses (groups,) and centers (groups, d) of numbered groups of points with masses (k,).

    ``groups`` (k,) is the number of the group of each point, and ``centers`` (k, d) are unit vectors. A center is the
    direction of the mean of the group.
    """
    first = np.unique(groups, return_index=True)[1]
    total = np.bincount(groups, masses).astype(float)
    sums = np.stack([np.bincount(groups, masses * x) for x in centers.T], axis=1)
    vanishes = ~(np.linalg.norm(sums, axis=1) > 0)
    sums[vanishes] = centers[first[vanishes]]
    return total, unit_vectors(sums)
