"""A grid of equal angles on the sphere, and the torus that it becomes when it goes on beyond the poles.

f(−θ, φ) = f(θ, φ + π): a function of degree L is a sum of waves e^{i(kθ + mφ)} with |k|, |m| ≤ L there (Merilees 1973;
Townsend, Wilber and Wright 2016), and a grid of (L + 1) rings of 2L + 2 cells holds it without error.
"""

from __future__ import annotations

import numpy as np

from ..mesh.mesh import Floats, Mesh


def grid_equiangular(degree: int) -> Mesh:
    """(degree + 1) rings of (2 degree + 2) cells between equal angles on the sphere: a mesh without faces."""
    rings, count = degree + 1, 2 * degree + 2
    theta, phi = np.pi / rings * (np.arange(rings) + 0.5)[:, None], np.pi / rings * (np.arange(count) + 0.5)
    parts = np.broadcast_arrays(np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta))
    heights = -np.diff(np.cos(np.pi / rings * np.arange(rings + 1)))
    none, nowhere = np.empty(0), np.empty((0, 3))
    return Mesh(
        manifold="sphere",
        dimension=2,
        centers=np.stack(parts, axis=-1).reshape(-1, 3),
        volumes=np.repeat(heights * (np.pi / rings), count),
        face_cells=np.empty((0, 2), np.int32),
        face_centers=nowhere,
        face_normals=nowhere,
        face_areas=none,
        face_curvatures=none,
        face_conductances=lambda: none,
        cell_start=np.zeros(rings * count + 1, np.int32),
        cell_sides=np.empty(0, np.int32),
        ring_cells=np.full(rings, count, np.int32),
    )


def unfolded(values: Floats) -> Floats:
    """(sets, 2 rings, count) a function on the torus from that on the sphere's grid (sets, rings, count)."""
    beyond = np.roll(values[:, ::-1], values.shape[2] // 2, axis=2)
    return np.concatenate([values, beyond], axis=1)


def folded(torus: Floats) -> Floats:
    """The transpose: masses on the sphere's grid from those on the torus."""
    rings = torus.shape[1] // 2
    return torus[:, :rings] + np.roll(torus[:, rings:][:, ::-1], torus.shape[2] // 2, axis=2)
