"""Clusters of weighted tokens on S^{d−1}: angular single linkage with persistence, in any dimension.

    i ~ j  where  ∠(x_i, x_j) ≤ s          f(x) = Σ_j m_j e^{(⟨x, x_j⟩ − 1)/h²}          s the scale, an angle (radians)

For s = 1/√β and Q = K = I, the attention between tokens within s of each other is at least e^{−½} of their attention to
themselves. Chains of such tokens are joined, except where the density f falls by more than half between two of its
peaks: the persistence of f on this graph (Chazal, Guibas, Oudot, Skraba 2013, ToMATo). Clusters are therefore never
nearer than s unless f has a pass between them, and a token farther than s from all others is a cluster, unless the
token is stray.

The bandwidth h of f is s. Many tokens on circle and sphere have h between s/2 and s, the angle at which f of uniform
tokens is 8 times its noise, so that they have the clusters of their density.

As densities, tokens have no cluster where the largest f is below twice the lowest f on the circle or sphere. Few tokens
and tokens in more dimensions have none where the largest f is below twice that of uniform tokens.

Sixteen or more tokens of equal masses have clusters only if they differ from independent uniform tokens. The test is

    U = Σ_{i≠j} m_i m_j e^{(⟨x_i, x_j⟩ − 1)/s²}

and the same sum with s/16, each compared with its mean and variance for uniform tokens. Mean and
variance are exact, since the terms of uniform tokens are uncorrelated. Uniform tokens have a cluster in less than 1 %
of draws (measured for 16 to 100 000 tokens, d = 2 to 384).
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meanfield.clusters.near import SCALE
from meanfield.clusters.on_cells import CONTRAST, FLOOR, Clusters
from meanfield.clusters.parts import between_parts
from solvers.backends import host_backend
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats, Integers, Mesh, circle, sphere
from solvers.mesh.rings import sphere_cells
from solvers.transforms.exponential import exponential_degree, exponential_multipliers, exponential_spectrum
from solvers.transforms.harmonics import Harmonics, harmonic_transform
from solvers.transforms.pairwise import exponential_sums

COVER_RADIUS = 0.25  # in scales: tokens this near a representative count at its position
MIN_TESTED = 15.5  # (Σ m)²/Σ m², the number of tokens of equal masses: each of fewer tokens may be a cluster
MAX_DEVIATIONS = ((1.0, 6.0), (1 / 16, 10.0))  # of U, in standard deviations, with scales relative to s
MIN_DEVIATION = -4.0  # U ≥ 0 is skewed to the right: smaller values occur for less than 1e-3 of uniform tokens
SMOOTH = 8.0  # kernel density of uniform tokens over its noise, at the bandwidth on circle and sphere
MIN_SHARE = 0.01  # of the tokens: a smaller group where f is low is no cluster
FEW_TOKENS = 100  # number of tokens whose pairs cost less than a transform; each is at least a hundredth of them
MAX_TOKENS = 2048  # from which representatives are chosen for d > 3; the rest go with the nearest
BLOCK = 4096

Labels = NDArray[np.intp]


class Cover(NamedTuple):
    """Representatives (k, d) of tokens, the kernel density f at each (k,), and the nearest one to each token (n,).

    ``uniform`` is the kernel density f of uniform tokens, and ``may_be_uniform`` whether the tokens may be such tokens.
    ``lowest`` is the smallest f on the circle or sphere; for d > 3 it is ``uniform``.
    """

    points: Floats
    density: Floats
    uniform: float
    lowest: float
    nearest: Labels
    may_be_uniform: bool


def find_clusters_of_tokens(
    points: Floats, masses: Floats, scale: float = SCALE, max_tokens: int = MAX_TOKENS
) -> Clusters:
    """Return the clusters of tokens at ``points`` (n, d), d ≥ 2, of any length, with masses (n,).

    ``basin`` of the result (n,) is the number of the cluster of each token.

    scale        s, radians: tokens within s are joined. Good values: 1/√β, at most 0.25
    max_tokens   number of tokens of the graph for d > 3, evenly through the list; on circle and sphere all tokens count

    There is no cluster if the largest kernel density f is below twice the lowest: for d > 3, and for up to FEW_TOKENS
    tokens, below twice that of uniform tokens. From MIN_TESTED tokens on, there is none if the tokens may be
    independent uniform ones. Groups of less than a hundredth of the tokens, with f below twice that of uniform tokens,
    are stray tokens between the clusters of many: their basin is −1. Few tokens far apart are one cluster each. Raises
    ValueError for d < 2.
    """
    if points.shape[1] < 2:
        raise ValueError(f"points {points.shape}: expected directions in R^d with d of 2 or more")
    directions = unit_vectors(points)
    if len(points) <= FEW_TOKENS:
        return _clusters_of_few(directions, masses, scale)
    shares = masses / masses.sum()
    cover = (
        _merge_by_cells(directions, shares, scale)
        if points.shape[1] <= 3
        else _merge_by_leaders(directions, shares, scale, max_tokens)
    )
    if cover.density.max() < CONTRAST * cover.lowest or cover.may_be_uniform:
        return Clusters(np.empty(0), np.empty((0, points.shape[1])), np.full(len(points), -1))
    label = _basins(cover.points, cover.density + FLOOR * cover.uniform, scale)[cover.nearest]
    peaks, first, basin, count = np.unique(label, return_index=True, return_inverse=True, return_counts=True)
    cluster_masses = np.bincount(basin, masses, len(peaks)).astype(float)
    sums = _sums_of_groups(basin, masses, directions, len(peaks))
    length = np.linalg.norm(sums, axis=1, keepdims=True)
    centers = np.divide(sums, length, out=directions[first], where=length > 0)
    counts = (count >= MIN_SHARE * len(points)) | (cover.density[peaks] >= CONTRAST * cover.uniform)
    rank = np.argsort(np.where(counts, -cluster_masses, np.inf), kind="stable")[: counts.sum()]
    place = np.full(len(peaks), -1)
    place[rank] = np.arange(len(rank))
    return Clusters(cluster_masses[rank], centers[rank], place[basin])


def _clusters_of_few(directions: Floats, masses: Floats, scale: float) -> Clusters:
    """Return the clusters of few tokens, by their kernel density as a sum over all pairs.

    Each token belongs to a cluster, or none does if the density is nearly uniform.
    """
    n, d = directions.shape
    sharp, cosines = scale**-2, directions @ directions.T
    shares = masses / masses.sum()
    density, uniform = np.exp(sharp * (cosines - 1.0)) @ shares, _mean_kernel(d, sharp)
    if density.max() < CONTRAST * uniform or _pairs_may_be_uniform(shares, cosines, d, scale):
        return Clusters(np.empty(0), np.empty((0, d)), np.full(n, -1))
    adjacent = cosines >= np.cos(scale)
    start = np.concatenate([[0], adjacent.sum(axis=1).cumsum()], dtype=np.int32)
    peak = _peaks(density + FLOOR * uniform, start, adjacent.nonzero()[1].astype(np.int32))
    number, cluster_masses, centers = np.empty(n, dtype=np.intp), np.empty(n), np.empty((n, d))
    weights = np.asarray(masses, dtype=float)
    count = host_backend().sum_over_basins(peak, weights, directions, number, cluster_masses, centers)
    return Clusters(cluster_masses[:count], centers[:count], number)


def _may_be_uniform(
    shares: Floats, pair_sum: float, dimension: int, sharp: float, most: float = MAX_DEVIATIONS[0][1]
) -> bool:
    """Return whether the pair sum U of tokens is usual for independent uniform tokens.

    shares     (n,) masses m of the tokens, of sum 1
    pair_sum   U = Σ_{i≠j} m_i m_j e^{sharp (⟨x_i, x_j⟩ − 1)}
    most       largest difference of U from its mean that is usual, in standard deviations
    """
    squares, mean = float((shares**2).sum()), _mean_kernel(dimension, sharp)
    mean_square = _mean_kernel(dimension, 2 * sharp)
    if squares * MIN_TESTED > 1:
        return False
    variance = 2 * (squares**2 - float((shares**4).sum())) * (mean_square - mean**2)
    excess = pair_sum - (1.0 - squares) * mean
    return MIN_DEVIATION**2 * variance >= min(excess, 0.0) ** 2 and most**2 * variance >= max(excess, 0.0) ** 2


def _pairs_may_be_uniform(shares: Floats, cosines: Floats, dimension: int, scale: float) -> bool:
    """Return whether tokens may be independent and uniform by their pair sums U, see :func:`_may_be_uniform`.

    The bandwidths are ``scale`` times the fractions in MAX_DEVIATIONS. ``shares`` (n,) are masses of sum 1, and
    ``cosines`` (n, n) are ⟨x_i, x_j⟩.
    """
    for part, most in MAX_DEVIATIONS:
        sharp = (part * scale) ** -2
        kernel = np.exp(sharp * (cosines - 1.0))
        np.fill_diagonal(kernel, 0.0)
        if not _may_be_uniform(shares, float(shares @ kernel @ shares), dimension, sharp, most):
            return False
    return True


def _merge_by_cells(directions: Floats, masses: Floats, scale: float) -> Cover:
    """Return the mean directions of tokens in cells finer than the scale s, with the kernel density in these cells.

    The mean directions represent the tokens. The kernel density is computed by a harmonic transform.
    """
    d, squares = directions.shape[1], float((masses**2).sum())
    bandwidth = _bandwidth(d, scale, squares)
    mesh, transform, share = _density_estimate(d, scale, bandwidth)
    cells = _cells_of(mesh, directions)
    cell_masses = np.bincount(cells, masses, mesh.cells).astype(float)
    coefficients = transform.analysis(cell_masses)
    density = transform.synthesis(coefficients * (share if mesh.dimension == 1 else share[:, None]))
    is_occupied = np.zeros(mesh.cells, dtype=bool)
    is_occupied[cells] = True
    occupied, nearest = is_occupied.nonzero()[0], is_occupied.cumsum()[cells] - 1
    means = _sums_of_groups(nearest, np.ones(len(nearest)), directions, len(occupied))
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    sharp = bandwidth**-2
    total = float(cell_masses @ density) * mesh.volume * _mean_kernel(d, sharp)
    random = _may_be_uniform(masses, total - squares, d, sharp)
    lowest = max(density.min(), 0.0)
    return Cover(means, np.maximum(density[occupied], 0.0), 1.0 / mesh.volume, lowest, nearest, random)


def _cells_of(mesh: Mesh, directions: Floats) -> Labels:
    """Return the cells (n,) of a circle or sphere that contain unit vectors (n, d)."""
    azimuth = np.arctan2(directions[:, 1], directions[:, 0])
    polar = np.zeros_like(azimuth) if mesh.dimension == 1 else np.arccos(directions[:, 2].clip(-1.0, 1.0))
    return sphere_cells(mesh.ring_cells, polar, azimuth)


def _sums_of_groups(group: Labels, weights: Floats, values: Floats, count: int) -> Floats:
    """Return sums Σ w_i v_i (count, d) of values v (n, d) with weights w (n,) over the i of each numbered group."""
    d = values.shape[1]
    entry = group[:, None] * d + np.arange(d)
    sums = np.bincount(entry.ravel(), (weights[:, None] * values).ravel(), count * d)
    return np.asarray(sums.reshape(count, d))


def _bandwidth(dimension: int, scale: float, squares: float) -> float:
    """Return the bandwidth of the kernel density of tokens on circle or sphere, from ``scale``/2 to ``scale``, radians.

    The density of uniform tokens is SMOOTH times its noise at this bandwidth, if it is within these limits. ``squares``
    is Σm² for masses of sum 1: the inverse of the number of tokens of equal masses.
    """
    noise_free = SMOOTH**2 * squares  # the part of the circle or sphere that the kernel must cover
    bandwidth = np.sqrt(np.pi) * noise_free if dimension == 2 else np.sqrt(noise_free)
    return float(np.clip(bandwidth, scale / 2, scale))


@lru_cache(maxsize=4)
def _density_estimate(dimension: int, scale: float, bandwidth: float) -> tuple[Mesh, Harmonics, Floats]:
    """Return objects for kernel densities on the circle or sphere: mesh, transform, multipliers.

    The cells of the mesh are a fraction of ``scale``. Harmonics of each degree are multiplied by the multipliers of the
    kernel with the ``bandwidth``, 1 for degree 0.
    """
    if dimension == 2:
        mesh = circle(int(np.clip(16 * np.pi / scale, 256, 4096)))
    else:
        mesh = sphere(int(np.clip(4 * np.pi / scale, 48, 192)))
    degree = exponential_degree(dimension, bandwidth**-2)
    degree = min(degree, mesh.cells // 2 if dimension == 2 else 2 * len(mesh.ring_cells) - 1)
    multipliers = exponential_multipliers(dimension, bandwidth**-2, degree + 1)
    return mesh, harmonic_transform(mesh, degree), multipliers / multipliers[0]


def _merge_by_leaders(directions: Floats, masses: Floats, scale: float, max_tokens: int) -> Cover:
    """Return tokens at distances above COVER_RADIUS·s from each other, the leaders, with the kernel density there.

    The leaders represent all tokens. The kernel density is a sum over leaders, each with the mass of the tokens nearest
    to it.
    """
    some = np.unique(np.linspace(0, len(directions) - 1, max_tokens).astype(int))
    cosines, sharp = directions[some] @ directions[some].T, scale**-2
    leaders = directions[some][_cover(cosines, COVER_RADIUS * scale)]
    random = _pairs_may_be_uniform(masses[some] / masses[some].sum(), cosines, directions.shape[1], scale)
    nearest = np.empty(len(directions), dtype=np.intp)
    for k in range(0, len(directions), BLOCK):
        between_parts()
        nearest[k : k + BLOCK] = (directions[k : k + BLOCK] @ leaders.T).argmax(axis=1)
    between_parts()
    leader_masses = np.bincount(nearest, masses, len(leaders)).astype(float)
    _, density, _ = exponential_sums(leaders * sharp, leaders, leader_masses, log_scale=np.full(len(leaders), sharp))
    uniform = _mean_kernel(directions.shape[1], sharp)
    return Cover(leaders, density, uniform, uniform, nearest, random)


@lru_cache(maxsize=8)
def _mean_kernel(dimension: int, sharp: float) -> float:
    """Return the mean over the sphere of e^{sharp (⟨x, y⟩ − 1)}, the kernel density of uniform tokens."""
    return float(np.exp(exponential_spectrum(dimension, sharp, 1)[0] - sharp))


def _cover(cosines: Floats, radius: float) -> list[int]:
    """Return the numbers of leaders among directions with ``cosines`` (n, n) of the angles between each other.

    In order, each direction farther than ``radius`` (radians) from prior leaders is a leader, so that every direction
    is within ``radius`` of a leader.
    """
    within = cosines >= np.cos(radius)
    covered = np.zeros(len(cosines), dtype=bool)
    leaders = []
    for k in range(len(cosines)):
        if not covered[k]:
            leaders.append(k)
            covered |= within[k]
    return leaders


def _basins(points: Floats, level: Floats, reach: float) -> Labels:
    """Return the peak (k,) to which each point (k, d) belongs, by persistence of a density ``level`` on a graph.

    Edges of the graph join points nearer than ``reach`` radians.
    """
    between_parts()
    if points.shape[1] <= 3:
        from scipy.spatial import KDTree

        pairs = KDTree(points).query_pairs(2 * np.sin(reach / 2), output_type="ndarray")
    else:
        pairs = np.argwhere(np.triu(points @ points.T >= np.cos(reach), k=1))
    ends = pairs.astype(np.int32).reshape(-1)
    sides = np.argsort(ends, kind="stable").astype(np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=len(points)))]).astype(np.int32)
    return _peaks(level, start, ends[sides ^ 1]).astype(np.intp)


def _peaks(level: Floats, start: Integers, neighbors: Integers) -> Integers:
    """Return the peak (k,) to which each point of a graph belongs, by persistence of a density ``level`` (k,).

    The neighbors of point i are neighbors[start[i] : start[i + 1]].
    """
    peak, order = np.empty(len(level), dtype=np.int32), np.empty(len(level), dtype=np.int32)
    host_backend().persistent_basins(level, CONTRAST, start, neighbors, order, peak)
    return peak
