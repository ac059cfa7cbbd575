"""Meshes of an interval: cells between increasing edges, with a wall at either end.

A wall is a face with the same cell on both sides, ``face_cells = [i, i]``: the cell is its own neighbour there, and the
transport kernels send nothing through it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .mesh import Floats, Mesh


def interval(edges: ArrayLike, manifold: str) -> Mesh:
    """The cells [edges[i], edges[i + 1]] of a line; ``manifold`` is the mesh's name.

    edges   (cells + 1,) finite and increasing; a mesh that changes smoothly keeps transport of second order
    Centers (cells, 1) are the cells' midpoints, volumes their lengths. Raises ValueError for fewer than 3 cells or
    edges that do not increase.
    """
    edge = np.asarray(edges, dtype=np.float64)
    cells = len(edge) - 1
    if cells < 3:
        raise ValueError(f"an interval needs at least 3 cells, got {cells}")
    if not (np.isfinite(edge).all() and (np.diff(edge) > 0).all()):
        raise ValueError("edges of an interval: expected finite, increasing numbers")
    face = np.arange(cells + 1, dtype=np.int32)
    centers = 0.5 * (edge[:-1] + edge[1:])
    return Mesh(
        manifold=manifold,
        dimension=1,
        centers=centers[:, None],
        volumes=np.diff(edge),
        face_cells=np.stack([face - 1, face], axis=1).clip(0, cells - 1),
        face_centers=edge[:, None].copy(),
        face_normals=np.ones((cells + 1, 1)),
        face_areas=np.ones(cells + 1),
        face_curvatures=np.zeros(cells + 1),
        face_conductances=lambda: np.concatenate([[0.0], 1.0 / np.diff(centers), [0.0]]),
        cell_start=2 * np.arange(cells + 1, dtype=np.int32),
        cell_sides=np.stack([2 * face[:-1] + 1, 2 * face[1:]], axis=1).reshape(-1),
        ring_cells=np.array([cells], dtype=np.int32),
    )


def edges_of(mesh: Mesh) -> Floats:
    """(cells + 1,) the edges of an interval."""
    return mesh.face_centers[:, 0]


def line(cells: int, extent: float, core: float) -> Mesh:
    """[−extent, extent] in cells of equal steps of ξ, x = core·sinh ξ: equal ones in |x| < core, logarithmic beyond.

    Good values: a core of the width of the density to begin with, an extent of as many decades more as it may grow.
    Raises ValueError unless 0 < core and 0 < extent, both finite.
    """
    for name, value in (("extent", extent), ("core", core)):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name} = {value}: expected a finite number > 0")
    return interval(_stretched(cells, extent, core), "line")


def polar(cells: int, dimension: int) -> Mesh:
    """The polar angle θ ∈ [0, π] of S^{d−1}: θ − π/2 = c sinh ξ, ξ in equal steps, c = 2/√(d − 2).

    The uniform law, ∝ sin^{d−2} θ, has the width 1/√(d − 2) about the equator: cells are nearly equal there and grow
    in proportion to their distance from it towards the poles; for d = 2 all are equal. Volumes are in radians.
    Raises ValueError for dimension < 2.
    """
    if dimension < 2:
        raise ValueError(f"dimension = {dimension}: expected at least 2")
    if dimension == 2:
        return interval(np.linspace(0.0, np.pi, cells + 1), "axisymmetric")
    edges = np.pi / 2 + _stretched(cells, np.pi / 2, 2 / np.sqrt(dimension - 2))
    edges[0], edges[-1] = 0.0, np.pi
    return interval(edges, "axisymmetric")


def _stretched(cells: int, extent: float, core: float) -> Floats:
    """Edges of [−extent, extent], symmetric to the last bit."""
    reach = np.arcsinh(extent / core)
    half = core * np.sinh(np.linspace(-reach, reach, cells + 1))
    edges = 0.5 * (half - half[::-1])
    edges[0], edges[-1] = -extent, extent
    return np.asarray(edges)
