"""Semi-discrete equation ∂ₜu = E(t, u) + I(t, u) with explicit terms E and a stiff linear term I, and its solvers."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from ...mesh.mesh import Floats, Mesh
from ...terms.linear_solver import Axes, ShiftedSolver, Waves, factorize, modes_of
from ...terms.operators import links_matrix
from ...terms.source import Source
from ...terms.stiff_sum import add_rate, has_rate
from ...terms.term import Term
from ..control import root_mean_square
from ..equation import Equation
from ..state import MethodState, NonFinite, from_reals, reals

Vector = Callable[[Floats], Floats]
REUSE = 1.5  # ratio of steps up to which a factorization serves as a preconditioner
SOLVE_RTOL = 1e-10  # of linear systems, far below the errors of steps
MAX_ITERATIONS = 60  # of GMRES, and dimension of the Krylov space
LINEAR_RTOL = 1e-3  # of a linear system within Newton's iteration
MAX_REUSED = 12  # iterations of GMRES after which the preconditioner is computed anew
CONTRACTION = 0.1  # largest ratio of successive updates without GMRES: ten updates give ten digits
NEWTON_PART = 0.1  # error after an update by GMRES, over the update
NEWTON_RTOL, MAX_NEWTON = 1e-3, 12  # error of the iteration over the allowed one of a step; maximum number of updates
DIFFERENCE = 1e-7  # relative length of a difference quotient: √eps if f has the size of u


class SemiDiscrete:
    """Rate of change E(t, u) + I(t, u) of an equation on the host, with explicit terms E and an affine stiff term I.

    The methods also solve the linear and nonlinear systems of implicit stages. Raises ValueError for a stiff term that
    advances states but has no rate.

    stable_dt   largest stable step of the explicit terms at their last evaluation
    """

    def __init__(self, equation: Equation) -> None:
        self.equation = equation.begin()
        self.equation.terms = tuple(map(_without_step_limit, self.equation.terms))
        self.stable_dt = np.inf  # of the explicit terms at their last evaluation
        self._prepared: tuple[float, Floats] | None = None  # time and state of that evaluation
        stiff = equation.stiff
        without = [term for term in getattr(stiff, "terms", (stiff,)) if stiff is not None and not has_rate(term)]
        if without:
            name = type(without[0]).__name__
            raise ValueError(f'{name} has steps but no rate of change: expected method = "ssprk3" with it')
        self._inverse: list[Vector] = []
        self._is_direct = False  # whether the preconditioner has the matrices of all terms
        self.forget_factorization()
        self._linear: list[ShiftedSolver] | None = None
        self._modes: Waves | Axes | None = None

    def forget_factorization(self) -> None:
        """Discard the factorization, so that the next solution does not depend on earlier ones."""
        self._factorized: tuple[float, float, Floats] | None = None  # step, time and values of the preconditioner
        self._iterations = 0  # maximum for a linear system since the factorization

    @property
    def method_state(self) -> MethodState:
        """Return step, time and values of the factorization in use, and its number of iterations; {} without one."""
        if self._factorized is None:
            return {}
        step, time, values = self._factorized
        numbers = {"factorized_step": step, "factorized_time": time, "iterations": self._iterations}
        return {**numbers, "factorized_values": values}

    def resume(self, known: MethodState) -> None:
        """Compute the factorization of an earlier run again from ``known``, the ``method_state`` of that run."""
        if "factorized_values" in known:
            step, time = float(known["factorized_step"]), float(known["factorized_time"])
            self._factorize(step, time, np.asarray(known["factorized_values"]))
            self._iterations = int(known["iterations"])

    def explicit(self, time: float, values: Floats, dt: float) -> Floats:
        """Return the rate of change E(t, u) by the explicit terms at u = ``values``, limited for an Euler step of dt.

        The limiters of densities keep u ≥ 0 in such a step. The largest stable step is stored in ``stable_dt``.
        """
        self.prepare(time, values)
        rate = np.zeros_like(values)
        for term in self.equation.terms:
            term.rate(dt, rate)
        return rate

    def prepare(self, time: float, values: Floats) -> None:
        """Evaluate the explicit terms at u = ``values``, unless that was their last evaluation; set ``stable_dt``."""
        last = self._prepared
        if last is None or last[0] != time or not np.array_equal(last[1], values):
            self._prepared = None  # while a term may raise an error
            with np.errstate(all="ignore"):
                self.stable_dt = float(self.equation.prepare(time, values))
            self._prepared = time, values.copy()

    def stiff(self, time: float, values: Floats) -> Floats:
        """Return the rate of change I(t, u) by the stiff term at u = ``values``; zeros without a stiff term."""
        term: Any = self.equation.stiff
        rate = np.zeros_like(values)
        if term is not None:
            add_rate(term, time, values, rate)
        return rate

    def full(self, time: float, values: Floats, dt: float = 0.0) -> Floats:
        """Return the rate of change E(t, u) + I(t, u) of u = ``values`` by all terms, the explicit ones limited for dt.

        The limiters of densities keep u ≥ 0 in an Euler step of dt by the explicit terms.
        """
        return self.explicit(time, values, dt) + self.stiff(time, values)

    def solve_stiff(self, time: float, start: Floats, step: float) -> Floats:
        """Return the implicit stage Y with Y − step·I(t, Y) = ``start``, by a direct solver or preconditioned GMRES.

        I is the rate of change by the stiff term, affine in Y. A second correction of Y conserves, also
        in long steps, the integrals that I conserves.
        """
        if self.equation.stiff is None:
            return start.copy()
        first = start + self.solve_linear(time, step * self.stiff(time, start), step)
        rest = start + step * self.stiff(time, first) - first
        return first + self.solve_linear(time, rest, step, LINEAR_RTOL)

    def solve_linear(self, time: float, right: Floats, step: float, rtol: float = SOLVE_RTOL) -> Floats:
        """Return Y with Y − step·L Y = ``right``, where L is the linear part of the stiff term's rate of change.

        ``rtol`` is the tolerance where the solver is iterative.
        """
        if self.equation.stiff is None:
            return right
        solvers = self._stiff_solvers(right)
        if solvers and all(solver.is_exact for solver in solvers):
            return _by_field(solvers, lambda solver, rows: solver.solve(rows, step), right)
        offset = self.stiff(time, np.zeros_like(right))

        def left(values: Floats) -> Floats:
            return values - step * (self.stiff(time, values) - offset)

        return _gmres(left, right, self.preconditioner(time, right, step), rtol)

    def modes(self, values: Floats) -> Waves | Axes | None:
        """Return the eigenvectors of the stiff term for fields u = ``values``; None where it is not diagonalized."""
        stiff: Any = self.equation.stiff
        mesh = getattr(stiff, "mesh", None)
        if self._modes is None and isinstance(mesh, Mesh) and hasattr(stiff, "jacobian"):
            self._modes = modes_of(mesh, stiff.jacobian(values.size // mesh.cells), values.dtype)
        return self._modes

    @property
    def is_linear(self) -> bool:
        """Return whether the rate of change is that of a stiff term alone, which does not depend on the time."""
        return not self.equation.terms and getattr(self.equation.stiff, "is_autonomous", False)

    def change_of_data(self, time: float, later: float, values: Floats) -> Floats | float:
        """Return the change from ``time`` to ``later`` of the part of the stiff term's rate that does not depend on u.

        ``values`` have the shape of u.
        """
        if getattr(self.equation.stiff, "is_autonomous", False):
            return 0.0
        zeros = np.zeros_like(values)
        return self.stiff(later, zeros) - self.stiff(time, zeros)

    def solve_full(self, time: float, start: Floats, step: float, allowed: float, guess: Floats) -> Floats:
        """Return the implicit stage Y with Y − step·(E + I)(t, Y) = ``start``, by Newton's iteration.

        E and I are the rates of change by the explicit and stiff terms. Updates are computed with a factorization of
        the Jacobian of all terms. If the updates decrease too slowly, the factorization is renewed once. If they still
        do, GMRES computes them, preconditioned by the factorization.

        allowed   allowed error of a step; Newton's last update is at most the fraction NEWTON_RTOL of it
        guess     estimate of the rate of change at Y
        Raises NonFinite if the iteration does not converge.
        """
        values, is_fresh = start + step * guess, False
        precondition = self.preconditioner(time, values, step)
        last = math.inf if self._is_direct and self._iterations == 0 else 0.0  # size of an update without GMRES
        for _ in range(MAX_NEWTON):
            rate = self.full(time, values)
            residual = start + step * rate - values
            update = precondition(residual)
            if root_mean_square(update) > CONTRACTION * last > 0 and not is_fresh:
                precondition, is_fresh, last = self.preconditioner(time, values, step, True), True, math.inf
                update = precondition(residual)
            if not root_mean_square(update) <= CONTRACTION * last:
                left = _Jacobian(self, time, values, rate, step)
                update = _gmres(left, residual, precondition, LINEAR_RTOL)
                self._iterations, last = max(self._iterations, left.evaluations), 0.0
            values += update
            size = root_mean_square(update)
            if not math.isfinite(size):
                break
            rest = size * size / (last - size) if 2 * size < last < math.inf else size  # error of linear convergence
            if rest * (1.0 if last > 0 else NEWTON_PART) <= NEWTON_RTOL * allowed:
                return values
            last = size if last > 0 else 0.0
        raise NonFinite("Newton's iteration does not converge")

    def _stiff_solvers(self, values: Floats) -> list[ShiftedSolver]:
        """Return one solver for each field, of systems 1 − step·L with the matrix L of the stiff term.

        The list is empty if the stiff term has no matrix.
        """
        stiff: Any = self.equation.stiff
        mesh = getattr(stiff, "mesh", None)
        if self._linear is None and isinstance(mesh, Mesh) and hasattr(stiff, "jacobian"):
            matrices = stiff.jacobian(values.size // mesh.cells)
            unique = {id(matrix): ShiftedSolver(mesh, matrix) for matrix in matrices}
            self._linear = [unique[id(matrix)] for matrix in matrices]
        return self._linear or []

    def preconditioner(self, time: float, values: Floats, step: float, renew: bool = False) -> Vector:
        """Return an approximate inverse v → (1 − step·J)⁻¹ v, with J the derivative of the rate of change by u.

        J is the sum of the terms' matrices at u = ``values``. Without matrices of the terms, J is a multiple of the
        mesh's Laplacian, fitted to the stiff term, and without a mesh 0. A factorization is used again for similar
        steps, unless ``renew``.
        """
        explicit = self._explicit_with_matrix(values)
        if not explicit and (exact := self._stiff_solvers(values)):
            self._is_direct = not self.equation.terms and all(solver.is_exact for solver in exact)
            return lambda right: _by_field(exact, lambda solver, rows: solver.solve(rows, step), right)
        if not explicit and getattr(self.equation.stiff, "mesh", None) is None:
            return lambda right: right
        used = self._factorized
        if renew or used is None or not 1 / REUSE < step / used[0] < REUSE or self._iterations > MAX_REUSED:
            self._factorize(step, time, values)
        solves = self._inverse

        def apply(right: Floats) -> Floats:
            rows = right.reshape(len(solves), -1)
            return np.stack([solve(row) for solve, row in zip(solves, rows, strict=True)]).reshape(right.shape)

        return apply

    def _explicit_with_matrix(self, values: Floats) -> list[Any]:
        """Return the explicit terms with a matrix that a factorization includes.

        Sources are left out beside a stiff term that has no matrix, or whose matrix is diagonalized.
        """
        terms = [term for term in self.equation.terms if hasattr(term, "jacobian")]
        stiff = self._stiff_solvers(values)
        is_factorized = bool(stiff) and not any(solver.is_diagonalized for solver in stiff)
        if self.equation.mesh is not None and (is_factorized or self.equation.stiff is None):
            return terms
        return [term for term in terms if not isinstance(term, Source)]

    def _factorize(self, step: float, time: float, values: Floats) -> None:
        """Compute the factors of the preconditioner of a step at a state, for this and later steps."""
        factorize = self._factorize_jacobians if self._explicit_with_matrix(values) else self._factorize_laplacian
        self._inverse = factorize(time, values, step)
        self._factorized, self._iterations = (step, time, values.copy()), 0

    def _factorize_jacobians(self, time: float, values: Floats, step: float) -> list[Vector]:
        """Return one function v → (1 − step·J)⁻¹ v for each field, with J the sum of the terms' matrices at a state.

        Terms without a matrix are left out.
        """
        self.full(time, values)
        mesh, explicit = self.equation.mesh, self._explicit_with_matrix(values)
        assert mesh is not None  # of the terms with a matrix
        fields, stiff = values.size // mesh.cells, self.equation.stiff
        terms = explicit + [stiff] * hasattr(stiff, "jacobian")
        each = [matrices for term in terms if (matrices := term.jacobian(fields))]
        solvers = [ShiftedSolver(mesh, sum(matrices)) for matrices in zip(*each, strict=True)] if each else []
        count = len(self.equation.terms) + (stiff is not None)
        self._is_direct = len(each) == count and all(solver.is_exact for solver in solvers)
        return [partial(solver.solve, step=step) for solver in solvers] or [lambda right: right] * fields

    def _factorize_laplacian(self, time: float, values: Floats, step: float) -> list[Vector]:
        """Return solvers of (1 − step·DΔ) v = right, one for each field, with D estimated from the stiff term."""
        from scipy.sparse import identity

        term: Any = self.equation.stiff
        mesh: Mesh = term.mesh
        laplacian = links_matrix(mesh, np.asarray(mesh.face_conductances()))
        probe = _probe(values.shape)
        rows = probe.reshape(-1, mesh.cells)
        change = self.stiff(time, probe.astype(values.dtype)) - self.stiff(time, np.zeros_like(values))
        weights = mesh.volumes * rows
        found = (weights * change.reshape(-1, mesh.cells)).sum(axis=1) / (weights * (laplacian @ rows.T).T).sum(axis=1)
        positive = np.maximum(found.real, 0.0)
        return [factorize((identity(mesh.cells) - step * D * laplacian).tocsc()) for D in positive]


def _by_field(
    solvers: list[ShiftedSolver], function: Callable[[ShiftedSolver, Floats], Floats], right: Floats
) -> Floats:
    """Return a function of solver and fields at the fields ``right``, which are taken together for each solver."""
    rows = right.reshape(len(solvers), -1)
    found = np.empty_like(rows)
    for solver in dict.fromkeys(solvers):
        chosen = [each is solver for each in solvers]
        found[chosen] = function(solver, rows[chosen])
    return found.reshape(right.shape)


def _without_step_limit(term: Term) -> Term:
    """Return a term; a source whose ``fastest`` is not given is returned without a limit of the step.

    The error control limits the step of such a source.
    """
    if isinstance(term, Source) and term.fastest is None:
        term = copy(term)
        term.fastest = float(np.finfo(float).tiny)
    return term


def _probe(shape: tuple[int, ...]) -> Floats:
    """Return reproducible Gaussian random values of a shape."""
    return np.random.default_rng(1).standard_normal(shape)


class _Jacobian:
    """Operator v → v − step·J v of Newton's iteration, where J is the derivative of the rate of change at a state.

    J v is a difference quotient of the rate. ``evaluations`` counts the products.
    """

    def __init__(self, problem: SemiDiscrete, time: float, values: Floats, rate: Floats, step: float) -> None:
        self._problem, self._time, self._values, self._rate, self._step = problem, time, values, rate, step
        self._size, self.evaluations = 1.0 + float(np.abs(values).max()), 0

    def __call__(self, vector: Floats) -> Floats:
        length = float(np.abs(vector).max())
        if length == 0.0:
            return vector
        self.evaluations += 1
        small = DIFFERENCE * self._size / length
        change = self._problem.full(self._time, self._values + small * vector) - self._rate
        return vector - self._step * change / small


def _gmres(left: Vector, right: Floats, preconditioner: Vector, rtol: float) -> Floats:
    """Return x with left(x) = ``right`` by GMRES; raise NonFinite if the iteration does not converge.

    left             linear function of an array, of its real and imaginary parts if it is complex
    preconditioner   approximate inverse of ``left``
    rtol             norm of the residual of x, relative to that of ``right``
    """
    from scipy.sparse.linalg import LinearOperator, gmres

    size = reals(right).size

    def operator(function: Vector) -> Any:
        return LinearOperator((size, size), lambda flat: reals(function(from_reals(flat, right))), dtype=float)

    found, failed = gmres(
        operator(left),
        reals(right),
        rtol=rtol,
        atol=0.0,
        restart=MAX_ITERATIONS,
        maxiter=3,
        M=operator(preconditioner),
    )
    solution = from_reals(found, right)
    if failed and not float(np.linalg.norm(left(solution) - right)) <= 1e3 * rtol * float(np.linalg.norm(right)):
        raise NonFinite("the linear solver does not converge")
    return solution
