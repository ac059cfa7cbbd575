"""Masses on a mesh from the images of pieces of cells."""

import numpy as np

from .clipping import spread_over_rows
from .launching import inline, kernel, put, scratch, share

REMAP_PARTS = 8  # partial sums of pieces, so that results do not depend on the number of cores


@inline
def _cell_at(edges, place, cells):
    """Return the cell whose edges enclose a coordinate ``place``; the first or last cell for a place outside."""
    low, high = 0, cells
    while high - low > 1:
        middle = (low + high) // 2
        if edges[middle] <= place:
            low = middle
        else:
            high = middle
    return low


@kernel
def remap_on_curve(worker, workers, places, corners, masses, edges, period, scattered):
    """Add to ``scattered`` (blocks, cells) the mass that each segment of a curve has in each cell that it overlaps.

    places   coordinate of the image of each point
    corners  (segments, 2) the points at the ends of each segment
    masses   (segments, 2) masses at the ends: linear along the segment, whose mass is their mean
    edges    (cells + 1,) increasing coordinates of the cell edges
    period   period of the coordinate; 0 on an interval, where the outer cells include all mass beyond the walls
    """
    blocks, cells = len(scattered), len(edges) - 1
    first, last = share(worker, workers, blocks)
    for block in range(first, last):
        begin, end = share(block, blocks, len(corners))
        for k in range(begin, end):
            a, b = places[corners[k, 0]], places[corners[k, 1]]
            from_a, from_b = masses[k, 0], masses[k, 1]
            if period > 0.0:
                b -= period * np.rint((b - a) / period)
            if b < a:
                a, b, from_a, from_b = b, a, from_b, from_a
            turn = period * np.floor((a - edges[0]) / period) if period > 0.0 else 0.0
            a, b = a - turn, b - turn
            cell = _cell_at(edges, a, cells)
            offset, done = 0.0, 0.0
            while done < 1.0:
                wall = np.inf if period == 0.0 and cell == cells - 1 else edges[cell + 1] + offset
                part = 1.0 if not b > wall else min(max((wall - a) / (b - a), done), 1.0)
                middle = 0.5 * (done + part)
                put(scattered[block], cell, (part - done) * (from_a + middle * (from_b - from_a)))
                done = part
                cell += 1
                if cell == cells:
                    cell, offset = 0, offset + period


@kernel
def remap_on_sphere(
    worker, workers, images, corners, masses, bulges, normals, ring_start, ring_cells, edges, scattered
):
    """Add to ``scattered`` (blocks, cells) the mass that each flat triangle has in each cell of a sphere's rings.

    The mass is that of the overlap of the triangle and the cell.

    images    (points, 4) of x, y, z, polar angle
    corners   (triangles, 3) the points at the corners of each triangle
    masses    (triangles, 3) masses at the corners; the mass of the triangle is their mean, its density is linear
    bulges    curvature of one side of each triangle, see :func:`_fill_part`
    normals   (faces, 3); the first ``cells`` rows are the eastward normals of the cells' eastern edges
    edges     (rings + 1,) polar angle of the circles between rings
    """
    blocks = len(scattered)
    first, last = share(worker, workers, blocks)
    polygons, triangle = scratch((6, 16, 2)), scratch((3, 4))
    corner_masses = scratch(3)
    for block in range(first, last):
        begin, end = share(block, blocks, len(corners))
        for k in range(begin, end):
            if masses[k, 0] + masses[k, 1] + masses[k, 2] == 0.0:
                continue
            a, b, c = images[corners[k, 0]], images[corners[k, 1]], images[corners[k, 2]]
            parts = _count_edge_parts(a, b, c, len(ring_cells))
            if parts == 1:
                spread_over_rows(
                    a, b, c, masses[k], normals, ring_start, ring_cells, edges, polygons, scattered[block]
                )  # fmt: skip
                continue
            for i in range(parts):
                for j in range(2 * i + 1):
                    _fill_part(a, b, c, masses[k], bulges[k], parts, i, j, triangle, corner_masses)
                    spread_over_rows(
                        triangle[0], triangle[1], triangle[2], corner_masses, normals, ring_start, ring_cells, edges,
                        polygons, scattered[block],
                    )  # fmt: skip


@inline
def _count_edge_parts(a, b, c, rings):
    """Return 1, 2 or 4, the parts for each edge of a triangle on the sphere: more for large ones and at the poles.

    The polar angle along an edge differs from a linear one by up to |edge|²/8 cot θ, next to the poles by a whole cell.
    Parts keep this difference small against a cell of a sphere with ``rings`` rings.
    """
    edge = max(_square(a, b), _square(b, c), _square(c, a))
    height = max(abs(a[2]), abs(b[2]), abs(c[2]))
    sine = np.sqrt(max(1.0 - height * height, 0.0))
    parts = np.sqrt(rings * edge / max(sine, 1.0 / rings))
    return 1 if parts <= 1.0 else (2 if parts <= 2.0 else 4)


@inline
def _square(p, q):
    """Return the squared distance of two points in R³."""
    return (q[0] - p[0]) ** 2 + (q[1] - p[1]) ** 2 + (q[2] - p[2]) ** 2


@inline
def _fill_part(a, b, c, masses, bulge, parts, i, j, triangle, corner_masses):
    """Compute the corners on the sphere and the corner masses of part j in layer i of a triangle a, b, c.

    Each edge has ``parts`` parts; parts with odd j point toward a. The side from b to c is curved by the fraction
    ``bulge`` of the way to a, like before the map, so that the identity leaves every part in its cell.
    """
    for k in range(3):
        out, across = i + (k > 0), j // 2 + (k == 2)
        if j % 2 == 1:
            out, across = i + (k == 2), j // 2 + (k > 0)
        t = across / parts
        s = out / parts - t
        bend = 0.0
        if across > 0 and across < out:
            bend = bulge[4 * across // out - 1] * out / parts
        square = 0.0
        for x in range(3):
            flat = a[x] + s * (b[x] - a[x]) + t * (c[x] - a[x])
            triangle[k, x] = flat + bend * (a[x] - flat)
            square += triangle[k, x] ** 2
        corner_masses[k] = (masses[0] + s * (masses[1] - masses[0]) + t * (masses[2] - masses[0])) / (parts * parts)
        for x in range(3):
            triangle[k, x] /= np.sqrt(square)
        triangle[k, 3] = np.arctan2(np.hypot(triangle[k, 0], triangle[k, 1]), triangle[k, 2])
