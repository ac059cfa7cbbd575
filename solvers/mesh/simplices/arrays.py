"""Points, corners and tags of a triangulation of the plane, a surface or a body: checks, facets, sides, sums.

The facets of a triangle are its edges, those of a tetrahedron its triangles.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..checks import check_unmasked
from ..mesh import Floats, Integers

Table = NDArray[np.int64]
_NAMES = {2: "edge", 3: "triangle", 4: "tetrahedron"}  # of a simplex with so many corners
_PLURALS = {2: "edges", 3: "triangles", 4: "tetrahedra"}


def points_and_corners(
    points: ArrayLike, corners: ArrayLike, dimensions: tuple[int, ...], k: int
) -> tuple[Floats, Table]:
    """Return points (cells, d) and the corners (n, k) of simplices as arrays.

    dimensions   valid numbers d of coordinates
    k            number of corners of a simplex
    Raises ValueError for arrays that are invalid, TypeError unless corners are integers.
    """
    check_unmasked("points", points)
    check_unmasked("corners", corners)
    place, table = np.asarray(points, dtype=np.float64), np.asarray(corners)
    if place.ndim != 2 or place.shape[1] not in dimensions:
        expected = " or ".join(f"(n, {d})" for d in dimensions)
        raise ValueError(f"points of shape {place.shape}: expected {expected}")
    if table.ndim != 2 or table.shape[1] != k or not len(table):
        raise ValueError(f"corners of shape {table.shape}: expected ({_PLURALS[k]}, {k})")
    _check_integers("corners", table)
    if not np.isfinite(place).all():
        raise ValueError("points: expected finite numbers")
    if table.min() < 0 or table.max() >= len(place):
        raise ValueError(f"corners {table.min()} to {table.max()}: expected 0 to {len(place) - 1}")
    unused = np.setdiff1d(np.arange(len(place)), table)
    if len(unused):
        raise ValueError(f"point {unused[0]}: expected to be a corner of a {_NAMES[k]}")
    return place, table.astype(np.int64)


def _check_integers(name: str, array: np.ndarray) -> None:
    """Raise TypeError unless an array holds integers; ``name`` is its name in the message."""
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} of dtype {array.dtype}: expected integers")


def different_rows(table: Table) -> tuple[Table, Table]:
    """Return the different rows (m, k) of a table (n, k) in ascending order, and the number of each row (n,) in these.

    The result is that of numpy.unique with axis=0, whose sort of whole rows is slower.
    """
    order = np.lexsort(table.T[::-1])
    is_first = np.append(True, (np.diff(table[order], axis=0) != 0).any(axis=1))
    number = np.empty(len(table), dtype=np.int64)
    number[order] = np.cumsum(is_first) - 1
    return table[order[is_first]], number


def facets_of(simplices: Table) -> tuple[Table, Table]:
    """Return the points of each facet (facets, k − 1) and the facet across from each corner (n, k).

    The points of a facet increase. Raises ValueError where more than two of the ``simplices`` (n, k) share a facet.
    """
    k = simplices.shape[1]
    points = np.stack([np.delete(simplices, corner, axis=1) for corner in range(k)], axis=1)
    facets, of_corner = different_rows(np.sort(points, axis=-1).reshape(-1, k - 1))
    counts = np.bincount(of_corner)
    if counts.max() > 2:
        shared = f"{counts.max()} share the {_NAMES[k - 1]} {facets[counts.argmax()]}"
        raise ValueError(f"{_PLURALS[k]}: {shared}: expected 2 at most")
    return facets, of_corner.reshape(-1, k)


def boundary_of(facets: Table, of_corner: Table) -> Table:
    """Return the indices of the facets with one simplex, which form the boundary, by arrays of :func:`facets_of`."""
    return np.flatnonzero(np.bincount(of_corner.reshape(-1), minlength=len(facets)) == 1)


def tagged_boundary(rim: Table, first: int, tags: Mapping[str, ArrayLike]) -> dict[str, Any]:
    """Return the boundary faces of each tag: k consecutive faces per boundary facet, numbered from ``first``.

    rim    (n, k) points of the boundary facets
    tags   tag → points of facets (m, k); facets without a tag get the tag "boundary"
    Raises ValueError for points of no boundary facet, TypeError unless they are integers.
    """
    k = rim.shape[1]
    found, free = {}, np.ones(len(rim), dtype=bool)
    for tag, given in tags.items():
        name, chosen = f"tags[{tag!r}]", np.asarray(given)
        check_unmasked(name, given)
        if chosen.ndim != 2 or chosen.shape[1] != k or not len(chosen):
            raise ValueError(f"{name} of shape {chosen.shape}: expected ({_PLURALS[k]}, {k})")
        _check_integers(name, chosen)
        at = rows_in(rim, chosen)
        if at.min() < 0:
            bad = int(at.argmin())
            raise ValueError(f"{name}[{bad}] = {chosen[bad].tolist()}: expected the points of a boundary {_NAMES[k]}")
        free[at] = False
        found[tag] = at
    if free.any():
        found["boundary"] = np.flatnonzero(free)
    return {tag: (first + k * at[:, None] + np.arange(k)).reshape(-1).astype(np.int32) for tag, at in found.items()}


def rows_in(rim: Table, chosen: Table) -> Table:
    """Return the row (n,) of each facet ``chosen`` (n, k) in the boundary facets ``rim`` (m, k), −1 for one without.

    The points of a chosen facet may be in any order; those of a boundary facet increase.
    """
    _, index = different_rows(np.concatenate([rim, np.sort(chosen, axis=1)]))
    rows = np.full(len(index), -1)
    rows[index[: len(rim)]] = np.arange(len(rim))
    return rows[index[len(rim) :]]


def sides_of(face_cells: NDArray[np.integer]) -> tuple[Table, Table]:
    """Return the sides of all faces and the cell of each side. A side is a face as seen from one of its cells.

    The first side of a face with the same cell on both sides belongs to the cell, the second to none.
    """
    owners = face_cells.reshape(-1)
    sides = np.flatnonzero(~((np.arange(len(owners)) % 2 == 1) & (np.repeat(face_cells[:, 0] == face_cells[:, 1], 2))))
    return sides.astype(np.int64), owners[sides].astype(np.int64)


def sides_by_cell(order: Table, sides: Table, cells: Table, count: int) -> tuple[Integers, Integers]:
    """Return ``cell_start`` and ``cell_sides`` of `Mesh` for ``count`` cells, given the order of all sides by cell."""
    starts = np.append(0, np.cumsum(np.bincount(cells, minlength=count)))
    return starts.astype(np.int32), sides[order].astype(np.int32)


def sums_at(indices: Any, vectors: Floats, count: int) -> Floats:
    """Return the sums (count, 3) of those vectors (n, 3) that have the same index, given the indices (n,)."""
    return np.stack([np.bincount(indices, column, count) for column in vectors.T], axis=1)


def directions_and_lengths(vectors: Floats) -> tuple[Floats, Floats]:
    """Return the directions (n, 3) and the lengths (n,) of vectors (n, 3)."""
    length = np.linalg.norm(vectors, axis=1)
    return vectors / length[:, None], length
