"""Dual of a mesh: the simplices that join the centers of neighboring cells.

Every point lies in a simplex and therefore has weights w ≥ 0 over 2 cells on a curve and 3 on a surface with

    Σ w = 1 ,   Σ w x_cell = x        (on the circle and the sphere: parallel to x)

These weights interpolate fields, exactly where the fields are linear. They also deposit point masses with their mass
and first moment. :meth:`Dual.gather` inverts a deposit: deposited masses become the original atoms again.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..mesh.mesh import Floats, Integers, Mesh

TIE = 1e-9  # relative weight of a simplex with an empty corner, for cells without a full one


class Dual:
    """Dual of a mesh of a circle, a sphere of rings or an interval: simplices between the centers of neighboring cells.

    The simplices (n, dimension + 1) hold the cells at their corners: two on a curve, three on a sphere.
    """

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.closed = mesh.centers.shape[1] > 1
        self.simplices: Integers = mesh.backend.to_device(_SIMPLICES[mesh.dimension](mesh.on_host))
        self._rings = mesh.backend.to_device(mesh.ring_cells), mesh.backend.to_device(mesh.ring_start)

    @property
    def _xp(self) -> Any:
        """Return the array namespace of the mesh's backend: NumPy or CuPy."""
        return self.mesh.backend.xp

    def locate(self, points: Floats) -> tuple[Integers, Floats]:
        """Return the cells around points x (n, d), and their weights w ≥ 0, both (n, dimension + 1).

        Σ w = 1, and Σ w x_cell = x for the cell centers x_cell (on the circle and the sphere: parallel to x). Between a
        wall and the center of the adjacent cell, that cell has all the weight.
        """
        if self.mesh.dimension == 2:
            return self._locate_on_sphere(points)
        return self._locate_on_circle(points) if self.closed else self._locate_on_interval(points)

    def interpolate(self, values: Floats, points: Floats) -> Floats:
        """Interpolate cell values (cells, components) to points (n, d), and return (n, components).

        The order is 2. Between a wall and the center of the adjacent cell, where the interpolant is constant, it is 1.
        """
        cells, weights = self.locate(points)
        result: Floats = self._xp.einsum("nk,nkc->nc", weights, values[cells])
        return result

    def deposit(self, points: Floats, masses: Floats) -> Floats:
        """Return the mass (cells,) that each cell receives from point masses (n,) at points (n, d).

        Each mass is divided among the cells around its point in proportion to the weights of :meth:`locate`, which keep
        the mass and the first moment (on the circle and the sphere: the direction of the first moment).
        """
        cells, weights = self.locate(points)
        return self._sums_at(cells, weights * masses[:, None])

    def gather(self, masses: Floats) -> tuple[Floats, Floats]:
        """Return positions (n, d) and masses (n,) of atoms (point masses) whose deposit is ``masses`` (cells,).

        The method inverts :meth:`deposit`. Every simplex holds an atom at the center of mass of its corners' shares. A
        cell divides its mass among simplices in proportion to the product of the masses in the other corners. A
        deposited point mass, which occupies one simplex, therefore becomes one atom again, at the original position.
        """
        corner_masses = masses[self.simplices]
        occupied = corner_masses.sum(axis=1) > 0
        simplices, corner_masses = self.simplices[occupied], corner_masses[occupied]
        total = corner_masses.sum(axis=1)
        fractions = corner_masses / total[:, None]
        if corner_masses.shape[1] == 2:
            others = fractions[:, ::-1] + TIE
        else:
            after, before = self._xp.roll(fractions, -1, axis=1), self._xp.roll(fractions, 1, axis=1)
            others = after * before + TIE * (after + before) + TIE * TIE
        # Shares are relative to the simplex's total, so that none underflows.
        shares = fractions * (others / self._sums_at(simplices, others)[simplices])
        parts = shares / shares.sum(axis=1, keepdims=True)
        sums = self._xp.einsum("nk,nkd->nd", parts, self.mesh.centers[simplices])
        return self.project(sums), total * shares.sum(axis=1)

    def compactness(self, masses: Floats) -> Floats:
        """Return the compactness (cells,) of ``masses`` (cells,): how concentrated the mass is in one simplex, up to 1.

        Each corner of a simplex is a cell. The compactness of the simplex is the mass of its corners, divided by the
        largest mass of a corner together with all neighbors of that corner. The compactness of a cell is the largest
        one of its simplices: 1 for a deposited point mass; for equal masses 2/3 on a curve, about 3/7 on a surface.
        """
        corner_masses = masses[self.simplices]
        sums = corner_masses.sum(axis=1)
        others = (sums[:, None] - corner_masses) / self.mesh.dimension  # two neighbors share ``dimension`` simplices
        around = masses + self._sums_at(self.simplices, others)
        ratio = sums / np.maximum(around[self.simplices].max(axis=1), np.finfo(float).tiny)
        best: Floats = ratio[self._simplices_at_cells].max(axis=1)
        return best

    def _sums_at(self, cells: Integers, amounts: Floats) -> Floats:
        """Return the sum (cells,) of ``amounts`` (n, k) in each cell; ``cells`` (n, k) are the cells of the amounts."""
        return self.mesh.backend.sums_at(cells.reshape(-1), amounts.reshape(-1), self.mesh.cells)

    def project(self, points: Floats) -> Floats:
        """Return points (n, d) projected to the circle or the sphere; on an interval they are unchanged."""
        if not self.closed:
            return points
        projected: Floats = points / np.sqrt(self._xp.einsum("nd,nd->n", points, points))[:, None]
        return projected

    def _pair(self, first: Floats, second: Floats) -> Floats:
        """Return two columns (n,) as one array (n, 2)."""
        pair: Floats = self._xp.stack([first, second], axis=1)
        return pair

    def _locate_on_interval(self, points: Floats) -> tuple[Integers, Floats]:
        """Return the two cells whose centers bracket each point of an interval, and their weights (n, 2)."""
        centers = self.mesh.centers[:, 0]
        x = points[:, 0].clip(centers[0], centers[-1])
        first = (self._xp.searchsorted(centers, x, side="right") - 1).clip(0, len(centers) - 2)
        right = (x - centers[first]) / (centers[first + 1] - centers[first])
        return self._pair(first, first + 1).astype(np.int32), self._pair(1 - right, right)

    def _locate_on_circle(self, points: Floats) -> tuple[Integers, Floats]:
        """Return the cells a, b on both sides of each point of a circle, and their weights (n, 2).

        For a point at the angle φ and centers at φ_a and φ_b, w_a : w_b = sin(φ_b − φ) : sin(φ − φ_a): the weighted
        mean lies on the chord, in the direction of the point.
        """
        mesh = self.mesh
        width = 2 * np.pi / mesh.cells
        position = np.arctan2(points[:, 1], points[:, 0]) / width - 0.5
        first = np.floor(position)
        part = (position - first) * width
        sines = self._pair(np.sin(width - part), np.sin(part))
        cells = self._pair(first, first + 1).astype(np.int32) % mesh.cells
        return cells.astype(np.int32), sines / sines.sum(axis=1, keepdims=True)

    def _locate_on_sphere(self, points: Floats) -> tuple[Integers, Floats]:
        """Return the three cells whose centers are the triangle around each point of a sphere, and weights (n, 3)."""
        mesh, backend = self.mesh, self.mesh.backend
        cells, weights = backend.empty((len(points), 3), np.int32), backend.empty((len(points), 3))
        contiguous = points.ravel().reshape(points.shape)
        backend.launch(
            backend.locate_on_sphere, len(points), contiguous, mesh.centers, *self._rings, self.simplices,
            self._opposite_triangles, self._start_simplices, cells, weights,
        )  # fmt: skip
        return cells, weights

    @cached_property
    def _opposite_triangles(self) -> Integers:
        """Return for each corner of each triangle (n, 3) the index of the triangle beyond the opposite edge."""
        simplices = self.mesh.backend.to_host(self.simplices)
        ends = np.stack([np.roll(simplices, -1, axis=1), np.roll(simplices, 1, axis=1)], axis=-1)
        key = ends.min(axis=-1).astype(np.int64) * self.mesh.cells + ends.max(axis=-1)
        pairs = np.argsort(key.reshape(-1), kind="stable").reshape(-1, 2)  # each edge belongs to two triangles
        across = np.empty(key.size, dtype=np.int32)
        across[pairs[:, 0]], across[pairs[:, 1]] = pairs[:, 1] // 3, pairs[:, 0] // 3
        return self.mesh.backend.to_device(across.reshape(-1, 3))

    @cached_property
    def _start_simplices(self) -> Integers:
        """Return for each cell (cells,) the index of one triangle at its center, where a search for a point begins."""
        start = np.empty(self.mesh.cells, dtype=np.int32)
        start[self.mesh.backend.to_host(self.simplices)] = np.arange(len(self.simplices), dtype=np.int32)[:, None]
        return self.mesh.backend.to_device(start)

    @cached_property
    def _simplices_at_cells(self) -> Integers:
        """Return for each cell (cells, maximum) the indices of all simplices at its center, the last one repeated.

        Simplices are the segments or triangles between cell centers; the maximum is their largest number at a cell.
        """
        simplices = self.mesh.backend.to_host(self.simplices)
        order = np.argsort(simplices.reshape(-1), kind="stable") // simplices.shape[1]
        counts = np.bincount(simplices.reshape(-1), minlength=self.mesh.cells)
        start = np.cumsum(counts) - counts
        nth = np.minimum(np.arange(counts.max()), counts[:, None] - 1)
        return self.mesh.backend.to_device(order[start[:, None] + nth].astype(np.int32))


def _segments(mesh: Mesh) -> Integers:
    """Return the pairs of neighboring cells (n, 2) on a curve, one for each face that is not a wall."""
    pairs: Integers = mesh.face_cells[mesh.face_cells[:, 0] != mesh.face_cells[:, 1]]
    return pairs


def _triangles(mesh: Mesh) -> Integers:
    """Return the Delaunay triangles (n, 3) of a sphere's cell centers, counterclockwise.

    The triangles form strips between rings and a fan at each pole. Four centers that face each other across two rings
    lie on a circle, so either diagonal is valid.
    """
    counts, start = mesh.ring_cells.astype(np.int64), mesh.ring_start
    found: list[NDArray[np.int64]] = []
    for r in range(len(counts) - 1):
        north, south, count = counts[r], counts[r + 1], min(counts[r], counts[r + 1])
        j = np.arange(count)
        # First and last cell of each group of cells that face each other across the circle between the rings.
        first_n, last_n = j * (north // count), j * (north // count) + north // count - 1
        first_s, last_s = j * (south // count), j * (south // count) + south // count - 1
        n, n_last, n_next = (start[r] + index % north for index in (first_n, last_n, last_n + 1))
        s, s_last, s_next = (start[r + 1] + index % south for index in (first_s, last_s, last_s + 1))
        found += [np.stack(corners, axis=1) for corners in ((n_last, s_last, s_next), (n_last, s_next, n_next))]
        if north != south:
            found.append(np.stack((n, s, n_last) if north > south else (n, s, s_last), axis=1))
    for pole, step in ((start[0], 1), (start[-2], -1)):
        count = counts[0]
        k = np.arange(1, count - 1)
        found.append(np.stack([np.full(count - 2, pole), pole + k, pole + k + 1], axis=1)[:, ::step])
    return np.concatenate(found).astype(np.int32)


_SIMPLICES = {1: _segments, 2: _triangles}
