"""Sphere without poles: hexagons and twelve pentagons around the points of a subdivided icosahedron."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from .arguments import check_count
from .coordinates import unit_vectors
from .mesh import Floats, Mesh
from .simplices.arrays import Table, facets_of
from .simplices.triangulation import orient_along, sides_around

MAX_LEVEL = 9  # 2.6 million cells
LLOYD_STEPS = 30  # iterations that move points towards the centroids of their cells


def icosphere(level: int) -> Mesh:
    """Return the mesh of the unit sphere S² with hexagons and twelve pentagons, without poles.

    The cells are the Voronoi cells of the points of a subdivided icosahedron, moved towards centroids by Lloyd
    iterations. A face is an arc of the great circle halfway between two centers and orthogonal to the line between
    them, so that two-point fluxes are consistent. No cell is small, unlike the cells of rings next to a pole.

    Parameters
    ----------
    level : int
        Number of subdivisions, 1 to 9. The mesh has 10·4^level + 2 cells. Good values: 4 (2562 cells), 5 (10242).

    Returns
    -------
    Mesh
        The closed mesh.

    Raises
    ------
    TypeError
        If ``level`` is not a whole number.
    ValueError
        For a level below 1 or above 9.

    References
    ----------
    Du, Faber and Gunzburger 1999 (Lloyd iterations).

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import icosphere
    >>> mesh = icosphere(2)
    >>> mesh.cells
    162
    >>> sides = np.diff(mesh.cell_start)
    >>> int((sides == 5).sum()), int((sides == 6).sum())  # pentagons, hexagons
    (12, 150)
    >>> round(float(mesh.volume / np.pi), 6)
    4.0
    """
    check_count("level", level, 1, MAX_LEVEL)
    points, triangles = subdivided_icosahedron(level)
    edges, of_corner = facets_of(triangles)
    for _ in range(LLOYD_STEPS):
        points = unit_vectors(_polygon_sums(points, triangles)[1])
    corners = _circumcenters(points, triangles)
    first, second = _triangles_of_edges(len(edges), of_corner)
    normals, across = points[edges[:, 1]] - points[edges[:, 0]], corners[second] - corners[first]
    chords = np.linalg.norm(across, axis=1)
    lengths = 2 * np.arcsin(chords / 2)
    middles = unit_vectors(corners[first] + corners[second])
    face_centers = middles * (chords / lengths)[:, None]  # the centroid of the arc: sinc of half of it
    starts, sides = sides_around(edges, points, middles, points)
    distances = 2 * np.arcsin(np.linalg.norm(normals, axis=1) / 2)
    return Mesh(
        manifold="icosphere",
        dimension=2,
        centers=points,
        volumes=_polygon_sums(points, triangles)[0],
        face_cells=edges.astype(np.int32),
        face_centers=face_centers,
        face_normals=unit_vectors(normals),
        face_areas=lengths,
        face_curvatures=np.zeros(len(edges)),
        face_conductances=partial(np.divide, lengths, distances),
        cell_start=starts,
        cell_sides=sides,
        ring_cells=np.array([len(points)], dtype=np.int32),
        face_ends=partial(orient_along, corners[first], corners[second], np.cross(middles, normals)),
    )


def subdivided_icosahedron(level: int) -> tuple[Floats, Table]:
    """Return points (n, 3) and counterclockwise triangles of an icosahedron whose edges are halved ``level`` times."""
    golden = (1 + np.sqrt(5)) / 2
    points = unit_vectors(
        np.array([np.roll([0.0, a, b * golden], k) for k in range(3) for a in (-1, 1) for b in (-1, 1)])
    )
    adjacent = np.linalg.norm(points[:, None] - points[None], axis=-1) < 1.1
    found = [
        (i, j, k)
        for i in range(12)
        for j in range(12)
        for k in range(12)
        if adjacent[i, j] & adjacent[j, k] & adjacent[k, i]
    ]
    triangles = np.array([t for t in found if t[0] == min(t) and np.linalg.det(points[list(t)]) > 0.1])
    for _ in range(level):
        edges, of_corner = facets_of(triangles)
        middle = len(points) + of_corner  # number of the midpoint of the edge across from each corner
        points = np.concatenate([points, unit_vectors(points[edges].sum(axis=1))])
        a, b, c = triangles.T
        ma, mb, mc = middle.T
        parts = ((a, mc, mb), (b, ma, mc), (c, mb, ma), (ma, mb, mc))
        triangles = np.concatenate([np.stack(part, axis=1) for part in parts])
    return points, triangles


def _circumcenters(points: Floats, triangles: Table) -> Floats:
    """Return the circumcenters (triangles, 3) of triangles on the unit sphere, at equal distances from the corners."""
    a, b, c = points[triangles].swapaxes(0, 1)
    return unit_vectors(np.cross(b - a, c - a))


def _triangles_of_edges(count: int, of_corner: Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the two triangles that share each edge of a closed surface, as two arrays (edges,).

    count       number of edges
    of_corner   (triangles, 3) edge opposite each corner
    """
    order = np.argsort(of_corner.reshape(-1), kind="stable").reshape(count, 2) // 3
    return order[:, 0], order[:, 1]


def _polygon_sums(points: Floats, triangles: Table) -> tuple[Floats, Floats]:
    """Return areas (cells,) of the Voronoi cells around points on the unit sphere, and area times centroid (cells, 3).

    Each triangle of points is split into six parts, each between a corner, the midpoint of an edge and the
    circumcenter.
    """
    center = _circumcenters(points, triangles)
    areas, sums = np.zeros(len(points)), np.zeros(points.shape)
    for k in range(3):
        corner = points[triangles[:, k]]
        for other in (triangles[:, k - 1], triangles[:, k - 2]):
            middle = unit_vectors(corner + points[other])
            area = _triangle_area(corner, middle, center)
            areas += np.bincount(triangles[:, k], area, len(points))
            weighted = area[:, None] * (corner + middle + center) / 3
            for c in range(3):
                sums[:, c] += np.bincount(triangles[:, k], weighted[:, c], len(points))
    return areas, sums


def _triangle_area(a: Floats, b: Floats, c: Floats) -> Floats:
    """Return the areas (n,) of triangles on the unit sphere with the corners a, b, c, (n, 3) each, in any order.

    The formula is that of Van Oosterom and Strackee (1983) for solid angles.
    """
    volume = np.abs((a * np.cross(b - a, c - a)).sum(axis=1))
    product = 1 + (a * b).sum(axis=1) + (b * c).sum(axis=1) + (c * a).sum(axis=1)
    return np.asarray(2 * np.arctan2(volume, product))
