"""An equation's rate of change, its Jacobian matrix and operator, also in SciPy's solvers."""

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import root
from scipy.sparse.linalg import eigs, spsolve

from solvers import (
    Advection,
    Diffusion,
    Equation,
    NonlinearDiffusion,
    Value,
    circle,
    interval,
    solve,
    sphere,
)

CIRCLE = circle(48)
ANGLE = np.arctan2(CIRCLE.centers[:, 1], CIRCLE.centers[:, 0])
LINE = interval(0.0, 1.0, 40)
X = LINE.centers[:, 0]
RNG = np.random.default_rng(1)
EAST = np.stack([-np.sin(ANGLE), np.cos(ANGLE)], axis=1)


def brusselator(t, u):
    a, b = u
    return np.stack([1.0 - 4.0 * a + a * a * b, 3.0 * a - a * a * b])


def delayed(t, u):
    return np.roll(u, 17) * u  # a cell depends on one that is 17 cells away


EQUATIONS = {
    "diffusion": (Equation(LINE, [Diffusion(LINE, 0.3, boundaries={"left": Value(2.0)})]), X),
    "reaction": (Equation(CIRCLE, [Diffusion(CIRCLE, 0.1), lambda t, u: u - u**3]), np.cos(ANGLE)),
    "two fields": (
        Equation(LINE, [Diffusion(LINE, [0.1, 0.02]), brusselator]),
        np.stack([1.0 + 0.1 * np.sin(X), 3.0 - X]),
    ),
    "advection": (Equation(CIRCLE, [Advection(CIRCLE, lambda t, u: EAST, limiter="none")]), np.cos(ANGLE)),
    "nonlinear": (Equation(LINE, [NonlinearDiffusion(LINE, np.exp, boundaries={"left": Value(0.5)})]), np.cos(3 * X)),
    "distant": (Equation(CIRCLE, [delayed]), 1.0 + 0.3 * np.cos(ANGLE)),
    "one cell": (Equation(LINE, [lambda t, u: u[7] * u]), 1.0 + X),
    "nonlocal": (
        Equation(
            CIRCLE, [Advection(CIRCLE, lambda t, u: (u @ (CIRCLE.volumes * np.cos(ANGLE))) * EAST, limiter="none")]
        ),
        1.0 + 0.3 * np.cos(ANGLE),
    ),
    "without a mesh": (Equation(None, [lambda t, u: np.stack([u[1], -np.sin(u[0])])]), np.array([0.4, 0.2])),
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_matrix_and_operator_are_the_derivative_of_the_rate(name):
    equation, u = EQUATIONS[name]
    matrix, operator = equation.jacobian(0.0, u), equation.linear_operator(0.0, u)
    vector = RNG.standard_normal(u.shape)
    h = 1e-5
    expected = (equation.rate(0.0, u + h * vector) - equation.rate(0.0, u - h * vector)) / (2 * h)
    size = np.abs(expected).max()
    np.testing.assert_allclose((matrix @ vector.ravel()).reshape(u.shape), expected, atol=1e-7 * size)
    np.testing.assert_allclose((operator @ vector.ravel()).reshape(u.shape), expected, atol=1e-7 * size)


def test_the_matrix_of_a_local_rate_is_sparse_and_needs_few_evaluations():
    mesh, calls = sphere(32), []

    def reaction(t, u):
        calls.append(0)
        return u - u**3

    equation, u = Equation(mesh, [reaction, Diffusion(mesh, 0.1)]), mesh.centers[:, 2]
    matrix = equation.jacobian(0.0, u) - 0.1 * Diffusion(mesh, 1.0).jacobian(1)[0]
    assert len(calls) < 100  # two for each group of cells that are two faces apart
    np.testing.assert_allclose(matrix.diagonal(), 1 - 3 * u**2, atol=1e-8)
    assert abs(matrix).sum() == pytest.approx(np.abs(1 - 3 * u**2).sum())


def test_the_matrix_of_two_fields_is_that_of_the_reaction():
    equation = Equation(LINE, [brusselator])
    a, b = u = np.stack([1.0 + 0.1 * np.sin(X), 3.0 - X])
    blocks = [[-4.0 + 2 * a * b, a * a], [3.0 - 2 * a * b, -a * a]]
    expected = np.block([[np.diag(each) for each in row] for row in blocks])
    np.testing.assert_allclose(equation.jacobian(0.0, u).toarray(), expected, atol=1e-8)
    np.testing.assert_allclose(equation.jacobian(0.0, u.ravel()).toarray(), expected, atol=1e-8)


def test_a_flat_state_and_integers_have_the_same_rate():
    equation, u = EQUATIONS["two fields"]
    np.testing.assert_array_equal(equation(0.0, u.ravel()), equation.rate(0.0, u).ravel())
    heat = Equation(LINE, [Diffusion(LINE, 1.0)])
    np.testing.assert_array_equal(heat.rate(0.0, np.arange(40)), heat.rate(0.0, np.arange(40.0)))
    assert heat.rate(0.0, X.astype(np.float32)).dtype == np.float32
    with pytest.raises(ValueError, match=r"^u of shape \(41,\): expected a multiple of the 40 cells$"):
        heat.rate(0.0, np.ones(41))
    with pytest.raises(TypeError, match=r"^u is complex: expected real fields"):
        heat.jacobian(0.0, np.ones(40) * 1j)


def test_solve_ivp_and_solve_agree():
    equation, u = EQUATIONS["two fields"]
    ours = solve(equation, u, (0.0, 1.0), rtol=1e-8).u[-1]
    found = solve_ivp(equation, (0.0, 1.0), u.ravel(), method="BDF", jac=equation.jacobian, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found.y[:, -1].reshape(u.shape), ours, atol=3e-6)
    assert found.njev < 20


def front(cells):
    """Return the error of a steady Allen–Cahn front by SciPy's root."""
    mesh = interval(-6.0, 6.0, cells)
    exact = np.tanh(mesh.centers[:, 0] / np.sqrt(2))
    ends = {"left": Value(-np.tanh(6 / np.sqrt(2))), "right": Value(np.tanh(6 / np.sqrt(2)))}
    equation = Equation(mesh, [Diffusion(mesh, 1.0, boundaries=ends), lambda t, u: u - u**3])
    found = root(lambda u: equation(0, u), mesh.centers[:, 0] / 6, jac=lambda u: equation.jacobian(0, u).toarray())
    assert found.success
    return np.abs(found.x - exact).max()


def test_root_finds_a_front_to_second_order():
    errors = front(64), front(128)
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.2), errors


def test_eigs_finds_the_growth_of_turing_s_instability():
    """Modes k of a periodic line grow with the largest real part of the eigenvalues of A − k² D."""
    mesh = interval(0.0, 2 * np.pi, 128, periodic=True)
    A, D = np.array([[1.0, -1.0], [2.0, -1.5]]), np.array([0.02, 0.5])
    equation = Equation(mesh, [Diffusion(mesh, list(D)), lambda t, u: A @ u])
    found = eigs(equation.jacobian(0.0, np.zeros((2, mesh.cells))), 2, sigma=1.0, return_eigenvectors=False)
    expected = max(np.linalg.eigvals(A - k * k * np.diag(D)).real.max() for k in range(12))
    assert found.real.max() == pytest.approx(expected, rel=1e-4)


def test_a_newton_step_of_a_linear_equation_is_its_steady_state():
    ends = {"left": Value(1.0), "right": Value(3.0)}
    equation = Equation(LINE, [Diffusion(LINE, 0.7, boundaries=ends)])
    steady = -spsolve(equation.jacobian(0.0, 0 * X).tocsc(), equation.rate(0.0, 0 * X))
    np.testing.assert_allclose(steady, 1.0 + 2.0 * X, rtol=1e-10)
