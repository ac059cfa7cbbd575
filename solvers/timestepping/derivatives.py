"""Derivative of an equation's rate of change by the state: a sparse matrix, or products with vectors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..mesh.mesh import Floats, Mesh
from .equation import Equation
from .runge_kutta.semi_discrete import SemiDiscrete

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix
    from scipy.sparse.linalg import LinearOperator

Vector = Callable[[Floats], Floats]
DIFFERENCE = float(np.cbrt(np.finfo(float).eps))  # relative length of a central difference
MAX_REACH = 4  # cells from a cell to the farthest cell of a local rate of change
ROUNDING = 1e-13  # relative change that counts as zero: of sums over all cells in another order


def linear_operator(equation: Equation, time: float, values: Floats) -> LinearOperator:
    """Return the operator v → J v with the derivative J of the rate of change at u = ``values``, without a matrix."""
    from scipy.sparse.linalg import LinearOperator

    product = _Product(equation, time, values)
    return LinearOperator(
        (values.size, values.size), lambda v: product(np.asarray(v, float).reshape(values.shape)).ravel(), dtype=float
    )


def jacobian(equation: Equation, time: float, values: Floats) -> csr_matrix:
    """Return the sparse matrix J (n, n) of the derivative of the rate of change at u = ``values`` of n numbers.

    The stiff term's own matrices are used. The other columns are difference quotients, of several cells at once where
    the rate of change in a cell depends on the cells nearby alone (Curtis, Powell and Reid 1974).
    """
    from scipy.sparse import block_diag, csr_matrix

    product, mesh = _Product(equation, time, values), equation.mesh
    stiff: Any = equation.stiff
    total: Any = csr_matrix((values.size, values.size))
    if mesh is not None and hasattr(stiff, "jacobian"):
        total, product.with_stiff = total + block_diag(stiff.jacobian(values.size // mesh.cells)), False
    if not product.with_stiff and not equation.terms:
        return csr_matrix(total)
    each = (_local_columns(product, mesh, reach, values) for reach in range(MAX_REACH + 1) if mesh is not None)
    found = next((columns for columns in each if columns is not None), None)
    return csr_matrix(total + (_all_columns(product, values) if found is None else found))


class _Product:
    """Product v → J v with the derivative J of the rate of change by the state, for v of the shape of the state.

    The explicit terms have central differences. The stiff term I is affine: I(v) − I(0) is exact.

    with_stiff   whether J includes the stiff term
    """

    def __init__(self, equation: Equation, time: float, values: Floats) -> None:
        self._problem, self._time, self._values = SemiDiscrete(equation), time, values
        self._small = DIFFERENCE * (1.0 + float(np.abs(values).max()))
        self.with_stiff = equation.stiff is not None

    def __call__(self, vector: Floats) -> Floats:
        problem, time, size = self._problem, self._time, float(np.abs(vector).max())
        if size == 0.0:
            return np.zeros_like(vector)
        step = self._small / size * vector
        ahead, behind = (problem.explicit(time, self._values + sign * step, 0.0) for sign in (1, -1))
        found: Floats = (ahead - behind) * (size / (2 * self._small))
        if self.with_stiff:
            found += problem.stiff(time, vector) - problem.stiff(time, np.zeros_like(vector))
        return found


def _all_columns(product: Vector, values: Floats) -> csr_matrix:
    """Return the matrix of a product with vectors of the shape of ``values``, one column at a time."""
    from scipy.sparse import csr_matrix, hstack

    columns = []
    for k in range(values.size):
        one = np.zeros(values.size)
        one[k] = 1.0
        columns.append(csr_matrix(product(one.reshape(values.shape)).reshape(-1, 1)))
    return hstack(columns, format="csr")


def _local_columns(product: Vector, mesh: Mesh, reach: int, values: Floats) -> csr_matrix | None:
    """Return the matrix of a product v → J v in which cells at most ``reach`` faces apart depend on each other.

    Each product gives the columns of a group of cells with disjoint neighborhoods. None is returned if a product is not
    zero outside the neighborhoods of its group, or if there are more than half as many groups as cells.
    """
    from scipy.sparse import csr_matrix

    near, beyond = _neighborhoods(mesh, reach)
    groups = _groups(near, beyond)
    if 2 * len(groups) > mesh.cells:
        return None
    fields, rows, columns, entries = values.size // mesh.cells, [], [], []
    for cells, around, owner in _surroundings(near, groups):
        for field in range(fields):
            vector = np.zeros((fields, mesh.cells))
            vector[field, cells] = 1.0
            found = product(vector.reshape(values.shape)).reshape(fields, mesh.cells)
            outside = np.ones(mesh.cells, dtype=bool)
            outside[around] = False
            if np.abs(found[:, outside]).max(initial=0.0) > ROUNDING * np.abs(found).max():
                return None
            rows.append((np.arange(fields)[:, None] * mesh.cells + around).ravel())
            columns.append(np.tile(field * mesh.cells + owner, fields))
            entries.append(found[:, around].ravel())
    each = np.concatenate(entries), (np.concatenate(rows), np.concatenate(columns))
    matrix = csr_matrix(each, shape=(values.size, values.size))
    matrix.eliminate_zeros()
    return matrix


def _neighborhoods(mesh: Mesh, reach: int) -> tuple[csr_matrix, csr_matrix]:
    """Return which cells are at most ``reach``, and at most reach + 1, faces apart, as sparse matrices of ones."""
    from scipy.sparse import csr_matrix, identity

    first, second = mesh.on_host.face_cells.T
    pairs = np.append(first, second), np.append(second, first)
    links = csr_matrix((np.ones(2 * mesh.faces), pairs), (mesh.cells, mesh.cells)) + identity(mesh.cells)
    near = csr_matrix(identity(mesh.cells))
    for _ in range(reach):
        near = (near @ links).sign()
    return near, (near @ links).sign()


def _groups(near: csr_matrix, beyond: csr_matrix) -> list[NDArray[np.intp]]:
    """Return groups of cells: in a group, no ``near`` cell of one cell is among the cells ``beyond`` of another cell.

    ``near`` and ``beyond`` are the matrices of `_neighborhoods`.

    The cells are taken in a random order, so that a distant dependence is not hidden by a regular mesh.
    """
    conflicts, cells = (near.T @ beyond + beyond.T @ near).tocsr(), near.shape[0]
    group = np.full(cells, -1)
    for cell in np.random.default_rng(0).permutation(cells):
        taken = set(group[conflicts.indices[conflicts.indptr[cell] : conflicts.indptr[cell + 1]]].tolist())
        group[cell] = next(number for number in range(cells) if number not in taken)
    return [np.flatnonzero(group == number) for number in range(group.max() + 1)]


def _surroundings(
    near: csr_matrix, groups: list[NDArray[np.intp]]
) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]]:
    """Yield for each group: its cells, all cells near them (n,), and for each of the latter its cell of the group (n,).

    ``near`` is the first matrix of :func:`_neighborhoods`.
    """
    for cells in groups:
        of_group = near[cells]
        yield cells, of_group.indices, np.repeat(cells, np.diff(of_group.indptr))
