"""Disjoint copies of a mesh without mass exchange: one density for each label, or for each radius."""

from __future__ import annotations

from functools import partial

import numpy as np

from ..backends import backend_for
from .arguments import check_count
from .checks import check_mesh
from .mesh import Floats, Integers, Mesh


def stack(mesh: Mesh, copies: int) -> Mesh:
    """Return copies of a mesh as one disjoint mesh.

    Cell i of copy k has the index k·cells + i; a state on the stack is a (copies, cells) array, flattened. Terms act on
    each copy as on the mesh alone, except for decisions that use the whole state: which cells hold enough mass to limit
    the time step and to count as resolved.

    Parameters
    ----------
    mesh : Mesh
        The mesh to copy.
    copies : int
        Number of copies, at least 1. A surface takes about 200 bytes per cell and copy.

    Returns
    -------
    Mesh
        The disjoint mesh. The stack has no tags of boundaries: every face of the boundary is a wall.

    Raises
    ------
    TypeError
        If ``mesh`` is not a :class:`~solvers.Mesh`, or ``copies`` not a whole number.
    ValueError
        For a mesh whose arrays contradict each other, fewer than one copy, or more sides than 32 bits can number.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import circle, stack
    >>> mesh = stack(circle(8), 3)  # three densities that exchange no mass
    >>> mesh.cells
    24
    >>> bool(np.array_equal(mesh.volumes.reshape(3, 8)[2], circle(8).volumes))
    True
    """
    check_mesh(mesh)
    check_count("copies", copies, 1)
    if 2 * mesh.faces * copies > np.iinfo(np.int32).max:
        raise ValueError(
            f"copies = {copies}: too many for a mesh of {mesh.cells} cells, since sides have numbers of 32 bits"
        )
    sides, xp = len(mesh.cell_sides), mesh.backend.xp
    start = _shift_indices(mesh.cell_start[:-1], sides, copies)
    return Mesh(
        manifold=f"{copies} × {mesh.manifold}",
        dimension=mesh.dimension,
        centers=xp.tile(mesh.centers, (copies, 1)),
        volumes=xp.tile(mesh.volumes, copies),
        face_cells=_shift_indices(mesh.face_cells, mesh.cells, copies),
        face_centers=xp.tile(mesh.face_centers, (copies, 1)),
        face_normals=xp.tile(mesh.face_normals, (copies, 1)),
        face_areas=xp.tile(mesh.face_areas, copies),
        face_curvatures=xp.tile(mesh.face_curvatures, copies),
        face_conductances=partial(_conductances, mesh, copies),
        cell_start=xp.concatenate([start, mesh.cell_start[-1:] * np.int32(copies)]),
        cell_sides=_shift_indices(mesh.cell_sides, 2 * mesh.faces, copies),
        ring_cells=np.tile(mesh.ring_cells, copies),
        periods=mesh.periods,
    )


def _conductances(mesh: Mesh, copies: int) -> Floats:
    """Return the face conductances of all copies of a mesh, copy by copy."""
    conductances = mesh.face_conductances()
    tiled: Floats = backend_for(conductances).xp.tile(conductances, copies)
    return tiled


def _shift_indices(indices: Integers, stride: int, copies: int) -> Integers:
    """Return ``indices`` for all copies of a mesh in one array; those of copy k are shifted by k times ``stride``."""
    shift = backend_for(indices).to_device(stride * np.arange(copies, dtype=np.int32))
    return (indices + shift.reshape(-1, *[1] * indices.ndim)).reshape(-1, *indices.shape[1:])
