"""Deposits of point masses on a mesh: a split over neighboring cells with equal mass and first moment."""

from __future__ import annotations

import numpy as np

from ..mesh.checks import as_floats, check_finite, check_mesh
from ..mesh.mesh import Floats, Mesh

_SUPPORTED = ("circle", "sphere", "icosphere")


def deposit_points(mesh: Mesh, points: Floats, masses: Floats) -> Floats:
    """Return the density of point masses on a mesh of the circle or the sphere.

    Each mass is shared by d cells around its point, or by a few more cells next to a pole. Each mass is conserved, and
    the center of mass of the cells has the direction of the point.

    Parameters
    ----------
    mesh : Mesh
        A circle, or a sphere in R³ of rings or of :func:`~solvers.icosphere`.
    points : (n, d) array
        Unit vectors.
    masses : (n,) array
        Mass of each point.

    Returns
    -------
    (cells,) array
        Density with respect to the volumes of the cells.

    Raises
    ------
    TypeError
        If ``mesh`` is not a :class:`~solvers.Mesh`, and for points or masses that are not real numbers.
    ValueError
        For another mesh, for points and masses of other shapes, and for numbers that are masked or not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import circle, deposit_points
    >>> mesh = circle(16)
    >>> masses = mesh.volumes * deposit_points(mesh, np.array([[0.6, 0.8]]), np.array([2.0]))
    >>> round(float(masses.sum()), 6)
    2.0
    >>> center = masses @ mesh.centers
    >>> (center / np.linalg.norm(center)).round(6)  # the direction of the point
    array([0.6, 0.8])
    """
    from scipy.spatial import KDTree

    check_mesh(mesh)
    if mesh.manifold not in _SUPPORTED:
        raise ValueError(f"mesh of a {mesh.manifold}: expected a circle, a sphere of rings or an icosphere")
    points, masses, d = as_floats("points", points), as_floats("masses", masses), mesh.centers.shape[1]
    if masses.ndim != 1:
        raise ValueError(f"masses of shape {masses.shape}: expected (n,)")
    if points.shape != (len(masses), d):
        raise ValueError(f"points of shape {points.shape}: expected ({len(masses)}, {d}), as there are masses")
    check_finite("points", points)
    check_finite("masses", masses)
    nearest = KDTree(mesh.centers).query(points, k=3)[1]
    density = np.zeros(mesh.cells)
    for point, mass, candidates in zip(points, masses, nearest, strict=True):
        cells, weights = max((_bracket(mesh, cell, point) for cell in candidates), key=lambda found: found[1].min())
        if weights.min() < -1e-12:  # outside all triangles of neighbors: inside the ring of cells around a pole
            cells, weights = _enclosing_cells(mesh, candidates, point)
        weights = np.maximum(weights, 0.0)  # rounding for a point on an edge of the bracket
        np.add.at(density, cells, mass * weights / (weights.sum() * mesh.volumes[cells]))
    return density


def _bracket(mesh: Mesh, cell: int, point: Floats) -> tuple[np.ndarray, Floats]:
    """Return a cell with those of its neighbors whose centers best bracket a point, and the weights of these cells.

    The neighbors are one cell on a curve and two consecutive cells on a surface. The weights w solve Σ w x_cell = point
    with the cell centers x_cell. The sum of the weights is not 1, and may be 0 if the bracket does not contain the
    point.
    """
    around = mesh.neighbors(cell)
    others = around[:, None] if mesh.dimension == 1 else np.stack([around, np.roll(around, -1)], axis=1)
    cells = np.column_stack([np.full(len(others), cell), others])
    corners = mesh.centers[cells].swapaxes(1, 2)
    weights = np.linalg.solve(corners, np.broadcast_to(point[:, None], (len(cells), len(point), 1)))[..., 0]
    best = int(weights.min(axis=1).argmax())
    return cells[best], weights[best]


def _enclosing_cells(mesh: Mesh, candidates: np.ndarray, point: Floats) -> tuple[np.ndarray, Floats]:
    """Return cells around a point, and weights w ≥ 0 with Σ w x_cell = point for the centers x_cell of these cells.

    The cells are ``candidates`` and two layers of their neighbors. Raises ValueError for a point that the cells do not
    surround.
    """
    from scipy.optimize import nnls

    cells = candidates
    for _ in range(2):
        cells = np.unique(np.concatenate([cells, *(mesh.neighbors(cell) for cell in cells)]))
    weights, residual = nnls(mesh.centers[cells].T, point)
    if residual > 1e-12:
        raise ValueError(f"point {point}: not surrounded by cells of the mesh")
    return cells, weights
