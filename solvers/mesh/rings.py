"""Rings of latitude on the sphere: the cells of each ring, the faces between cells, and the sides of each cell.

Cells are numbered ring by ring from the north pole, and eastward from azimuth 0. Faces within rings come first; face i
is the one east of cell i. Faces on the circles between rings follow, from north to south. This module has arrays only;
:func:`solvers.mesh.mesh.sphere` makes a mesh of these arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Counts = NDArray[np.int64]


def cells_of_rings(rings: int) -> Counts:
    """Return the number of cells (rings,) of each ring of latitude of a sphere, such that cells are nearly square.

    The numbers are base · 2^level. Neighboring rings have equal numbers or the ratio 2:1.
    """
    top = int(np.floor(np.log2(2 * rings / 3)))
    base = round(2 * rings / 2**top)  # 3 to 6 cells in a ring at the pole, about 2·rings at the equator
    from_pole = np.minimum(np.arange(rings), np.arange(rings)[::-1])  # equal angles in both hemispheres: equal rounding
    level = np.rint(np.log2(2 * rings * np.sin((from_pole + 0.5) * np.pi / rings) / base)).clip(0, top)
    counts: Counts = base * 2 ** np.minimum(level, from_pole).astype(np.int64)
    return counts


def starts_of(counts: Counts) -> Counts:
    """Return the first index of each of n consecutive parts with given sizes, followed by the total (n + 1,)."""
    return np.concatenate([[0], np.cumsum(counts)])


def sphere_cells(ring_cells: NDArray[np.integer[Any]], theta: Floats, phi: Floats) -> Counts:
    """Return the index of the cell of a sphere that contains each point of polar angle ``theta`` and azimuth ``phi``.

    ring_cells   number of cells of each ring of latitude
    Rings are numbered from the north pole, cells eastward from azimuth 0.
    """
    rings = len(ring_cells)
    start = np.concatenate([[0], np.cumsum(ring_cells, dtype=np.int64)])
    ring = np.minimum((theta * (rings / np.pi)).astype(np.int64), rings - 1)
    count = ring_cells[ring]
    index_in_ring = (np.mod(phi, 2 * np.pi) * (count / (2 * np.pi))).astype(np.int64)
    cells: Counts = start[ring] + np.minimum(index_in_ring, count - 1)  # rounding may give the index ``count``
    return cells


def faces_between(counts: Counts) -> Counts:
    """Return the number of faces (rings − 1,) between each ring of latitude and the next: the finer ring's cells."""
    return np.maximum(counts[:-1], counts[1:])


def face_starts(counts: Counts) -> Counts:
    """Return the first face of each group of faces, followed by the number of all faces (2 rings,).

    counts   (rings,) number of cells of each ring
    The groups are the faces within each ring of latitude, then those on each circle between two rings.
    """
    return starts_of(np.append(counts, faces_between(counts)))


@dataclass(frozen=True, eq=False)
class Rings:
    """Formulas for a sphere of rings of latitude: rows of the arrays of `Mesh` for indices of cells, faces or sides.

    counts   (rings,) number of cells of each ring
    edges    (rings + 1,) polar angles of the circles between rings
    """

    counts: Counts
    edges: Floats

    @property
    def faces(self) -> int:
        """Return the number of faces."""
        return int(self._face_start[-1])

    @cached_property
    def colatitudes(self) -> Floats:
        """Return the polar angle (rings,) of the cell centers of each ring."""
        return _center_colatitudes(self.edges[:-1], self.edges[1:], 2 * np.pi / self.counts)

    @cached_property
    def areas(self) -> Floats:
        """Return the area (rings,) of one cell of each ring."""
        north, south = self.edges[:-1], self.edges[1:]
        return (2 * np.pi / self.counts) * 2 * np.sin((north + south) / 2) * np.sin((south - north) / 2)

    @cached_property
    def _start(self) -> Counts:
        """Return the first cell of each ring, followed by the number of cells (rings + 1,)."""
        return starts_of(self.counts)

    @cached_property
    def _face_start(self) -> Counts:
        """Return the first face within each ring, then on each circle between rings, and the number of faces."""
        return face_starts(self.counts)

    @cached_property
    def _group_geometry(self) -> Floats:
        """Return geometric quantities (8, groups) shared by all faces within a ring, or on a circle between two rings.

        Rows 0 and 1 are the position of the first face in units of a face's width in azimuth, and that width. Rows 2
        and 3 are the centers' distance from the axis and height, rows 4 and 5 the same components of the normals, rows
        6 and 7 length and curvature. Centers and normals of an arc are means along the arc, which is curved more near a
        pole.
        """
        heights, middles = np.diff(self.edges), (self.edges[:-1] + self.edges[1:]) / 2
        shrunk, zero = np.sinc(heights / (2 * np.pi)), np.zeros(len(heights))
        meridians = (
            zero + 1.0, 2 * np.pi / self.counts, shrunk * np.sin(middles), shrunk * np.cos(middles), zero, zero,
            heights, zero,
        )  # fmt: skip
        edges, widths = self.edges[1:-1], 2 * np.pi / faces_between(self.counts)
        chords = np.sinc(widths / (2 * np.pi))  # mean of cos φ over the arc
        arcs = (
            np.full(len(edges), 0.5), widths, chords * np.sin(edges), np.cos(edges),
            chords * np.sin(edges + np.pi / 2), np.cos(edges + np.pi / 2), np.sin(edges) * widths, 1 / np.tan(edges),
        )  # fmt: skip
        return np.concatenate([meridians, arcs], axis=1)

    def centers(self, cells: Counts) -> Floats:
        """Return the centers (n, 3) of cells (n,)."""
        r = np.searchsorted(self._start, cells, side="right") - 1
        azimuth = (cells - self._start[r] + 0.5) * (2 * np.pi / self.counts)[r]
        return _points_around_axis(azimuth, np.sin(self.colatitudes)[r], np.cos(self.colatitudes)[r])

    def face_cells(self, faces: Counts) -> Integers:
        """Return the two cells (n, 2) of faces (n,)."""
        group, j = self._locate_faces(faces)
        within, r = group < len(self.counts), group % len(self.counts)
        count, south = self.counts[r], np.minimum(r + 1, len(self.counts) - 1)
        size = np.where(within, count, np.maximum(count, self.counts[south]))
        second = np.where(
            within, self._start[r] + (j + 1) % count, self._start[south] + j * self.counts[south] // size
        )  # fmt: skip
        return np.stack([self._start[r] + j * count // size, second], axis=1).astype(np.int32)

    def face_centers(self, faces: Counts) -> Floats:
        """Return the centroids (n, 3) of faces (n,)."""
        group, j = self._locate_faces(faces)
        return _points_around_axis(self._azimuth(group, j), *self._group_geometry[2:4, group])

    def face_normals(self, faces: Counts) -> Floats:
        """Return the mean unit normals (n, 3) of faces (n,), from the first cell to the second."""
        group, j = self._locate_faces(faces)
        azimuth, (outward, up) = self._azimuth(group, j), self._group_geometry[4:6, group]
        normals, east = _points_around_axis(azimuth, outward, up), group < len(self.counts)
        normals[east, 0], normals[east, 1] = -np.sin(azimuth[east]), np.cos(azimuth[east])
        return normals

    def face_areas(self, faces: Counts) -> Floats:
        """Return the lengths (n,) of faces (n,)."""
        return np.asarray(self._group_geometry[6, self._locate_faces(faces)[0]])

    def face_curvatures(self, faces: Counts) -> Floats:
        """Return the geodesic curvatures (n,) of faces (n,)."""
        return np.asarray(self._group_geometry[7, self._locate_faces(faces)[0]])

    def cell_start(self, cells: Counts) -> Integers:
        """Return the position (n,) of the first side of the cells (n,) in ``cell_sides``, the list of all cells' sides.

        A side is a face as seen from one of its cells.
        """
        north, south = self._faces_of_cells
        sides = 2 + north + south
        r = np.minimum(np.searchsorted(self._start, cells, side="right") - 1, len(sides) - 1)
        return np.asarray(self._side_start[r] + (cells - self._start[r]) * sides[r], dtype=np.int32)

    def cell_sides(self, places: Counts) -> Integers:
        """Return the sides (n,) at the positions ``places`` (n,) in the list of all cells' sides.

        A side is a face as seen from one of its cells, with the number 2 · face or 2 · face + 1. The sides of a cell
        are: east, north from east to west, west, south from west to east.
        """
        north, south = self._faces_of_cells
        r = np.searchsorted(self._side_start, places, side="right") - 1
        j, k = np.divmod(places - self._side_start[r], (2 + north + south)[r])
        above, below = self._face_start[len(north) - 1 :][r] + (j + 1) * north[r], self._face_start[len(north) :][r]
        is_north, is_west = (k > 0) & (k <= north[r]), k == north[r] + 1
        within = 2 * (self._start[r] + np.where(is_west, j - 1, j) % self.counts[r]) + is_west
        south_side = 2 * (below + j * south[r] + k - north[r] - 2)
        sides = np.where(is_north, 2 * (above - k) + 1, np.where((k == 0) | is_west, within, south_side))
        return np.asarray(sides, dtype=np.int32)

    @cached_property
    def _faces_of_cells(self) -> tuple[Counts, Counts]:
        """Return the numbers (rings,) of faces between a cell and the next ring, to the north and to the south."""
        counts = self.counts
        return (
            np.append(0, np.maximum(counts[:-1] // counts[1:], 1)),
            np.append(np.maximum(counts[1:] // counts[:-1], 1), 0),
        )

    @cached_property
    def _side_start(self) -> Counts:
        """Return the position (rings + 1,) in ``cell_sides`` of each ring's first side, and the number of sides.

        A side is a face as seen from one of its cells; ``cell_sides`` lists the sides cell by cell.
        """
        north, south = self._faces_of_cells
        return starts_of((2 + north + south) * self.counts)

    def _locate_faces(self, faces: Counts) -> tuple[Counts, Counts]:
        """Return the group (n,) of each face, and the number (n,) of the face in its group.

        A group is a ring, with the faces between its cells, or the circle between two rings.
        """
        group = np.searchsorted(self._face_start, faces, side="right") - 1
        return group, faces - self._face_start[group]

    def _azimuth(self, group: Counts, j: Counts) -> Floats:
        """Return azimuths (n,) of face centers, given each face's ring or circle (group) and number j there."""
        first, width = self._group_geometry[:2, group]
        azimuth: Floats = (j + first) * width
        return azimuth


def ring_face_ends(counts: Counts, edges: Floats) -> Floats:
    """Return the ends (faces, 2, 3) of the faces of a sphere of rings, counterclockwise around the first cell.

    Faces within rings are meridians from south to north, faces between rings parallels from west to east.
    """
    within = [
        np.stack([_spherical(edges[r + 1], azimuth), _spherical(edges[r], azimuth)], axis=1)
        for r, count in enumerate(counts)
        for azimuth in [_azimuths(count, 1)]
    ]
    between = [
        np.stack([_spherical(edges[r + 1], _azimuths(count, k)) for k in (0, 1)], axis=1)
        for r, count in enumerate(faces_between(counts))
    ]
    return np.concatenate(within + between)


def _azimuths(count: int, first: int) -> Floats:
    """Return the azimuths (count,) of the meridians between the cells of a ring, from number ``first`` on.

    Equal meridians of different rings have bitwise equal azimuths.
    """
    return np.asarray((np.arange(first, first + count) % count) * (2 * np.pi / count), dtype=np.float64)


def _center_colatitudes(north: Floats, south: Floats, width: Floats) -> Floats:
    """Return the polar angles of the centroids of cells, projected to the unit sphere.

    A cell extends from the polar angle ``north`` to ``south``, and over ``width`` in azimuth.
    """
    outward = ((south - north) / 2 - (np.sin(2 * south) - np.sin(2 * north)) / 4) * 2 * np.sin(width / 2)
    upward = width * np.sin(south - north) * np.sin(south + north) / 2
    return np.asarray(np.arctan2(outward, upward))


def _spherical(theta: float, phi: Floats) -> Floats:
    """Return the points (n, 3) of the unit sphere at the polar angle ``theta`` and the azimuths ``phi`` (n,)."""
    x = np.empty((len(phi), 3))
    x[:, 0], x[:, 1], x[:, 2] = np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)
    return x


def _points_around_axis(azimuth: Floats, distance: Floats, height: Floats) -> Floats:
    """Return points (n, 3) at given azimuths, distances from the axis and heights."""
    return np.stack([distance * np.cos(azimuth), distance * np.sin(azimuth), height], axis=1)
