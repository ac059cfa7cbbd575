"""Meshes of symmetric fields: zones of the unit sphere between angles from an axis, shells between radii of a ball."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import gamma

import numpy as np

from .arguments import check_count, check_sides
from .coordinates import RADIAL
from .interval import Stretch, from_edges, interval
from .mesh import Floats, Integers, Mesh

MAX_DIMENSION = 343  # Γ(d/2) of a larger d overflows double precision
NODES = 16  # Gauss points in a cell: exact to rounding where its density changes by a factor below e^{10}


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
    areas = _sphere_area(d - 1) * np.sin(edges) ** (d - 2)
    if d > 2:
        areas[[0, -1]] = 0.0
    volumes, centers = _zones(edges, lambda theta: _sphere_area(d - 1) * np.sin(theta) ** (d - 2))
    if not (volumes > 0).all():
        raise ValueError(f"d = {d}: the areas of zones next to the poles are too small for a number")
    links = (
        areas[1:-1] * np.sin(edges[1:-1]) / -np.diff(np.cos(centers))
    )  # exact for cos θ, of which smooth fields depend
    return _mesh(f"axisymmetric S^{d - 1}", edges, areas, volumes, centers, links, {})


def radial(d: int, a: float, b: float, cells: int, *, stretch: Stretch | None = None) -> Mesh:
    """Return the mesh of the shell a ≤ r ≤ b of R^d for fields of the radius r alone, or of the ball if a = 0.

    A face has the area ``|S^{d−1}| r^{d−1}``, so that −div and Δ = r^{1−d} ∂ᵣ(r^{d−1} ∂ᵣ) are those of R^d: d = 2 for
    cylindrical symmetry, d = 3 for spherical symmetry. Velocities are (cells, 1), along r.

    Parameters
    ----------
    d : int
        Dimension of the space, 2 to 343.
    a, b : float
        Inner and outer radius, 0 ≤ a < b.
    cells : int
        Number of shells, at least 3.
    stretch : function ξ -> s, optional
        Increasing map of [0, 1] onto itself that grades the shells, see :func:`~solvers.interval`. Without it all
        shells have the same width.

    Returns
    -------
    Mesh
        Shells from the inside out, with the boundary "outer", and "inner" if a > 0. Centers (cells, 1) are the
        volume-weighted mean radii; volumes are those of R^d.

    Raises
    ------
    TypeError
        If ``a`` or ``b`` is not a number, ``d`` or ``cells`` not a whole number, or ``stretch`` not a function.
    ValueError
        Unless 0 ≤ a < b, both finite, and 2 ≤ d ≤ 343; for fewer than 3 cells; for a stretch that does not increase
        from 0 to 1; if the volume of a shell overflows or underflows.

    Notes
    -----
    The pressure of a gas acts as a gradient, ∂ᵣp, and not as a divergence. A :class:`~solvers.ConservationLaw` of a
    momentum along r therefore needs a source p (A₊ − A₋)/V for the areas A of both faces of a shell of volume V, which
    keeps a gas of constant pressure at rest.

    Examples
    --------
    Δu = −2d in a ball, with u = 0 at r = 1, has the solution 1 − r²:

    >>> import numpy as np
    >>> from solvers import Laplacian, Value, radial
    >>> ball = radial(3, 0.0, 1.0, 50)
    >>> bool(np.isclose(ball.volume, 4 * np.pi / 3))
    True
    >>> u = Laplacian(ball, {"outer": Value(0.0)}).solve(-6.0)
    >>> bool(abs(u - (1 - ball.centers[:, 0] ** 2)).max() < 1e-3)
    True
    """
    check_count("d", d, 2, MAX_DIMENSION)
    edges = interval(a, b, cells, stretch=stretch).face_centers[:, 0]
    if a < 0:
        raise ValueError(f"a = {a}: expected a radius >= 0")
    with np.errstate(over="ignore"):
        areas = _sphere_area(d) * edges ** (d - 1)
        volumes, centers = _zones(edges, lambda r: _sphere_area(d) * r ** (d - 1))
    if not ((volumes > 0) & np.isfinite(volumes)).all():
        raise ValueError(f"d = {d}, a = {a}, b = {b}: the volumes of shells are too small or too large for a number")
    ends = {"inner": np.zeros(1, dtype=np.int32), "outer": np.full(1, cells, dtype=np.int32)}
    if a == 0:
        del ends["inner"]
    links = 2 * areas[1:-1] * edges[1:-1] / np.diff(centers**2)  # the flux of r² is exact: smooth fields depend on r²
    return _mesh(RADIAL, edges, areas, volumes, centers, links, ends)


def _zones(edges: Floats, density: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
    """Return the integral of ``density`` over each cell between ``edges``, and each cell's centroid, (cells,) each."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    half = np.diff(edges)[:, None] / 2
    places = edges[:-1, None] + half * (1 + nodes)
    parts = half * weights * density(places)
    volumes = parts.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return volumes, (parts * places).sum(axis=1) / volumes


def _mesh(
    name: str,
    edges: Floats,
    areas: Floats,
    volumes: Floats,
    centers: Floats,
    links: Floats,
    boundary: Mapping[str, Integers],
) -> Mesh:
    """Return the mesh of cells between ``edges`` on a line; ``links`` are the conductances of the inner faces."""
    return replace(
        from_edges(edges),
        manifold=name,
        centers=centers[:, None],
        volumes=volumes,
        face_areas=areas,
        face_conductances=partial(np.pad, links, 1),
        boundary_faces=boundary,
    )


def _sphere_area(d: int) -> float:
    """Return the area |S^{d−1}| of the unit sphere in R^d; 2 for the two points of S⁰."""
    return float(2 * np.pi ** (d / 2) / gamma(d / 2))
