"""Meshes of an interval: cells between increasing edges, with a boundary at either end, or periodic.

A wall is a face with the same cell on both sides, ``face_cells = [i, i]``. The cell is its own neighbor there, and the
transport kernels set the flux to 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .arguments import check_count, check_real, check_sides
from .checks import check_unmasked
from .mesh import Floats, Mesh

Stretch = Callable[[Floats], Floats]


def interval(a: float, b: float, cells: int, *, stretch: Stretch | None = None, periodic: bool = False) -> Mesh:
    """Return the mesh of an interval [a, b] with the boundaries "left" and "right".

    Parameters
    ----------
    a, b : float
        Ends of the interval, a < b.
    cells : int
        Number of cells, at least 3.
    stretch : function ξ -> s, optional
        Increasing map of [0, 1] onto itself, an array for an array, such as ``lambda s: s**2``. The edges of the cells
        are x = a + (b − a) s(ξ) at equally spaced ξ. A smooth map preserves second order. Without it cells are equal.
    periodic : bool, optional
        Whether b is identified with a. The boundaries "left" and "right" are then empty.

    Returns
    -------
    Mesh
        Cells in the order of x, with centers (cells, 1) at their midpoints.

    Raises
    ------
    TypeError
        If ``a`` or ``b`` is not a number, ``cells`` not a whole number, or ``stretch`` not a function.
    ValueError
        Unless a < b, both finite; for fewer than 3 cells, or more than 32-bit side numbers allow; for a stretch that
        does not increase from 0 to 1.

    Examples
    --------
    >>> from solvers import interval
    >>> mesh = interval(0.0, 2.0, 4)
    >>> mesh.centers[:, 0]
    array([0.25, 0.75, 1.25, 1.75])
    >>> fine = interval(0.0, 2.0, 4, stretch=lambda s: s**2)  # small cells at the left end
    >>> fine.volumes
    array([0.125, 0.375, 0.625, 0.875])
    """
    check_real("a", a)
    check_real("b", b)
    check_count("cells", cells, 3)
    check_sides("cells", cells, cells + 1)
    if not (np.isfinite([a, b]).all() and a < b):
        raise ValueError(f"a, b = {a}, {b}: expected finite numbers a < b")
    part = np.linspace(0.0, 1.0, cells + 1)
    if stretch is not None:
        if not callable(stretch):
            raise TypeError(f"stretch = {stretch!r}: expected a function of [0, 1]")
        part = np.asarray(stretch(part), dtype=np.float64)
        if part.shape != (cells + 1,) or abs(part[0]) > 1e-12 or abs(part[-1] - 1.0) > 1e-12:
            raise ValueError("stretch: expected a map of [0, 1] onto itself, an array for an array")
    edges = a + (b - a) * part
    edges[0], edges[-1] = a, b
    return from_edges(edges, "interval", periodic=periodic)


def from_edges(edges: ArrayLike, manifold: str = "interval", *, periodic: bool = False) -> Mesh:
    """Return the mesh of a line with the cells [edges[i], edges[i + 1]]; ``manifold`` is the mesh's name.

    edges   (cells + 1,) finite and increasing; smoothly varying cell lengths preserve second order of transport
    Centers (cells, 1) are the midpoints of the cells, volumes their lengths. Raises ValueError for fewer than 3 cells
    or edges that do not increase.
    """
    check_unmasked("edges", edges)
    edge = np.asarray(edges, dtype=np.float64)
    cells = len(edge) - 1
    check_count("cells", cells, 3)
    if not (np.isfinite(edge).all() and (np.diff(edge) > 0).all()):
        raise ValueError("edges of an interval: expected finite, increasing numbers")
    joined = _periodic_faces(edge) if periodic else _faces_with_walls(edge)
    faces = len(joined["face_cells"])
    return Mesh(
        manifold=manifold,
        dimension=1,
        centers=0.5 * (edge[:-1] + edge[1:])[:, None],
        volumes=np.diff(edge),
        face_normals=np.ones((faces, 1)),
        face_areas=np.ones(faces),
        face_curvatures=np.zeros(faces),
        cell_start=2 * np.arange(cells + 1, dtype=np.int32),
        ring_cells=np.array([cells], dtype=np.int32),
        **joined,
    )


def _faces_with_walls(edge: Floats) -> dict[str, Any]:
    """Return the face arrays of an interval with a boundary at either end, by the names of the fields of `Mesh`."""
    cells = len(edge) - 1
    face, centers = np.arange(cells + 1, dtype=np.int32), 0.5 * (edge[:-1] + edge[1:])
    return {
        "face_cells": np.stack([face - 1, face], axis=1).clip(0, cells - 1),
        "face_centers": edge[:, None].copy(),
        "face_conductances": partial(np.pad, 1.0 / np.diff(centers), 1),
        "cell_sides": np.stack([2 * face[:-1] + 1, 2 * face[1:]], axis=1).reshape(-1),
        "boundary_faces": {"left": face[:1], "right": face[-1:]},
    }


def _periodic_faces(edge: Floats) -> dict[str, Any]:
    """Return the face arrays of a periodic interval, by the names of the fields of `Mesh`.

    Face i is the right end of cell i.
    """
    cells, width = len(edge) - 1, np.diff(edge)
    face, none = np.arange(cells, dtype=np.int32), np.empty(0, dtype=np.int32)
    return {
        "face_cells": np.stack([face, np.roll(face, -1)], axis=1),
        "face_centers": edge[1:, None].copy(),
        "face_conductances": partial(np.divide, 2.0, width + np.roll(width, -1)),
        "cell_sides": np.stack([2 * np.roll(face, 1) + 1, 2 * face], axis=1).reshape(-1),
        "boundary_faces": {"left": none, "right": none},
        "periods": (float(edge[-1] - edge[0]),),
    }


def edges_of(mesh: Mesh) -> Floats:
    """Return the edges (cells + 1,) of the cells of an interval that is not periodic."""
    return mesh.face_centers[:, 0]


def line(cells: int, extent: float, core: float) -> Mesh:
    """Return the mesh of [−extent, extent] whose cell edges are x = core·sinh ξ at equal steps of ξ.

    Cells are nearly equal in |x| < core and grow in proportion to |x| beyond. Good values: a core of the initial width
    of the density, and an extent larger by as many decades as that width may grow. Raises ValueError unless 0 < core
    and 0 < extent, both finite.
    """
    check_count("cells", cells, 3)
    check_sides("cells", cells, cells + 1)
    for name, value in (("extent", extent), ("core", core)):
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{name} = {value}: expected a finite number > 0")
    return from_edges(_stretched_edges(cells, extent, core), "line")


def polar(cells: int, dimension: int) -> Mesh:
    """Return the mesh of the polar angle θ ∈ [0, π] on S^{d−1}, refined about the equator; d is ``dimension``.

    The cell edges are θ = π/2 + c sinh ξ with c = 2/√(d − 2), at equal steps of ξ. The uniform distribution, ∝
    sin^{d−2} θ, has the width 1/√(d − 2) about the equator. Cells are nearly equal there and grow towards the poles in
    proportion to the distance from the equator. For d = 2 all cells are equal. Volumes are in radians. Raises
    ValueError for dimension < 2.
    """
    check_count("cells", cells, 3)
    check_sides("cells", cells, cells + 1)
    check_count("dimension", dimension, 2)
    if dimension == 2:
        return from_edges(np.linspace(0.0, np.pi, cells + 1), "axisymmetric")
    edges = np.pi / 2 + _stretched_edges(cells, np.pi / 2, 2 / np.sqrt(dimension - 2))
    edges[0], edges[-1] = 0.0, np.pi
    return from_edges(edges, "axisymmetric")


def _stretched_edges(cells: int, extent: float, core: float) -> Floats:
    """Return edges (cells + 1,) core·sinh ξ in [−extent, extent] at equal steps of ξ, symmetric to the last bit."""
    reach = np.arcsinh(extent / core)
    half = core * np.sinh(np.linspace(-reach, reach, cells + 1))
    edges = 0.5 * (half - half[::-1])
    edges[0], edges[-1] = -extent, extent
    return np.asarray(edges)
