"""Heads of attention: the matrices Q, K and V, and the kernel's steepness, bound and factors that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from meanfield.model.errors import ArgumentError, check_number, finite_array
from meanfield.model.kernel import Kernel
from meanfield.model.matrices import norm_of_product
from solvers.backends import backend_for
from solvers.mesh.mesh import Floats

Factor = float | Floats

MAX_KERNEL_WIDTH = 16  # largest d for which V is applied token by token; above, by a matrix product
MAX_LOG_RANGE = 600.0  # range of logarithms of weights that are multiplied without loss of digits


@dataclass(frozen=True, eq=False)
class Head:
    """Attention head: its matrices Q, K and V, and its weight in the sum of all heads.

    Each matrix is an array, or a number that multiplies the identity. Trained heads have few rows d_head, and V =
    out·value of two factors.

    Parameters
    ----------
    query : float or (d_head, d) array
        Matrix Q.
    key : float or (d_head, d) array
        Matrix K, with as many rows as Q. A number counts as d rows.
    value : float, (d, d) or (d_head, d) array
        Matrix V, or its right factor (d_head, d) with ``out``. A number counts as d rows.
    weight : float
        Factor of the head in the sum of all heads, of any sign.
    out : (d, d_head) array, optional
        Left factor of V.

    Raises
    ------
    ValueError
        If a matrix is neither a finite number nor an array (rows, columns) of finite numbers, if ``out`` is a number,
        or if the weight is not a finite number. Shapes are checked when the head is used in R^d, see
        :meth:`check_dimension`.

    Examples
    --------
    With softmax and a rotation V by 90°, the uniform density on the circle rotates at the velocity I₁(β)/I₀(β):

    >>> import numpy as np
    >>> import meanfield as mf
    >>> from solvers import circle
    >>> mesh = circle(32)
    >>> rotation = mf.Head(value=[[0.0, -1.0], [1.0, 0.0]])
    >>> output = mf.Attention(mesh, beta=1.0, heads=[rotation]).output(np.full(mesh.cells, 1 / mesh.volume))
    >>> counterclockwise = mesh.centers @ [[0.0, 1.0], [-1.0, 0.0]]
    >>> round(float((output * counterclockwise).sum(axis=1).min()), 6)
    0.44639
    """

    query: Factor = 1.0
    key: Factor = 1.0
    value: Factor = 1.0
    weight: float = 1.0
    out: Floats | None = None

    def __post_init__(self) -> None:
        check_number("weight", self.weight)
        for name in ("query", "key", "value", "out"):
            matrix = getattr(self, name)
            if np.ndim(matrix):
                object.__setattr__(self, name, finite_array(name, matrix, axes=2))
            elif name != "out":
                check_number(name, matrix)
            elif matrix is not None:
                raise ArgumentError(name, matrix, "a matrix, or None")

    def check_dimension(self, d: int) -> None:
        """Raise ValueError unless Q, K and V are matrices of R^d, and Q and K have equally many rows.

        Parameters
        ----------
        d : int
            Dimension of the tokens.

        Raises
        ------
        ValueError
            If a matrix has another shape.
        """
        inner = np.shape(self.out)[1] if self.out is not None and np.ndim(self.value) else d
        shapes = {"query": (None, d), "key": (None, d), "value": (inner, d), "out": (d, inner)}
        for name, (rows, columns) in shapes.items():
            found = np.shape(getattr(self, name))
            if found and (found[0] != (rows or found[0]) or found[1] != (columns or found[1])):
                expected = f"{'k' if rows is None else rows} × {'k' if columns is None else columns}"
                raise ArgumentError(name, f"{found[0]} × {found[1]}", f"a number, or a matrix of {expected} in R^{d}")
        query, key = np.shape(self.query), np.shape(self.key)
        rows = [shape[0] if shape else d for shape in (query, key)]
        if rows[0] != rows[1]:
            raise ArgumentError("key", f"{rows[1]} rows", f"{rows[0]}, as the query has")

    @property
    def is_scalar(self) -> bool:
        """Return whether Q, K and V are multiples of the identity, and V has no separate left factor ``out``."""
        scales = multiple(self.query), multiple(self.key), self.value_scale
        return all(scale is not None for scale in scales)

    @property
    def value_scale(self) -> float | None:
        """Return the number v where V = vI; None for any other V, and for V = out·value in two factors."""
        return multiple(self.value) if self.out is None else None

    @cached_property
    def _product_norm(self) -> float:
        """Return the spectral norm ‖QᵀK‖, which is cached since it is expensive for large matrices."""
        return norm_of_product(self.query, self.key)

    @property
    def value_norm(self) -> float:
        """Return the spectral norm ‖V‖ of the value matrix, or v with its sign where V = vI."""
        if self.out is not None:
            return norm_of_product(self.out.T, self.value)
        scale = self.value_scale
        return float(np.linalg.norm(self.value, 2)) if scale is None else scale

    def value_matrix(self, dimension: int) -> Floats:
        """Return the value matrix V of the head, also where it is given as a number or as a product.

        Parameters
        ----------
        dimension : int
            Dimension d of the tokens.

        Returns
        -------
        (d, d) array
            V, or the product out·value.
        """
        value = matrix_of(self.value, dimension)
        return value if self.out is None else np.asarray(self.out @ value)

    def values(self, output: Floats, factor: Factor) -> Floats:
        """Return factor · V y for vectors y and the head's value matrix V, in place where possible.

        Parameters
        ----------
        output : (n, d) array
            Vectors, which may be overwritten.
        factor : float or (n,) array
            Factor of each vector.

        Returns
        -------
        (n, d) array
            The array ``output`` itself, or a new array.
        """
        scale = self.value_scale
        backend = backend_for(output)
        if scale is None and output.shape[1] > MAX_KERNEL_WIDTH:
            for matrix in (self.value,) if self.out is None else (self.value, self.out):
                factors = np.asarray(matrix, dtype=output.dtype)
                output = output @ backend.to_device(factors).T if factors.ndim else output * factors
        elif scale is None:
            matrix = backend.to_device(self.value_matrix(output.shape[1]))
            backend.launch(backend.apply_matrix, len(output), matrix, output)
        else:
            factor = factor * scale
        if not (isinstance(factor, float) or np.ndim(factor) == 0):
            output *= factor[:, None]
        elif factor != 1.0:
            output *= factor
        return output


def log_bound(beta: float, head: Head, kernel: Kernel) -> float:
    """Return the logarithm of the largest value of a head's kernel k(x, y) between unit vectors x and y.

    For a gaussian kernel with matrices that are no multiples of the identity, the result is the upper bound 0.
    """
    query, key = multiple(head.query), multiple(head.key)
    size = abs(steepness(beta, head))
    if kernel.log_factor is None:
        return size
    if query is None or key is None:
        return 0.0
    return size + float(kernel.log_factor(beta, query**2) + kernel.log_factor(beta, key**2))


def log_factors(kernel: Kernel, points: Floats, beta: float, matrix: Factor) -> Floats | None:
    """Return log f(Mx) (n,) of points x (n, d), for a matrix or a number M; None for a kernel with f = 1.

    f is the factor of the kernel e^{β⟨Qx,Ky⟩} f(Qx) f(Ky), and M is Q or K.
    """
    if kernel.log_factor is None:
        return None
    scale = multiple(matrix)
    if scale is None:
        points, scale = points @ backend_for(points).to_device(np.asarray(matrix).T.astype(points.dtype)), 1.0
    factors: Floats = kernel.log_factor(float(beta), scale**2 * (points**2).sum(axis=1))
    return factors


def steepness(beta: float, head: Head) -> float:
    """Return the steepness β‖QᵀK‖ of a head, an upper bound of the slope of log k for its kernel k.

    Where Q = qI and K = kI, the result is βqk with its sign; otherwise it is |β|‖QᵀK‖ ≥ 0.
    """
    query, key = multiple(head.query), multiple(head.key)
    return abs(beta) * head._product_norm if query is None or key is None else beta * query * key


def multiple(matrix: Factor) -> float | None:
    """Return the number c of a matrix cI; None for a matrix that is no multiple of the identity."""
    if isinstance(matrix, float) or np.ndim(matrix) == 0:
        return float(matrix)
    square = np.asarray(matrix)
    scale = float(square[0, 0])
    if square.shape[0] != square.shape[1] or square[0, 1:].any() or square[-1, -1] != scale:
        return None  # the comparison below is slow for large matrices
    return scale if np.array_equal(square, scale * np.eye(len(square))) else None


def merge_heads(heads: Sequence[Head], dimension: int) -> tuple[Head, ...]:
    """Return attention heads in R^d of the same output, with one head for all heads of equal Q and K.

    Such heads have the same attention weights, in which the output is linear: the merged head has w = Σ_h w_h and
    V = Σ_h w_h V_h / w. Heads whose weights w_h cancel to rounding are not merged.
    """
    groups: dict[tuple[float | bytes, ...], list[Head]] = {}
    for head in heads:
        scales = [(multiple(matrix), matrix) for matrix in (head.query, head.key)]
        kernel = tuple(np.asarray(matrix).tobytes() if scale is None else scale for scale, matrix in scales)
        groups.setdefault(kernel, []).append(head)
    merged: list[Head] = []
    for group in groups.values():
        weight = sum(head.weight for head in group)
        if len(group) > 1 and abs(weight) > np.finfo(float).eps * sum(abs(head.weight) for head in group):
            value = sum(head.weight / weight * head.value_matrix(dimension) for head in group)
            group = [replace(group[0], value=value, weight=weight, out=None)]
        merged += group
    return tuple(merged)


def values_of_rows(heads: Sequence[Head], dimension: int) -> Floats:
    """Return the weighted value matrices w V of several attention heads, one head for each row of a batch.

    The shape is (rows, 1, 1) where every V is a multiple of the identity, else (rows, d, d) with the transposes w Vᵀ.
    """
    scales = [head.value_scale for head in heads]
    known = [scale for scale in scales if scale is not None]
    if len(known) == len(heads):
        return np.array([head.weight * scale for head, scale in zip(heads, known, strict=True)])[:, None, None]
    return np.stack([head.weight * head.value_matrix(dimension).T for head in heads])


def apply_factor(factor: Factor, points: Floats) -> Floats:
    """Return the product F x for each of the points x (n, d), where the factor F is a matrix or a number.

    The cost is O(nd) where F is a number, else O(nd²).
    """
    return points * factor if np.ndim(factor) == 0 else np.asarray(points @ np.asarray(factor, dtype=float).T)


def matrix_of(factor: Factor, dimension: int) -> Floats:
    """Return a factor as a matrix: a number times the (d, d) identity, or the given matrix unchanged."""
    return np.asarray(factor, dtype=float) * (np.eye(dimension) if np.ndim(factor) == 0 else 1.0)
