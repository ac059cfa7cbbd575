"""Clusters of weighted tokens on S^{d−1}: peaks of their kernel density that survive a persistence threshold.

    f(x) = Σ_j m_j e^{(⟨x, x_j⟩ − 1)/s²}          s the scale, an angle in radians

With s = 1/√β f is the Z of attention with Q = K = I, so that clusters are what tokens move towards. Circle and sphere:
f on a mesh, and meanfield.clusters.on_cells. Other d: f at the tokens, and the same persistence on the graph of those
within 2s of each other (Chazal, Guibas, Oudot, Skraba 2013, ToMATo).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from meanfield.clusters.on_cells import CONTRAST, FLOOR, Clusters, find_clusters
from solvers.backends import backend_for
from solvers.mesh.mesh import Floats, Mesh, circle, sphere
from solvers.transforms.gegenbauer import exponential_spectrum
from solvers.transforms.harmonics import Harmonics, harmonic_transform
from solvers.transforms.pairwise import exponential_sums
from solvers.transforms.zonal import exponential_degree, exponential_multipliers

if TYPE_CHECKING:
    from scipy.spatial import KDTree

SCALE = 0.25  # radians
REACH = 2.0  # scales: tokens so near are joined; f of two equal ones has a dip between them beyond
COVER = 0.25  # scales: tokens so near a leader count as where it is
MOST = 2048  # tokens whose density is looked at in other d than 2 and 3; the rest go with the nearest
BLOCK = 4096

Labels = NDArray[np.intp]


def find_clusters_of_tokens(points: Floats, masses: Floats, scale: float = SCALE) -> Clusters:
    """Clusters of tokens at ``points`` (n, d), d ≥ 2, of any length, with masses (n,); basin is of each token.

    scale   of the density estimate, radians. Good values: 1/√β, at most 0.25. Two equal clusters are two when about 2
            (d > 3) or 3.3 (circle, sphere) scales apart.
    There is no cluster where f is below twice that of uniform tokens. Tokens far apart are a cluster each: n
    equiangular ones are n clusters, n random ones in high d too. Raises ValueError for d < 2.
    """
    if points.shape[1] < 2:
        raise ValueError(f"points {points.shape}: expected directions in R^d with d of 2 or more")
    length = np.linalg.norm(points, axis=1)[:, None].astype(float)  # tokens may come in single precision
    directions = points / np.where(length > 0, length, 1.0)
    on_mesh = points.shape[1] <= 3
    label = (_labels_on_mesh if on_mesh else _labels_on_graph)(directions, masses / masses.sum(), scale)
    if label is None:
        return Clusters(np.empty(0), np.empty((0, points.shape[1])), np.full(len(points), -1))
    peaks, first, basin = np.unique(label, return_index=True, return_inverse=True)
    held = np.bincount(basin, masses, len(peaks)).astype(float)
    sums = np.stack([np.bincount(basin, masses * x, len(peaks)) for x in directions.T], axis=1)
    length = np.linalg.norm(sums, axis=1, keepdims=True)
    centers = np.divide(sums, length, out=directions[first], where=length > 0)
    rank = np.argsort(-held, kind="stable")
    return Clusters(held[rank], centers[rank], np.argsort(rank)[basin])


def _labels_on_mesh(directions: Floats, masses: Floats, scale: float) -> Labels | None:
    """(n,) a number for each token's cluster; None where there is none."""
    mesh, tree, transform, share = _density_estimate(directions.shape[1], scale)
    cells = tree.query(directions)[1]
    coefficients = transform.analysis(np.bincount(cells, masses, mesh.cells).astype(float))
    density = transform.synthesis(coefficients * (share if mesh.dimension == 1 else share[:, None]))
    found = find_clusters(mesh, np.maximum(density, 0.0))
    return found.basin[cells] if found.count else None


@lru_cache(maxsize=4)
def _density_estimate(dimension: int, scale: float) -> tuple[Mesh, KDTree, Harmonics, Floats]:
    """A mesh fine enough, its centers for look-up, its transform, and the kernel's multipliers, 1 for degree 0."""
    from scipy.spatial import KDTree

    if dimension == 2:
        mesh = circle(int(np.clip(16 * np.pi / scale, 256, 4096)))
    else:
        mesh = sphere(int(np.clip(4 * np.pi / scale, 48, 192)))
    degree = exponential_degree(dimension, scale**-2)
    if dimension == 2:
        degree = min(degree, mesh.cells // 2)
    multipliers = exponential_multipliers(dimension, scale**-2, degree + 1)
    return mesh, KDTree(mesh.centers), harmonic_transform(mesh, degree), multipliers / multipliers[0]


def _labels_on_graph(directions: Floats, masses: Floats, scale: float) -> Labels | None:
    """(n,) a number for each token's cluster; None where there is none."""
    leaders = _cover(directions[np.unique(np.linspace(0, len(directions) - 1, MOST).astype(int))], COVER * scale)
    nearest = np.concatenate(
        [(directions[k : k + BLOCK] @ leaders.T).argmax(axis=1) for k in range(0, len(directions), BLOCK)]
    )
    held = np.bincount(nearest, masses, len(leaders)).astype(float)
    sharp = scale**-2
    _, density, _ = exponential_sums(leaders * sharp, leaders, held, log_scale=np.full(len(leaders), sharp))
    uniform = np.exp(exponential_spectrum(directions.shape[1], sharp, 1)[0] - sharp)
    if density.max() < CONTRAST * uniform:
        return None
    return _basins(leaders, np.log(density + FLOOR * uniform), REACH * scale)[nearest]


def _cover(directions: Floats, radius: float) -> Floats:
    """Leaders (k, d) among directions (n, d): each in turn that is farther than ``radius`` from those before."""
    near = directions @ directions.T >= np.cos(radius)
    covered = np.zeros(len(directions), dtype=bool)
    leaders = []
    for k in range(len(directions)):
        if not covered[k]:
            leaders.append(k)
            covered |= near[k]
    return directions[leaders]


def _basins(points: Floats, level: Floats, reach: float) -> Labels:
    """(k,) the peak of each point (k, d), by persistence over the graph of those nearer than ``reach`` radians."""
    pairs = np.argwhere(np.triu(points @ points.T >= np.cos(reach), k=1)).astype(np.int32)
    ends = pairs.reshape(-1)
    sides = np.argsort(ends, kind="stable").astype(np.int32)
    start = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=len(points)))]).astype(np.int32)
    peak = np.empty(len(points), dtype=np.int32)
    order = np.argsort(-level, kind="stable")
    backend_for(points).persistent_basins(order, level, float(np.log(CONTRAST)), start, sides, ends, peak)
    return peak.astype(np.intp)
