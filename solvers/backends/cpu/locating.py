"""Nearest centers of a sphere's cells to given points."""

import numpy as np

from .launching import inline, kernel, share

ROUNDING = 1e-15  # of x · (a × b) for unit vectors: prevents endless crossings of an edge through the point


@inline
def _volume(x, y, z, a, b):
    """Return x · (a × b) for vectors (x, y, z), a and b: six times the volume of the tetrahedron that they span."""
    return x * (a[1] * b[2] - a[2] * b[1]) + y * (a[2] * b[0] - a[0] * b[2]) + z * (a[0] * b[1] - a[1] * b[0])


@inline
def _find_cell_at(x, y, z, ring_cells, ring_start):
    """Return the cell of a sphere of rings at the unit vector (x, y, z), or one beside it at an edge."""
    rings = len(ring_cells)
    ring = min(int(np.arccos(min(max(z, -1.0), 1.0)) * rings / np.pi), rings - 1)
    count = ring_cells[ring]
    return ring_start[ring] + int(np.floor(np.arctan2(y, x) * count / (2.0 * np.pi))) % count


@kernel
def locate_on_sphere(worker, workers, points, centers, ring_cells, ring_start, triangles, across, home, cells, weights):
    """Find, for each unit vector, the triangle of cell centers around it: three cells and their weights w, (n, 3) each.

    Σ w x_cell is parallel to the vector, Σ w = 1. From a triangle at the cell that holds the point, the search crosses
    the edge that separates the triangle most from the point. The search terminates in a Delaunay triangulation.
    """
    first, last = share(worker, workers, len(points))
    for i in range(first, last):
        x, y, z = points[i, 0], points[i, 1], points[i, 2]
        t = home[_find_cell_at(x, y, z, ring_cells, ring_start)]
        for _ in range(len(triangles)):
            a, b, c = triangles[t, 0], triangles[t, 1], triangles[t, 2]
            u = _volume(x, y, z, centers[b], centers[c])
            v = _volume(x, y, z, centers[c], centers[a])
            w = _volume(x, y, z, centers[a], centers[b])
            if min(u, v, w) >= -ROUNDING:
                break
            t = across[t, 0 if u <= v and u <= w else (1 if v <= w else 2)]
        u, v, w = max(u, 0.0), max(v, 0.0), max(w, 0.0)
        total = u + v + w
        cells[i, 0], cells[i, 1], cells[i, 2] = a, b, c
        weights[i, 0], weights[i, 1], weights[i, 2] = u / total, v / total, w / total
