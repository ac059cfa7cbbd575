"""Solutions of (1 − dt M) x = b for the matrix M of a linear term, by diagonalization or sparse factors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from ..mesh.mesh import Floats, Mesh

MAX_AXIS = 600  # cells along a diagonalized axis: n³ operations once, n for each cell in a solution
MAX_SPARSE_3D = 4000  # cells of a factorized mesh of three dimensions: the fill-in grows as cells^(4/3)
ROUNDING = 1e-13  # relative size of numbers that count as 0
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

    @property
    def is_diagonalized(self) -> bool:
        """Return whether M is diagonalized along the axes of the mesh, so that any steps dt cost the same."""
        return self._axes is not None

    @property
    def is_exact(self) -> bool:
        """Return whether the solution x is exact to rounding.

        On large meshes of three dimensions without a diagonalization, x is b over the diagonal of 1 − dt M: a
        preconditioner.
        """
        return self._mesh.dimension < 3 or self._mesh.cells <= MAX_SPARSE_3D or self.is_diagonalized

    def solve(self, right: Floats, step: float) -> Floats:
        """Return the solution x of (1 − step M) x = ``right``, (cells,) or (fields, cells)."""
        if self._axes is not None:
            return self._axes.apply(1.0 / (1.0 - step * self._axes.values), right)
        mantissa, exponent = math.frexp(step)
        rounded = math.ldexp(round(math.ldexp(mantissa, STEP_DIGITS)), exponent - STEP_DIGITS)
        return np.asarray(self._cached(rounded)(right))

    def _factorize(self, step: float) -> Any:
        """Return the function right → x with (1 − step M) x = right; by the diagonal alone unless ``is_exact``."""
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
            return np.asarray(factors.solve(right.T).T)
        real, imaginary = np.split(solve(np.concatenate(np.atleast_2d(right.real, right.imag))), 2)
        return np.asarray(real + 1j * imaginary).reshape(right.shape)

    return solve


class Waves:
    """Waves as the common eigenvectors of matrices on equal cells: exponentials on periodic axes, else cosines.

    Fields of real matrices must be real, and half of their amplitudes along the last periodic axis is stored.

    shape      cells along the axes
    matrices   (cells, cells), all real or all complex; that waves are their eigenvectors is not checked
    periodic   whether each axis is periodic

    values     eigenvalues of the matrices, (matrices, …) along the axes
    """

    def __init__(self, shape: tuple[int, ...], matrices: Sequence[Any], periodic: Sequence[bool]) -> None:
        self._shape, self._is_real = shape, matrices[0].dtype.kind != "c"
        self._periodic = [axis + 1 for axis, is_periodic in enumerate(periodic) if is_periodic]
        self._walls = [axis + 1 for axis, is_periodic in enumerate(periodic) if not is_periodic]
        each = self.inverse(np.ones_like(self.transform(np.zeros(shape))))[0]
        values = self.transform(np.stack([matrix @ each for matrix in matrices]))
        is_real = np.abs(values.imag).max() <= ROUNDING * np.abs(values).max()
        self.values = values.real if is_real else values

    def transform(self, fields: Floats) -> Floats:
        """Return the amplitudes (fields, …) of waves in fields (…, cells)."""
        from scipy.fft import dctn, fftn, rfftn

        found = fields.reshape(-1, *self._shape)
        if self._walls:
            found = dctn(found, axes=self._walls)
        if self._periodic:
            found = (rfftn if self._is_real else fftn)(found, axes=self._periodic)
        return found

    def inverse(self, amplitudes: Floats) -> Floats:
        """Return fields (fields, cells) with given amplitudes (fields, …) of waves."""
        from scipy.fft import idctn, ifftn, irfftn

        found = amplitudes
        if self._periodic:
            lengths = [self._shape[axis - 1] for axis in self._periodic]
            found = (irfftn if self._is_real else ifftn)(found, s=lengths, axes=self._periodic)
        if self._walls:
            found = idctn(found, axes=self._walls)
        return found.reshape(len(amplitudes), -1)


class Axes:
    """Functions of a sum M = M₁⊗1⊗1 + 1⊗M₂⊗1 + … of matrices along the axes of a box.

    Each M_c = W^{−1/2} Q Λ Qᵀ W^{1/2} is diagonalized once (fast diagonalization: Lynch, Rice, Thomas 1964).

    factors   the matrices M_c, symmetric in the inner products with the weights W
    weights   the diagonal of W for each axis

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

    def transform(self, fields: Floats) -> Floats:
        """Return the amplitudes (fields, …) of the eigenvectors in fields (…, cells)."""
        return _apply_along_axes(self._into, fields.reshape(-1, *self._shape))

    def inverse(self, amplitudes: Floats) -> Floats:
        """Return fields (fields, cells) with given amplitudes (fields, …) of the eigenvectors."""
        return _apply_along_axes(self._back, amplitudes).reshape(len(amplitudes), -1)

    def apply(self, function: Floats, right: Floats) -> Floats:
        """Return the product of a function of M, given at its eigenvalues, with fields ``right`` (…, cells)."""
        return self.inverse(self.transform(right) * function).reshape(right.shape)


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


def modes_of(mesh: Mesh, matrices: Sequence[Any], number: npt.DTypeLike) -> Waves | Axes | None:
    """Return the common eigenvectors of ``matrices``, one for each field of the dtype ``number``; None if not found.

    Waves are tried first. Eigenvectors along the axes are tried if all matrices are the same object.
    """
    is_one = all(matrix is matrices[0] for matrix in matrices)
    number = np.result_type(number, *(matrix.dtype for matrix in matrices))
    each = [matrix.astype(number) for matrix in (matrices[:1] if is_one else matrices)]
    return waves_of(mesh, each) or (axes_of(mesh, each[0]) if is_one else None)


def waves_of(mesh: Mesh, matrices: Sequence[Any]) -> Waves | None:
    """Return waves as the eigenvectors of matrices, all real or all complex; None if they are no eigenvectors."""
    shape = mesh.shape or (mesh.cells,)
    if np.prod(shape) != mesh.cells:
        return None
    last = [(count - 1) * stride for count, stride in zip(shape, _strides(shape), strict=True)]
    first_side, second_side = mesh.face_cells.T
    neighbors = np.append(second_side[first_side == 0], first_side[second_side == 0])  # of cell 0
    found = Waves(shape, matrices, [cell in neighbors for cell in last])
    field = np.random.default_rng(0).standard_normal(mesh.cells)
    for matrix, by_waves in zip(matrices, found.inverse(found.values * found.transform(field)), strict=True):
        if np.abs(by_waves - matrix @ field).max() > 1e-10 * np.abs(matrix @ field).max():
            return None
    return found


def _strides(shape: tuple[int, ...]) -> NDArray[np.intp]:
    """Return the distance of neighbors along each axis in the row-major order of cells."""
    return np.append(np.cumprod(shape[::-1])[::-1][1:], 1)


def axes_of(mesh: Mesh, matrix: Any) -> Axes | None:
    """Return the diagonalization of M = ``matrix`` along the axes of a mesh with several axes.

    The result is None if an axis has more than MAX_AXIS cells, or unless M is a Kronecker sum of one matrix for each
    axis, symmetric in the inner product weighted with the cell widths. A complex matrix of an axis must be a·D + e·1
    with a real matrix D and complex numbers a and e.
    """
    from scipy.sparse import csr_matrix, identity, kron

    shape, rows = mesh.shape, csr_matrix(matrix)
    if len(shape) < 2 or max(shape) > MAX_AXIS or np.prod(shape) != mesh.cells:
        return None
    factors, weights, total = [], [], csr_matrix(rows.shape)
    for count, stride in zip(shape, _strides(shape), strict=True):
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
