"""Products of meshes: a box of intervals, a torus of two circles, a cylinder, a sphere times an interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .arguments import check_product, check_sides
from .interval import Stretch, interval
from .mesh import Floats, Integers, Mesh, circle

TAGS = (("left", "right"), ("bottom", "top"), ("back", "front"))  # boundaries of a box, axis by axis


def box(
    cells: Sequence[int],
    extent: Sequence[float | tuple[float, float]],
    *,
    stretch: Stretch | Sequence[Stretch | None] | None = None,
    periodic: bool | Sequence[bool] = False,
) -> Mesh:
    """Return the mesh of a box of 1 to 3 dimensions.

    Cell (i, j, k) has the index (i·ny + j)·nz + k, so that a field can be reshaped to ``cells``. The boundaries are
    "left" and "right" across x, "bottom" and "top" across y, "back" and "front" across z.

    Parameters
    ----------
    cells : sequence of int
        Numbers of cells (nx, ny, nz) along each axis, at least 3 each.
    extent : sequence of float or of (float, float)
        For each axis: a length from 0, or the ends (low, high).
    stretch : function, or sequence of function or None, optional
        For all axes or for each one: a map of [0, 1] onto itself as in :func:`~solvers.interval`, or None for equal
        cells.
    periodic : bool or sequence of bool, optional
        Whether the box is periodic, for all axes or for each one.

    Returns
    -------
    Mesh
        Mesh with centers (cells, axes) and ``shape`` (nx, ny, nz).

    Raises
    ------
    TypeError
        If ``cells`` or ``extent`` is not a sequence, or a number in them has another type.
    ValueError
        For more than 3 axes, for arguments of different lengths, and as :func:`~solvers.interval` and
        :func:`~solvers.product`.

    Examples
    --------
    >>> from solvers import box
    >>> mesh = box((4, 3), (2.0, (-1.0, 1.0)), periodic=(True, False))
    >>> mesh
    <Mesh box: 12 cells in R^2, 28 faces, total volume 4, boundary left, right, bottom, top>
    >>> x = mesh.centers[:, 0].reshape(4, 3)
    >>> x[:, 0]
    array([0.25, 0.75, 1.25, 1.75])
    """
    for name, each in (("cells", cells), ("extent", extent)):
        if not hasattr(each, "__len__"):
            raise TypeError(
                f"{name} = {each!r}: expected one value for each axis, such as (32, 32) cells of (1.0, 1.0)"
            )
    check_product("cells", cells)
    axes = len(cells)
    closed = [bool(periodic)] * axes if isinstance(periodic, bool | np.bool_) else list(periodic)
    maps = list(stretch) if isinstance(stretch, Sequence) else [stretch] * axes
    for name, given in (("extent", extent), ("periodic", closed), ("stretch", maps)):
        if len(given) != axes or not 1 <= axes <= len(TAGS):
            raise ValueError(f"cells of {axes} axes and {name} of {len(given)}: expected the same number, 1 to 3")
    ends: list[Any] = [(0.0, each) if np.ndim(each) == 0 else each for each in extent]
    if any(np.shape(each) != (2,) for each in ends):
        raise ValueError(f"extent = {extent!r}: expected a length or (low, high) for each axis")
    lines = [
        interval(low, high, count, stretch=each, periodic=around)
        for (low, high), count, each, around in zip(ends, cells, maps, closed, strict=True)
    ]
    mesh = lines[0]
    for line in lines[1:]:
        mesh = product(mesh, line)
    return replace(mesh, manifold="box", shape=tuple(cells))


def torus(cells: tuple[int, int]) -> Mesh:
    """Return the flat torus in R⁴, the product of two unit circles.

    Cell (i, j) has the index i·ny + j. For other periods use ``box((nx, ny), (Lx, Ly), periodic=True)``.

    Parameters
    ----------
    cells : tuple of int
        Numbers of cells (nx, ny) of the two circles, at least 3 each.

    Returns
    -------
    Mesh
        The closed mesh with centers (cells, 4): the cosine and sine of the first angle, then of the second.

    Raises
    ------
    TypeError
        If ``cells`` is not a pair of whole numbers.
    ValueError
        For fewer than 3 cells along a circle, or more faces than 32-bit side numbers allow.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import torus
    >>> mesh = torus((8, 6))
    >>> round(float(mesh.volume / np.pi**2), 6)  # (2π)²
    4.0
    >>> len(mesh.neighbors(0))
    4
    """
    if not hasattr(cells, "__len__") or len(cells) != 2:
        raise TypeError(f"cells = {cells!r}: expected two whole numbers >= 3")
    check_product("cells", cells)
    return replace(product(circle(cells[0]), circle(cells[1])), manifold="torus")


def product(first: Mesh, second: Mesh) -> Mesh:
    """Return the mesh of all pairs of a cell of one mesh and a cell of another.

    Cell (i, j) has the index i·n + j, where n is the number of cells of ``second``. Factors in R^d and R^d' have a
    product in R^{d + d'}. Two-point diffusion fluxes are those of the factors.

    Parameters
    ----------
    first, second : Mesh
        The factors.

    Returns
    -------
    Mesh
        Mesh of m·n cells. Boundaries keep their tags. Where both factors have "left" and "right", those of ``second``
        become "bottom" and "top", or else "back" and "front". Any other tag that ``first`` has too becomes
        "TAG of second".

    Raises
    ------
    TypeError
        If a factor is not a :class:`~solvers.Mesh`.
    ValueError
        For more faces than 32-bit side numbers allow.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import circle, interval, product
    >>> cylinder = product(circle(16), interval(0.0, 3.0, 8))
    >>> cylinder
    <Mesh circle × interval: 128 cells in R^3, 272 faces, total volume 18.8496, boundary left, right>
    >>> bool(np.isclose(cylinder.volume, 2 * np.pi * 3.0))
    True
    """
    for name, mesh in (("first", first), ("second", second)):
        if not isinstance(mesh, Mesh):
            raise TypeError(f"{name} = {type(mesh).__name__}: expected a Mesh")
    m, n = first.cells, second.cells
    check_sides("cells", f"{m} × {n}", first.faces * n + m * second.faces)
    along = np.arange(first.faces)[:, None] * n + np.arange(n)  # faces across ``first``
    across = first.faces * n + np.arange(m)[:, None] * second.faces + np.arange(second.faces)
    starts, sides = _sides(first, second, along, across)
    return Mesh(
        manifold=f"{first.manifold} × {second.manifold}",
        dimension=first.dimension + second.dimension,
        centers=_pairs(first.centers, second.centers),
        volumes=np.outer(first.volumes, second.volumes).reshape(-1),
        face_cells=np.concatenate(
            [
                (first.face_cells[:, None, :] * n + np.arange(n)[:, None]).reshape(-1, 2),
                (np.arange(m)[:, None, None] * n + second.face_cells).reshape(-1, 2),
            ]
        ).astype(np.int32),
        face_centers=np.concatenate(
            [_pairs(first.face_centers, second.centers), _pairs(first.centers, second.face_centers)]
        ),
        face_normals=np.concatenate(
            [
                _pairs(first.face_normals, np.zeros_like(second.centers)),
                _pairs(np.zeros_like(first.centers), second.face_normals),
            ]
        ),
        face_areas=_outer(first.face_areas, second.volumes, first.volumes, second.face_areas),
        face_curvatures=np.zeros(along.size + across.size),
        face_conductances=partial(_conductances, first, second),
        cell_start=starts,
        cell_sides=sides,
        ring_cells=np.full(m, n, dtype=np.int32),
        boundary_faces=_boundaries(first, second, along, across),
        periods=_periods(first) + _periods(second) if first.periods or second.periods else (),
        shape=(*(first.shape or (m,)), *(second.shape or (n,))),
        face_ends=partial(_face_ends, first, second) if _is_curve(first) and _is_curve(second) else None,
    )


def _is_curve(mesh: Mesh) -> bool:
    """Return whether the mesh is a curve whose volumes are lengths."""
    return mesh.dimension == 1 and bool((mesh.face_areas == 1.0).all())


def _face_ends(first: Mesh, second: Mesh) -> Floats:
    """Return the ends (faces, 2, d + d') of the faces of a product of curves, counterclockwise around the first cell.

    The faces across ``first`` come first. The ends of a face across ``first`` are in the order of ``second``; the ends
    of a face across ``second`` are in the opposite order of ``first``.
    """
    first_ends, second_ends = _cell_ends(first), _cell_ends(second)
    along = [_pairs(first.face_centers, second_ends[:, k]) for k in (0, 1)]
    across = [_pairs(first_ends[:, k], second.face_centers) for k in (1, 0)]
    return np.concatenate([np.stack(along, axis=1), np.stack(across, axis=1)])


def _cell_ends(curve: Mesh) -> Floats:
    """Return both end points (cells, 2, d) of each cell of a curve, contiguous also across the end of a period."""
    ends: Floats = curve.face_centers[curve.cell_sides.reshape(-1, 2) >> 1]
    if curve.periods:
        ends[:, 0] = ends[:, 1] - curve.volumes[:, None]
    return ends


def _conductances(first: Mesh, second: Mesh) -> Floats:
    """Return the conductances (faces,) of a product of two meshes: those of a factor times the volumes of the other."""
    return _outer(first.face_conductances(), second.volumes, first.volumes, second.face_conductances())


def _outer(first_faces: Floats, second_cells: Floats, first_cells: Floats, second_faces: Floats) -> Floats:
    """Return the products (faces,) of a quantity on the faces of one factor and a quantity on the cells of the other.

    The faces across the first factor come first.
    """
    return np.append(np.outer(first_faces, second_cells), np.outer(first_cells, second_faces))


def _sides(first: Mesh, second: Mesh, along: Integers, across: Integers) -> tuple[Integers, Integers]:
    """Return the sides of all cells of a product of two meshes: ``cell_start`` and ``cell_sides`` of `Mesh`.

    A side is a face as seen from one of its cells. For two curves the sides of a cell are counterclockwise: ahead along
    ``first``, ahead along ``second``, then behind along both.

    along    (faces of first, cells of second) numbers of the faces across ``first``
    across   (cells of first, faces of second) numbers of the faces across ``second``
    """
    m, n = first.cells, second.cells
    first_sides, second_sides = _side_table(first)[:, None, :], _side_table(second)[None, :, :]
    columns = []
    for k in reversed(range(max(first_sides.shape[2], second_sides.shape[2]))):
        if k < first_sides.shape[2]:
            side = np.broadcast_to(first_sides[:, :, k], (m, n))
            columns.append(np.where(side < 0, -1, 2 * along[side >> 1, np.arange(n)] + (side & 1)))
        if k < second_sides.shape[2]:
            side = np.broadcast_to(second_sides[:, :, k], (m, n))
            columns.append(np.where(side < 0, -1, 2 * across[np.arange(m)[:, None], side >> 1] + (side & 1)))
    table = np.stack(columns, axis=-1).reshape(m * n, -1)
    counts = (table >= 0).sum(axis=1)
    return np.append(0, np.cumsum(counts)).astype(np.int32), table[table >= 0].astype(np.int32)


def _side_table(mesh: Mesh) -> NDArray[np.int64]:
    """Return a table (cells, maximum) of the sides of each cell, filled with −1 after the last side.

    A side is a face as seen from one of its cells.
    """
    counts = np.diff(mesh.cell_start)
    table = np.full((mesh.cells, counts.max()), -1, dtype=np.int64)
    table[np.arange(counts.max()) < counts[:, None]] = mesh.cell_sides
    return table


def _boundaries(first: Mesh, second: Mesh, along: Integers, across: Integers) -> Mapping[str, Integers]:
    """Return the boundary faces of a product by tag; a tag that both factors have is renamed for ``second``.

    along    (faces of first, cells of second) numbers of the faces across ``first``
    across   (cells of first, faces of second) numbers of the faces across ``second``
    """
    found = {tag: along[faces].reshape(-1).astype(np.int32) for tag, faces in first.boundary_faces.items()}
    for tag, faces in second.boundary_faces.items():
        names = [pair[TAGS[0].index(tag)] for pair in TAGS] if tag in TAGS[0] else [tag]
        free = next((name for name in names if name not in found), f"{tag} of second")
        found[free] = across[:, faces].reshape(-1).astype(np.int32)
    return found


def _periods(mesh: Mesh) -> tuple[float, ...]:
    """Return the periods of all d coordinates, ∞ where a coordinate is not periodic."""
    return mesh.periods or (np.inf,) * mesh.centers.shape[1]


def _pairs(first: Floats, second: Floats) -> Floats:
    """Return all pairs (m·n, d + d') of a row of ``first`` (m, d) and a row of ``second`` (n, d')."""
    return np.hstack([np.repeat(first, len(second), axis=0), np.tile(second, (len(first), 1))])
