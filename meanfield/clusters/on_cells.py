"""Clusters: local concentrations of tokens that survive a persistence threshold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from solvers.backends import host_backend
from solvers.mesh.mesh import Floats, Mesh

CONTRAST = 2.0  # a cluster's peak is at least this many times denser than the pass to a higher one
FLOOR = 0.01  # of the mean density: what is thinner counts as empty, so that traces of mass have no peaks
COST = 4  # of a cell, over that of one in most kernels

Labels = NDArray[np.intp]


@dataclass(frozen=True)
class Clusters:
    """masses (k) and centers (k, d), heaviest first; basin (cells) is the cluster of each cell, −1 for none."""

    masses: Floats
    centers: Floats
    basin: Labels = field(repr=False)

    @property
    def count(self) -> int:
        return len(self.masses)

    def _repr_html_(self) -> str:
        """A table: a row for each cluster, with its mass and its center."""
        rows = [
            f"<tr><td>{k}</td><td>{mass:.6g}</td><td>{', '.join(f'{x:.4g}' for x in center)}</td></tr>"
            for k, (mass, center) in enumerate(zip(self.masses, self.centers, strict=True))
        ]
        head = "<tr><th></th><th>mass</th><th>center</th></tr>"
        return f"<table><caption>{self.count} clusters</caption>{head}{''.join(rows)}</table>"


def find_clusters(mesh: Mesh, density: Floats, contrast: float = CONTRAST) -> Clusters:
    """Clusters of a density (cells) by the persistence of its superlevel sets (Edelsbrunner and Harer 2010, VII).

    Water falls from the highest peak: each peak is born at its height and dies where its island meets a higher one.
    Peaks that live over a factor of ``contrast`` are clusters, and each cell belongs to the peak that it leads to from
    neighbor to highest neighbor, or to the one that this has joined. A cluster may lie in a handful of cells, one
    beside the other: the density is averaged over two layers of neighbors first, so that such a pattern is one peak. A
    uniform density has no cluster. Raises ValueError for a density on other cells.
    """
    if density.shape != (mesh.cells,):
        raise ValueError(f"density {density.shape}: expected ({mesh.cells},), a value for each cell")
    found = find_clusters_of_rows(mesh, density[None], contrast)
    centers = found.centers[0, : found.counts[0]].copy()
    return Clusters(found.masses[0, : found.counts[0]].copy(), centers, found.basins[0])


class ClustersOfRows(NamedTuple):
    """Of each row the first ``counts`` (rows,) of masses (rows, k) and centers (rows, k, d); basins (rows, cells)."""

    counts: Labels
    masses: Floats
    centers: Floats
    basins: Labels


def find_clusters_of_rows(mesh: Mesh, densities: Floats, contrast: float = CONTRAST) -> ClustersOfRows:
    """The same of densities (rows, cells), each whatever the others."""
    rows = len(densities)
    counts, basins = np.empty(rows, dtype=np.intp), np.empty(densities.shape, dtype=np.intp)
    masses, centers = np.empty(densities.shape), np.empty((*densities.shape, mesh.centers.shape[1]))
    host = host_backend()
    host.launch(
        host.clusters_of_rows, COST * densities.size if rows > 1 else 0, mesh.volumes, mesh.centers, mesh.cell_start,
        mesh.side_neighbors, densities, FLOOR / mesh.volume, contrast, basins, masses, centers, counts,
    )  # fmt: skip
    return ClustersOfRows(counts, masses, centers, basins)
