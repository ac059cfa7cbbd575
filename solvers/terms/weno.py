"""Fifth-order weighted essentially non-oscillatory reconstruction along the axes of equal cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..mesh.mesh import Floats, Integers, Mesh

LINEAR = np.array([0.1, 0.6, 0.3])  # weights of the three parabolas where u is smooth
EPSILON = 1e-40  # absolute, in units of u², against 0/0
SUBSTENCILS = np.array([[2, -7, 11, 0, 0], [0, -1, 5, 2, 0], [0, 0, 2, 5, -1]]) / 6  # values at the face ahead


class Weno:
    """WENO-Z reconstruction of u at a face from five cells in a line, of fifth order where u is smooth.

    Sources: Jiang and Shu 1996; Borges, Carmona, Costa and Don 2008. Meshes have equal cells: an interval, a circle, a
    box or a torus. Cells beyond a boundary equal the last inner one. Raises ValueError for another mesh.
    """

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        sides, stencil = _stencils(mesh.on_host)
        self._sides, self._stencil = mesh.backend.to_device(sides), mesh.backend.to_device(stencil)

    def values_at_faces(self, values: Floats, at_side: Floats) -> None:
        """Write the reconstruction u_f of a field ``values`` (cells,) at all faces to ``at_side``.

        ``at_side`` (2 faces,) holds the value from the first cell of face f at 2f, from the second at 2f + 1.
        """
        v = values[self._stencil]
        at_side[self._sides] = _weno(v)


def _weno(v: Any) -> Floats:
    """Return reconstructed values (n,) at the face between the third and fourth of five cells in line, v (5, n)."""
    smooth = [
        13 / 12 * (v[0] - 2 * v[1] + v[2]) ** 2 + 0.25 * (v[0] - 4 * v[1] + 3 * v[2]) ** 2,
        13 / 12 * (v[1] - 2 * v[2] + v[3]) ** 2 + 0.25 * (v[1] - v[3]) ** 2,
        13 / 12 * (v[2] - 2 * v[3] + v[4]) ** 2 + 0.25 * (3 * v[2] - 4 * v[3] + v[4]) ** 2,
    ]
    widest, limits = np.abs(smooth[0] - smooth[2]), np.finfo(v.dtype)
    tiny, max_ratio = max(EPSILON, float(limits.tiny)), 1e-4 * float(limits.max) ** 0.5
    with np.errstate(over="ignore"):
        ratios = [np.minimum(widest / (beta + tiny), max_ratio) for beta in smooth]
    weights = [float(linear) * (1 + ratio**2) for linear, ratio in zip(LINEAR, ratios, strict=True)]
    parts = [
        sum(float(c) * v[k] for k, c in enumerate(row) if c) * weight
        for row, weight in zip(SUBSTENCILS, weights, strict=True)
    ]
    value: Floats = sum(parts) / sum(weights)
    return value


def _stencils(mesh: Mesh) -> tuple[Integers, Integers]:
    """Return the sides (n,) of all cells, and the five cells (5, n) in a line through each side.

    The cells are two behind, the side's own cell, and two ahead, across the side.
    """
    counts = np.diff(mesh.cell_start)
    equal = np.ptp(mesh.volumes) < 1e-9 * mesh.volumes.max()
    if not (equal and (counts == 2 * mesh.dimension).all() and (mesh.dimension == 1 or mesh.shape)):
        raise ValueError(f'reconstruction = "weno5" on a {mesh.manifold}: expected equal cells of a line, box or torus')
    sides = mesh.cell_sides.reshape(mesh.cells, -1).astype(np.int64)
    normals = mesh.face_normals[sides >> 1] * np.where(sides & 1, -1.0, 1.0)[:, :, None]
    across = np.einsum("ikc,imc->ikm", normals, normals).argmin(axis=2)
    opposite = np.zeros(2 * mesh.faces, dtype=np.int64)
    opposite[sides] = np.take_along_axis(sides, across, axis=1)
    cells = np.repeat(np.arange(mesh.cells), sides.shape[1])
    flat, neighbor = sides.reshape(-1), mesh.side_cells

    def onward(side: Any) -> tuple[Any, Any]:
        """Return the cell across each side, and that cell's opposite side; at a boundary the same cell and side."""
        beyond = neighbor[side ^ 1]
        inner = beyond != neighbor[side]
        return beyond, np.where(inner, opposite[np.where(inner, side ^ 1, side)], side)

    ahead, next_side = onward(flat)
    far_ahead, _ = onward(next_side)
    behind, last_side = onward(opposite[flat])
    far_behind, _ = onward(last_side)
    return flat.astype(np.int32), np.stack([far_behind, behind, cells, ahead, far_ahead]).astype(np.int32)
