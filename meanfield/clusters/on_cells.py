"""Clusters: local concentrations of tokens that survive a persistence threshold."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from solvers.backends.cpu.cells import sort_equal, sum_over_basins
from solvers.mesh.mesh import Floats, Mesh

CONTRAST = 2.0  # a cluster's peak is at least this many times denser than the pass to a higher one
FLOOR = 0.01  # of the mean density: what is thinner counts as empty, so that traces of mass have no peaks


@dataclass(frozen=True)
class Clusters:
    """masses (k) and centers (k, d), heaviest first; basin (cells) is the cluster of each cell, −1 for none."""

    masses: Floats
    centers: Floats
    basin: NDArray[np.intp] = field(repr=False)

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
    Peaks that live over a factor of ``contrast`` are clusters, and each cell belongs to the peak whose island it
    joined. A cluster may lie in a handful of cells, one beside the other: the density is averaged over two layers of
    neighbours first, so that such a pattern is one peak. A uniform density has no cluster. Raises ValueError for a
    density on other cells.
    """
    if density.shape != (mesh.cells,):
        raise ValueError(f"density {density.shape}: expected ({mesh.cells},), a value for each cell")
    backend, smooth = mesh.backend, density
    neighborhood = (mesh.cell_start, mesh.cell_sides, mesh.side_cells)
    for _ in range(2):
        average = np.empty(mesh.cells)
        backend.launch(backend.average_neighbors, mesh.cells, mesh.volumes, *neighborhood, smooth, average)
        smooth = average
    level = np.log(smooth + FLOOR / mesh.volume)
    if level.max() - level.min() < np.log(contrast):
        return Clusters(np.empty(0), np.empty((0, mesh.centers.shape[1])), np.full(mesh.cells, -1))
    order = np.argsort(-level)  # not stable, which takes five times as long on 10⁴ cells
    sort_equal(order, level)
    peak_of, number = np.empty(mesh.cells, dtype=np.int32), np.empty(mesh.cells, dtype=np.intp)
    backend.persistent_basins(order, level, float(np.log(contrast)), *neighborhood, peak_of)
    peaks, sums = np.empty_like(number), np.empty((mesh.cells, 1 + mesh.centers.shape[1]))
    count = sum_over_basins(peak_of, density * mesh.volumes, mesh.centers, number, peaks, sums)
    masses, sums, peaks = sums[:count, 0].copy(), sums[:count, 1:], peaks[:count]
    rank = np.argsort(-masses, kind="stable")
    place = np.empty_like(rank)
    place[rank] = np.arange(count)
    length = np.linalg.norm(sums, axis=1, keepdims=True)
    centers = np.divide(sums, length, out=mesh.centers[peaks].copy(), where=length > 0)
    return Clusters(masses[rank], centers[rank], place[number])
