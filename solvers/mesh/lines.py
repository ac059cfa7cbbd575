"""Lines of equal cells, in which curves, tori and boxes are ordered."""

from __future__ import annotations

import numpy as np

from .mesh import Floats, Integers, Mesh


def opposite_sides(mesh: Mesh) -> Integers | None:
    """(sides,) of each side of a cell the one across it, where all cells are equal and lie in lines; else None.

    Sides are counted within a cell, the same way in all of them: as on curves, tori and boxes.
    """
    sides = 2 * mesh.dimension
    if len(mesh.cell_sides) != sides * mesh.cells or (np.diff(mesh.cell_start) != sides).any():
        return None
    table = mesh.cell_sides.reshape(mesh.cells, sides)
    neighbors = mesh.side_cells[table ^ 1]
    each = [_ways_back(neighbors, k) for k in range(sides)]
    if any(len(ways) != 1 for ways in each) or not _are_equal(mesh, table >> 1):
        return None
    return np.array([ways[0] for ways in each], dtype=np.int32)


def _ways_back(neighbors: Integers, k: int) -> list[int]:
    """The sides that lead back from the neighbors through side k of all cells, where these have any."""
    cells, ahead = np.arange(len(neighbors)), neighbors[:, k]
    return [one for one in range(neighbors.shape[1]) if ((ahead == cells) | (neighbors[ahead, one] == cells)).all()]


def _are_equal(mesh: Mesh, faces: Integers) -> bool:
    """Whether volumes are the same, and conductances along each axis, but for the rounding of edges."""
    conductances: Floats = np.asarray(mesh.face_conductances())
    inner = mesh.face_cells[:, 0] != mesh.face_cells[:, 1]
    each = [mesh.volumes, *(conductances[column][inner[column]] for column in faces.T)]
    return all(np.ptp(numbers) < 1e-9 * numbers.max() for numbers in each)
