"""Zones of the unit sphere between angles from an axis, for fields that depend on that angle alone."""

from __future__ import annotations

from functools import partial
from math import gamma

import numpy as np

from .arguments import check_count, check_sides
from .interval import from_edges
from .mesh import Floats, Mesh

MAX_DIMENSION = 343  # Γ(d/2) of a larger d overflows double precision
NODES = 16  # Gauss points in a cell: exact to rounding where sin^{d−2} changes by a factor below e^{10}


def axisymmetric(d: int, cells: int) -> Mesh:
    """Return the mesh of S^{d−1} for fields of the angle θ from an axis: zones of equal width in θ.

    A face has the area ``|S^{d−2}| sin^{d−2} θ``, so that −div and Δ = sin^{2−d} θ ∂θ(sin^{d−2} θ ∂θ) are the sphere's.
    Velocities are (cells, 1), along θ. No mass passes a pole.

    Parameters
    ----------
    d : int
        Dimension of the space around the sphere, 2 to 343.
    cells : int
        Number of zones between θ = 0 and θ = π, at least 3. Good values: 64 to 512.

    Returns
    -------
    Mesh
        The closed mesh. Centers (cells, 1) are the area-weighted mean θ of the zones; volumes are areas.

    Raises
    ------
    TypeError
        If ``d`` or ``cells`` is not a whole number.
    ValueError
        For d < 2 or d > 343, fewer than 3 cells, or if the area of a zone next to a pole underflows. The last
        occurs for many zones of a sphere of a high dimension.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import axisymmetric
    >>> mesh = axisymmetric(4, 32)  # S³ has the area 2π²
    >>> round(float(mesh.volume / np.pi**2), 6)
    2.0
    >>> round(float(np.cos(mesh.centers[:, 0]) ** 2 @ mesh.volumes / mesh.volume), 2)  # mean of ⟨x, axis⟩² = 1/d
    0.25
    """
    check_count("d", d, 2, MAX_DIMENSION)
    check_count("cells", cells, 3)
    check_sides("cells", cells, cells + 1)
    edges = np.linspace(0.0, np.pi, cells + 1)
    line = from_edges(edges)
    volumes, centers = _zones(edges, d)
    areas = _sphere_area(d - 1) * np.sin(edges) ** (d - 2) if d > 2 else np.full(cells + 1, 2.0)
    if d > 2:
        areas[[0, -1]] = 0.0
    distances = np.diff(centers)
    return Mesh(
        manifold=f"axisymmetric S^{d - 1}",
        dimension=1,
        centers=centers[:, None],
        volumes=volumes,
        face_cells=line.face_cells,
        face_centers=line.face_centers,
        face_normals=line.face_normals,
        face_areas=areas,
        face_curvatures=line.face_curvatures,
        face_conductances=partial(np.pad, areas[1:-1] / distances, 1),
        cell_start=line.cell_start,
        cell_sides=line.cell_sides,
        ring_cells=line.ring_cells,
    )


def _zones(edges: Floats, d: int) -> tuple[Floats, Floats]:
    """Return the areas and area-weighted mean angles, (cells,) each, of zones of S^{d−1} between angles ``edges``.

    Raises ValueError if the area of a zone underflows.
    """
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(edges)[:, None] / 2
    theta = edges[:-1, None] + half * (1 + nodes)
    density = _sphere_area(d - 1) * half * weights * np.sin(theta) ** (d - 2)
    volumes = density.sum(axis=1)
    if not (volumes > 0).all():
        raise ValueError(f"d = {d}: the areas of zones next to the poles are too small for a number")
    return volumes, (density * theta).sum(axis=1) / volumes


def _sphere_area(d: int) -> float:
    """Return the area |S^{d−1}| of the unit sphere in R^d; 2 for the two points of S⁰."""
    return float(2 * np.pi ** (d / 2) / gamma(d / 2))
