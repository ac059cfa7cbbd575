"""Point masses on a mesh: a split over neighboring cells that keeps the mass and the first moment."""

from __future__ import annotations

import numpy as np

from ..mesh.checks import check_unmasked
from ..mesh.mesh import Floats, Mesh


def deposit_points(mesh: Mesh, points: Floats, masses: Floats) -> Floats:
    """Density (cells) of point masses (points,) at unit vectors (points, d).

    Each mass is shared by d cells around its point, with weights w ≥ 0, Σw = 1, such that Σ w x_cell is parallel to
    the point: the center of mass lies where the point is. Raises ValueError unless the mesh is a circle or a sphere, in
    R^d, and points and masses have these shapes.
    """
    from scipy.spatial import KDTree

    d = mesh.centers.shape[1]
    if mesh.dimension != d - 1 or d not in (2, 3):
        raise ValueError(f"mesh of a {mesh.manifold}: expected a circle or a sphere")
    if np.shape(points) != (len(masses), d):
        raise ValueError(f"points of shape {np.shape(points)}: expected ({len(masses)}, {d}), as there are masses")
    check_unmasked("points", points)
    check_unmasked("masses", masses)
    nearest = KDTree(mesh.centers).query(points, k=3)[1]
    density = np.zeros(mesh.cells)
    for point, mass, candidates in zip(points, masses, nearest, strict=True):
        cells, weights = max((_bracket(mesh, cell, point) for cell in candidates), key=lambda found: found[1].min())
        if weights.min() < -1e-12:  # in no triangle of neighbors: at a pole that five or six cells surround
            cells, weights = _surround(mesh, candidates, point)
        weights = np.maximum(weights, 0.0)  # rounding, where the point lies on an edge of the bracket
        np.add.at(density, cells, mass * weights / (weights.sum() * mesh.volumes[cells]))
    return density


def _bracket(mesh: Mesh, cell: int, point: Floats) -> tuple[np.ndarray, Floats]:
    """The cell with the neighbors (one on a curve, two consecutive ones on a surface) that best bracket a point.

    The weights w of Σ w x_cell = point, whose sum is not 1: of a bracket that does not hold the point it may be 0.
    """
    around = mesh.neighbors(cell)
    others = around[:, None] if mesh.dimension == 1 else np.stack([around, np.roll(around, -1)], axis=1)
    cells = np.column_stack([np.full(len(others), cell), others])
    corners = mesh.centers[cells].swapaxes(1, 2)
    weights = np.linalg.solve(corners, np.broadcast_to(point[:, None], (len(cells), len(point), 1)))[..., 0]
    best = int(weights.min(axis=1).argmax())
    return cells[best], weights[best]


def _surround(mesh: Mesh, candidates: np.ndarray, point: Floats) -> tuple[np.ndarray, Floats]:
    """Weights over the candidates and two layers of their neighbors, non-negative, that reproduce a point."""
    from scipy.optimize import nnls

    cells = candidates
    for _ in range(2):
        cells = np.unique(np.concatenate([cells, *(mesh.neighbors(cell) for cell in cells)]))
    weights, residual = nnls(mesh.centers[cells].T, point)
    if residual > 1e-12:
        raise ValueError(f"point {point}: not surrounded by cells of the mesh")
    return cells, weights
