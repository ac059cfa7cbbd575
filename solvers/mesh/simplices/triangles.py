"""Meshes of triangles in the plane or on a surface in space: one cell around each point."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import Delaunay

from ..arguments import check_count, check_sides
from ..checks import check_number
from ..mesh import Floats, Mesh
from .arrays import (
    Table,
    boundary_of,
    directions_and_lengths,
    facets_of,
    points_and_corners,
    sums_at,
    tagged_boundary,
)
from .triangulation import check_overlap, sides_around


def triangles(points: ArrayLike, corners: ArrayLike, tags: Mapping[str, ArrayLike] | None = None) -> Mesh:
    """Return the median dual of a triangulation: one cell around each point.

    The cell of a point consists of a third of each triangle at the point. Points on the boundary are the centers of
    their cells. Two-point fluxes use the cotangents of the opposite angles. They equal those of linear finite elements
    with lumped masses and are of second order. They keep u ≥ 0 where no two angles opposite an edge add up to more than
    π, as in a Delaunay triangulation.

    Parameters
    ----------
    points : (cells, 2) or (cells, 3) array
        Points in the plane, or on a surface in space.
    corners : (triangles, 3) array of int
        Indices of the points of each triangle. In the plane either order is valid; on a surface all triangles need the
        same orientation.
    tags : dict of str to (k, 2) array of int, optional
        Edges of each part of the boundary, as pairs of points. All other boundary edges have the tag "boundary".

    Returns
    -------
    Mesh
        Mesh whose centers are the points.

    Raises
    ------
    TypeError
        For corners or tags that are not integers.
    ValueError
        For arrays of other shapes, numbers that are masked or not finite, indices out of range; for points without a
        triangle, triangles without area, edges shared by more than two triangles, equal triangles, triangles of the
        plane that overlap, and triangles of a surface with different orientations; for tags of other pairs than
        boundary edges.

    References
    ----------
    Pinkall and Polthier 1993 (cotangent weights).

    Examples
    --------
    >>> from solvers import triangles
    >>> square = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    >>> mesh = triangles(square, [[0, 1, 2], [0, 2, 3]], tags={"floor": [[0, 1]]})
    >>> mesh
    <Mesh triangles: 4 cells in R^2, 13 faces, total volume 1, boundary floor, boundary>
    >>> (6 * mesh.volumes).round(6)  # a third of both triangles, or of one
    array([2., 1., 2., 1.])
    """
    place, table = points_and_corners(points, corners, (2, 3), 3)
    space = place if place.shape[1] == 3 else np.column_stack([place, np.zeros(len(place))])
    table = _orient_counterclockwise(space, table) if place.shape[1] == 2 else table
    edges, of_corner = facets_of(table)
    twice = np.cross(space[table[:, 1]] - space[table[:, 0]], space[table[:, 2]] - space[table[:, 0]])
    area = np.linalg.norm(twice, axis=1) / 2
    if not (area > 1e-14 * area.max()).all():
        raise ValueError(f"triangle {int(area.argmin())}: expected corners that are not on a line")
    check_overlap(space, table, of_corner, is_plane=place.shape[1] == 2)
    inner = _inner_faces(space, table, edges, of_corner, twice / (2 * area)[:, None])
    rim = _outer_faces(space, table, edges, of_corner, twice / (2 * area)[:, None])
    face_cells = np.concatenate([edges, rim["cells"]])
    normals, areas = directions_and_lengths(np.concatenate([inner["normals"], rim["normals"]]))
    centers = np.concatenate([inner["centers"], rim["centers"]])
    outward = directions_and_lengths(_sums_at_points(table, twice, len(space)))[0]
    starts, sides = sides_around(face_cells, space, centers, outward)
    conductances = np.append(_cotangents(space, table, of_corner, len(edges)), np.zeros(len(rim["cells"])))
    d = place.shape[1]
    return Mesh(
        manifold="triangles",
        dimension=2,
        centers=place,
        volumes=np.asarray(np.bincount(table.reshape(-1), np.repeat(area / 3, 3), len(place)), dtype=np.float64),
        face_cells=face_cells.astype(np.int32),
        face_centers=np.ascontiguousarray(centers[:, :d]),
        face_normals=np.ascontiguousarray(normals[:, :d]),
        face_areas=areas,
        face_curvatures=np.zeros(len(areas)),
        face_conductances=partial(np.asarray, conductances),
        cell_start=starts,
        cell_sides=sides,
        ring_cells=np.array([len(place)], dtype=np.int32),
        boundary_faces=tagged_boundary(rim["edges"], len(edges), tags or {}),
    )


def disk(radius: float, rings: int) -> Mesh:
    """Return the mesh of a disk around the origin, in triangles between a center and rings of 6, 12, 18, … points.

    Parameters
    ----------
    radius : float
        Radius.
    rings : int
        Number of rings, at least 1, in equal distances; the last is the boundary "boundary". The mesh has
        3 rings (rings + 1) + 1 cells. Good values: 16 (817 cells), 32 (3169).

    Returns
    -------
    Mesh
        Median dual of the triangles, as of :func:`~solvers.triangles`: the centers of its cells are the points.

    Raises
    ------
    TypeError
        If ``radius`` is not a number, or ``rings`` not a whole number.
    ValueError
        If ``radius`` is not finite and > 0, or ``rings`` < 1.

    Notes
    -----
    Poisson's equation and the eigenvalues of the Laplacian are of second order. The edges of the last ring are chords.

    Examples
    --------
    The solution of Δu = −4 that is 0 on the unit circle is 1 − x² − y²:

    >>> from solvers import Laplacian, Value, disk
    >>> mesh = disk(1.0, 16)
    >>> u = Laplacian(mesh, {"boundary": Value(0.0)}).solve(-4.0)
    >>> bool(abs(u - (1 - (mesh.centers**2).sum(axis=1))).max() < 5e-3)
    True
    """
    check_number("radius", radius, above=0.0)
    check_count("rings", rings, 1)
    check_sides("rings", rings, 3 * rings * (3 * rings + 1))
    ring = np.repeat(np.arange(rings + 1), np.append(1, 6 * np.arange(1, rings + 1)))
    angle = 2 * np.pi * np.concatenate([[0.0], *(np.arange(6 * k) / (6 * k) for k in range(1, rings + 1))])
    points = ring[:, None] / rings * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return triangles(radius * points, Delaunay(points).simplices)


def _orient_counterclockwise(space: Floats, table: Table) -> Table:
    """Return triangles of the plane (triangles, 3) with their corners in counterclockwise order."""
    a, b, c = space[table].swapaxes(0, 1)
    clockwise = np.cross(b - a, c - a)[:, 2] < 0
    return np.where(clockwise[:, None], table[:, ::-1], table)


def _inner_faces(space: Floats, table: Table, edges: Table, of_corner: Table, up: Floats) -> dict[str, Floats]:
    """Return by name the centers and the normals times length (edges, 3) of the faces between cells, one at each edge.

    edges       (edges, 2) points of each edge
    of_corner   (triangles, 3) edge opposite each corner
    up          (triangles, 3) unit normal of each triangle
    A face consists of the segments from the midpoint of the edge to the centroids of the triangles at the edge.
    """
    count, middle = len(edges), space[table].mean(axis=1)
    normals, moments, lengths = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros(count)
    for k in range(3):
        edge = of_corner[:, k]
        half, along = space[edges[edge]].mean(axis=1), space[edges[edge, 1]] - space[edges[edge, 0]]
        normal = np.cross(middle - half, up)
        normal *= np.sign((normal * along).sum(axis=1))[:, None]
        length = np.linalg.norm(middle - half, axis=1)
        lengths += np.bincount(edge, length, count)
        normals += sums_at(edge, normal, count)
        moments += sums_at(edge, length[:, None] * (half + middle) / 2, count)
    return {"normals": normals, "centers": moments / lengths[:, None]}


def _outer_faces(space: Floats, table: Table, edges: Table, of_corner: Table, up: Floats) -> dict[str, Any]:
    """Return the faces on the boundary of a triangulation: for each boundary edge its halves next to its two points.

    edges       (edges, 2) points of each edge
    of_corner   (triangles, 3) edge opposite each corner
    up          (triangles, 3) unit normal of each triangle
    Returned by name are cells, normals times length and centers of the faces, and the points of the boundary edges.
    """
    triangle_of = np.repeat(np.arange(len(table)), 3)
    rim = boundary_of(edges, of_corner)
    order = np.argsort(of_corner.reshape(-1), kind="stable")
    first = order[np.searchsorted(of_corner.reshape(-1)[order], rim)]
    ends = space[edges[rim]]
    along = ends[:, 1] - ends[:, 0]
    normal = np.cross(along, up[triangle_of[first]]) / 2
    inside = space[table.reshape(-1)[first]] - ends[:, 0]
    normal *= -np.sign((normal * inside).sum(axis=1))[:, None]
    middles = np.stack([0.75 * ends[:, 0] + 0.25 * ends[:, 1], 0.25 * ends[:, 0] + 0.75 * ends[:, 1]], axis=1)
    return {
        "cells": np.repeat(edges[rim].reshape(-1), 2).reshape(-1, 2),
        "normals": np.repeat(normal, 2, axis=0),
        "centers": middles.reshape(-1, 3),
        "edges": edges[rim],
    }


def _cotangents(space: Floats, table: Table, of_corner: Table, count: int) -> Floats:
    """Return ½ Σ cot of the angles opposite each edge (edges,), the conductances of linear finite elements.

    of_corner   (triangles, 3) edge opposite each corner
    count       number of edges
    """
    sums = np.zeros(count)
    for k in range(3):
        corner, one, other = (space[table[:, (k + j) % 3]] for j in range(3))
        a, b = one - corner, other - corner
        cotangent = (a * b).sum(axis=1) / np.linalg.norm(np.cross(a, b), axis=1)
        sums += np.bincount(of_corner[:, k], cotangent / 2, count)
    return sums


def _sums_at_points(table: Table, vectors: Floats, count: int) -> Floats:
    """Return the sums (count, 3) at each point of the vectors (triangles, 3) of the triangles with a corner there."""
    return sum((sums_at(table[:, k], vectors, count) for k in range(3)), np.zeros((count, 3)))
