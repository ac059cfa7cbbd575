"""Solutions of (1 − dt M) x = b for the matrix M of a linear term, by diagonalization or sparse factors."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..mesh.mesh import Floats, Mesh

MAX_AXIS = 600  # cells along a diagonalized axis: n³ operations once, n for each cell in a solution
MAX_SPARSE_3D = 4000  # cells of a factorized mesh of three dimensions: the fill-in grows as cells^(4/3)
STEP_DIGITS = 40  # binary digits of a step that is factorized: steps that differ by rounding share factors


class ShiftedSolver:
    """Solver of (1 − dt M) x = b for one matrix M (cells, cells) and any number of steps dt; factors are cached."""

    def __init__(self, mesh: Mesh, matrix: Any) -> None:
        from scipy.sparse import csc_matrix, identity

        self._mesh = mesh
        full = csc_matrix(matrix + 0.0 * identity(mesh.cells))
        full.sort_indices()
        self._matrix, self._cached = full, lru_cache(maxsize=3)(self._factorize)

    @cached_property
    def _axes(self) -> Axes | None:
        """Return the diagonalization of M along the axes of the mesh; None where there is none."""
        return axes_of(self._mesh, self._matrix)

    @cached_property
    def _modes(self) -> Waves | Axes | None:
        """Return a diagonalization of M; None where there is none.

        Transforms do not solve systems: their rounding is that of the largest value, while factors keep small tails,
        such as those of a front that moves into an unstable state.
        """
        return waves_of(self._mesh, self._matrix) or self._axes

    @property
    def is_diagonalized(self) -> bool:
        """Return whether M is diagonalized along the axes of the mesh, so that any steps dt cost the same."""
        return self._axes is not None

    @property
    def has_modes(self) -> bool:
        """Return whether M is diagonalized in some way, so that :meth:`apply` evaluates its functions."""
        return self._modes is not None

    @property
    def is_exact(self) -> bool:
        """Return whether x is exact to rounding; on other meshes x is b over the diagonal, a preconditioner.

        The others are large meshes of three dimensions without a diagonalization.
        """
        return self._mesh.dimension < 3 or self._mesh.cells <= MAX_SPARSE_3D or self.is_diagonalized

    def apply(self, function: Callable[[Floats], Floats], right: Floats) -> Floats:
        """Return the product of a function of M, given for its eigenvalues, with fields ``right`` (…, cells).

        M has modes.
        """
        assert self._modes is not None
        return self._modes.apply(function(self._modes.values), right)

    def solve(self, right: Floats, step: float) -> Floats:
        """Return the solution x of (1 − step M) x = ``right``, (cells,) or (fields, cells)."""
        if self._axes is not None:
            return self._axes.apply(1.0 / (1.0 - step * self._axes.values), right)
        mantissa, exponent = math.frexp(step)
        rounded = math.ldexp(round(math.ldexp(mantissa, STEP_DIGITS)), exponent - STEP_DIGITS)
        found: Floats = self._cached(rounded)(right)
        return found

    def _factorize(self, step: float) -> Any:
        """Return the solver of (1 − step·matrix) x = right; by the diagonal alone unless the solver is exact."""
        from scipy.sparse import identity

        shifted = identity(self._matrix.shape[0], format="csc") - step * self._matrix
        if self.is_exact:
            return factorize(shifted)
        diagonal = shifted.diagonal()
        return lambda right: right / diagonal


def factorize(matrix: Any) -> Callable[[Floats], Floats]:
    """Return the function b → x with M x = b for a CSC ``matrix`` M and b (cells,) or (fields, cells).

    The fields b may be complex where M is real.
    """
    from scipy.sparse.linalg import splu

    factors, is_complex = splu(matrix, permc_spec="COLAMD"), matrix.dtype.kind == "c"

    def solve(right: Floats) -> Floats:
        """Return the solution x of M x = b, of the shape of b."""
        if is_complex or right.dtype.kind != "c":
            found: Floats = factors.solve(right.T).T
            return found
        real, imaginary = np.split(solve(np.concatenate(np.atleast_2d(right.real, right.imag))), 2)
        return np.asarray(real + 1j * imaginary).reshape(right.shape)

    return solve


class Waves:
    """Functions of a real matrix M whose eigenvectors are waves: on equal cells, periodic along all axes or with walls.

    values    eigenvalues of M, along the axes
    """

    def __init__(self, shape: tuple[int, ...], matrix: Any, is_periodic: bool) -> None:
        self._shape, self._is_periodic = shape, is_periodic
        ones = np.ones((*shape[:-1], shape[-1] // 2 + 1) if is_periodic else shape)
        self.values = self._transform((matrix @ self._inverse(ones[None]).reshape(-1)).reshape(1, *shape))[0]

    def _transform(self, fields: Floats) -> Floats:
        """Return the amplitudes (fields, …) of waves in fields (fields, …)."""
        from scipy.fft import dctn, rfftn

        return np.asarray((rfftn if self._is_periodic else dctn)(fields, axes=range(1, fields.ndim)))

    def _inverse(self, amplitudes: Floats) -> Floats:
        """Return fields (fields, …) with given amplitudes (fields, …) of waves."""
        from scipy.fft import idctn, irfftn

        inverse = irfftn if self._is_periodic else idctn
        return np.asarray(inverse(amplitudes, s=self._shape, axes=range(1, amplitudes.ndim)))

    def apply(self, function: Floats, right: Floats) -> Floats:
        """Return the product of a function of M, given at its eigenvalues, with fields ``right`` (…, cells)."""
        if right.dtype.kind == "c":
            return self.apply(function, right.real) + 1j * self.apply(function, right.imag)
        fields = right.reshape(-1, *self._shape)
        return self._inverse(self._transform(fields) * function).reshape(right.shape)


class Axes:
    """Functions of a sum M = M₁⊗1⊗1 + 1⊗M₂⊗1 + … of matrices along the axes of a box.

    Each M_c = W^{−1/2} Q Λ Qᵀ W^{1/2} is diagonalized once (fast diagonalization: Lynch, Rice, Thomas 1964).

    factors   the matrices M_c, symmetric for the weights
    weights   the diagonals W of each axis

    values    eigenvalues of M, along the axes
    """

    def __init__(self, factors: list[Floats], weights: list[Floats]) -> None:
        self._shape = tuple(len(factor) for factor in factors)
        self._into, self._back, sums = [], [], np.zeros(self._shape)
        for c, (factor, weight) in enumerate(zip(factors, weights, strict=True)):
            root = np.sqrt(weight)
            values, modes = _eigen(root[:, None] * factor / root)
            self._into.append(modes.T * root)
            self._back.append(modes / root[:, None])
            sums = sums + values.reshape([-1 if axis == c else 1 for axis in range(len(factors))])
        self.values = sums

    def apply(self, function: Floats, right: Floats) -> Floats:
        """Return the product of a function of M, given at its eigenvalues, with fields ``right`` (…, cells)."""
        found = _apply_along_axes(self._into, right.reshape(-1, *self._shape)) * function
        return _apply_along_axes(self._back, found).reshape(right.shape)


def _phase(factor: Floats) -> Any:
    """Return the phase ± a/|a| of a matrix a·D + e·1 with a real matrix D and complex numbers a and e; 1 if it is real.

    The phase is that of the largest entry off the diagonal.
    """
    rest = factor - np.diag(factor.diagonal())
    largest = rest.flat[np.abs(rest).argmax()]
    return largest / abs(largest) if factor.dtype.kind == "c" and largest != 0 else 1.0


def _has_real_modes(factor: Floats) -> bool:
    """Return whether a matrix is real, or a·D + e·1 with a real matrix D and complex numbers a and e."""
    if factor.dtype.kind != "c":
        return True
    turned = factor / _phase(factor)
    turned = turned.imag - turned.imag[0, 0] * np.eye(len(factor))
    return bool(np.abs(turned).max() <= 1e-10 * np.abs(factor).max())


def _eigen(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the eigenvalues and real eigenvectors of a symmetric matrix, real or a·D + e·1 (D real; a, e complex)."""
    if matrix.dtype.kind != "c":
        return np.linalg.eigh(matrix)
    phase = _phase(matrix)
    values, modes = np.linalg.eigh((matrix / phase).real)
    return phase * (values + 1j * (matrix[0, 0] / phase).imag), modes


def _apply_along_axes(matrices: list[Floats], values: Floats) -> Floats:
    """Return fields (fields, …) with one real matrix applied along each axis of the mesh, in this order."""
    if values.dtype.kind == "c":
        return _apply_along_axes(matrices, values.real) + 1j * _apply_along_axes(matrices, values.imag)
    values = np.moveaxis(values, 0, -1)
    for matrix in matrices:  # the contracted first axis becomes the last
        values = np.tensordot(values, matrix, axes=(0, 1))
    return values


def waves_of(mesh: Mesh, matrix: Any) -> Waves | None:
    """Return the diagonalization of M = ``matrix`` by waves; None for a complex M or one with other eigenvectors."""
    shape = mesh.shape or (mesh.cells,)
    if np.prod(shape) != mesh.cells or matrix.dtype.kind == "c":
        return None
    field = np.random.default_rng(0).standard_normal(mesh.cells)
    product = matrix @ field
    for is_periodic in (True, False):
        found = Waves(shape, matrix, is_periodic)
        if np.abs(found.apply(found.values, field) - product).max() <= 1e-10 * np.abs(product).max():
            return found
    return None


def axes_of(mesh: Mesh, matrix: Any) -> Axes | None:
    """Return the diagonalization of M = ``matrix`` along the axes of a mesh with several axes.

    The result is None if an axis is too long, or if M is no sum of matrices of the axes, symmetric for the cell widths.
    A complex matrix of an axis must be a·D + e·1 with a real matrix D and complex numbers a and e.
    """
    from scipy.sparse import csr_matrix, identity, kron

    shape, rows = mesh.shape, csr_matrix(matrix)
    if len(shape) < 2 or max(shape) > MAX_AXIS or np.prod(shape) != mesh.cells:
        return None
    strides = np.append(np.cumprod(shape[::-1])[::-1][1:], 1)
    factors, weights, total = [], [], csr_matrix(rows.shape)
    for count, stride in zip(shape, strides, strict=True):
        line = np.arange(count) * stride
        factor = rows[line][:, line].toarray() - (1 - 1 / len(shape)) * rows[0, 0] * np.eye(count)
        weight = mesh.on_host.volumes[line]
        moved = weight[:, None] * factor
        if np.abs(moved - moved.T).max() > 1e-10 * np.abs(moved).max() or not _has_real_modes(factor):
            return None
        before, after = identity(mesh.cells // (stride * count)), identity(stride)
        total = total + kron(kron(before, csr_matrix(factor)), after, format="csr")
        factors.append(factor)
        weights.append(weight)
    if abs(total - rows).max() > 1e-10 * abs(rows).max():
        return None
    return Axes(factors, weights)
