"""Optimal transport between weighted points in several dimensions: exact for some hundred, by patches beyond.

Points are gathered in patches common to both measures. Each measure keeps, in each patch, its own mass and its own
centroid. Differences between the measures at the scale of a patch or more are transported exactly.
"""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

MIN_PATCH_WIDTH = 1e-5  # radians: without this limit, empty cells would be patches too


def arc_lengths(a: Floats, b: Floats) -> Floats:
    """Return the geodesic distances (n, m), 2 arcsin(|x − y|/2), of unit vectors (n, d) and (m, d)."""
    return np.asarray(2 * np.arcsin(np.minimum(straight_lengths(a, b) / 2, 1.0)))


def straight_lengths(a: Floats, b: Floats) -> Floats:
    """Return the distances |x − y| (n, m) between points (n, d) and (m, d)."""
    from scipy.spatial.distance import cdist

    return np.asarray(cdist(a, b))


def transport_cost(masses_a: Floats, masses_b: Floats, costs: Floats) -> float:
    """Return the least cost Σ P_ij c_ij of moving ``masses_a`` (n) to ``masses_b`` (m) of equal sum.

    The minimum is over plans P ≥ 0 with these marginals, by POT's network simplex.
    """
    import ot

    return max(float(ot.emd2(masses_a, masses_b, costs, numItermax=10**7)), 0.0)


def patch_labels(points: Floats, masses: Floats, max_patches: int) -> NDArray[np.intp]:
    """Return the number of the patch (n,) that contains each of the points (n, d), for at most ``max_patches`` patches.

    The patch of largest ∫|x − c|², c its centroid, is halved repeatedly. Coincident points stay together, so that atoms
    are patches of zero extent. Halving ends before ``max_patches`` where masses are within MIN_PATCH_WIDTH of their
    patch's centroid in the root mean square.
    """
    enough = MIN_PATCH_WIDTH**2 * masses.sum() / max_patches
    labels = np.zeros(len(points), dtype=np.intp)
    heap: list[tuple[float, int, NDArray[np.intp]]] = []
    members: list[NDArray[np.intp]] = [np.arange(len(points))]
    heappush(heap, (-_moment(points, masses), 0, members[0]))
    count = 1
    while count < max_patches and heap:
        moment, label, patch = heappop(heap)
        if -moment <= enough:
            break
        x = points[patch]
        axis = int(np.ptp(x, axis=0).argmax())
        upper = x[:, axis] > (x[:, axis].min() + x[:, axis].max()) / 2
        if not upper.any():  # all points coincide
            continue
        labels[patch[upper]] = count
        for place, part in ((label, patch[~upper]), (count, patch[upper])):
            if len(part) > 1:
                heappush(heap, (-_moment(points[part], masses[part]), place, part))
        count += 1
    return labels


def gather(
    points: Floats, masses: Floats, extents: Floats, labels: NDArray[np.intp], on_sphere: bool
) -> tuple[Floats, Floats, Floats]:
    """Return points (k, d), masses (k) and extents (k) of the patches that hold mass, given the patch of each point.

    points    (n, d), replaced by their patch's centroid, which is projected to the sphere if they are ``on_sphere``
    extents   (n) root mean square distance of each mass from its point; the results are upper bounds for the patches
    labels    (n) patch of each point
    """
    count = int(labels.max()) + 1
    totals = np.bincount(labels, masses, count)
    occupied = totals > 0
    sums = np.stack([np.bincount(labels, masses * x, count) for x in points.T], axis=1)[occupied]
    centers = sums / totals[occupied, None]
    if on_sphere:
        lengths = np.linalg.norm(centers, axis=1)[:, None]
        first = np.zeros(count, dtype=np.intp)
        first[labels[::-1]] = np.arange(len(labels))[::-1]
        centers = np.where(lengths > 0, unit_vectors(centers), points[first[occupied]])
    patch = (np.cumsum(occupied) - 1)[labels]
    gaps = np.linalg.norm(points - centers[patch], axis=1)
    if on_sphere:
        gaps = 2 * np.arcsin(np.minimum(gaps / 2, 1.0))
    squares = np.bincount(labels, masses * (gaps + extents) ** 2, count)[occupied]
    return (
        np.asarray(centers),
        np.asarray(totals[occupied], dtype=float),
        np.asarray(np.sqrt(squares / totals[occupied])),
    )


def _moment(points: Floats, masses: Floats) -> float:
    """Return the second moment ∫ |x − c|² of point masses about their centroid c."""
    total = masses.sum()
    if total <= 0:
        return 0.0
    return float(masses @ ((points - masses @ points / total) ** 2).sum(axis=1))
