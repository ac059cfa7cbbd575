"""Sides and faces of polygonal cells around the points of a triangulation, from the edges of its triangles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .mesh import Floats, Integers

Table = NDArray[np.int64]


def edges_of_triangles(triangles: Table) -> tuple[Table, Table]:
    """Return the points of each edge (edges, 2), the lower first, and the edge across from each corner (triangles, 3).

    Raises ValueError where more than two triangles share an edge.
    """
    ends = np.stack([np.roll(triangles, -1, axis=1), np.roll(triangles, 1, axis=1)], axis=-1)
    edges, of_corner, counts = np.unique(
        np.sort(ends, axis=-1).reshape(-1, 2), axis=0, return_inverse=True, return_counts=True
    )
    if counts.max() > 2:
        raise ValueError(f"triangles: {counts.max()} share the edge {edges[counts.argmax()]}: expected 2 at most")
    return edges, of_corner.reshape(-1, 3)


def boundary_of(edges: Table, of_corner: Table) -> Table:
    """Return the indices of the edges that have one triangle, for the arrays of :func:`edges_of_triangles`."""
    return np.flatnonzero(np.bincount(of_corner.reshape(-1), minlength=len(edges)) == 1)


def oriented(one: Floats, other: Floats, along: Floats) -> Floats:
    """Return pairs of points (n, 2, d), each ordered along the direction ``along`` (n, d)."""
    forward = ((other - one) * along).sum(axis=1) >= 0
    pairs = np.stack([one, other], axis=1)
    return np.where(forward[:, None, None], pairs, pairs[:, ::-1])


def sides_around(
    face_cells: NDArray[np.integer], centers: Floats, face_centers: Floats, outward: Floats
) -> tuple[Integers, Integers]:
    """Return ``cell_start`` and ``cell_sides``, counterclockwise around each center seen from ``outward`` (cells, 3).

    The first side of a face with the same cell on both sides belongs to the cell.
    """
    owners = face_cells.reshape(-1)
    sides = np.flatnonzero(~((np.arange(len(owners)) % 2 == 1) & (np.repeat(face_cells[:, 0] == face_cells[:, 1], 2))))
    cells = owners[sides]
    away = face_centers[sides >> 1] - centers[cells]
    axis = np.eye(3)[np.abs(outward).argmin(axis=1)]  # any direction not parallel to the normal
    east = np.cross(outward, axis)
    angle = np.arctan2((away * np.cross(outward, east)[cells]).sum(axis=1), (away * east[cells]).sum(axis=1))
    order = np.lexsort((angle, cells))
    starts = np.append(0, np.cumsum(np.bincount(cells, minlength=len(centers))))
    return starts.astype(np.int32), sides[order].astype(np.int32)
