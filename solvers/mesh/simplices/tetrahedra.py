"""Meshes of tetrahedra in a body: one cell around each point."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import combinations, permutations

import numpy as np
from numpy.typing import ArrayLike

from ..arguments import check_count, check_sides
from ..checks import check_number
from ..icosphere import subdivided_icosahedron
from ..mesh import Floats, Mesh
from .arrays import (
    Table,
    boundary_of,
    different_rows,
    directions_and_lengths,
    facets_of,
    points_and_corners,
    sides_by_cell,
    sides_of,
    sums_at,
    tagged_boundary,
)

_PAIRS = tuple(combinations(range(4), 2))  # corners at the ends of the edges of a tetrahedron
_MIN_VOLUME = 1e-14  # of a tetrahedron, relative to the largest: below, rounding decides


def tetrahedra(points: ArrayLike, corners: ArrayLike, tags: Mapping[str, ArrayLike] | None = None) -> Mesh:
    """Return the median dual of a mesh of tetrahedra: one cell around each point.

    The cell of a point consists of a quarter of each tetrahedron at the point. Points on the boundary are the centers
    of their cells. Two-point fluxes equal those of linear finite elements with lumped masses and are of second order.
    They keep u ≥ 0 where the conductances of all edges are ≥ 0. In a body a Delaunay mesh may have negative ones; a
    mesh whose angles between adjacent faces are at most π/2 has none.

    Parameters
    ----------
    points : (cells, 3) array
        Points.
    corners : (tetrahedra, 4) array of int
        Indices of the points of each tetrahedron, in any order.
    tags : dict of str to (k, 3) array of int, optional
        Triangles of each part of the boundary, by their points. All other boundary triangles have the tag "boundary".

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
        tetrahedron, tetrahedra without volume, triangles shared by more than two tetrahedra, and two tetrahedra on the
        same side of a triangle that they share; for tags of other triangles than those of the boundary. Other overlaps
        are not detected.

    References
    ----------
    Bank and Rose 1987 (finite volumes around points, equal to linear finite elements).

    Examples
    --------
    >>> from scipy.spatial import Delaunay
    >>> from solvers import tetrahedra
    >>> points = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]
    >>> mesh = tetrahedra(points, [[0, 1, 2, 3], [1, 2, 3, 4]], tags={"floor": [[0, 1, 2]]})
    >>> mesh
    <Mesh tetrahedra: 5 cells in R^3, 27 faces, total volume 0.5, boundary floor, boundary>
    >>> (24 * mesh.volumes).round(6)  # a quarter of one or both volumes, 1/6 and 1/3
    array([1., 3., 3., 3., 2.])
    """
    place, table = points_and_corners(points, corners, (3,), 4)
    facets, of_corner = facets_of(table)
    space = place[table]
    volume = np.abs(np.linalg.det(space[:, 1:] - space[:, :1])) / 6
    if not (volume > _MIN_VOLUME * volume.max()).all():
        raise ValueError(f"tetrahedron {int(volume.argmin())}: expected corners that are not in a plane")
    _check_sides(place, table, facets, of_corner)
    edges, of_pair = different_rows(np.sort(table[:, _PAIRS], axis=-1).reshape(-1, 2))
    conductances, normals, moments, sizes = _inner_faces(space, table, volume, of_pair.reshape(-1, 6), len(edges))
    rim, outer_cells, outer_normals, outer_centers = _outer_faces(place, table, facets, of_corner)
    face_cells = np.concatenate([edges, outer_cells])
    directions, areas = directions_and_lengths(np.concatenate([normals, outer_normals]))
    sides, cells = sides_of(face_cells)
    starts, cell_sides = sides_by_cell(np.argsort(cells, kind="stable"), sides, cells, len(place))
    return Mesh(
        manifold="tetrahedra",
        dimension=3,
        centers=place,
        volumes=np.asarray(np.bincount(table.reshape(-1), np.repeat(volume / 4, 4)), dtype=np.float64),
        face_cells=face_cells.astype(np.int32),
        face_centers=np.concatenate([moments / sizes[:, None], outer_centers]),
        face_normals=directions,
        face_areas=areas,
        face_curvatures=np.zeros(len(areas)),
        face_conductances=partial(np.asarray, np.append(conductances, np.zeros(len(outer_cells)))),
        cell_start=starts,
        cell_sides=cell_sides,
        ring_cells=np.array([len(place)], dtype=np.int32),
        boundary_faces=tagged_boundary(rim, len(edges), tags or {}),
    )


def ball(radius: float, shells: int) -> Mesh:
    """Return the mesh of a ball around the origin, in tetrahedra between a center and shells of 12, 42, 92, … points.

    Each of the 20 tetrahedra between the center and a face of an icosahedron is cut into shells³ parts, whose corners
    are moved along their directions to spheres in equal distances.

    Parameters
    ----------
    radius : float
        Radius.
    shells : int
        Number n of shells, at least 1; the last is the boundary "boundary". The mesh has
        (5 n (n + 1) (2n + 1))/3 + 2n + 1 cells. Good values: 8 (2057 cells), 16 (14 993).

    Returns
    -------
    Mesh
        Median dual of the tetrahedra, as of :func:`~solvers.tetrahedra`: the centers of its cells are the points.

    Raises
    ------
    TypeError
        If ``radius`` is not a number, or ``shells`` not a whole number.
    ValueError
        If ``radius`` is not finite and > 0, or ``shells`` < 1.

    Notes
    -----
    Poisson's equation and the eigenvalues of the Laplacian are of second order. The triangles of the last shell are
    plane.

    Examples
    --------
    The solution of Δu = −6 that is 0 on the unit sphere is 1 − x² − y² − z²:

    >>> from solvers import Laplacian, Value, ball
    >>> mesh = ball(1.0, 8)
    >>> u = Laplacian(mesh, {"boundary": Value(0.0)}).solve(-6.0)
    >>> bool(abs(u - (1 - (mesh.centers**2).sum(axis=1))).max() < 0.02)
    True
    """
    check_number("radius", radius, above=0.0)
    check_count("shells", shells, 1)
    check_sides("shells", shells, 30 * shells**3)
    lattice, parts = _cut_tetrahedron(shells)
    directions, faces = subdivided_icosahedron(0)
    shell, weights = lattice[:, 0], np.column_stack([-np.diff(lattice, axis=1), lattice[:, 2]])
    places = np.einsum("pk,fkd->fpd", weights, directions[faces])
    places *= (shell / shells / np.maximum(np.linalg.norm(places, axis=2), 1.0))[..., None]  # length ≥ 1 off the center
    _, number = different_rows(np.round(places.reshape(-1, 3), 9))  # the same point in different tetrahedra
    points = np.empty((number.max() + 1, 3))
    points[number] = places.reshape(-1, 3)
    corners = number.reshape(len(faces), -1)[:, parts].reshape(-1, 4)
    return tetrahedra(radius * points, corners)


def _cut_tetrahedron(n: int) -> tuple[Table, Table]:
    """Return the lattice points (p, 3) of the tetrahedron n ≥ x ≥ y ≥ z ≥ 0, and the corners (n³, 4) of its n³ parts.

    Each unit cube is cut along its diagonal into six tetrahedra of equal volume (Freudenthal 1942).
    """
    cubes = np.stack(np.meshgrid(*3 * [np.arange(n)], indexing="ij"), axis=-1).reshape(-1, 1, 3)
    steps = np.tril(np.ones((4, 3), int), -1)[:, list(permutations(range(3)))].swapaxes(0, 1)
    parts = (cubes[:, None] + steps).reshape(-1, 4, 3)
    parts = parts[(np.diff(parts, axis=2) <= 0).all(axis=(1, 2))]
    lattice, corners = different_rows(parts.reshape(-1, 3))
    return lattice, corners.reshape(-1, 4)


def _check_sides(place: Floats, table: Table, facets: Table, of_corner: Table) -> None:
    """Raise ValueError for two tetrahedra on the same side of a triangle that they share.

    facets      (facets, 3) points of each triangle
    of_corner   (tetrahedra, 4) triangle across from each corner
    """
    a, b, c = place[facets].swapaxes(0, 1)
    up, across = np.cross(b - a, c - a), of_corner.reshape(-1)
    height = np.sign(((place[table.reshape(-1)] - a[across]) * up[across]).sum(axis=1))
    same = np.flatnonzero(np.abs(np.bincount(across, height)) > 1)
    if len(same):
        one, other = np.flatnonzero(across == same[0]) // 4
        raise ValueError(f"tetrahedra {one} and {other} overlap: expected one on each side of the triangle they share")


def _inner_faces(
    space: Floats, table: Table, volume: Floats, edge_of: Table, count: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the faces between cells, one at each of ``count`` edges.

    The part of a face in a tetrahedron is plane: it has the midpoint m of the edge, the centroids of the two triangles
    at the edge, and the centroid of the tetrahedron as corners. With k and l the other two corners its area is
    |(k − m) × (l − m)|/12 and its centroid m + (5/36) (k + l − 2m).

    space     (n, 4, 3) corners of the tetrahedra, table   (n, 4) their points
    volume    (n,) volumes of the tetrahedra
    edge_of   (n, 6) edge of each pair of corners
    Returned are the conductances −Σ V ∇λ_i·∇λ_j of linear finite elements (edges,), the normals times area (edges, 3),
    the centroids times area (edges, 3), and the areas of the parts (edges,).
    """
    ones = np.ones((len(space), 4, 1))
    slopes = np.linalg.inv(np.concatenate([ones, space], axis=2))[:, 1:].swapaxes(1, 2)  # ∇λ of each corner
    conductances, sizes = np.zeros(count), np.zeros(count)
    normals, moments = np.zeros((count, 3)), np.zeros((count, 3))
    for pair, (i, j) in enumerate(_PAIRS):
        edge, (k, l) = edge_of[:, pair], sorted({0, 1, 2, 3} - {i, j})
        middle = (space[:, i] + space[:, j]) / 2
        one, other = space[:, k] - middle, space[:, l] - middle
        normal = np.cross(one, other) / 12
        forward = np.where(table[:, i] < table[:, j], 1, -1) * ((space[:, j] - space[:, i]) * normal).sum(axis=1)
        normal *= np.sign(forward)[:, None]
        size = np.linalg.norm(normal, axis=1)
        sizes += np.bincount(edge, size, count)
        normals += sums_at(edge, normal, count)
        moments += sums_at(edge, size[:, None] * (middle + 5 / 36 * (one + other)), count)
        conductances -= np.bincount(edge, volume * (slopes[:, i] * slopes[:, j]).sum(axis=1), count)
    return conductances, normals, moments, sizes


def _outer_faces(place: Floats, table: Table, facets: Table, of_corner: Table) -> tuple[Table, Table, Floats, Floats]:
    """Return the faces on the boundary: for each boundary triangle its thirds next to its three points.

    facets      (facets, 3) points of each triangle
    of_corner   (tetrahedra, 4) triangle across from each corner
    Returned are the points of the boundary triangles (n, 3), and the cells (3n, 2), normals times area (3n, 3) and
    centers (3n, 3) of the faces. The centroid of the third at a of a triangle a, b, c is (22a + 7b + 7c)/36.
    """
    rim = boundary_of(facets, of_corner)
    order = np.argsort(of_corner.reshape(-1), kind="stable")
    inside = place[table.reshape(-1)[order[np.searchsorted(of_corner.reshape(-1)[order], rim)]]]
    points = facets[rim]
    a, b, c = place[points].swapaxes(0, 1)
    normal = np.cross(b - a, c - a) / 6
    normal *= -np.sign((normal * (inside - a)).sum(axis=1))[:, None]
    centers = (15 * place[points] + 7 * (a + b + c)[:, None]) / 36
    return points, np.repeat(points.reshape(-1), 2).reshape(-1, 2), np.repeat(normal, 3, axis=0), centers.reshape(-1, 3)
