"""Equations of py-pde's gallery as text for `solvers.from_text`, beside py-pde on the same cells from the same fields.

The differences are the largest over all cells, relative to the largest value, from py-pde with small tolerances. They
are mostly the errors of its second differences, up to 3e-3, since on equal periodic cells `laplace` is of order 4 here.
For the timings py-pde runs with its explicit steps of adaptive length, or with LSODA of SciPy, whichever is faster. Its
compilation, which each call of its method `solve` repeats, is not counted. The error of both packages is the difference
from the solution by `solve` on a grid three times as fine, at the common centers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.integrate import solve_ivp

from benchmarks.measure import CORES, Figure, both_timed
from solvers import box, from_text, interval, solve
from solvers.mesh.mesh import Floats

Fields = Callable[[Floats], Floats]  # of the cell centers (cells, d), (fields, cells)


@dataclass(frozen=True)
class Problem:
    """Equation on a line or in a square of ``cells`` for each side, periodic or between walls.

    ours, theirs   text for `solvers`; right sides by field for py-pde
    side           length of each side
    """

    ours: str
    theirs: dict[str, str]
    start: Fields
    side: float
    cells: int
    end: float
    dimension: int = 1
    periodic: bool = True


def _wave(x: Floats, side: float) -> Floats:
    """Return a smooth field (cells,) with values between −1 and 1."""
    k = 2 * np.pi / side
    return np.asarray(np.prod([np.cos(k * c) + 0.3 * np.sin(2 * k * c) for c in x.T], axis=0) / 1.4 ** x.shape[1])


def _one(side: float, scale: float = 1.0, mean: float = 0.0) -> Fields:
    return lambda x: mean + scale * _wave(x, side)[None]


PROBLEMS = {
    "diffusion": Problem("dt(c) = 0.1*laplace(c)", {"c": "0.1 * laplace(c)"}, _one(6.0), 6.0, 64, 1.0, 2),
    "Allen–Cahn": Problem(
        "dt(c) = laplace(c) - c**3 + c", {"c": "laplace(c) - c**3 + c"}, _one(20.0, 0.8), 20.0, 64, 3.0, 2
    ),
    "Cahn–Hilliard": Problem(
        "dt(c) = laplace(c**3 - c - laplace(c))",
        {"c": "laplace(c**3 - c - laplace(c))"},
        _one(20.0, 0.3),
        20.0,
        48,
        5.0,
        2,
    ),
    "Fisher": Problem(
        "dt(c) = laplace(c) + c*(1 - c)",
        {"c": "laplace(c) + c * (1 - c)"},
        _one(40.0, 0.1, 0.2),
        40.0,
        200,
        5.0,
        1,
        False,
    ),
    "Kuramoto–Sivashinsky": Problem(
        "dt(u) = -laplace(u + laplace(u)) - dot(grad(u), grad(u))/2",
        {"u": "-laplace(u + laplace(u)) - 0.5 * gradient_squared(u)"},
        _one(32.0),
        32.0,
        200,
        5.0,
    ),
    "Korteweg–de Vries": Problem(
        "dt(u) = 6*u*dx(u) - laplace(dx(u))",
        {"u": "6 * u * d_dx(u) - laplace(d_dx(u))"},
        _one(30.0, 0.2),
        30.0,
        200,
        2.0,
    ),
    "Brusselator": Problem(
        "dt(u) = laplace(u) + 1 - 4*u + v*u**2; dt(v) = 0.1*laplace(v) + 3*u - v*u**2",
        {"u": "laplace(u) + 1 - 4 * u + v * u**2", "v": "0.1 * laplace(v) + 3 * u - v * u**2"},
        lambda x: np.stack([np.ones(len(x)), 3 + 0.1 * _wave(x, 32.0)]),
        32.0,
        48,
        5.0,
        2,
    ),
    "Swift–Hohenberg": Problem(
        "dt(u) = -0.9*u - 2*laplace(u) - laplace(laplace(u)) + u**2 - u**3",
        {"u": "-0.9 * u - 2 * laplace(u) - laplace(laplace(u)) + u**2 - u**3"},
        _one(20.0),
        20.0,
        192,
        5.0,
    ),
    "wave": Problem(
        "dt(u) = v; dt(v) = laplace(u)",
        {"u": "v", "v": "laplace(u)"},
        lambda x: np.stack([_wave(x, 10.0), np.zeros(len(x))]),
        10.0,
        64,
        2.0,
        2,
    ),
    "diffusion that varies": Problem(
        "dt(c) = div((1.01 + tanh(x - 5))*grad(c))",
        {"c": "(1.01 + tanh(x - 5)) * laplace(c) + dot(gradient(1.01 + tanh(x - 5)), gradient(c))"},
        _one(10.0),
        10.0,
        200,
        1.0,
        1,
        False,
    ),
}


def texts(names: tuple[str, ...] = tuple(PROBLEMS)) -> Iterator[Figure]:
    """Measure the difference from py-pde for ten equations, and the ratio of its time to that of `solve`."""
    for name in names:
        problem = PROBLEMS[name]
        try:
            theirs = {solver: _theirs(problem, **options) for solver, options in SOLVERS.items()}
            reference = _theirs(problem, **REFERENCE)()
        except ImportError:
            yield Figure(f"{name}: py-pde over solve", None, "×", least=1.0, note="not installed")
            continue
        ours = _ours(problem)()
        difference = _difference(ours, reference)
        fine = _fine(problem)
        yield Figure(f"{name}: difference from py-pde", difference, "1", most=1e-3)
        ratios = []
        for answer in theirs.values():
            seconds, other = both_timed(_ours(problem), answer, clock=CORES)
            ratios.append(other / seconds)
        yield Figure.of(f"{name}: py-pde over solve", min(ratios, key=lambda ratio: ratio.median), "×", least=1.0)
        yield Figure(f"{name}: error of solve", _difference(ours, fine), "1")
        yield Figure(f"{name}: error of py-pde, explicit", _difference(theirs["explicit"](), fine), "1")


LSODA: dict[str, Any] = {"method": "LSODA", "rtol": 1e-5, "atol": 1e-7}
SOLVERS: dict[str, dict[str, Any]] = {"explicit": {}, "LSODA": LSODA}
REFERENCE = LSODA | {"rtol": 1e-8, "atol": 1e-10}
REFINED = 3  # odd, so that each center is one of the fine grid


def _difference(values: Floats, reference: Floats) -> float:
    """Return the largest difference of values (fields, cells), relative to the largest value of the reference."""
    return float(np.abs(values - reference).max() / np.abs(reference).max())


def _fine(problem: Problem) -> Floats:
    """Return the solution (fields, cells) on a grid REFINED times as fine, at the centers of the cells of a problem."""
    fine = _ours(replace(problem, cells=REFINED * problem.cells), rtol=1e-6, atol=1e-9)()
    centers = (slice(None), *(slice(REFINED // 2, None, REFINED),) * problem.dimension)
    grid = fine.reshape(len(fine), *(REFINED * problem.cells,) * problem.dimension)
    return grid[centers].reshape(len(fine), -1)


def _ours(problem: Problem, **options: float) -> Callable[[], Floats]:
    sides = (problem.side,) * problem.dimension
    if problem.dimension == 1:
        mesh = interval(0.0, problem.side, problem.cells, periodic=problem.periodic)
    else:
        mesh = box((problem.cells,) * problem.dimension, sides, periodic=problem.periodic)
    start = problem.start(mesh.centers)
    field = start[0] if len(start) == 1 else start

    def answer() -> Floats:
        found = solve(from_text(problem.ours, mesh), field, (0.0, problem.end), times=[problem.end], **options).u[-1]
        return np.asarray(found).reshape(start.shape)

    return answer


def _theirs(problem: Problem, **options: Any) -> Callable[[], Floats]:
    """Return a function that solves a problem by compiled py-pde: by SciPy with options, else by explicit steps."""
    import pde

    grid = pde.CartesianGrid([[0, problem.side]] * problem.dimension, problem.cells, periodic=problem.periodic)
    centers = np.stack([np.ravel(c) for c in np.moveaxis(grid.cell_coords, -1, 0)], axis=1)
    start = problem.start(centers)
    fields = [pde.ScalarField(grid, row.reshape(grid.shape)) for row in start]
    state = fields[0] if len(fields) == 1 else pde.FieldCollection(fields)
    equation = pde.PDE(problem.theirs)
    if not options:
        step = pde.EulerSolver(equation, adaptive=True).make_stepper(state.copy(), 1e-3)
        step(state.copy(), 0.0, problem.end)  # compiles

        def stepped() -> Floats:
            found = state.copy()
            step(found, 0.0, problem.end)
            return np.asarray(found.data).reshape(start.shape)

        return stepped
    rate = equation.make_pde_rhs(state, backend="numba")
    rate(state.data, 0.0)  # compiles

    def right(time: float, values: Floats) -> Floats:
        return np.ravel(rate(values.reshape(state.data.shape), time))

    def answer() -> Floats:
        found = solve_ivp(right, (0.0, problem.end), np.ravel(state.data), **options).y[:, -1]
        return np.asarray(found).reshape(start.shape)

    return answer
