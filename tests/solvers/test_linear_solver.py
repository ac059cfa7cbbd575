"""Matrices of terms, and solutions with these matrices: comparison with the rates of the terms, on every mesh."""

import numpy as np
import pytest
from support.meshes import MESHES

from solvers import Diffusion, DriftDiffusion, Equation, NonlinearDiffusion, Robin, Value, box, circle, interval, solve
from solvers.terms.linear_solver import ShiftedSolver
from solvers.terms.stiff_sum import StiffSum
from solvers.timestepping.runge_kutta.semi_discrete import SemiDiscrete

RNG = np.random.default_rng(3)


def rate_of(term, values):
    rate = np.zeros_like(values)
    term.prepare(0.0, values)
    term.rate(0.0, rate)
    return rate


def terms_on(mesh):
    tensor = np.eye(mesh.centers.shape[1]) + 0.2
    potential = mesh.centers[:, 0] ** 2
    diffusion = Diffusion(mesh, 0.3)
    return {
        "number": diffusion,
        "by cell": Diffusion(mesh, 1 + mesh.centers[:, 0] ** 2),
        "tensor": Diffusion(mesh, tensor),
        "drift": DriftDiffusion(mesh, 0.5, potential),
        "sum": StiffSum([diffusion, DriftDiffusion(mesh, 0.5, potential)]),
        "by state": DriftDiffusion(mesh, 0.5, lambda t, u: potential),
    }


@pytest.mark.parametrize("name", MESHES)
def test_matrices_are_the_rates_of_terms(name):
    """(1 − dt M) x = b is also solved to rounding times its condition number, 1 + dt |M|, for two fields at once."""
    mesh = MESHES[name](8)[0]
    values = RNG.standard_normal(mesh.cells)
    for kind, term in terms_on(mesh).items():
        rates = rate_of(term, values)
        (matrix,) = term.jacobian(1)
        size = np.abs(rates).max()
        assert np.abs(matrix @ values - rates).max() < 1e-12 * size, kind
        solver = ShiftedSolver(mesh, matrix)
        assert solver.is_exact
        for step in (0.01, 0.02, 0.01):
            found = solver.solve(np.outer([2, -1j, 1], values - step * rates), step)
            assert np.abs(found - np.outer([2, -1j, 1], values)).max() < 2e-12 * (1 + step * size), kind


@pytest.mark.parametrize("ends", [Value(1.0), Robin(1.0, 0.5, 0.0)])
def test_boundaries_are_in_the_matrix(ends):
    mesh = box((6, 5, 4), (1.0, 2.0, 1.0), stretch=(lambda s: s**1.2, None, None))
    term = Diffusion(mesh, 0.7, boundaries={"left": ends, "top": ends})
    values = RNG.standard_normal(mesh.cells)
    change = rate_of(term, values) - rate_of(term, 0 * values)
    (matrix,) = term.jacobian(1)
    assert np.abs(matrix @ values - change).max() < 1e-12 * np.abs(change).max()
    assert ShiftedSolver(mesh, matrix)._axes is not None  # solved by axes, also with boundaries and unequal cells
    found = SemiDiscrete(Equation(mesh, [term])).solve_stiff(0.0, values - 0.1 * rate_of(term, values), 0.1)
    assert np.abs(found - values).max() < 1e-12 * (1 + 0.1 * np.abs(change).max())


def test_what_has_no_axes_is_solved_by_sparse_factors():
    """The coefficients depend on both x and y, or differ between fields."""
    mesh = box((7, 6), (1.0, 1.0))
    x, y = mesh.centers.T
    term = Diffusion(mesh, [0.2, np.exp(x * y)])
    u = RNG.standard_normal((2, mesh.cells))
    one, other = term.jacobian(2)
    assert ShiftedSolver(mesh, one)._axes is not None
    assert ShiftedSolver(mesh, other)._axes is None
    found = SemiDiscrete(Equation(mesh, [term])).solve_stiff(0.0, u - 0.01 * rate_of(term, u), 0.01)
    assert np.abs(found - u).max() < 1e-11


def test_bodies_of_many_cells_are_solved_by_iterations():
    """4400 cells with a coefficient without axes, whose factors would fill in, are solved to the iteration's
    tolerance."""
    mesh = box((20, 20, 11), (1.0, 1.0, 1.0))
    term = Diffusion(mesh, 1 + mesh.centers[:, 0] * mesh.centers[:, 1] * mesh.centers[:, 2])
    problem, u = SemiDiscrete(Equation(mesh, [term])), RNG.standard_normal(mesh.cells)
    assert not ShiftedSolver(mesh, term.jacobian(1)[0]).is_exact
    found = problem.solve_stiff(0.0, u - 1e-3 * rate_of(term, u), 1e-3)
    assert np.abs(found - u).max() < 1e-8


def test_nonlinear_diffusion_has_the_matrix_of_its_slope():
    """The reference is a difference quotient of the rate along a vector."""
    mesh = interval(0.0, 1.0, 12)
    term = NonlinearDiffusion(mesh, lambda u: u**3)
    u, v = 1 + RNG.random(12), RNG.standard_normal(12)
    change = (rate_of(term, u + 1e-6 * v) - rate_of(term, u - 1e-6 * v)) / 2e-6
    rate_of(term, u)
    assert np.abs(term.jacobian(1)[0] @ v - change).max() < 1e-4 * np.abs(change).max()


def test_an_interaction_s_diffusion_is_implicit_by_default():
    """Noisy Kuramoto oscillators take few steps to the order parameter r = I₁(Kr)/I₀(Kr), to 1e-4."""
    from scipy.optimize import brentq
    from scipy.special import i0, i1

    from solvers import SteadyState, Zonal

    mesh, coupling = circle(64), 3.0
    pull = Zonal(mesh, lambda z: -coupling * z)
    equation = Equation(mesh, [DriftDiffusion(mesh, 1.0, lambda t, u: pull.potential(u))])
    found = solve(equation, (1 + 0.1 * mesh.centers[:, 0]) / (2 * np.pi), (0, 1e3), events=SteadyState(1e-7))
    order = np.linalg.norm((found.u[-1] * mesh.volumes) @ mesh.centers)
    assert order == pytest.approx(brentq(lambda r: i1(coupling * r) / i0(coupling * r) - r, 0.1, 1.0), abs=1e-4)
    assert "implicit" in found.message
    assert found.steps < 60, found.message


def test_steps_that_differ_by_little_have_factors_of_their_own():
    mesh = circle(16)
    values = RNG.standard_normal(mesh.cells)
    (matrix,) = Diffusion(mesh, 1.0).jacobian(1)
    solver = ShiftedSolver(mesh, matrix)
    for step in (0.1, 0.1 * (1 + 1e-4), 0.1 * (1 + 1e-9)):
        assert np.abs(solver.solve(values - step * (matrix @ values), step) - values).max() < 1e-12
