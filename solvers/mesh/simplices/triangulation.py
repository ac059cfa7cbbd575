"""Triangles of a mesh, sides of the cells around its points, and overlap of triangles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from ..mesh import Floats, Integers, Mesh
from .arrays import Table, sides_by_cell, sides_of

_INSET = 1e-6  # of the way from a boundary edge to the centroid of its triangle: far above rounding, far below a cell


def triangles_of(mesh: Mesh) -> Table:
    """Return the corners (n, 3), numbers of cells, of the triangles of a mesh by :func:`~solvers.triangles`.

    Two consecutive neighbors of a cell, counterclockwise and not across the boundary, are the corners of a triangle.
    """
    starts, sides = mesh.cell_start, mesh.cell_sides
    cells, neighbors = np.repeat(np.arange(mesh.cells), np.diff(starts)), mesh.side_cells[sides ^ 1]
    following = np.arange(1, len(sides) + 1)
    following[starts[1:] - 1] = starts[:-1]
    corners = np.stack([cells, neighbors, neighbors[following]], axis=1).astype(np.int64)
    return corners[(corners[:, :1] < corners[:, 1:]).all(axis=1)]  # once each; outer sides lead to the cell itself


def orient_along(one: Floats, other: Floats, along: Floats) -> Floats:
    """Return pairs of points (n, 2, d), each ordered along the direction ``along`` (n, d)."""
    forward = ((other - one) * along).sum(axis=1) >= 0
    pairs = np.stack([one, other], axis=1)
    return np.where(forward[:, None, None], pairs, pairs[:, ::-1])


def sides_around(
    face_cells: NDArray[np.integer], centers: Floats, face_centers: Floats, outward: Floats
) -> tuple[Integers, Integers]:
    """Return the sides of all cells, counterclockwise around each center: ``cell_start`` and ``cell_sides`` of `Mesh`.

    The order is that seen from ``outward`` (cells, 3).
    """
    sides, cells = sides_of(face_cells)
    away = face_centers[sides >> 1] - centers[cells]
    axis = np.eye(3)[np.abs(outward).argmin(axis=1)]  # any direction not parallel to the normal
    east = np.cross(outward, axis)
    angle = np.arctan2((away * np.cross(outward, east)[cells]).sum(axis=1), (away * east[cells]).sum(axis=1))
    return sides_by_cell(np.lexsort((angle, cells)), sides, cells, len(centers))


def check_overlap(space: Floats, table: Table, of_corner: Table, is_plane: bool) -> None:
    """Raise ValueError for a triangle that occurs twice, and for triangles that overlap in the plane.

    On a surface, triangles of different orientations raise ValueError.

    A mesh of the plane whose triangles do not overlap beside an edge or around a point covers each point a number of
    times that changes only across a boundary edge. So triangles overlap if and only if one of them meets the inner
    side of a boundary edge of another.

    space       (points, 3)
    table       (triangles, 3) corners, counterclockwise in the plane
    of_corner   (triangles, 3) the edge opposite each corner
    """
    _check_unequal(np.sort(table, axis=1), "triangles {} and {}: expected different corners")
    ahead = np.stack([table, np.roll(table, -1, axis=1)], axis=-1).reshape(-1, 2)  # each edge once per direction
    if not is_plane:
        _check_unequal(ahead, "triangles {} and {}: expected the same orientation of all triangles of a surface", 3)
        return
    _check_unequal(ahead, "triangles {} and {} overlap: expected one on each side of the edge that they share", 3)
    corners = space[table]
    after, before = np.roll(corners, -1, axis=1) - corners, np.roll(corners, 1, axis=1) - corners
    angles = np.arctan2(np.cross(after, before)[..., 2], (after * before).sum(axis=-1))
    around = np.bincount(table.reshape(-1), angles.reshape(-1))
    if around.max() > 2 * np.pi * (1 + 1e-9):
        raise ValueError(
            f"triangles around point {int(around.argmax())} overlap: their angles add up to {around.max():.6g},"
            " expected at most 2π"
        )
    _check_boundary(corners[..., :2], of_corner)


def _check_unequal(rows: Table, message: str, size: int = 1) -> None:
    """Raise ValueError if two rows are equal; each triangle has ``size`` consecutive rows.

    message   format of the message, with two places for the numbers of the triangles
    """
    _, first, back = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[back.reshape(-1)] != np.arange(len(rows)))
    if len(again):
        raise ValueError(message.format(first[back.reshape(-1)[again[0]]] // size, again[0] // size))


def _check_boundary(corners: Floats, of_corner: Table) -> None:
    """Raise ValueError for a triangle of the plane that meets the inner side of another triangle's boundary edge.

    corners     (triangles, 3, 2), counterclockwise
    of_corner   (triangles, 3) the edge opposite each corner
    """
    owner, corner = np.nonzero(np.bincount(of_corner.reshape(-1))[of_corner] == 1)
    centroids = corners.mean(axis=1)
    ends = np.stack([corners[owner, (corner + 1) % 3], corners[owner, (corner + 2) % 3]], axis=1)
    ends += _INSET * (centroids[owner, None] - ends)  # now inside the edge's own triangle
    middles, half = ends.mean(axis=1), np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1) / 2
    radii = np.linalg.norm(corners - centroids[:, None], axis=2).max(axis=1)
    sizes = np.frexp(radii)[1]
    for size in np.unique(sizes):  # so that a few large triangles do not make all small ones candidates
        near = np.flatnonzero(sizes == size)
        found = KDTree(centroids[near]).query_ball_point(middles, half + radii[near].max())
        edge = np.repeat(np.arange(len(ends)), [len(triangles) for triangles in found])
        other = near[np.concatenate([*found, []]).astype(np.int64)]
        edge, other = edge[other != owner[edge]], other[other != owner[edge]]
        meets = _crosses(ends[edge], corners[other])
        if meets.any():
            first = int(meets.argmax())
            raise ValueError(f"triangles {owner[edge[first]]} and {other[first]} overlap: expected disjoint triangles")


def _crosses(ends: Floats, corners: Floats) -> np.ndarray:
    """Return whether segments (n, 2, 2) meet the interiors of counterclockwise triangles (n, 3, 2)."""
    along, offsets = np.roll(corners, -1, axis=1) - corners, ends[:, None] - corners[:, :, None]
    heights = along[:, :, None, 0] * offsets[..., 1] - along[:, :, None, 1] * offsets[..., 0]  # (n, side, end)
    start, slope = heights[..., 0], heights[..., 1] - heights[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        crossing = -start / slope
    enters = np.where(slope > 0, crossing, np.where((slope == 0) & (start <= 0), np.inf, 0.0)).max(axis=1)
    leaves = np.where(slope < 0, crossing, 1.0).min(axis=1)
    return np.asarray(np.maximum(enters, 0.0) < np.minimum(leaves, 1.0))
