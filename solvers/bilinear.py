"""Sums over cells with a kernel e^{⟨x,By⟩}, B any matrix, without cells² terms.

    Z(x) = ∫ e^{⟨x,By⟩} ρ(y) dy ,    N(x) = ∫ y e^{⟨x,By⟩} ρ(y) dy

The kernel is not zonal, but smooth: with b(x) = Bᵀx only harmonics of ρ up to a degree L(‖B‖) matter, so as many masses
on a small grid stand for all cells; and Z, N times e^{−s(x)}, s = √(|b|² + c²) ≈ |b| smooth, have a few degrees more,
so that a grid of T = 1.5 L tells them at all cells. Between the two grids the sum is dense: N log N + L⁴ in all.

What that loses is made good by sums over the cells that hold mass: cells where b nearly vanishes, about which
e^{−s} is not smooth enough, and cells that attend to nothing near them, whose Z is lost to rounding beside the largest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import fft

from solvers.gauss_grid import GaussGrid
from solvers.harmonics import CircleHarmonics, SphereHarmonics
from solvers.mesh import Floats, Mesh
from solvers.pairwise import exponential_sums
from solvers.zonal import exponential_degree

_OVERSAMPLING = 1.5  # T/L
_SMOOTHNESS = 34.0  # c·T/‖B‖: e^{−s} has its branch points at a distance c/‖B‖, so degree T leaves e^{−34} = 2e-15
_MOST_LOSS = 10.0  # largest s − |b| that is trusted: 2e-15·e^10 = 4e-11
_LEAST_NORMALIZER = (1e-4, 1e-5)  # of the largest Z, and of the mass: below, rounding exceeds about 1e-11 of Z
_LEAST_DENSITY = 1e-12  # of the mean; what holds less is not worth an exact sum


class Bilinear:
    """Z and N of a density on a circle or sphere for the kernel e^{⟨x,By⟩}.

    mesh     a circle or sphere
    matrix   B (d, d), for attention β QᵀK
    """

    def __init__(self, mesh: Mesh, matrix: Floats) -> None:
        self.mesh, self.matrix = mesh, np.asarray(matrix, dtype=float)
        self._towards = mesh.centers @ self.matrix  # b(x) of each cell
        self._length = np.linalg.norm(self._towards, axis=1)
        largest = float(np.linalg.norm(self.matrix, 2))
        self._sources = _SOURCES[mesh.manifold](mesh, exponential_degree(mesh.centers.shape[1], largest) + 1)
        self._targets = _Targets(mesh, self.matrix, self._sources.degree) if mesh.manifold == "sphere" else None
        if self._targets is not None and self._targets.grid.cells >= mesh.cells:
            self._targets = None

    def apply(self, masses: Floats) -> tuple[Floats, Floats, Floats]:
        """log_scale (cells,), Z·e^{−log_scale} (cells,) and N·e^{−log_scale} (cells, d) of masses ≥ 0 (cells,)."""
        held = np.flatnonzero(masses)
        few = len(held) <= self._sources.nodes
        if few and self._targets is None:
            return self._exact(slice(None), held, masses)
        points, weights = (self.mesh.centers[held], masses[held]) if few else self._sources.stand_in(masses)
        if self._targets is None:
            sums = exponential_sums(self._towards, points, weights, log_scale=self._length)
        else:
            sums = self._targets.sums(points, weights)
            near = self._targets.near
            if len(near):
                found = exponential_sums(self._towards[near], points, weights, log_scale=self._length[near])
                _redo(near, sums, found)
        lost = np.flatnonzero(self._is_lost(sums[1], masses))
        if len(lost):
            _redo(lost, sums, self._exact(lost, held, masses))
        return sums

    def _exact(self, cells: Any, held: Any, masses: Floats) -> tuple[Floats, Floats, Floats]:
        return exponential_sums(self._towards[cells], self.mesh.centers[held], masses[held])

    def _is_lost(self, normalizer: Floats, masses: Floats) -> np.ndarray:
        """(cells,) where mass is and Z is too small for the digits that it has."""
        of_largest, of_mass = _LEAST_NORMALIZER
        total = float(masses.sum())
        least = max(of_largest * float(normalizer.max()), of_mass * total)
        return (normalizer < least) & (masses > _LEAST_DENSITY * total / self.mesh.volume * self.mesh.volumes)


def _redo(cells: Any, sums: tuple[Floats, ...], better: tuple[Floats, ...]) -> None:
    """Put better sums in the place of those of some cells."""
    for whole, part in zip(sums, better, strict=True):
        whole[cells] = part


class _Targets:
    """Z e^{−s} and N e^{−s} on a Gauss grid, carried to the cells of a sphere by harmonics."""

    def __init__(self, mesh: Mesh, matrix: Floats, degree: int) -> None:
        most = int(np.ceil(_OVERSAMPLING * degree))
        smoothing = _SMOOTHNESS * float(np.linalg.norm(matrix, 2)) / most
        self.grid = GaussGrid(most)
        self._towards = self.grid.centers @ matrix
        self._scale = np.sqrt((self._towards**2).sum(axis=1) + smoothing**2)
        length = np.linalg.norm(mesh.centers @ matrix, axis=1)
        self._cell_scale = np.hypot(length, smoothing)
        self.near = np.flatnonzero(self._cell_scale - length > _MOST_LOSS)
        self._on_grid, self._on_cells = SphereHarmonics(self.grid, most), SphereHarmonics(mesh, most)

    def sums(self, points: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
        _, normalizer, vectors = exponential_sums(self._towards, points, weights, log_scale=self._scale)
        values = np.column_stack([normalizer, vectors]) * self.grid.volumes[:, None]
        sets = np.stack([self._on_grid.analysis(np.ascontiguousarray(column)) for column in values.T])
        result = np.empty((4, len(self._cell_scale)))
        ones = np.ones(len(self._on_cells.sine))
        for here, parts in self._on_cells.blocks(sets, [(False, ones)] * 4):
            result[:, here] = parts
        return self._cell_scale.copy(), result[0], np.ascontiguousarray(result[1:].T)


class _CircleSources:
    """Masses on 2 (degree + 1) equispaced points of a circle, with the same Fourier coefficients up to the degree."""

    def __init__(self, mesh: Mesh, degree: int) -> None:
        self.degree, self.nodes = degree, 2 * (degree + 1)
        angle = 2 * np.pi / self.nodes * np.arange(self.nodes)
        self.points: Floats = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        self._transform = CircleHarmonics(mesh, degree) if self.nodes < mesh.cells else None

    def stand_in(self, masses: Floats) -> tuple[Floats, Floats]:
        """(nodes, 2) points and (nodes,) masses, of any sign, that attract as ``masses`` (cells) do."""
        assert self._transform is not None  # with so few cells they are all summed
        spectrum = self._transform.analysis(masses) * np.sqrt(2 * np.pi)
        return self.points, np.asarray(fft.irfft(np.append(spectrum, 0.0), self.nodes))


class _SphereSources:
    """Masses on a Gauss grid with the same harmonics up to a degree."""

    def __init__(self, mesh: Mesh, degree: int) -> None:
        self.degree = degree
        self.grid = GaussGrid(degree)
        self.nodes = self.grid.cells
        self._on_cells, self._on_grid = SphereHarmonics(mesh, degree), SphereHarmonics(self.grid, degree)

    def stand_in(self, masses: Floats) -> tuple[Floats, Floats]:
        """As above, (nodes, 3) and (nodes,)."""
        return self.grid.centers, self.grid.volumes * self._on_grid.synthesis(self._on_cells.analysis(masses))


_SOURCES: dict[str, type[_CircleSources] | type[_SphereSources]] = {"circle": _CircleSources, "sphere": _SphereSources}
