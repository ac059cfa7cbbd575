"""Pieces of cells: the simplices between each straight part of a side and the cell's center.

A piece is a segment on a curve and a flat triangle on a surface. Neighboring cells share the corners on their face, so
that the images of the pieces under a continuous map leave no gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..backends import Backend, backend_for
from ..mesh.mesh import Floats, Integers, Mesh

Numbers = NDArray[np.int64]
EQUATOR = 1e-12  # height below which a circle of latitude counts as a great circle
POLAR = 2.5  # distance from the axis in cell widths that covers the two rings next to a pole


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of the cells of a mesh: simplices between each straight part of a cell's side and the cell's center.

    A piece is a segment on a curve and a flat triangle on a surface. Cell i has the pieces ``start[i]`` to
    ``start[i + 1]``.

    points     (n, d) cell centers, then the ends of faces
    corners    (pieces, dimension + 1) indices of the points of each piece, the cell's center first
    volumes    (pieces,) volume of each piece; the sum over a cell is the cell's volume
    centroids  (cells, d) centroid of each cell's pieces together
    widths     (pieces,) width of the cell that contains the piece
    bulges     (pieces, 3) on a sphere: offset of the true side from its chord at one, two and three quarters, as a
               fraction of the way to the cell's center; negative where the side is curved outwards, zero on a great
               circle
    """

    points: Floats
    corners: Integers
    start: Integers
    volumes: Floats
    centroids: Floats
    widths: Floats
    bulges: Floats

    def on(self, backend: Backend) -> Pieces:
        """Return the same pieces of a mesh's cells with their arrays on the device of a backend."""
        return replace(self, **{name: backend.to_device(value) for name, value in vars(self).items()})

    def project(self, points: Floats) -> Floats:
        """Return points (n, d) projected to the circle or the sphere; on an interval they are unchanged."""
        if points.shape[1] == 1:
            return points
        projected: Floats = points / np.sqrt(backend_for(points).xp.einsum("nd,nd->n", points, points))[:, None]
        return projected


def split_into_pieces(mesh: Mesh) -> Pieces:
    """Split each cell of a circle, a sphere of rings or an interval into simplices between its sides and its center."""
    vertices, sides, ends = _ENDS[mesh.dimension](mesh)
    used = np.isin(sides, mesh.cell_sides)  # one side of a wall belongs to no cell
    cell, ends = mesh.side_cells[sides[used]], ends[used]
    order = np.argsort(cell, kind="stable")
    cell, ends = cell[order], ends[order]
    corners = np.column_stack([cell, mesh.cells + ends]).astype(np.int32)
    points = np.concatenate([mesh.centers, vertices])
    sizes = _sizes(points[corners], POLAR * mesh.width)
    volumes = sizes * (mesh.volumes / np.bincount(cell, sizes))[cell]
    moments = volumes[:, None] * points[corners].mean(axis=1)
    sums = np.stack([np.bincount(cell, moment) for moment in moments.T], axis=1)
    widths = mesh.volumes ** (1 / mesh.dimension)
    start = np.searchsorted(cell, np.arange(mesh.cells + 1)).astype(np.int32)
    return Pieces(points, corners, start, volumes, sums / mesh.volumes[:, None], widths[cell], _bulges(points[corners]))


def simplex_sizes(places: Floats) -> Floats:
    """Return the lengths (n,) of flat segments (n, 2, d) or the areas of flat triangles (n, 3, d)."""
    edges = places[:, 1:] - places[:, :1]
    return np.asarray(np.sqrt(np.linalg.det(edges @ edges.swapaxes(1, 2)).clip(0)) / (places.shape[1] - 1))


def _sizes(places: Floats, polar: float) -> Floats:
    """Return the lengths of segments (n, 2, d), or the areas of triangles (n, 3, 3) on a sphere, for the remap.

    The first corner is a cell center. A triangle whose other corners lie on a circle of latitude has half the circle's
    length between them times the difference of polar angles: the remap cuts pieces by polar angle, and this area makes
    the cut mass exact. Flat triangles at the ends of a wide cell deviate from it by a fraction of order h. Up to
    the distance ``polar`` from the axis, flat areas are used, whose errors are smaller there.
    """
    sizes = simplex_sizes(places)
    if places.shape[1] == 3:
        bent = np.flatnonzero((places[:, 1, 2] == places[:, 2, 2]) & (np.hypot(*places[:, 0, :2].T) > polar))
        angle = np.arctan2(np.hypot(places[bent, :, 0], places[bent, :, 1]), places[bent, :, 2])
        radius = np.sin(angle[:, 1])
        chord = np.sqrt(((places[bent, 1] - places[bent, 2]) ** 2).sum(axis=1))
        sizes[bent] = radius * np.arcsin(chord / (2 * radius)) * np.abs(angle[:, 1] - angle[:, 0])
    return sizes


def _bulges(places: Floats) -> Floats:
    """Return the bulges (n, 3) of triangles (n, 3, 3): offsets of a circle of latitude from its chord.

    The first corner is the cell's center; the bulges are 0 unless the others lie on one circle of latitude, at the
    polar angle θ. The offsets are at one, two and three quarters of the chord, as fractions of the way to the cell's
    center. The bulge at a point p of the chord is the small root β of z² = cos²θ |x|² on the line x = p + β (center −
    p).
    """
    bulges = np.zeros((len(places), 3))
    if places.shape[1] == 3:
        bent = np.flatnonzero((places[:, 1, 2] == places[:, 2, 2]) & (np.abs(places[:, 1, 2]) > EQUATOR))
        square = places[bent, 1, 2] ** 2
        for k, part in enumerate((0.25, 0.5, 0.75)):
            p = (1 - part) * places[bent, 1] + part * places[bent, 2]
            d = places[bent, 0] - p
            twice = d[:, 2] ** 2 - square * (d * d).sum(axis=1)
            once = p[:, 2] * d[:, 2] - square * (p * d).sum(axis=1)
            none = p[:, 2] ** 2 - square * (p * p).sum(axis=1)
            bulges[bent, k] = -none / (once + np.copysign(np.sqrt(once**2 - twice * none), once))
    return bulges


def _ends_on_curve(mesh: Mesh) -> tuple[Floats, Numbers, Numbers]:
    """Return face centers (faces, d) of a curve, side numbers (sides,), and each side's face number (sides, 1).

    A face of a curve is a point, which is the only end of both sides of the face.
    """
    return mesh.face_centers, np.arange(2 * mesh.faces), np.repeat(np.arange(mesh.faces), 2)[:, None]


def _ends_on_sphere(mesh: Mesh) -> tuple[Floats, Numbers, Numbers]:
    """Return vertices (n, 3) on a sphere of rings, and the side and two vertices of each straight part of a side.

    The sides (parts,) and the vertices (parts, 2) of the parts are numbers. Faces on circles of latitude are divided
    into several chords, and each part occurs once for either side of its face.
    """
    counts = mesh.ring_cells.astype(np.int64)
    between = np.maximum(counts[:-1], counts[1:])  # faces on each circle between two rings
    # Every circle has the same number of vertices, so that the length of chords changes smoothly.
    parts = counts.max() // between
    around = between * parts
    first = np.concatenate([[0], np.cumsum(around)])  # first vertex of each circle; the poles follow
    found: list[Numbers] = []
    for r, count in enumerate(counts):
        j = np.arange(1, count + 1)
        north = first[r - 1] + j * (around[r - 1] // count) % around[r - 1] if r > 0 else np.full(count, first[-1])
        south = first[r] + j * (around[r] // count) % around[r] if r < len(around) else np.full(count, first[-1] + 1)
        found.append(np.stack([2 * (mesh.ring_start[r] + j - 1), south, north], axis=1))
    start = mesh.cells + np.concatenate([[0], np.cumsum(between)])
    for r, count in enumerate(around):
        j = np.arange(count)
        face = start[r] + j // parts[r]
        found.append(np.stack([2 * face, first[r] + j, first[r] + (j + 1) % count], axis=1))
    side, begin, end = np.concatenate(found).T
    theta = np.append(np.repeat(mesh.ring_edges[1:-1], around), (0.0, np.pi))
    phi = np.concatenate([2 * np.pi / count * np.arange(count) for count in around] + [[0.0, 0.0]])
    vertices = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], axis=1)
    return vertices, np.concatenate([side, side + 1]), np.stack([np.append(begin, end), np.append(end, begin)], axis=1)


_ENDS = {1: _ends_on_curve, 2: _ends_on_sphere}
