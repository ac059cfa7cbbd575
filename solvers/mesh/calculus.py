"""Derivatives, integrals and values at points of fields on a mesh, from the values of neighboring cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from .mesh import Floats, Mesh

RANK_RTOL = 1e-8  # of 1 or of the largest singular value: smaller numbers count as 0


def gradient(mesh: Mesh, values: Floats) -> Floats:
    """Return the least-squares gradients (…, cells, d) of fields (…, cells)."""
    cells, neighbors, weights = mesh.gradient_stencil
    rises = values[..., neighbors] - values[..., cells]
    starts = np.searchsorted(cells, np.arange(mesh.cells))
    parts = np.add.reduceat(rises[..., None, :] * weights.T, starts, axis=-1)
    return np.asarray(np.moveaxis(parts, -2, -1))


def divergence(mesh: Mesh, vectors: Floats) -> Floats:
    """Return the divergences (…, cells) of vector fields (…, cells, d).

    The flux through a face is that of the mean of two vectors: both cells' linear reconstructions at the face center.
    """
    components = np.moveaxis(vectors, -1, -2)
    slopes, at_faces = gradient(mesh, components), np.zeros(())
    for cells in mesh.face_cells.T:
        reach = mesh.shortest(mesh.face_centers - mesh.centers[cells])
        at_faces = at_faces + 0.5 * (components[..., cells] + (slopes[..., cells, :] * reach).sum(axis=-1))
    fluxes = mesh.face_areas * (at_faces * mesh.face_normals.T).sum(axis=-2)
    outward = np.where(mesh.cell_sides & 1, -1.0, 1.0) * fluxes[..., mesh.cell_sides >> 1]
    return np.asarray(np.add.reduceat(outward, mesh.cell_start[:-1], axis=-1) / mesh.volumes)


def interpolate(mesh: Mesh, values: Floats, points: Floats) -> Floats:
    """Return fields (…, cells) at points (n, d) as (…, n), by the linear reconstruction in the nearest cell."""
    from scipy.spatial import cKDTree

    period = np.array(mesh.periods or [np.inf] * mesh.ambient_dimension)
    axes = np.isfinite(period)

    def wrap(places: Floats) -> Floats:
        wrapped = places.copy()
        for _ in range(2):  # the remainder of a small negative number rounds to the period
            wrapped[:, axes] = np.mod(wrapped[:, axes], period[axes])
        return wrapped

    tree = cKDTree(wrap(mesh.centers), boxsize=np.where(axes, period, 0.0) if axes.any() else None)
    cells = tree.query(wrap(points))[1]
    offsets = mesh.shortest(points - mesh.centers[cells])
    return np.asarray(values[..., cells] + (gradient(mesh, values)[..., cells, :] * offsets).sum(axis=-1))


def gradient_weights(mesh: Mesh) -> tuple[NDArray[np.intp], NDArray[np.integer[Any]], Floats]:
    """Return weights w (sides, d) of the least-squares gradient: ∇u_i = Σ w (u_j − u_i) over the sides of cell i.

    Returns the cell i of each side (sides,), the neighbor j (sides,), and the weights.
    """
    cells, sides = np.repeat(np.arange(mesh.cells), np.diff(mesh.cell_start)), mesh.cell_sides
    neighbor = mesh.side_cells[sides ^ 1]
    offsets = mesh.shortest(mesh.centers[neighbor] - mesh.centers[cells])
    return cells, neighbor, least_squares_weights(cells, offsets, tangent_planes(mesh))


def quadratic_stencil(mesh: Mesh) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Return weights w (pairs, d) of the gradient of a quadratic fit: ∇u_i = Σ w (u_j − u_i).

    The cells j are the neighbors of cell i and the neighbors of these, which determine all second derivatives. Returns
    the cells i (pairs,) in ascending order, the cells j (pairs,), and the weights.
    """
    from scipy.sparse import csr_array

    first, second = mesh.face_cells.T
    links = csr_array((np.ones(2 * mesh.faces), (np.append(first, second), np.append(second, first))))
    cells, others = (links + links @ links).nonzero()
    order = np.lexsort((others, cells))
    cells, others = cells[order], others[order]
    distinct = cells != others
    cells, others = cells[distinct].astype(np.intp), others[distinct].astype(np.intp)
    offsets = mesh.shortest(mesh.centers[others] - mesh.centers[cells])
    return cells, others, quadratic_weights(cells, offsets, tangent_planes(mesh))


def least_squares_weights(cells_of_sides: NDArray[np.intp], offsets: Floats, plane: Floats) -> Floats:
    """Return weights (sides, d) of the least-squares gradient: ∇u_i = Σ weights (u_j − u_i) over the sides of cell i.

    cells_of_sides   (sides,) cell i of each side
    offsets          (sides, d) vectors from the center of cell i to that of its neighbor j
    plane            (cells, d, dimension) bases of the tangent planes
    """
    flat = np.einsum("kc,kcp->kp", offsets, plane[cells_of_sides])
    inverse = np.linalg.pinv(_sums(cells_of_sides, flat, flat, len(plane)), rcond=1e-10, hermitian=True)
    return np.asarray(np.einsum("kcp,kpq,kq->kc", plane[cells_of_sides], inverse[cells_of_sides], flat))


def quadratic_weights(cells_of_sides: NDArray[np.intp], offsets: Floats, plane: Floats) -> Floats:
    """Return weights (sides, d) of the gradient of a quadratic fit: ∇u_i = Σ weights (u_j − u_i) over a cell's sides.

    The gradient of a linear field is exact. The second derivatives are the least-squares solution of smallest norm,
    since a few neighbors may not determine all of them. The error of the gradient is of second order also where
    neighbors lie unevenly, as between rings of different numbers of cells.

    cells_of_sides   (sides,) cell i of each side, in ascending order
    offsets          (sides, d) vectors from the center of cell i to that of its neighbor j
    plane            (cells, d, dimension) bases of the tangent planes
    """
    flat = np.einsum("kc,kcp->kp", offsets, plane[cells_of_sides])
    counts, weights = np.bincount(cells_of_sides, minlength=len(plane)), np.zeros_like(flat)
    for count in np.unique(counts[counts > 0]):  # cells with equal numbers of sides at once
        sides = np.flatnonzero(counts[cells_of_sides] == count).reshape(-1, count)
        linear = flat[sides]
        size = np.sqrt((linear**2).mean(axis=(1, 2), keepdims=True))
        linear = linear / size
        squares = 0.5 * linear[:, :, :, None] * linear[:, :, None, :]
        squares = squares.reshape(*sides.shape, -1)
        slope = np.linalg.pinv(linear, rcond=RANK_RTOL)
        rest = np.eye(count) - linear @ slope  # of the differences u_j − u_i, beside a linear field
        visible = rest @ squares
        visible[np.abs(visible) < RANK_RTOL] = 0.0  # rounding
        bend = np.linalg.pinv(visible, rcond=RANK_RTOL) @ rest
        weights[sides] = ((slope - slope @ squares @ bend) / size).swapaxes(1, 2)
    return np.asarray(np.einsum("kcp,kp->kc", plane[cells_of_sides], weights))


def _sums(own: NDArray[np.intp], left: Floats, right: Floats, cells: int) -> Floats:
    """Return (cells, m, n): the sum over the sides of each cell of the outer products of ``left`` and ``right``.

    ``left`` is (sides, m), ``right`` (sides, n), and ``own`` (sides,) the cell of each side.
    """
    product = (left[:, :, None] * right[:, None, :]).reshape(len(own), -1)
    columns = [np.asarray(np.bincount(own, column, cells), dtype=np.float64) for column in product.T]
    return np.stack(columns, axis=1).reshape(cells, left.shape[1], right.shape[1])


def tangent_planes(mesh: Mesh) -> Floats:
    """Return orthonormal bases (cells, d, dimension) of each cell's tangent plane: the span of its face normals."""
    cells = np.repeat(np.arange(mesh.cells), np.diff(mesh.cell_start))
    normals = mesh.face_normals[mesh.cell_sides >> 1]
    spread = _sums(cells, normals, normals, mesh.cells)
    return np.asarray(np.linalg.eigh(spread)[1][:, :, -mesh.dimension :])
