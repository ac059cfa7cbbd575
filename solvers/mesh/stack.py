"""Disjoint copies of a mesh without mass exchange: one density for each label, or for each radius."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..backends import backend_for
from .arguments import check_count
from .mesh import Floats, Integers, Mesh


def stack(mesh: Mesh, copies: int) -> Mesh:
    """Return ``copies`` of ``mesh`` as one disjoint mesh; cell i of copy k has the index k·cells + i.

    A state on the stack is (copies, cells) flattened. Terms act on each copy as on ``mesh`` alone, except for decisions
    that use the whole state: which cells hold enough mass to limit the time step and to count as resolved.
    The memory is about 200 bytes per cell. Raises ValueError for fewer than one copy, or more sides than 32 bits can
    number.
    """
    check_count("copies", copies, 1)
    if 2 * mesh.faces * copies > np.iinfo(np.int32).max:
        raise ValueError(f"copies = {copies}: too many for a mesh of {mesh.cells} cells, whose sides 32 bits number")
    sides, xp = len(mesh.cell_sides), mesh.backend.xp
    start = _shifted(mesh.cell_start[:-1], sides, copies)
    return Mesh(
        manifold=f"{copies} × {mesh.manifold}",
        dimension=mesh.dimension,
        centers=xp.tile(mesh.centers, (copies, 1)),
        volumes=xp.tile(mesh.volumes, copies),
        face_cells=_shifted(mesh.face_cells, mesh.cells, copies),
        face_centers=xp.tile(mesh.face_centers, (copies, 1)),
        face_normals=xp.tile(mesh.face_normals, (copies, 1)),
        face_areas=xp.tile(mesh.face_areas, copies),
        face_curvatures=xp.tile(mesh.face_curvatures, copies),
        face_conductances=partial(_conductances, mesh, copies),
        cell_start=xp.concatenate([start, mesh.cell_start[-1:] * np.int32(copies)]),
        cell_sides=_shifted(mesh.cell_sides, 2 * mesh.faces, copies),
        ring_cells=np.tile(mesh.ring_cells, copies),
        periods=mesh.periods,
    )


def _conductances(mesh: Mesh, copies: int) -> Floats:
    conductances = mesh.face_conductances()
    tiled: Floats = backend_for(conductances).xp.tile(conductances, copies)
    return tiled


def _shifted(indices: Integers, stride: int, copies: int) -> Integers:
    """Return the ``indices`` of all copies: those of copy k are shifted by k times ``stride``."""
    shift = backend_for(indices).to_device(stride * np.arange(copies, dtype=np.int32))
    return (indices + shift.reshape(-1, *[1] * indices.ndim)).reshape(-1, *indices.shape[1:])
