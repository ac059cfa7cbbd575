"""Opposite sides of cells in meshes of equal cells ordered in lines: curves, tori and boxes."""

from __future__ import annotations

import numpy as np

from .mesh import Floats, Integers, Mesh


def opposite_sides(mesh: Mesh) -> Integers | None:
    """Return for each side of a cell the number of the opposite side (sides,), in a mesh of equal cells in lines.

    Returns None unless all cells are equal and lie in lines. Sides are counted within a cell, in the same order in all
    cells, as on curves, tori and boxes.
    """
    sides = 2 * mesh.dimension
    if len(mesh.cell_sides) != sides * mesh.cells or (np.diff(mesh.cell_start) != sides).any():
        return None
    table = mesh.cell_sides.reshape(mesh.cells, sides)
    neighbors = mesh.side_cells[table ^ 1]
    each = [_return_sides(neighbors, k) for k in range(sides)]
    if any(len(found) != 1 for found in each) or not _are_equal(mesh, table >> 1):
        return None
    return np.array([found[0] for found in each], dtype=np.int32)


def _return_sides(neighbors: Integers, k: int) -> list[int]:
    """Return the numbers of the sides that lead back from the neighbor across side k in every cell, except at walls.

    neighbors   (cells, sides) cell across each side; the cell itself at a wall
    """
    cells, ahead = np.arange(len(neighbors)), neighbors[:, k]
    return [one for one in range(neighbors.shape[1]) if ((ahead == cells) | (neighbors[ahead, one] == cells)).all()]


def _are_equal(mesh: Mesh, faces: Integers) -> bool:
    """Return whether all volumes, and all conductances along each axis, are equal to rounding of the edges."""
    conductances: Floats = np.asarray(mesh.face_conductances())
    inner = mesh.face_cells[:, 0] != mesh.face_cells[:, 1]
    each = [mesh.volumes, *(conductances[column][inner[column]] for column in faces.T)]
    return all(np.ptp(numbers) < 1e-9 * numbers.max() for numbers in each)
