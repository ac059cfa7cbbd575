"""Clipping of flat triangles by the cells of a sphere's rings.

Rings are bounded by polar angles, cells of a ring by the planes of the meridians between them, also at the poles.
Polygons have coordinates (s, t) of the triangle a + s (b − a) + t (c − a), in which linear functions on the triangle
are linear too: masses are fractions of the triangle's mass, even if its image is a line or a point.
"""

import numpy as np

from .launching import kernel, put


@kernel
def _cut(polygon, count, at_a, at_b, at_c, below, above):
    """Split a convex polygon by the sign of a linear function with values at_a, at_b, at_c at a triangle's corners.

    The polygon has ``count`` corners with coordinates (s, t) in the triangle a + s (b − a) + t (c − a). Returns the
    numbers of corners of ``below``, with values ≤ 0, and ``above``.
    """
    low, high = 0, 0
    s_before, t_before = polygon[count - 1, 0], polygon[count - 1, 1]
    before = at_a + s_before * (at_b - at_a) + t_before * (at_c - at_a)
    for k in range(count):
        s, t = polygon[k, 0], polygon[k, 1]
        value = at_a + s * (at_b - at_a) + t * (at_c - at_a)
        if (value > 0.0) != (before > 0.0):
            part = before / (before - value)
            s_cut, t_cut = s_before + part * (s - s_before), t_before + part * (t - t_before)
            below[low, 0], below[low, 1] = s_cut, t_cut
            above[high, 0], above[high, 1] = s_cut, t_cut
            low, high = low + 1, high + 1
        if value > 0.0:
            above[high, 0], above[high, 1] = s, t
            high += 1
        else:
            below[low, 0], below[low, 1] = s, t
            low += 1
        s_before, t_before, before = s, t, value
    return low, high


@kernel
def _mass(polygon, count, masses):
    """Return the mass of a polygon, a part of a triangle on which mass is distributed linearly.

    The mass of the triangle is the mean of its corner ``masses``. The polygon has ``count`` corners with coordinates
    (s, t) in the triangle a + s (b − a) + t (c − a).
    """
    total = 0.0
    s0, t0 = polygon[0, 0], polygon[0, 1]
    for k in range(1, count - 1):
        s1, t1, s2, t2 = polygon[k, 0], polygon[k, 1], polygon[k + 1, 0], polygon[k + 1, 1]
        share = max((s1 - s0) * (t2 - t0) - (s2 - s0) * (t1 - t0), 0.0)
        s, t = (s0 + s1 + s2) / 3.0, (t0 + t1 + t2) / 3.0
        total += share * max(masses[0] + s * (masses[1] - masses[0]) + t * (masses[2] - masses[0]), 0.0)
    return total


@kernel
def _values_at_corners(normal, a, b, c):
    """Return ⟨n, a⟩, ⟨n, b⟩ and ⟨n, c⟩ for the horizontal ``normal`` n of a meridian plane and three points."""
    return (
        normal[0] * a[0] + normal[1] * a[1],
        normal[0] * b[0] + normal[1] * b[1],
        normal[0] * c[0] + normal[1] * c[1],
    )


@kernel
def _add_to_cells_of_ring(row, count, a, b, c, masses, normals, start, cells, clipped, one, other, scattered):
    """Add the mass of a polygon within one ring to its cells, by cuts at meridians from the middle cell east and west.

    Each cut uses a whole plane, of which only one half is the meridian. A cut part spans at most half a turn, and parts
    cut by the wrong half are still reached by later steps. After half a turn only lines without area remain.
    """
    s, t = 0.0, 0.0
    for k in range(count):
        s, t = s + row[k, 0] / count, t + row[k, 1] / count
    x = a[0] + s * (b[0] - a[0]) + t * (c[0] - a[0])
    y = a[1] + s * (b[1] - a[1]) + t * (c[1] - a[1])
    middle = int(np.floor(np.arctan2(y, x) * cells / (2.0 * np.pi))) % cells
    at_a, at_b, at_c = _values_at_corners(normals[start + middle], a, b, c)
    inside, east = _cut(row, count, at_a, at_b, at_c, clipped, one)
    cell = middle
    for _ in range(cells // 2 + 1):
        if east < 3:
            break
        cell = (cell + 1) % cells
        at_a, at_b, at_c = _values_at_corners(normals[start + cell], a, b, c)
        corners, east = _cut(one, east, at_a, at_b, at_c, row, other)
        put(scattered, start + cell, _mass(row, corners, masses))
        one, other = other, one
    cell = (middle - 1) % cells
    at_a, at_b, at_c = _values_at_corners(normals[start + cell], a, b, c)
    inside, west = _cut(clipped, inside, -at_a, -at_b, -at_c, row, one)
    put(scattered, start + middle, _mass(row, inside, masses))
    for _ in range(cells // 2 + 1):
        if west < 3:
            break
        before = (cell - 1) % cells
        at_a, at_b, at_c = _values_at_corners(normals[start + before], a, b, c)
        corners, west = _cut(one, west, -at_a, -at_b, -at_c, row, other)
        put(scattered, start + cell, _mass(row, corners, masses))
        one, other, cell = other, one, before


@kernel
def spread_over_rows(a, b, c, masses, normals, ring_start, ring_cells, edges, polygons, scattered):
    """Add the mass of a triangle on the sphere to the cells that it overlaps, ``scattered`` (cells,), ring by ring.

    The corners a, b, c are (x, y, z, polar angle). ``masses`` (3,) are those at the corners; the density of mass is
    linear on the triangle. The triangle is cut at circles of latitude, where its polar angle is interpolated linearly.
    Interpolation of z would have errors of the same, second order. But that of the angle is exact along meridians and
    on the sides of cells that have not moved, so that a small displacement moves the correct mass across an edge.
    """
    rings = len(ring_cells)
    north, south = min(a[3], b[3], c[3]), max(a[3], b[3], c[3])
    ring = min(max(int(north * rings / np.pi), 0), rings - 1)
    while ring > 0 and north < edges[ring]:
        ring -= 1
    while ring < rings - 1 and north >= edges[ring + 1]:
        ring += 1
    rest, next_rest, row, clipped, one, other = (
        polygons[0], polygons[1], polygons[2], polygons[3], polygons[4], polygons[5]
    )  # fmt: skip
    rest[0, 0], rest[0, 1], rest[1, 0], rest[1, 1], rest[2, 0], rest[2, 1] = 0.0, 0.0, 1.0, 0.0, 0.0, 1.0
    count = 3
    while count > 2:
        edge = edges[ring + 1]
        if ring == rings - 1 or south <= edge:
            in_row, left = count, 0
            row, rest = rest, row
        else:
            in_row, left = _cut(rest, count, a[3] - edge, b[3] - edge, c[3] - edge, row, next_rest)
        if in_row > 2:
            start, cells = ring_start[ring], ring_cells[ring]
            _add_to_cells_of_ring(row, in_row, a, b, c, masses, normals, start, cells, clipped, one, other, scattered)
        rest, next_rest, count, ring = next_rest, rest, left, ring + 1
