"""Terms of an equation from a text: its linear part, which is stiff, and its other rates of change."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..mesh.mesh import Floats
from ..terms.linear_solver import ShiftedSolver
from ..timestepping.state import NonFinite
from .grammar import POINTWISE, TWO_ARGUMENTS, has_time, is_call
from .values import Evaluator, Tangent

_GAMMA = 1.0 - np.sqrt(0.5)  # of the L-stable method of order 2 with two stages (Alexander 1977)
_ROUNDING = 1e-12  # relative difference of derivatives that are equal
Summand = tuple[float, ast.expr]  # its sign, ±1, and the expression


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of expressions, one sum for each field.

    parts           summands of each sum
    is_autonomous   whether neither the expressions nor the data of the boundary depend on the time
    """

    evaluator: Evaluator
    fields: tuple[str, ...]
    parts: Sequence[Sequence[Summand]]
    is_autonomous: bool

    @cached_property
    def is_complex(self) -> bool:
        """Return whether a number in the expressions, a parameter or a number of the boundary conditions is complex."""
        conditions = [each for by_part in self.evaluator.operators.boundaries.values() for each in by_part.values()]
        data = [getattr(condition, name, 0.0) for condition in conditions for name in ("a", "g")]
        trees = [part for parts in self.parts for _, part in parts] + [g.tree for g in data if hasattr(g, "tree")]
        numbers = [node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)]
        return any(map(np.iscomplexobj, [*numbers, *data, *self.evaluator.parameters.values()]))

    def __call__(self, time: float, rows: Floats) -> Floats:
        """Return the sums (fields, cells) at fields (fields, cells)."""
        values = dict(zip(self.fields, rows, strict=True))
        found = np.zeros(rows.shape, complex if self.is_complex or np.iscomplexobj(rows) else float)
        for row, parts in zip(found, self.parts, strict=True):
            for sign, part in parts:
                row += sign * self.evaluator.value(part, time, values)
        return found

    def refusal(self, time: float, rows: Floats) -> str:
        """Return a message if a square root at ``rows`` (fields, cells) has a negative argument, else an empty text."""
        values = dict(zip(self.fields, rows, strict=True))
        roots = [node for parts in self.parts for _, part in parts for node in ast.walk(part) if is_call(node, "sqrt")]
        for root in roots:
            lowest = float(np.min(np.real(self.evaluator.value(root.args[0], time, values))))
            if lowest < 0:
                return f"{ast.unparse(root)}: root of {lowest:.3g}"
        return ""

    def matrices(self, time: float, rows: Floats) -> list[Any]:
        """Return the derivative (cells, cells) of each sum by its own field, without convolutions and integrals.

        Infinite slopes, as of the root of 0, count as 0: nonlinear systems are only preconditioned by the matrices.
        """
        from scipy.sparse import csr_array

        values, found = dict(zip(self.fields, rows, strict=True)), []
        for name, parts in zip(self.fields, self.parts, strict=True):
            matrix = csr_array((rows.shape[1],) * 2)
            for sign, part in parts:
                matrix = matrix + sign * derivative(self.evaluator, part, time, values, name)
            matrix.data[~np.isfinite(matrix.data)] = 0.0
            found.append(matrix)
        return found


def derivative(evaluator: Evaluator, tree: ast.expr, time: float, values: Mapping[str, Floats], name: str) -> Any:
    """Return the derivative (cells, cells) of an expression by the field ``name``."""
    from scipy.sparse import csr_array, eye_array

    cells = evaluator.mesh.cells
    found = evaluator.value(tree, time, {**values, name: Tangent(values[name], eye_array(cells, format="csr"))})
    return found.matrix if isinstance(found, Tangent) else csr_array((cells, cells))


def is_linear(evaluator: Evaluator, tree: ast.expr, name: str, fields: Sequence[str]) -> bool:
    """Return whether an expression is M u + s(t) in the field u = ``name`` with a constant matrix M, not 0.

    The derivatives at two random states are compared. Neither functions of fields nor of the time count as linear.
    """
    if has_time(tree):
        return False
    for node in ast.walk(tree):
        if any(is_call(node, each) for each in (*POINTWISE, *TWO_ARGUMENTS, "convolve", "integral")) and any(
            isinstance(inner, ast.Name) and inner.id in fields for inner in ast.walk(node)
        ):
            return False
    random, seen, time = np.random.default_rng(0), [], 0.0
    for _ in range(2):
        values = {each: random.standard_normal(evaluator.mesh.cells) for each in fields}
        matrix = derivative(evaluator, tree, time, values, name)
        source = evaluator.value(tree, time, {each: np.zeros(evaluator.mesh.cells) for each in fields})
        with np.errstate(invalid="ignore"):
            rest = np.abs(evaluator.value(tree, time, values) - source - matrix @ values[name]).max()
        if not rest <= _ROUNDING * (abs(matrix).sum(axis=1) * np.abs(values[name]).max() + np.abs(source)).max():
            return False
        seen.append(matrix)
    largest = abs(seen[0]).max()
    return bool(largest > 0 and abs(seen[0] - seen[1]).max() <= _ROUNDING * largest)


def _has_second_derivative(tree: ast.expr, name: str) -> bool:
    """Return whether an expression has second derivatives of a function of the field ``name``."""
    return any(
        isinstance(inner, ast.Name) and inner.id == name
        for node in ast.walk(tree)
        if is_call(node, "laplace") or (is_call(node, "div") and any(is_call(part, "grad") for part in ast.walk(node)))
        for inner in ast.walk(node)
    )


class Rates:
    """Rates of change by expressions that are not linear, a term of an equation.

    is_separable   whether the rates of the first half of the fields depend on the second half alone, and conversely,
                   and none on the time t: the frequency changes with it, and symplectic steps have one length
    is_stiff       whether the rate of a field has second derivatives of a function of this field
    """

    def __init__(self, sums: Sums) -> None:
        self._sums = sums
        self.is_autonomous, self.is_complex = sums.is_autonomous, sums.is_complex
        half = len(sums.fields) // 2
        self.is_separable = len(sums.fields) == 2 * half and not any(
            isinstance(node, ast.Name) and node.id in (*own, "t")
            for own, parts in zip([sums.fields[:half]] * half + [sums.fields[half:]] * half, sums.parts, strict=True)
            for _, part in parts
            for node in ast.walk(part)
        )
        self.is_stiff = any(
            _has_second_derivative(part, name)
            for name, parts in zip(sums.fields, sums.parts, strict=True)
            for _, part in parts
        )

    def prepare(self, time: float, values: Floats) -> float:
        """Store the rates at a state for ``rate``; the error control limits the step.

        Raises NonFinite for the root of a negative number, so that the iterations of a trial step end at once.
        """
        self._time, self._values = time, values.reshape(len(self._sums.fields), -1)
        self._rates = self._sums(time, self._values).reshape(values.shape)
        if np.isfinite(self._rates).all():
            return np.inf
        if refusal := self._sums.refusal(time, self._values):
            raise NonFinite(f"at time {time:.6g}: {refusal}")
        return np.nan

    def rate(self, dt: float, rate: Floats) -> None:
        """Add the rates at the stored state to ``rate``."""
        rate += self._rates

    @property
    def jacobian(self) -> Any:
        """Return the function n → list of one matrix (cells, cells) for each of n fields, at the stored state.

        The matrix is the derivative of the rate of a field by this field. Raises AttributeError if no rate is stiff, so
        that methods without matrices are chosen.
        """
        if not self.is_stiff:
            raise AttributeError("jacobian")
        return lambda fields: self._sums.matrices(self._time, self._values)


class LinearPart:
    """Stiff term ∂ₜu = M u + s(t), with a sparse matrix M (cells, cells) and a source s for each field.

    name   name of the term in messages
    """

    name = "the linear part of the text"

    def __init__(self, sums: Sums) -> None:
        self.mesh, self._sums = sums.evaluator.mesh, sums
        self.is_autonomous, self.is_complex = sums.is_autonomous, sums.is_complex
        self._zero = np.zeros((len(sums.fields), self.mesh.cells))
        self._matrices = sums.matrices(0.0, self._zero)
        self._constant = sums(0.0, self._zero) if self.is_autonomous else None
        self._solvers: list[ShiftedSolver | None] = [None] * len(sums.fields)

    def _source(self, time: float) -> Floats:
        """Return the part of the rate of change that does not depend on the fields."""
        return self._sums(time, self._zero) if self._constant is None else self._constant

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_solvers": [None] * len(self._solvers)}  # factorized matrices cannot be pickled

    def prepare(self, time: float, values: Floats) -> float:
        """Store a state u and its time for ``rate``."""
        self._time, self._rows = time, values.reshape(self._zero.shape)
        return np.inf

    def rate(self, dt: float, rate: Floats) -> None:
        """Add M u + s(t) to ``rate``."""
        found = [matrix @ row for matrix, row in zip(self._matrices, self._rows, strict=True)]
        rate += (np.stack(found) + self._source(self._time)).reshape(rate.shape)

    def jacobian(self, fields: int) -> list[Any]:
        """Return the matrix M (cells, cells) of each field."""
        return self._matrices

    @cached_property
    def _fastest(self) -> Floats:
        """Return the largest row sum of |M| for each field. Explicit steps up to twice its inverse are stable."""
        return np.array([abs(matrix).sum(axis=1).max() for matrix in self._matrices])

    def longest_step(self, values: Floats, time: float = 0.0) -> float:
        """Return the time in which the term changes u by half of its deviation from the mean.

        The result is at least an eighth of a stable explicit step, as a uniform u may change by data of the boundary.
        """
        self.prepare(time, values)
        rates = np.zeros(self._zero.shape)
        self.rate(0.0, rates)
        sizes = np.abs(self._rows - self._rows.mean(axis=1, keepdims=True)).max(axis=1)
        speeds = np.abs(rates).max(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(speeds > 0, np.maximum(0.5 * sizes / speeds, 0.25 / self._fastest), np.inf)
        return float(steps.min())

    def step(self, dt: float, values: Floats, limited: bool = True, time: float = 0.0) -> float:
        """Advance u in place by an L-stable method of order 2; return ∞, since nothing is limited."""
        first, second = self._source(time + _GAMMA * dt), self._source(time + dt)
        for number, row in enumerate(values.reshape(self._zero.shape)):
            matrix = self._matrices[number]
            solver = self._solvers[number] = self._solvers[number] or ShiftedSolver(self.mesh, matrix)
            one = solver.solve(matrix @ row + first[number], _GAMMA * dt)
            row += (1 - _GAMMA) * dt * one
            row += _GAMMA * dt * solver.solve(matrix @ row + second[number], _GAMMA * dt)
        return np.inf
