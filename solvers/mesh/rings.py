"""A sphere cut into rings of latitude: the cells of each ring, the faces between them, the sides that each cell has.

Cells are numbered ring by ring from the north pole, and eastward from azimuth 0. Faces within rings come first, the
one east of cell i being face i; then those on the circles between rings, from north to south. Arrays only: the mesh
made of them is :func:`solvers.mesh.mesh.sphere`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int32]
Counts = NDArray[np.int64]


def cells_of_rings(rings: int) -> Counts:
    """Cells of each ring: base · 2^level, the level nearest to square cells, 2:1 at most between neighbours."""
    top = int(np.floor(np.log2(2 * rings / 3)))
    base = round(2 * rings / 2**top)  # 3 to 6 cells in a ring at the pole, about 2·rings at the equator
    from_pole = np.minimum(np.arange(rings), np.arange(rings)[::-1])  # the same angles on both sides: ties round alike
    level = np.rint(np.log2(2 * rings * np.sin((from_pole + 0.5) * np.pi / rings) / base)).clip(0, top)
    counts: Counts = base * 2 ** np.minimum(level, from_pole).astype(np.int64)
    return counts


def starts_of(counts: Counts) -> Counts:
    """(n + 1,) where each of n parts of so many numbers begins, and their sum: the first cell of each ring."""
    return np.concatenate([[0], np.cumsum(counts)])


def sphere_cells(ring_cells: NDArray[np.integer[Any]], theta: Floats, phi: Floats) -> Counts:
    """Index of the cell that holds each point; rings run from the north pole, cells east from azimuth 0."""
    rings = len(ring_cells)
    start = np.concatenate([[0], np.cumsum(ring_cells, dtype=np.int64)])
    ring = np.minimum((theta * (rings / np.pi)).astype(np.int64), rings - 1)
    count = ring_cells[ring]
    place = (np.mod(phi, 2 * np.pi) * (count / (2 * np.pi))).astype(np.int64)
    cells: Counts = start[ring] + np.minimum(place, count - 1)  # rounding may reach the end of the ring
    return cells


def faces_between(counts: Counts) -> Counts:
    """(rings − 1,) faces on the circle below each ring but the last: the cells of the finer ring there."""
    return np.maximum(counts[:-1], counts[1:])


def face_starts(counts: Counts) -> Counts:
    """(2 rings,) the first face within each ring, then the first on each circle between rings, then their number."""
    return starts_of(np.append(counts, faces_between(counts)))


def ring_cells(counts: Counts, edges: Floats) -> tuple[Floats, Floats, Floats]:
    """Centers (cells, 3), areas (cells,) and the colatitude (rings,) of the centers of each ring.

    edges   (rings + 1,) polar angle of the circles between rings
    """
    start = starts_of(counts)
    centers, areas, colatitudes = np.empty((start[-1], 3)), np.empty(start[-1]), np.empty(len(counts))
    for r, count in enumerate(counts):
        width, north, south = 2 * np.pi / count, edges[r], edges[r + 1]
        here = slice(start[r], start[r + 1])
        colatitudes[r] = _center_colatitude(north, south, width)
        centers[here] = _spherical(colatitudes[r], (np.arange(count) + 0.5) * width)
        areas[here] = width * 2 * np.sin((north + south) / 2) * np.sin((south - north) / 2)
    return centers, areas, colatitudes


@dataclass(frozen=True, eq=False)
class Faces:
    """Faces as a mesh has them: (faces, 2) cells, (faces, 3) centers and normals, (faces,) lengths and curvatures."""

    cells: Integers
    centers: Floats
    normals: Floats
    lengths: Floats
    curvatures: Floats


def ring_faces(counts: Counts, edges: Floats) -> Faces:
    """All faces of the rings between the polar angles ``edges``."""
    count = int(face_starts(counts)[-1])
    cells, lengths, curvatures = np.empty((count, 2), dtype=np.int32), np.empty(count), np.zeros(count)
    faces = Faces(cells, np.empty((count, 3)), np.empty((count, 3)), lengths, curvatures)
    _fill_within(faces, counts, edges)
    _fill_between(faces, counts, edges)
    return faces


def _fill_within(faces: Faces, counts: Counts, edges: Floats) -> None:
    """The meridians between the cells of each ring."""
    start = starts_of(counts)
    for r, count in enumerate(counts):
        height, middle = edges[r + 1] - edges[r], (edges[r] + edges[r + 1]) / 2
        here, j = slice(start[r], start[r + 1]), np.arange(count)
        azimuth = (j + 1) * (2 * np.pi / count)
        faces.cells[here] = np.stack([start[r] + j, start[r] + (j + 1) % count], axis=1)
        faces.centers[here] = np.sinc(height / (2 * np.pi)) * _spherical(middle, azimuth)
        faces.normals[here] = _east(azimuth)
        faces.lengths[here] = height


def _fill_between(faces: Faces, counts: Counts, edges: Floats) -> None:
    """The arcs of the circles between rings, which are bent, the more the nearer to a pole."""
    start, face_start = starts_of(counts), face_starts(counts)[len(counts) :]
    for r, count in enumerate(faces_between(counts)):
        edge, width, j = edges[r + 1], 2 * np.pi / count, np.arange(count)
        below = slice(face_start[r], face_start[r + 1])
        azimuth = (j + 0.5) * width
        chord = np.sinc(width / (2 * np.pi))  # mean of cos φ over the arc
        north, south = start[r] + j * counts[r] // count, start[r + 1] + j * counts[r + 1] // count
        faces.cells[below] = np.stack([north, south], axis=1)
        faces.centers[below] = _spherical(edge, azimuth)
        faces.normals[below] = _spherical(edge + np.pi / 2, azimuth)
        faces.centers[below, :2] *= chord
        faces.normals[below, :2] *= chord
        faces.lengths[below] = np.sin(edge) * width
        faces.curvatures[below] = 1 / np.tan(edge)


def ring_face_ends(counts: Counts, edges: Floats) -> Floats:
    """(faces, 2, 3) ends of each face: of a meridian from south to north, of an arc between rings from west to east."""
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
    """(count,) of the meridians between the cells of a ring, from number ``first`` on, the same for every ring."""
    return np.asarray((np.arange(first, first + count) % count) * (2 * np.pi / count), dtype=np.float64)


def ring_sides(counts: Counts) -> tuple[Integers, Integers]:
    """``cell_start`` and ``cell_sides``, numbered as :mod:`solvers.mesh.mesh` does: counterclockwise from the east.

    East, north from east to west, west, south from west to east.
    """
    rings, start, face_start = len(counts), starts_of(counts), face_starts(counts)
    north = np.append(0, np.maximum(counts[:-1] // counts[1:], 1))  # faces of a cell there
    south = np.append(np.maximum(counts[1:] // counts[:-1], 1), 0)
    cell_start = starts_of(np.repeat(2 + north + south, counts)).astype(np.int32)
    sides = np.empty(cell_start[-1], dtype=np.int32)
    for r, count in enumerate(counts):
        j = np.arange(count)
        above, below = face_start[rings + r - 1] + j * north[r], face_start[rings + r] + j * south[r]
        columns = [
            2 * (start[r] + j),
            *(2 * (above + k) + 1 for k in reversed(range(north[r]))),
            2 * (start[r] + (j - 1) % count) + 1,
            *(2 * (below + k) for k in range(south[r])),
        ]
        sides[cell_start[start[r]] : cell_start[start[r + 1]]] = np.stack(columns, axis=1).reshape(-1)
    return cell_start, sides


def _center_colatitude(north: float, south: float, width: float) -> float:
    """Polar angle of the centroid of the cell [north, south] × [0, width], projected to the sphere."""
    outward = ((south - north) / 2 - (np.sin(2 * south) - np.sin(2 * north)) / 4) * 2 * np.sin(width / 2)
    upward = width * np.sin(south - north) * np.sin(south + north) / 2
    return float(np.arctan2(outward, upward))


def _spherical(theta: float, phi: Floats) -> Floats:
    x = np.empty((len(phi), 3))
    x[:, 0], x[:, 1], x[:, 2] = np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)
    return x


def _east(phi: Floats) -> Floats:
    return np.stack([-np.sin(phi), np.cos(phi), np.zeros_like(phi)], axis=1)
