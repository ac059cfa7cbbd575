"""Consistency of two-point fluxes on a mesh."""

from __future__ import annotations

import numpy as np

from ..mesh.calculus import tangent_planes
from ..mesh.mesh import Mesh

MAX_RESIDUAL = 0.02  # relative net flux of a linear function; the O(h) error of curved cells is smaller


def has_linear_precision(mesh: Mesh) -> bool:
    """Return whether two-point diffusive fluxes of a linear function balance in each inner cell, as on Voronoi cells.

    Two-point fluxes, conductance times difference of both cells, balance on all meshes of this package. Another mesh
    may define the conductance as area over distance although the line between two centers is not normal to the face:
    errors there are of order one.
    """
    if mesh.dimension == 1:
        return True
    first, second = mesh.face_cells.T
    offsets = mesh.shortest(mesh.centers[second] - mesh.centers[first])
    fluxes = np.asarray(mesh.face_conductances())[:, None] * offsets
    net, size = np.zeros(mesh.centers.shape), np.zeros(mesh.cells)
    for cells, sign in ((first, 1.0), (second, -1.0)):
        np.add.at(net, cells, sign * fluxes)
        np.add.at(size, cells, np.linalg.norm(fluxes, axis=1))
    residual = np.linalg.norm(np.einsum("cd,cdp->cp", net, tangent_planes(mesh)), axis=1)
    residual[first[first == second]] = 0.0  # the net flux of a boundary cell need not vanish
    return bool((residual <= MAX_RESIDUAL * size).all())
