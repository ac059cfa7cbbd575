"""Clusters: local concentrations of tokens that survive a persistence threshold, and are not nearer than a reach."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from meanfield.clusters.near import groups_within, sums_of_groups
from solvers.backends import host_backend
from solvers.mesh.mesh import Floats, Mesh

CONTRAST = 2.0  # smallest ratio of the peak of a cluster to its pass to a higher peak
FLOOR = 0.01  # relative to the mean density: cells with less count as empty, so that traces of mass have no peaks
COST = 4  # cost of a cell, relative to most kernels

Labels = NDArray[np.intp]


@dataclass(frozen=True)
class Clusters:
    """Clusters of a snapshot, heaviest first.

    Attributes
    ----------
    masses : (count,) array
        Masses of the clusters.
    centers : (count, d) array
        Directions of the mean positions, unit vectors.
    basin : (cells,) or (tokens,) array of int
        Number of the cluster of each cell or token, −1 for none. With a free radius these are cells of directions.

    Examples
    --------
    >>> import meanfield as mf
    >>> case = mf.load_case("tokens_pair", {"attention.beta": 1, "time.end": 10, "output.samples": 100})
    >>> clusters = mf.simulate(case).clusters()
    >>> clusters.count, clusters.masses, clusters.basin
    (1, array([1.]), array([0, 0]))
    """

    masses: Floats
    centers: Floats
    basin: Labels = field(repr=False)

    @property
    def count(self) -> int:
        """Return the number of clusters."""
        return len(self.masses)

    def _repr_html_(self) -> str:
        """Return the clusters as an HTML table: a row for each cluster, with its mass and its center."""
        rows = [
            f"<tr><td>{k}</td><td>{mass:.6g}</td><td>{', '.join(f'{x:.4g}' for x in center)}</td></tr>"
            for k, (mass, center) in enumerate(zip(self.masses, self.centers, strict=True))
        ]
        head = "<tr><th></th><th>mass</th><th>center</th></tr>"
        return f"<table><caption>{self.count} clusters</caption>{head}{''.join(rows)}</table>"


def find_clusters(mesh: Mesh, density: Floats, contrast: float = CONTRAST, reach: float = 0.0) -> Clusters:
    """Return clusters of a density (cells) by persistence of its superlevel sets (Edelsbrunner and Harer 2010, VII).

    As the level decreases, each peak is born at its height and dies where its component of the superlevel set meets
    that of a higher peak. Peaks that persist over a factor of ``contrast`` are clusters. Each cell belongs to the peak
    at the end of the path from neighbor to highest neighbor, or to the peak with which that peak has merged. A cluster
    may consist of a few adjacent cells: the density is first averaged over two layers of neighbors, so that such a
    pattern is one peak. A uniform density has no cluster. Clusters with centers nearer than ``reach`` radians are one:
    see :mod:`meanfield.clusters.near`. Raises ValueError for a density on other cells.
    """
    if density.shape != (mesh.cells,):
        raise ValueError(f"density {density.shape}: expected ({mesh.cells},), a value for each cell")
    found = find_clusters_of_rows(mesh, density[None], contrast, reach)
    centers = found.centers[0, : found.counts[0]].copy()
    return Clusters(found.masses[0, : found.counts[0]].copy(), centers, found.basins[0])


class ClustersOfRows(NamedTuple):
    """Clusters of several densities, one in each row: in a row the first ``counts`` masses and centers are of clusters.

    counts    (rows,)
    masses    (rows, k), heaviest first
    centers   (rows, k, d)
    basins    (rows, cells) the number of the cluster of each cell, −1 for none
    """

    counts: Labels
    masses: Floats
    centers: Floats
    basins: Labels


def find_clusters_of_rows(
    mesh: Mesh, densities: Floats, contrast: float = CONTRAST, reach: float = 0.0
) -> ClustersOfRows:
    """Return the clusters of each of several densities (rows, cells), each row independent of the other rows."""
    rows = len(densities)
    counts, basins = np.empty(rows, dtype=np.intp), np.empty(densities.shape, dtype=np.intp)
    masses, centers = np.empty(densities.shape), np.empty((*densities.shape, mesh.centers.shape[1]))
    host, densities = host_backend(), densities.view()
    densities.flags.writeable = False  # so that one compiled kernel serves arrays of both kinds
    host.launch(
        host.clusters_of_rows, COST * densities.size if rows > 1 else 0, mesh.volumes, mesh.centers, mesh.cell_start,
        mesh.side_neighbors, densities, FLOOR / mesh.volume, contrast, basins, masses, centers, counts,
    )  # fmt: skip
    for row, count in enumerate(counts):
        if count > 1 and reach > 0:
            found = Clusters(masses[row, :count], centers[row, :count], basins[row])
            one = joined(found, reach)
            counts[row], basins[row] = one.count, one.basin
            masses[row, : one.count], centers[row, : one.count] = one.masses, one.centers
    return ClustersOfRows(counts, masses, centers, basins)


def joined(clusters: Clusters, reach: float) -> Clusters:
    """Return clusters in which those with centers nearer than ``reach`` radians are one, heaviest first."""
    groups = groups_within(clusters.centers, reach)
    if not len(groups) or groups.max() + 1 == clusters.count:
        return clusters
    masses, centers = sums_of_groups(groups, clusters.masses, clusters.centers)
    order = np.argsort(-masses, kind="stable")
    number = np.append(np.argsort(order)[groups], -1)  # the last number is that of cells and tokens without a cluster
    return Clusters(masses[order], centers[order], number[clusters.basin])
