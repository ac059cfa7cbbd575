"""Sums over cells with the kernel e^{⟨x,By⟩} for any matrix B, without cells² operations.

    Z(x) = ∫ e^{⟨x,By⟩} ρ(y) dy ,    N(x) = ∫ y e^{⟨x,By⟩} ρ(y) dy

The kernel is not zonal, but smooth. With b(x) = Bᵀx, only harmonics of ρ up to a degree L(‖B‖) matter, so that
equivalent masses on a small grid replace the cells. Z and N times e^{−s(x)}, with the smooth s = √(|b|² + c²) ≈ |b|,
are synthesized in all cells from harmonics up to degree T = 1.5 L. A matrix in the principal axes of B
(`principal_axes`) maps the harmonics of ρ to those of Z and N. Where the matrix would be large, a dense sum between
grids replaces it. The total cost is N log N + L⁴.

Direct sums over the cells with mass, or over patches of such cells, replace inaccurate values. These are the values
near a zero of b, where e^{−s} is not smooth enough, and values far from all attended mass, where Z is below the
rounding error of the largest Z. Cells without mass are corrected only on request. Arbitrary points on the circle or
sphere may replace the cells.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...backends import backend_for
from ...mesh.mesh import Floats, Mesh
from ..exponential import exponential_degree
from ..gauss_grid import GaussGrid
from ..harmonics import Complexes, Harmonics, SphereHarmonics, harmonic_transform
from ..harmonics_points import PointHarmonics
from ..lost_sums import Empty, lost_sums, set_lost_to_nan
from ..pairwise import exponential_sums
from ..patches import gathered_sums
from .principal_axes import PrincipalAxes

_OVERSAMPLING = 1.5  # T/L
_SMOOTHNESS = 34.0  # c·T/‖B‖: e^{−s} has its branch points at a distance c/‖B‖, so degree T leaves e^{−34} = 2e-15
_MAX_BYTES = 1 << 26  # of a matrix between harmonics, enough for ‖B‖ up to 50
_MIN_DENSITY = 1e-12  # times the mean density: cells below get no exact sum
Sums = tuple[Floats, Floats, Floats]  # log_scale, Z and N


class Bilinear:
    """Sums Z = Σ_j m_j e^{⟨x,By_j⟩} and N = Σ_j m_j y_j e^{⟨x,By_j⟩} over masses m_j on a circle or sphere.

    mesh     a circle or sphere; or points (n, d), unit vectors, d = 2 or 3, which replace the cells
    matrix   B (d, d), for attention β QᵀK

    The sums are accurate at all points, but on a mesh only in cells with active mass.
    """

    max_loss = 10.0  # largest s − |b| for values from the grid: 2e-15·e^10 = 4e-11
    min_normalizer = (1e-4, 1e-5)  # relative to the largest Z and to the mass: below, rounding exceeds 1e-11 of Z

    def __init__(self, mesh: Mesh | Floats, matrix: Floats) -> None:
        self.matrix = np.asarray(matrix, dtype=float)
        self._centers = mesh.centers if isinstance(mesh, Mesh) else mesh
        self._mesh = mesh if isinstance(mesh, Mesh) else None
        self._device_matrix = backend_for(self._centers).to_device(self.matrix)
        d = self._centers.shape[1]
        degree = exponential_degree(d, float(np.linalg.norm(self.matrix, 2))) + 1
        self._sources = _SOURCES[d](mesh, degree, len(self._centers))
        self._targets = None
        if d == 3 and _Targets.count(degree) < len(self._centers):
            self._targets = targets = _Targets(mesh, self._lengths(), self.matrix, degree, self.max_loss)
            self._scale = backend_for(self._centers).cached(lambda: targets.scale(self._lengths()))

    def apply(self, masses: Floats, active: Floats | None = None, empty: Empty = "bounded") -> Sums:
        """Return log_scale (cells,), Z·e^{−log_scale} (cells,) and N·e^{−log_scale} (cells, d) of masses ≥ 0 (cells,).

        At a cell center x, Z = Σ_j m_j e^{⟨x,By_j⟩} and N = Σ_j m_j y_j e^{⟨x,By_j⟩} over masses m_j at all cell
        centers y_j. On a mesh, Z and N are valid in cells where ``active`` (cells,), by default ``masses``, is
        positive. The option ``empty`` determines Z and N in the other cells, see
        :data:`solvers.transforms.lost_sums.Empty`.
        """
        active = masses if active is None else active
        if self._targets is not None and self._targets.axes is not None:
            sums = self._sums_by_axes(self._targets, self._targets.axes, masses)
            self._replace_lost_sums(sums, masses, active, empty)
            return sums
        backend, nodes = backend_for(masses), self._sources.nodes
        occupied, count = backend.true_indices(masses != 0)
        few, first = count <= nodes, occupied[:nodes]
        by = lost_sums if empty == "exact" and not backend.PAIRS_ONLY else gathered_sums

        def cells() -> tuple[Floats, Floats]:
            return self._centers[first], masses[first]

        def equivalent_weights() -> tuple[Floats, Floats]:
            return self._sources.equivalent_weights(masses)

        def exact() -> Sums:
            return by(self._kernel_vectors(), *cells())

        if nodes >= len(masses):
            return exact()
        if self._targets is None:
            sums = backend.conditional(few, exact, lambda: self._dense(*equivalent_weights()))
            self._replace_lost_sums(sums, masses, active, empty, valid=few)
        else:
            sums = self._sums_by_grid(self._targets, *backend.conditional(few, cells, equivalent_weights))
            self._replace_lost_sums(sums, masses, active, empty)
        return sums

    def _replace_lost_sums(
        self, sums: Sums, masses: Floats, active: Floats, empty: Empty, valid: bool | NDArray[np.bool_] = False
    ) -> None:
        """Replace sums that are lost to rounding by direct sums over pairs, in place, except where ``valid`` is true.

        On a mesh, the sums at cells with a negligible mass ``active`` are replaced only if ``empty`` is "exact", and
        become NaN if ``empty`` is "nan".
        """
        backend = backend_for(masses)
        lost = self._is_lost(sums[1], masses.sum()) & np.logical_not(valid)
        if not backend.may_have_true(lost):
            return
        needed = lost
        if self._mesh is not None and empty != "exact":
            needed = lost & (active > _MIN_DENSITY * active.sum() / self._mesh.volume * self._mesh.volumes)
        if empty == "nan":
            set_lost_to_nan(sums, lost & ~needed)
        if backend.may_have_true(needed):
            by = lost_sums if empty == "exact" else gathered_sums
            occupied, count = backend.true_indices(masses != 0)
            backend.redo_sums(needed, occupied, count, self._kernel_vectors, self._centers, masses, sums, by)

    def _kernel_vectors(self, cells: Any = slice(None)) -> Floats:
        """Return b(x) = Bᵀx (k, d) at the centers x of some cells, computed at each call to save memory."""
        towards: Floats = self._centers[cells] @ self._device_matrix
        return towards

    def _lengths(self) -> Floats:
        """Return |b(x)| (cells,), b(x) = Bᵀx, at all cell centers x."""
        squares = self._kernel_vectors()
        squares *= squares
        lengths: Floats = squares.sum(axis=1)
        return np.sqrt(lengths, out=lengths)

    def _dense(self, points: Floats, weights: Floats, cells: Any = slice(None)) -> Sums:
        """Return |b|, Z e^{−|b|} and N e^{−|b|} at the centers x of some cells (k,), by sums over all pairs.

        With b = Bᵀx, Z = Σ_j m_j e^{⟨b,y_j⟩} and N = Σ_j m_j y_j e^{⟨b,y_j⟩} for masses (m,) of any sign at points y
        (m, d).
        """
        towards = self._kernel_vectors(cells)
        norm = backend_for(towards).xp.linalg.norm
        return exponential_sums(towards, points, weights, log_scale=norm(towards, axis=1))

    def _sums_by_grid(self, targets: _Targets, points: Floats, weights: Floats) -> Sums:
        """Return s, Z e^{−s} and N e^{−s} at all cells for ``weights`` at ``points``, by sums on a grid of targets.

        Z and N are interpolated from the grid by harmonics, except near a zero of b(x) = Bᵀx, where sums over all pairs
        give s = |b|, Z and N.
        """
        sums = self._scale(), *targets.values_at_cells(targets.sets(points, weights))
        if len(targets.near):
            for whole, part in zip(sums, self._dense(points, weights, targets.near), strict=True):
                whole[targets.near] = part
        return sums

    def _sums_by_axes(self, targets: _Targets, axes: PrincipalAxes, masses: Floats) -> Sums:
        """Return s, Z e^{−s} and N e^{−s} at all cells for masses (cells,), by the kernel's matrix between harmonics.

        Near a zero of b(x) = Bᵀx, sums over all pairs give s = |b|, Z and N.
        """
        assert isinstance(self._sources, _SphereSources)
        sums = self._scale(), *targets.values_at_cells(axes.apply(self._sources.coefficients(masses)))
        if len(targets.near):
            points, weights = self._sources.equivalent_weights(masses)
            for whole, part in zip(sums, self._dense(points, weights, targets.near), strict=True):
                whole[targets.near] = part
        return sums

    def _is_lost(self, normalizer: Floats, total: Floats) -> NDArray[np.bool_]:
        """Return whether each Z (cells,) is too small to be accurate, relative to the largest Z or the total mass."""
        of_largest, of_mass = self.min_normalizer
        lost: NDArray[np.bool_] = normalizer < np.maximum(of_largest * normalizer.max(), of_mass * total)
        return lost


def _transform(mesh: Mesh | Floats, degree: int) -> Harmonics | PointHarmonics:
    """Return the harmonic transform up to a degree on a mesh, or at unit vectors (n, d)."""
    return harmonic_transform(mesh, degree) if isinstance(mesh, Mesh) else PointHarmonics(mesh, degree)


class _Targets:
    """Synthesis of Z e^{−s} and N e^{−s} at the cells of a sphere, or at points, from their harmonic coefficients.

    Z = Σ_j m_j e^{⟨b,y_j⟩} and N = Σ_j m_j y_j e^{⟨b,y_j⟩} are sums over masses m_j at y_j, with b(x) = Bᵀx and a
    smooth exponent s(x) = √(|b|² + c²). The coefficients are those of sums at the nodes of a grid on the sphere, the
    grid of targets, or result from the matrix ``axes``.

    lengths   (cells,) |b(x)|
    max_loss  largest s − |b| for which values from the harmonics are accurate
    near      indices of the cells near a zero of b, where s − |b| exceeds max_loss
    axes      matrix from harmonics of the masses to those of Z e^{−s} and N e^{−s}. None if the matrix is large, and
              for points: points move, and the setup takes as long as three to ten sums between grids
    """

    def __init__(self, mesh: Mesh | Floats, lengths: Floats, matrix: Floats, degree: int, max_loss: float) -> None:
        max_degree = int(np.ceil(_OVERSAMPLING * degree))
        self._smoothing = _SMOOTHNESS * float(np.linalg.norm(matrix, 2)) / max_degree
        backend = backend_for(lengths)
        self.near = backend.xp.flatnonzero(self.scale(lengths) - lengths > max_loss)
        self._on_cells = _transform(mesh, max_degree)
        self.axes = None
        if isinstance(mesh, Mesh) and PrincipalAxes.bytes(degree, max_degree) <= _MAX_BYTES:
            self.axes = PrincipalAxes(matrix, self.scale, degree, max_degree, backend)
            return
        self.grid = GaussGrid(max_degree).on(backend)
        self._kernel_vectors = self.grid.centers @ backend.to_device(matrix)
        self._scale = self.scale(np.sqrt((self._kernel_vectors**2).sum(axis=1)))
        self._on_grid = SphereHarmonics(self.grid, max_degree)

    @staticmethod
    def count(degree: int) -> int:
        """Return the number of nodes of the grid of targets, if the sources have harmonics up to ``degree``."""
        max_degree = int(np.ceil(_OVERSAMPLING * degree))
        return 2 * (max_degree + 1) ** 2

    def scale(self, lengths: Floats) -> Floats:
        """Return the smooth exponents s = √(|b|² + c²) (...) for ``lengths`` |b| (...), with a constant c."""
        return np.hypot(lengths, self._smoothing)

    def sets(self, points: Floats, weights: Floats) -> Complexes:
        """Return harmonic coefficients (4, T + 1, T + 1) of Z e^{−s} and N e^{−s} for masses (m,) at points (m, 3).

        With b = Bᵀx, Z = Σ_j m_j e^{⟨b,y_j⟩} and N = Σ_j m_j y_j e^{⟨b,y_j⟩} are first computed at the nodes x of a
        grid. T is the highest degree.
        """
        _, normalizer, vectors = exponential_sums(self._kernel_vectors, points, weights, log_scale=self._scale)
        xp = self.grid.backend.xp
        values = xp.column_stack([normalizer, vectors]) * self.grid.volumes[:, None]
        harmonics: Complexes = xp.stack([self._on_grid.analysis(column.copy()) for column in values.T])
        return harmonics

    def values_at_cells(self, sets: Complexes) -> tuple[Floats, Floats]:
        """Return values (cells,) and vectors (cells, 3) at the cells from harmonic coefficients (4, T + 1, T + 1)."""
        if not isinstance(self._on_cells, SphereHarmonics):
            result = self._on_cells.synthesis(sets)
            return result[0], result[1:].T.copy()
        return self._on_cells.vectors(sets)


class _CircleSources:
    """Masses at 2 (degree + 1) equispaced points of a circle, with the Fourier modes of other masses up to a degree."""

    def __init__(self, mesh: Mesh | Floats, degree: int, cells: int) -> None:
        self.degree, self.nodes = degree, 2 * (degree + 1)
        angle = 2 * np.pi / self.nodes * np.arange(self.nodes)
        backend = backend_for(mesh.centers if isinstance(mesh, Mesh) else mesh)
        self.points: Floats = backend.to_device(np.stack([np.cos(angle), np.sin(angle)], axis=1))
        self._transform = _transform(mesh, degree) if self.nodes < cells else None

    def equivalent_weights(self, masses: Floats) -> tuple[Floats, Floats]:
        """Return equispaced points (nodes, 2) and masses (nodes,) of any sign that replace ``masses`` (cells,) in sums.

        The Fourier modes up to the degree are equal, and so are sums of a kernel of this degree.
        """
        assert self._transform is not None  # few cells are summed directly
        spectrum = self._transform.analysis(masses) * np.sqrt(2 * np.pi)
        backend = backend_for(self.points)
        return self.points, backend.irfft(backend.xp.append(spectrum, 0.0), self.nodes)


class _SphereSources:
    """Masses on a Gauss grid with the harmonic coefficients of other masses up to a degree."""

    def __init__(self, mesh: Mesh | Floats, degree: int, cells: int) -> None:
        self.degree = degree
        self.grid = GaussGrid(degree).on(backend_for(mesh.centers if isinstance(mesh, Mesh) else mesh))
        self.nodes = self.grid.cells
        self._on_cells, self._on_grid = _transform(mesh, degree), SphereHarmonics(self.grid, degree)

    def equivalent_weights(self, masses: Floats) -> tuple[Floats, Floats]:
        """Return grid points (nodes, 3) and masses (nodes,) of any sign that replace ``masses`` (cells,) in sums.

        The harmonic coefficients up to the degree are equal, and so are sums of a kernel of this degree.
        """
        return self.grid.centers, self.grid.volumes * self._on_grid.synthesis(self.coefficients(masses))

    def coefficients(self, masses: Floats) -> Complexes:
        """Return the harmonic coefficients (degree + 1, degree + 1) of masses (cells,) at the cell centers."""
        return self._on_cells.analysis(masses)


_SOURCES: dict[int, type[_CircleSources] | type[_SphereSources]] = {2: _CircleSources, 3: _SphereSources}
