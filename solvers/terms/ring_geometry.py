"""Geometry of the cells on each ring of a sphere: tables of one or two kinds of cells for each ring.

The tables are in the plane (east, north) at the cell's center, as the kernels ``reconstruct_on_rings`` and
``outgoing_flux_on_rings`` take them. Their formulas are those of the kernels for any surface.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..backends.sizes import MAX_RING_SIDES as SIDES
from ..mesh.mesh import Floats, Mesh
from ..mesh.rings import face_starts, faces_between

MIN_WEIGHT = 1e-9  # weights of a neighbor behind that are smaller count as 0


@dataclass(frozen=True, eq=False)
class RingGeometry:
    """Tables of the geometry of a sphere of rings for the advection kernels.

    Cells of one kind in a ring are equal up to rotations about the axis. A ring has one or two kinds; all rings
    together have n. Vectors are in the plane (east, north) at the cell's center; sides are padded to 5.

    rows       (rings, 13) integers: cells, kinds, neighbors and faces of each ring, see `_rows`
    sine       (rings,) sine of the polar angle of the centers
    cosine     (rings,) cosine of that angle
    volumes    (rings,) area of one cell
    offsets    (n, 2, 5) vectors to the neighbors' centers
    reach      (n, 2, 5) vectors to the face centers
    slopes     (n, 2, 5) weights of the least-squares gradient
    tangents   (n, 2, 5) unit tangents of the faces
    stencils   (2, n, 5, 12) weights of the velocities (east, north) of 5 neighbors and of the cell: in A X·n at each
               face of length A, and in A³/24 · ∂(X·n) along the face
    spans      (n, 5) 1/(d_k × d_{k+1}) of consecutive offsets d
    opposite   (n, 5, 5) weights of the two neighbors opposite to each side, see `_opposite`
    """

    rows: np.ndarray
    sine: Floats
    cosine: Floats
    volumes: Floats
    offsets: Floats
    reach: Floats
    slopes: Floats
    tangents: Floats
    stencils: Floats
    spans: Floats
    opposite: Floats


def is_of_rings(mesh: Mesh) -> bool:
    """Return whether a mesh is that of :func:`~solvers.sphere`: rings of equal cells by the formulas of `Rings`."""
    return mesh.is_by_formula and mesh.manifold == "sphere"


def ring_geometry(mesh: Mesh) -> RingGeometry:
    """Return the tables of the geometry of a sphere of rings, for which :func:`is_of_rings` holds, on the host."""
    rows = _rows(mesh)
    kinds = np.repeat(rows[:, 0] - rows[:, 2], rows[:, 3]) + np.arange(rows[:, 3].sum())  # a cell of each
    sides = mesh.rows("cell_start", kinds + 1) - mesh.rows("cell_start", kinds)
    tables: list[Floats] = []
    for count in np.unique(sides):
        same = sides == count
        for k, table in enumerate(_geometry_of_cells(mesh, kinds[same], int(count))):
            if len(tables) <= k:
                tables.append(np.zeros((len(kinds), *table.shape[1:])))
            tables[k][same] = table
    offsets, reach, slopes, tangents, stencils, spans, opposite = tables
    found = (
        *mesh.ring_axis, mesh.rows("volumes", rows[:, 0]), offsets, reach, slopes, tangents,
        np.ascontiguousarray(stencils.swapaxes(0, 1)), spans, opposite,
    )  # fmt: skip
    return RingGeometry(rows, *(each.astype(mesh.volumes.dtype) for each in found))


def _rows(mesh: Mesh) -> np.ndarray:
    """Return a table (rings, 13) of integers: numbers of cells, neighbors and faces of each ring of latitude.

    The columns START to SOUTH_TIMES are explained by the kernels of the flux through sides.
    """
    counts = mesh.ring_cells.astype(np.int64)
    rings, start = len(counts), mesh.ring_start
    between, faces = faces_between(counts), face_starts(counts)[len(counts) :]
    rows = np.zeros((rings, 13), dtype=np.int64)
    rows[:, 0], rows[:, 1] = start[:-1], counts
    rows[:, [8, 12]] = 1
    rows[1:, 5], rows[1:, 6] = start[:-2], between // counts[1:]
    rows[1:, 7], rows[1:, 8] = faces[:-1], between // counts[:-1]
    rows[:-1, 9], rows[:-1, 10] = start[1:-1], between // counts[:-1]
    rows[:-1, 11], rows[:-1, 12] = faces[:-1], between // counts[1:]
    rows[:, 3] = np.maximum(rows[:, 8], rows[:, 12])
    rows[:, 2] = np.concatenate([[0], np.cumsum(rows[:-1, 3])])
    rows[:, 4] = (rows[:, [6, 8, 10, 12]] == 1).all(axis=1)
    return rows


def _geometry_of_cells(mesh: Mesh, cells: np.ndarray, count: int) -> tuple[Floats, ...]:
    """Return the geometric tables of n cells of a sphere of rings, of ``count`` sides each, padded to 5 sides.

    The tables are offsets, reach, slopes and tangents (n, 2, 5) each, stencils (n, 2, 5, 12), spans (n, 5) and opposite
    weights (n, 5, 5), explained at `RingGeometry`. Arrays (n, sides, 3) are in R³, vectors (n, 2, sides) in the tangent
    plane.
    """
    sides = mesh.rows("cell_sides", mesh.rows("cell_start", cells)[:, None] + np.arange(count))
    faces, is_second = sides >> 1, (sides & 1).astype(bool)
    around = np.where(is_second, *np.moveaxis(mesh.rows("face_cells", faces), -1, 0))
    centers, others = mesh.rows("centers", cells).astype(np.float64), mesh.rows("centers", around).astype(np.float64)
    face_centers = mesh.rows("face_centers", faces).astype(np.float64)
    basis = np.stack(_east_north(centers), axis=1)
    d, at = _geodesic_offsets(centers, others, basis), _geodesic_offsets(centers, face_centers, basis)
    slopes = np.linalg.inv(d @ d.swapaxes(1, 2)) @ d
    spans = _spans(d)

    areas = mesh.rows("face_areas", faces) * np.where(is_second, -1.0, 1.0)
    normals = mesh.rows("face_normals", faces).astype(np.float64)
    bends = mesh.rows("face_curvatures", faces)[:, :, None]
    along = np.cross(face_centers, normals)
    t = basis @ along.swapaxes(1, 2)
    # Weights of X_neighbor − X_cell in X·n at each face, in ∂_t X and in the mean of X·n: (n, sides, neighbors).
    at_face, along_face = ((at - 0.25 * d).swapaxes(1, 2) @ slopes), t.swapaxes(1, 2) @ slopes
    twelfth = areas[:, :, None] ** 2 / 12
    flux = at_face[..., None] * normals[:, :, None] + ((twelfth * bends) * along_face)[..., None] * along[:, :, None]
    change = along_face[..., None] * normals[:, :, None]
    neighbors = np.stack(_east_north(others), axis=-1)  # (n, neighbors, 3, 2)
    stencils = np.zeros((len(cells), 2, SIDES, 2 * SIDES + 2))
    for what, (weights, mean, size) in enumerate(
        [(flux, normals, areas), (change, bends * along, 0.5 * areas * twelfth[:, :, 0])]
    ):
        at_neighbors = np.einsum("nkmx,nmxc->nkmc", weights, neighbors).reshape(len(cells), count, -1)
        stencils[:, what, :count, : 2 * count] = size[:, :, None] * at_neighbors
        at_own = (mean - weights.sum(axis=2)) @ basis.swapaxes(1, 2)
        stencils[:, what, :count, 2 * SIDES :] = size[:, :, None] * at_own

    padded = [np.pad(each, ((0, 0), (0, 0), (0, SIDES - count))) for each in (d, at, slopes, t)]
    opposite = np.stack([_opposite(*each) for each in zip(d, spans, strict=True)])
    return *padded, stencils, np.pad(spans, ((0, 0), (0, SIDES - count))), opposite


def _east_north(points: Floats) -> tuple[Floats, Floats]:
    """Return the unit vectors east and north at points (..., 3) of the unit sphere."""
    x, y, z = np.moveaxis(points, -1, 0)
    sine = np.hypot(x, y)
    return (
        np.stack([-y / sine, x / sine, 0 * z], axis=-1),
        np.stack([-z * x / sine, -z * y / sine, sine], axis=-1),
    )


def _geodesic_offsets(centers: Floats, points: Floats, basis: Floats) -> Floats:
    """Return geodesic offsets (n, 2, sides) from ``centers`` to ``points``, in the basis (n, 2, 3) of tangent planes.

    The points (n, sides, 3) lie on the unit sphere; the lengths are exact to fourth order.
    """
    offset = points - centers[:, None]
    arc = 1.0 + (offset**2).sum(axis=2, keepdims=True) / 6.0
    return np.asarray(basis @ (offset * arc).swapaxes(1, 2))


def _spans(d: Floats) -> Floats:
    """Return 1/(d_k × d_n) (n, sides) for the offsets d (n, 2, sides) to a cell's neighbors; side n follows side k."""
    after = np.roll(d, -1, axis=2)
    return np.asarray(1.0 / (d[:, 0] * after[:, 1] - d[:, 1] * after[:, 0]))


def _opposite(d: Floats, spans: Floats) -> Floats:
    """Return weights w (5, 5) ≥ 0 of the two consecutive neighbors opposite to each side: −d_k = Σ_m w_km d_m.

    d (2, sides) are the offsets to the neighbors of one cell, and ``spans`` (sides,) their :func:`_spans`.
    """
    weights, count = np.zeros((SIDES, SIDES)), d.shape[1]
    cross = np.outer(d[0], d[1]) - np.outer(d[1], d[0])  # d_k × d_m = d_m × −d_k
    first, second = -np.roll(cross, -1, axis=1) * spans, cross * spans
    for k in range(count):
        for m in np.flatnonzero((spans > 0) & (first[k] > -MIN_WEIGHT) & (second[k] > -MIN_WEIGHT))[:1]:
            weights[k, m] = first[k, m] if first[k, m] > MIN_WEIGHT else 0.0
            weights[k, (m + 1) % count] = second[k, m] if second[k, m] > MIN_WEIGHT else 0.0
    return weights
