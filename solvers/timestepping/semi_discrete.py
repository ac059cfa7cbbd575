"""Semi-discrete equation ∂ₜu = E(t, u) + I(t, u): explicit terms E, a stiff linear one I, and solves with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..mesh.mesh import Floats
from ..terms.source import Source
from ..terms.stiff_sum import add_rate, has_rate
from ..terms.term import Step, Term
from .equation import Equation
from .state import NonFinite

Vector = Callable[[Floats], Floats]
REUSE = 1.5  # ratio of steps up to which a factorization serves as a preconditioner
SOLVE_RTOL = 1e-10  # of linear systems: far below errors of steps
MAX_ITERATIONS = 60  # of GMRES, and the dimension of its Krylov space
NEWTON_RTOL, MAX_NEWTON = 1e-3, 12  # of an update over what a step may err; updates
DIFFERENCE = 1e-7  # relative length of a difference quotient: √eps, where f is of the size of u


class SemiDiscrete:
    """Right-hand side of an equation, on the host.

    Raises ValueError for a stiff term that advances by itself only.
    """

    def __init__(self, equation: Equation) -> None:
        self.equation = Equation(tuple(map(_unbounded, equation.terms)), equation.stiff, equation.limit)
        self.stable_dt = np.inf  # of the explicit terms, where they were last evaluated
        stiff = equation.stiff
        without = [term for term in getattr(stiff, "terms", (stiff,)) if stiff is not None and not has_rate(term)]
        if without:
            name = type(without[0]).__name__
            raise ValueError(f'{name} has no rate of change, it only steps: expected method = "ssprk3" with it')
        self._inverse: tuple[float, Any] | None = None

    def explicit(self, time: float, values: Floats, dt: float) -> Floats:
        """E(t, u), such that a step of dt keeps it admissible."""
        self.stable_dt = float(_prepare(self.equation, time, values))
        rate = np.zeros_like(values)
        for term in self.equation.terms:
            term.rate(dt, rate)
        return rate

    def stiff(self, time: float, values: Floats) -> Floats:
        """I(t, u); zero without a stiff term."""
        term: Any = self.equation.stiff
        rate = np.zeros_like(values)
        if term is not None:
            add_rate(term, time, values, rate)
        return rate

    def full(self, time: float, values: Floats, dt: float = 0.0) -> Floats:
        """E + I."""
        return self.explicit(time, values, dt) + self.stiff(time, values)

    def solve_stiff(self, time: float, start: Floats, step: float) -> Floats:
        """Y with Y − step·I(t, Y) = ``start``: GMRES, preconditioned by the two-point Laplacian."""
        if self.equation.stiff is None:
            return start.copy()
        offset = self.stiff(time, np.zeros_like(start))  # I is affine: what comes in through the boundary
        return self.solve_linear(time, start + step * offset, step)

    def solve_linear(self, time: float, right: Floats, step: float) -> Floats:
        """Y with Y − step·L Y = ``right``, L the linear part of I."""
        if self.equation.stiff is None:
            return right
        offset = self.stiff(time, np.zeros_like(right))

        def left(values: Floats) -> Floats:
            return values - step * (self.stiff(time, values) - offset)

        return _gmres(left, right, self.preconditioner(time, right, step), SOLVE_RTOL)

    def solve_full(self, time: float, start: Floats, step: float, allowed: float) -> Floats:
        """Y with Y − step·(E + I)(t, Y) = ``start``, to a part of ``allowed``: Newton's iteration with GMRES.

        Raises NonFinite where the iteration does not converge.
        """
        values, preconditioner = start.copy(), self.preconditioner(time, start, step)
        for _ in range(MAX_NEWTON):
            rate = self.full(time, values)
            residual = start + step * rate - values
            update = _gmres(_jacobian(self, time, values, rate, step), residual, preconditioner, 1e-3)
            values += update
            if not np.isfinite(values).all():
                break
            if float(np.sqrt((update**2).mean())) <= NEWTON_RTOL * allowed:
                return values
        raise NonFinite("Newton's iteration does not converge")

    def preconditioner(self, time: float, values: Floats, step: float) -> Vector:
        """Approximate inverse of 1 − step·I, by the two-point Laplacian of the stiff term's mesh."""
        mesh = getattr(self.equation.stiff, "mesh", None)
        if mesh is None:
            return lambda right: right
        if self._inverse is None or not 1 / REUSE < step / self._inverse[0] < REUSE:
            self._inverse = step, self._factorize(mesh, time, values, step)
        solves = self._inverse[1]

        def apply(right: Floats) -> Floats:
            rows = right.reshape(-1, mesh.cells)
            return np.stack([solve(row) for solve, row in zip(solves, rows, strict=True)]).reshape(right.shape)

        return apply

    def _factorize(self, mesh: Any, time: float, values: Floats, step: float) -> list[Vector]:
        from scipy.sparse import identity
        from scipy.sparse.linalg import splu

        laplacian = _laplacian(mesh)
        rows = _probe(values.shape).reshape(-1, mesh.cells)
        change = self.stiff(time, _probe(values.shape)) - self.stiff(time, np.zeros_like(values))
        weights = mesh.volumes * rows
        found = (weights * change.reshape(-1, mesh.cells)).sum(axis=1) / (weights * (laplacian @ rows.T).T).sum(axis=1)
        return [splu((identity(mesh.cells) - step * max(D, 0.0) * laplacian).tocsc()).solve for D in found]


def _unbounded(term: Term) -> Term:
    """A source of an unknown fastest rate without a bound of the step, which the control of its error finds."""
    is_unknown = isinstance(term, Source) and term.fastest is None
    return Source(term.f, fastest=float(np.finfo(float).tiny)) if is_unknown else term  # type: ignore[attr-defined]


def _prepare(equation: Equation, time: float, values: Floats) -> Step:
    with np.errstate(all="ignore"):
        return equation.prepare(time, values)


def _probe(shape: tuple[int, ...]) -> Floats:
    return np.random.default_rng(1).standard_normal(shape)


def _laplacian(mesh: Any) -> Any:
    """(cells, cells) the two-point Laplacian, sparse."""
    from scipy.sparse import coo_matrix, diags

    inside = mesh.face_cells[:, 0] != mesh.face_cells[:, 1]
    a, b = mesh.face_cells[inside].T
    link = np.asarray(mesh.face_conductances())[inside]
    rows, columns = np.concatenate([a, b]), np.concatenate([b, a])
    links = coo_matrix((np.concatenate([link, link]), (rows, columns)), shape=(mesh.cells, mesh.cells)).tocsr()
    return diags(1 / mesh.volumes) @ (links - diags(np.asarray(links.sum(axis=1)).ravel()))


def _jacobian(problem: SemiDiscrete, time: float, values: Floats, rate: Floats, step: float) -> Vector:
    """v → v − step·J v, J v by a difference quotient."""
    size = 1.0 + float(np.abs(values).max())

    def apply(vector: Floats) -> Floats:
        length = float(np.abs(vector).max())
        if length == 0.0:
            return vector
        small = DIFFERENCE * size / length
        found: Floats = vector - step * (problem.full(time, values + small * vector) - rate) / small
        return found

    return apply


def _gmres(left: Vector, right: Floats, preconditioner: Vector, rtol: float) -> Floats:
    """x with left(x) = right. Raises NonFinite where the iteration does not converge."""
    from scipy.sparse.linalg import LinearOperator, gmres

    def operator(function: Vector) -> Any:
        return LinearOperator(
            (right.size, right.size), lambda flat: function(np.asarray(flat).reshape(right.shape)).ravel(), dtype=float
        )

    found, failed = gmres(
        operator(left),
        right.ravel(),
        rtol=rtol,
        atol=0.0,
        restart=MAX_ITERATIONS,
        maxiter=3,
        M=operator(preconditioner),
    )
    if failed and not float(np.linalg.norm(left(found.reshape(right.shape)) - right)) <= 1e3 * rtol * float(
        np.linalg.norm(right)
    ):
        raise NonFinite("the linear solver does not converge")
    return np.asarray(found.reshape(right.shape))
