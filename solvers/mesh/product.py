"""Products of meshes: a torus of two circles, a box of two intervals, a cylinder of a circle and an interval."""

from __future__ import annotations

import numpy as np

from .mesh import Floats, Mesh


def product(first: Mesh, second: Mesh) -> Mesh:
    """The mesh of all pairs of a cell of ``first`` and one of ``second``, two curves; cell (i, j) is i·cells + j.

    Embedded in R^{d + d'}: circle × circle is the flat torus |x| = |y| = 1 in R⁴. A state (cells, cells') is flattened.
    Diffusion's two-point fluxes are exact in both directions. Raises ValueError for anything but two curves.
    """
    for mesh in (first, second):
        if mesh.dimension != 1:
            raise ValueError(f"product of a {mesh.manifold}: expected two curves")
    m, n = first.cells, second.cells
    along = (np.arange(first.faces)[:, None] * n + np.arange(n)).astype(np.int32)  # faces across ``first``
    across = (first.faces * n + np.arange(m)[:, None] * second.faces + np.arange(second.faces)).astype(np.int32)
    i, j = np.divmod(np.arange(m * n), n)
    counts = _sides_of(first)[i], _sides_of(second)[j]
    sides = np.stack(
        [
            2 * along[counts[0][:, 1] >> 1, j] + (counts[0][:, 1] & 1),
            2 * across[i, counts[1][:, 1] >> 1] + (counts[1][:, 1] & 1),
            2 * along[counts[0][:, 0] >> 1, j] + (counts[0][:, 0] & 1),
            2 * across[i, counts[1][:, 0] >> 1] + (counts[1][:, 0] & 1),
        ],
        axis=1,
    )
    return Mesh(
        manifold=f"{first.manifold} × {second.manifold}",
        dimension=2,
        centers=_pairs(first.centers, second.centers),
        volumes=np.outer(first.volumes, second.volumes).reshape(-1),
        face_cells=np.concatenate(
            [
                (first.face_cells[:, None, :] * n + np.arange(n)[:, None]).reshape(-1, 2),
                (np.arange(m)[:, None, None] * n + second.face_cells).reshape(-1, 2),
            ]
        ).astype(np.int32),
        face_centers=np.concatenate(
            [_pairs(first.face_centers, second.centers), _pairs(first.centers, second.face_centers)]
        ),
        face_normals=np.concatenate(
            [
                _pairs(first.face_normals, np.zeros_like(second.centers)),
                _pairs(np.zeros_like(first.centers), second.face_normals),
            ]
        ),
        face_areas=np.append(np.tile(second.volumes, first.faces), np.repeat(first.volumes, second.faces)),
        face_curvatures=np.zeros(first.faces * n + m * second.faces),
        face_conductances=lambda: np.append(
            np.outer(first.face_conductances(), second.volumes), np.outer(first.volumes, second.face_conductances())
        ),
        cell_start=4 * np.arange(m * n + 1, dtype=np.int32),
        cell_sides=sides.reshape(-1).astype(np.int32),
        ring_cells=np.full(m, n, dtype=np.int32),
    )


def _sides_of(mesh: Mesh) -> np.ndarray:
    """(cells, 2) the side behind and the one ahead of each cell of a curve."""
    return mesh.cell_sides.reshape(-1, 2)


def _pairs(first: Floats, second: Floats) -> Floats:
    """(m·n, d + d') all pairs of a row of each."""
    return np.hstack([np.repeat(first, len(second), axis=0), np.tile(second, (len(first), 1))])
