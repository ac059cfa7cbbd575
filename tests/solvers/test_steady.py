"""Steady states of equations beside exact ones."""

import numpy as np
import pytest

from solvers import (
    Diffusion,
    DriftDiffusion,
    Equation,
    Laplacian,
    NonFinite,
    NonlinearDiffusion,
    SteadyState,
    Value,
    circle,
    from_text,
    interval,
    solve,
    solve_steady,
)

LINE = interval(0.0, 1.0, 40)
X = LINE.centers[:, 0]
HELD = {"left": Value(0.0), "right": Value(0.0)}


def test_poisson_s_equation_is_solved_at_once():
    mesh, calls = interval(0.0, 1.0, 1000), []

    def source(t, u):
        calls.append(0)
        return 0 * u + np.sin(3 * mesh.centers[:, 0])

    found = solve_steady(Equation(mesh, [Diffusion(mesh, 2.0, boundaries=HELD), source]), np.zeros(1000))
    exact = Laplacian(mesh, HELD).solve(-np.sin(3 * mesh.centers[:, 0]) / 2.0)
    assert np.abs(found - exact).max() < 1e-9 * np.abs(exact).max()
    assert len(calls) < 50  # of groups of cells, for two Jacobian matrices


@pytest.mark.parametrize("method", ["auto", "implicit"])
def test_poisson_s_equation_by_time_is_steady_to_rounding(method):
    """u(0) = 0 tends to x(1 − x)/2 of the mesh, whose own rate of change is rounding: 10⁻¹⁶ · 4/h² of u."""
    mesh = interval(0.0, 1.0, 1000)
    equation = Equation(mesh, [Diffusion(mesh, 1.0, boundaries=HELD), lambda t, u: 1.0])
    exact = Laplacian(mesh, HELD).solve(-np.ones(1000))
    fired = solve(equation, np.zeros(1000), (0, 1e8), method=method, events=SteadyState(1e-8))
    assert fired.event == 0
    assert fired.t[-1] < 3.0
    assert np.abs(fired.u[-1] - exact).max() < 1e-9
    late = solve(equation, np.zeros(1000), (0, 1e8), method=method)
    assert late.steps < 100
    assert np.abs(late.u[-1] - exact).max() < 1e-12


@pytest.mark.parametrize("method", ["ark4", "implicit"])
def test_long_implicit_steps_keep_the_integral(method):
    mesh = interval(0.0, 1.0, 1000)
    u = solve(Equation(mesh, [Diffusion(mesh, 1.0)]), 1 + np.sin(mesh.centers[:, 0]), (0, 1e6), method=method).u
    assert np.ptp(u @ mesh.volumes) < 1e-13


def test_the_front_of_allen_and_cahn_is_of_second_order():
    errors = []
    for cells in (64, 128):
        mesh = interval(-6.0, 6.0, cells)
        x = mesh.centers[:, 0]
        ends = {"left": Value(-np.tanh(6 / np.sqrt(2))), "right": Value(np.tanh(6 / np.sqrt(2)))}
        equation = Equation(mesh, [Diffusion(mesh, 1.0, boundaries=ends), lambda t, u: u - u**3])
        errors.append(np.abs(solve_steady(equation, x / 6) - np.tanh(x / np.sqrt(2))).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.2), errors


def test_two_fields_reach_the_fixed_point_of_their_reaction():
    """The Brusselator with a = 1 and b = 3 rests at (1, 3), at which it is unstable."""
    equation = Equation(
        LINE,
        [
            Diffusion(LINE, [0.1, 0.02]),
            lambda t, u: np.stack([1.0 - 4.0 * u[0] + u[0] ** 2 * u[1], 3.0 * u[0] - u[0] ** 2 * u[1]]),
        ],
    )
    found = solve_steady(equation, np.stack([1.1 + 0.1 * np.cos(X), 2.8 + 0.1 * X]))
    np.testing.assert_allclose(found, np.broadcast_to([[1.0], [3.0]], found.shape), rtol=1e-8)


def test_the_integral_of_the_guess_is_kept():
    """Drift and diffusion between walls have Gibbs's density e^(−V/D) of any mass."""
    V = 2 * np.cos(5 * X)
    found = solve_steady(Equation(LINE, [DriftDiffusion(LINE, 0.5, V)]), np.full(40, 3.0))
    gibbs = np.exp(-V / 0.5)
    np.testing.assert_allclose(found, 3.0 * gibbs / LINE.integrate(gibbs), rtol=1e-8)


@pytest.mark.parametrize("as_text", [True, False])
def test_the_integral_of_a_sum_of_fields_is_kept(as_text):
    """A pair a + a ⇌ b keeps a + 2b, whose mean is 2 here; 2a² = 3b at rest."""
    if as_text:
        equation = from_text("dt(a) = laplace(a) - 4*a**2 + 6*b; dt(b) = 0.5*laplace(b) + 2*a**2 - 3*b", LINE)
    else:
        pairs = np.array([[-2.0], [1.0]])
        equation = Equation(LINE, [Diffusion(LINE, [1.0, 0.5]), lambda t, u: (2 * u[0] ** 2 - 3 * u[1]) * pairs])
    found = solve_steady(equation, np.stack([2 + np.cos(np.pi * X), 0 * X]))
    a = (np.sqrt(9 + 4 * 4 * 3 * 2) - 3) / 8  # a + 2b = 2 with b = 2a²/3
    np.testing.assert_allclose(found, np.stack([a + 0 * X, 1 - a / 2 + 0 * X]), rtol=1e-8)


def test_the_sum_of_a_markov_chain_is_kept():
    chain = Equation(None, [lambda t, u: np.array([2 * u[1] - u[0], u[0] - 2 * u[1]])])
    np.testing.assert_allclose(solve_steady(chain, [1.0, 2.0]), [2.0, 1.0], rtol=1e-10)


def test_an_update_that_is_too_long_is_shortened():
    """Δu³ = 0 between 1 and 2: u = (1 + 7x)^(1/3), from a guess that is far away."""
    ends = {"left": Value(1.0), "right": Value(2.0)}
    equation = Equation(LINE, [NonlinearDiffusion(LINE, lambda u: u**3, boundaries=ends)])
    np.testing.assert_allclose(solve_steady(equation, 20.0 + X), np.cbrt(1 + 7 * X), rtol=1e-8)


def test_a_system_without_a_mesh():
    equation = Equation(None, [lambda t, u: np.stack([u[0] ** 2 + u[1] - 3.0, u[0] - u[1] + t])])
    np.testing.assert_allclose(solve_steady(equation, [2.0, 2.0], t=1.0), [1.0, 2.0], rtol=1e-10)


def test_an_integral_that_grows_in_all_states_is_refused():
    mesh = circle(32)
    with pytest.raises(ValueError, match=r"^the integral of u changes at the rate 6\.28 in all states"):
        solve_steady(Equation(mesh, [Diffusion(mesh, 1.0), lambda t, u: 1.0]), np.ones(32))


def test_a_rate_without_a_zero_is_refused():
    with pytest.raises(NonFinite, match="Newton's iteration"):
        solve_steady(Equation(None, [lambda t, u: 1.0 + u**2]), [0.3])


def test_another_object_is_refused():
    with pytest.raises(TypeError, match=r"^equation = function: expected an Equation$"):
        solve_steady(lambda t, u: -u, [1.0])
