"""Meshes of triangles in the plane or on a surface in space: one cell around each point."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial import Delaunay

from .arguments import check_count, check_sides
from .checks import check_number, check_unmasked
from .mesh import Floats, Mesh
from .triangulation import Table, boundary_of, check_overlap, edges_of_triangles, sides_around


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
    check_unmasked("points", points)
    check_unmasked("corners", corners)
    place, table = np.asarray(points, dtype=np.float64), np.asarray(corners)
    _check(place, table)
    table = table.astype(np.int64)
    space = place if place.shape[1] == 3 else np.column_stack([place, np.zeros(len(place))])
    table = _orient_counterclockwise(space, table) if place.shape[1] == 2 else table
    edges, of_corner = edges_of_triangles(table)
    twice = np.cross(space[table[:, 1]] - space[table[:, 0]], space[table[:, 2]] - space[table[:, 0]])
    area = np.linalg.norm(twice, axis=1) / 2
    if not (area > 1e-14 * area.max()).all():
        raise ValueError(f"triangle {int(area.argmin())}: expected corners that are not on a line")
    check_overlap(space, table, of_corner, is_plane=place.shape[1] == 2)
    inner = _inner_faces(space, table, edges, of_corner, twice / (2 * area)[:, None])
    rim = _outer_faces(space, table, edges, of_corner, twice / (2 * area)[:, None])
    face_cells = np.concatenate([edges, rim["cells"]])
    normals, areas = _unit(np.concatenate([inner["normals"], rim["normals"]]))
    centers = np.concatenate([inner["centers"], rim["centers"]])
    outward = _unit(_sums_at_points(table, twice, len(space)))[0]
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
        boundary_faces=_tagged_boundary(rim["edges"], len(edges), len(place), tags or {}),
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


def read_triangles(path: str | PathLike[str]) -> Mesh:
    """Return the mesh of the triangles in a file of Gmsh, VTK, STL or another format that meshio reads.

    Named lines become tags of the boundary, see :func:`~solvers.triangles`. Lines inside the mesh are omitted, and so
    are names without a line on the boundary and points without a triangle. The mesh is plane if all z are 0.

    Parameters
    ----------
    path : str or path
        The file.

    Returns
    -------
    Mesh
        Mesh with one cell around each point.

    Raises
    ------
    ImportError
        Without meshio.
    FileNotFoundError
        Without the file.
    ValueError
        For a file without triangles, and as :func:`~solvers.triangles`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from solvers import read_triangles
    >>> tetrahedron = ["OFF", "4 4 0", "0 0 0", "1 0 0", "0 1 0", "0 0 1", "3 0 2 1", "3 0 1 3", "3 0 3 2", "3 1 2 3"]
    >>> _ = Path("tetrahedron.off").write_text(chr(10).join(tetrahedron))
    >>> mesh = read_triangles("tetrahedron.off")
    >>> round(float(mesh.volume), 6)  # three halves and √3/2
    2.366025
    """
    try:
        import meshio
    except ImportError:
        raise ImportError("reading a mesh file needs meshio: pip install meshio, or use triangles()") from None
    if not Path(path).exists():
        raise FileNotFoundError(f"{path}: expected an existing file")
    file: Any = meshio.read(path)
    if "triangle" not in file.cells_dict:
        raise ValueError(f"{path}: expected triangles, it has {', '.join(file.cells_dict) or 'nothing'}")
    points, corners = file.points, file.cells_dict["triangle"]
    if points.shape[1] == 3 and not points[:, 2].any():
        points = points[:, :2]
    used, place = np.unique(corners, return_inverse=True)
    renumbered = np.full(len(points), -1)
    renumbered[used] = np.arange(len(used))
    table = place.reshape(-1, 3)
    edges, of_corner = edges_of_triangles(table)
    rim, tags = edges[boundary_of(edges, of_corner)], {}
    for name, ends in _named_lines(file).items():
        lines = renumbered[ends]
        on_boundary = _edge_rows(rim, lines, len(used)) >= 0
        if on_boundary.any():
            tags[name] = lines[on_boundary]
    return triangles(points[used], table, tags)


def _named_lines(file: Any) -> dict[str, Table]:
    """Return the named lines of a file of meshio as pairs of points (n, 2): sets of cells, or groups of Gmsh 2.2."""
    sets = {name: cells["line"] for name, cells in file.cell_sets_dict.items() if "line" in cells}
    group = file.cell_data_dict.get("gmsh:physical", {}).get("line")
    if group is not None:
        sets |= {name: group == number for name, (number, dimension) in file.field_data.items() if dimension == 1}
    return {name: file.cells_dict["line"][chosen] for name, chosen in sets.items() if not name.startswith("gmsh:")}


def _check(points: Floats, corners: Table) -> None:
    """Raise ValueError for points or corners of triangles that are invalid, TypeError unless corners are integers."""
    if points.ndim != 2 or points.shape[1] not in (2, 3):
        raise ValueError(f"points of shape {points.shape}: expected (n, 2) or (n, 3)")
    if corners.ndim != 2 or corners.shape[1] != 3 or not len(corners):
        raise ValueError(f"corners of shape {corners.shape}: expected (triangles, 3)")
    _check_integers("corners", corners)
    if not np.isfinite(points).all():
        raise ValueError("points: expected finite numbers")
    if corners.min() < 0 or corners.max() >= len(points):
        raise ValueError(f"corners {corners.min()} to {corners.max()}: expected 0 to {len(points) - 1}")
    unused = np.setdiff1d(np.arange(len(points)), corners)
    if len(unused):
        raise ValueError(f"point {unused[0]}: expected to be a corner of a triangle")


def _check_integers(name: str, array: np.ndarray) -> None:
    """Raise TypeError unless an array holds integers; ``name`` is its name in the message."""
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} of dtype {array.dtype}: expected integers")


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
        normals += _sums_at_indices(edge, normal, count)
        moments += _sums_at_indices(edge, length[:, None] * (half + middle) / 2, count)
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


def _tagged_boundary(rim: Table, first: int, points: int, tags: Mapping[str, ArrayLike]) -> dict[str, Any]:
    """Return the boundary faces of each tag: two consecutive faces per boundary edge, numbered from ``first``.

    rim      (n, 2) points of the boundary edges
    points   number of all points
    tags     tag → pairs of points (edges, 2); edges without a tag get the tag "boundary"
    Raises ValueError for pairs that are no boundary edges, TypeError unless they are integers.
    """
    found, free = {}, np.ones(len(rim), dtype=bool)
    for tag, given in tags.items():
        name, pairs = f"tags[{tag!r}]", np.asarray(given)
        check_unmasked(name, given)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs):
            raise ValueError(f"{name} of shape {pairs.shape}: expected (edges, 2)")
        _check_integers(name, pairs)
        at = _edge_rows(rim, pairs, points)
        if at.min() < 0:
            first = int(at.argmin())
            raise ValueError(f"{name}[{first}] = {pairs[first].tolist()}: expected the points of a boundary edge")
        free[at] = False
        found[tag] = at
    if free.any():
        found["boundary"] = np.flatnonzero(free)
    return {tag: (first + 2 * at[:, None] + np.arange(2)).reshape(-1).astype(np.int32) for tag, at in found.items()}


def _edge_rows(rim: Table, pairs: Table, points: int) -> Table:
    """Return the row (n,) of each pair of points (n, 2) in the boundary edges ``rim``, −1 for a pair that is no row.

    The points of a pair may be in either order; those of a boundary edge increase. ``points`` is the number of all
    points.
    """
    pair = np.sort(pairs.astype(np.int64), axis=1)
    key, searched = rim[:, 0] * points + rim[:, 1], pair[:, 0] * points + pair[:, 1]
    searched[(pair[:, 0] < 0) | (pair[:, 1] >= points)] = -1
    order = np.argsort(key)
    at = np.searchsorted(key[order], searched)
    is_found = np.append(key[order], -2)[at] == searched
    return np.where(is_found, np.append(order, -1)[at], -1)


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
    return sum((_sums_at_indices(table[:, k], vectors, count) for k in range(3)), np.zeros((count, 3)))


def _sums_at_indices(indices: Any, vectors: Floats, count: int) -> Floats:
    """Return the sums (count, 3) of those vectors (n, 3) that have the same index, given the indices (n,)."""
    return np.stack([np.bincount(indices, column, count) for column in vectors.T], axis=1)


def _unit(vectors: Floats) -> tuple[Floats, Floats]:
    """Return the directions (n, 3) and the lengths (n,) of vectors (n, 3)."""
    length = np.linalg.norm(vectors, axis=1)
    return vectors / length[:, None], length
