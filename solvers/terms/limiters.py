"""Linear reconstruction in the cells of any mesh, limited or not, and the geometry for it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..mesh.calculus import quadratic_weights, tangent_planes
from ..mesh.coordinates import unit_vectors
from ..mesh.mesh import Floats, Integers, Mesh

LIMITERS = {"none": 0, "mc": 1, "vanleer": 2, "koren": 3}  # codes in the kernel values_at_faces
MAX_NORMAL = 0.2  # normal component over speed: tangents of a smooth surface and of its cells differ by O(h)
MIN_PART = 0.5  # of a positive quantity of a cell: least value at its faces
MAX_DIMENSION = 8  # of the space that holds the mesh: length of a gradient in the kernels


class Reconstruction:
    """Linear reconstruction u_f = u_i + ψ ∇u_i·(x_f − x_i) of a field u on both sides of each face, with a limiter ψ.

    ∇u_i is the gradient of a quadratic fit in the tangent plane of cell i, x_i its center, and x_f a face's center.

    limiter   "koren" (Koren 1993), "mc" or "vanleer" (van Leer 1977, 1974): monotone, first order at extrema; "none":
              ψ = 1, which overshoots

    The order is 2 where u is smooth, on curves, surfaces and in boxes, closed or with walls. Raises ValueError for
    other limiters, and for a mesh whose faces do not enclose its cells: in d dimensions |Σ A (x_f − x_i)·n − dV| ≤ dV/2
    by Gauss's theorem. A periodic mesh has to be embedded, as a circle is in the plane.
    """

    def __init__(self, mesh: Mesh, limiter: str) -> None:
        check_limiter(limiter)
        self.mesh, self._limiter = mesh, LIMITERS[limiter]
        geometry = _geometry(mesh.on_host)
        number = mesh.volumes.dtype
        self._slopes, self._reach, self._distances, self._tangents, self._bends = (
            mesh.backend.to_device(np.ascontiguousarray(array, dtype=number)) for array in geometry
        )

    @property
    def _sides(self) -> tuple[Integers, Integers, Integers]:
        """Return the arrays of the mesh that list the sides of each cell and the cells across."""
        return self.mesh.cell_start, self.mesh.cell_sides, self.mesh.side_cells

    def values_at_faces(self, values: Floats, at_side: Floats) -> None:
        """Write the limited linear reconstruction u_f of a field ``values`` (cells,) at all faces to ``at_side``.

        ``at_side`` (2 faces,) holds the value from the first cell of face f at 2f, from the second at 2f + 1.
        """
        self.mesh.backend.launch(
            self.mesh.backend.values_at_faces, self.mesh.cells, *self._sides, self._slopes, self._reach,
            self._distances, self._limiter, values, at_side,
        )  # fmt: skip

    def vectors_at_faces(self, vectors: Floats, normals: Floats, tangents: Floats, at_side: Floats) -> None:
        """Write the limited linear reconstruction of tangent vectors (d, cells) at all faces to ``at_side``.

        The limiter acts on the components along the unit normal and tangent (faces, d) of each face. ``at_side``
        (d, 2 faces) holds the vector from the first cell of face f at 2f, from the second at 2f + 1.
        """
        mesh = self.mesh
        mesh.backend.launch(
            mesh.backend.vectors_at_faces, mesh.cells, *self._sides, self._slopes, self._reach, self._distances,
            self._limiter, normals, tangents, vectors, at_side,
        )  # fmt: skip

    def flux_at_faces(self, velocity: Floats, flux: Floats) -> None:
        """Write the fluxes A X·n of a velocity X (cells, d) through all faces to ``flux``, without a limiter.

        ``flux`` (2 faces,) holds the flux out of the first cell of face f at 2f, out of the second at 2f + 1. A is the
        area.
        """
        mesh = self.mesh
        mesh.backend.launch(
            mesh.backend.flux_at_faces, mesh.cells, *self._sides, self._slopes, self._reach, mesh.face_normals,
            mesh.face_areas, self._tangents, self._bends, velocity, flux,
        )  # fmt: skip


def check_limiter(limiter: str) -> None:
    """Raise ValueError unless ``limiter`` is the name of a limiter of reconstructions: a key of LIMITERS."""
    if not isinstance(limiter, str) or limiter not in LIMITERS:
        raise ValueError(f"limiter = {limiter!r}: expected one of {', '.join(map(repr, LIMITERS))}")


class PositivityLimiter:
    """Limiter that moves the values at the sides of a cell towards its mean until quantities such as a depth are > 0.

    On the line from the mean m to the value u at a side, the new value is m + θ (u − m), with one θ for all sides of a
    cell. A concave quantity q has q ≥ (1 − θ) q(m) + θ q(u) there, and θ is such that this is q(m)/2 at least: unlike
    the bound 0, this bounds the velocity at a side too. The sides of a cell with q(m) < 0 get NaN. Source: Perthame and
    Shu (1996); Zhang and Shu (2010).

    positive   function (…, n) → (k, n) of k quantities; each is concave where those before it are > 0
    """

    def __init__(self, mesh: Mesh, positive: Callable[[Floats], Floats]) -> None:
        host, self._mesh, self._positive = mesh.on_host, mesh, positive
        counts = np.diff(host.cell_start)
        places = host.cell_start[:-1, None] + np.minimum(np.arange(counts.max()), counts[:, None] - 1)
        self._sides = mesh.backend.to_device(host.cell_sides[places])  # (cells, sides), the last one repeated

    def limit(self, values: Floats, at_side: Floats) -> None:
        """Move the values ``at_side`` (…, 2 faces) towards the means ``values`` (…, cells) of their cells, in place."""
        xp, cells = self._mesh.backend.xp, self._mesh.side_cells
        with np.errstate(all="ignore"):
            means = self._positive(values)
            for k, mean in enumerate(means):
                found = self._positive(at_side)[k][self._sides].min(axis=1)
                low = found < MIN_PART * mean
                if not self._mesh.backend.may_have_true(low):
                    continue
                part = xp.where(low, (1 - MIN_PART) * mean / (mean - found), 1.0)[cells]
                xp.copyto(at_side, values[..., cells] * (1 - part) + part * at_side, where=low[cells])
        xp.copyto(at_side, np.nan, where=(means.min(axis=0) < 0)[cells])


class Constant:
    """Piecewise constant reconstruction u_f = u_i on both sides of each face (Godunov 1959), of first order."""

    def __init__(self, mesh: Mesh) -> None:
        host = mesh.on_host
        cells = np.repeat(np.arange(mesh.cells, dtype=np.int32), np.diff(host.cell_start))
        self._own, self._sides = mesh.backend.to_device(cells), mesh.cell_sides

    def values_at_faces(self, values: Floats, at_side: Floats) -> None:
        """Write the value of each cell at all its faces to ``at_side``.

        ``at_side`` (2 faces,) holds the value of the first cell of face f at 2f, of the second at 2f + 1.
        """
        at_side[self._sides] = values[self._own]


def _geometry(mesh: Mesh) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return the arrays with which the kernels reconstruct values and fluxes at faces; sides are numbered cell by cell.

    slopes      (sides, d) weights of the gradient
    reach       (sides, d) vector from the cell center to the face center
    distances   (sides, d + 1) vector to the neighbor's center, and twice the fraction of it up to the face
    tangents    (faces, d) unit vectors along faces
    bends       (faces,) area²/12 times curvature
    """
    dimension, ambient = mesh.dimension, mesh.centers.shape[1]
    if not dimension <= ambient <= MAX_DIMENSION:
        raise ValueError(f"mesh in R^{ambient}: expected from R^{dimension} to R^{MAX_DIMENSION}")
    cells = np.repeat(np.arange(mesh.cells), np.diff(mesh.cell_start))
    sides = mesh.cell_sides
    normals = mesh.face_normals[sides >> 1] * np.where(sides & 1, -1.0, 1.0)[:, None]
    offsets = mesh.shortest(mesh.centers[mesh.side_cells[sides ^ 1]] - mesh.centers[cells])
    reach = mesh.shortest(mesh.face_centers[sides >> 1] - mesh.centers[cells])
    _check_enclosed(mesh, cells, (normals * reach).sum(axis=1) * mesh.face_areas[sides >> 1])

    plane = tangent_planes(mesh)
    slopes = quadratic_weights(cells, offsets, plane)

    square = (offsets**2).sum(axis=1)
    part = np.where(square > 0, 2.0 * (reach * offsets).sum(axis=1) / np.where(square > 0, square, 1.0), 1.0)
    tangents = np.zeros((mesh.faces, ambient))
    if dimension == 2:
        along = plane[cells] - normals[:, :, None] * np.einsum("kc,kcp->kp", normals, plane[cells])[:, None]
        longest = np.argmax((along**2).sum(axis=1), axis=1)
        along = np.take_along_axis(along, longest[:, None, None], axis=2)[:, :, 0]
        tangents[sides >> 1] = unit_vectors(along)
    bends = mesh.face_areas**2 / 12 * mesh.face_curvatures if dimension == 2 else np.zeros(mesh.faces)
    return slopes, reach, np.column_stack([offsets, part]), tangents, bends


def check_tangent(mesh: Mesh, velocity: Floats) -> None:
    """Raise ValueError if a velocity (…, cells, d) on a curve or surface points out of the tangent planes.

    The tolerance for the normal component is MAX_NORMAL times the largest speed.
    """
    if mesh.dimension == mesh.centers.shape[1]:
        return
    plane = tangent_planes(mesh.on_host)
    tangent = np.einsum("cdp,...cp->...cd", plane, np.einsum("cdp,...cd->...cp", plane, velocity))
    off, speed = np.linalg.norm(velocity - tangent, axis=-1), np.linalg.norm(velocity, axis=-1)
    if off.max() > MAX_NORMAL * speed.max():
        cell = int(off.reshape(-1, mesh.cells).max(axis=0).argmax())
        raise ValueError(
            f"velocity: {off.max():.3g} of {speed.max():.3g} points out of the {mesh.manifold} at cell {cell}:"
            " expected a tangent vector, such as X - (X·x) x at a unit vector x"
        )


def _check_enclosed(mesh: Mesh, cells: np.ndarray, parts: Floats) -> None:
    """Raise ValueError if the faces of a cell do not enclose its volume, from ``parts`` (sides,) A (x_f − x_i)·n."""
    found, expected = np.bincount(cells, parts, mesh.cells), mesh.dimension * mesh.volumes
    wrong = np.flatnonzero(~(np.abs(found - expected) <= 0.5 * expected))
    if len(wrong):
        i = wrong[0]
        raise ValueError(
            f"mesh: the faces of cell {i} enclose a volume of {found[i] / mesh.dimension:.3g}: expected"
            f" {mesh.volumes[i]:.3g}; a periodic mesh has to be embedded, as a circle is in the plane"
        )
