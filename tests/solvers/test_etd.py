"""Exponential time differencing: exact linear steps, order 4 for stiff terms, conservation, refused input."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm
from support import exact

from solvers import Diffusion, Equation, Flux, Robin, Value, box, circle, from_text, interval, solve, sphere
from solvers.timestepping.methods import METHODS
from solvers.timestepping.runge_kutta.etd import doubled, phi
from solvers.timestepping.state import State


def test_functions_of_eigenvalues_are_those_of_the_matrix_exponential():
    """The first row of the exponential of [[z, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], 0] has φ₁, φ₂ and φ₃."""
    z, shift = np.array([0, 1e-9, -0.3, 0.99, -1.01, -1e3, 0.9j, 20j, -3 + 4j]), np.diag(np.ones(3), 1)
    for at, found in ((z, phi(z)), (2 * z, doubled(z, *phi(z)))):
        rows = [expm(shift + np.diag([each, 0, 0, 0]))[0, 1:] for each in at]
        np.testing.assert_allclose(np.stack(found, axis=1), rows, rtol=1e-12)


@pytest.mark.parametrize("is_periodic", [True, False])
def test_steps_of_linear_equations_are_exact(is_periodic):
    """Two fields, of which one does not diffuse, beside the exponential of the matrix: one step without an error."""
    mesh = interval(0.0, 1.0, 16, periodic=is_periodic)
    term, u = Diffusion(mesh, [1.0, 0.0]), np.random.default_rng(0).standard_normal((2, 16))
    found = solve(Equation(mesh, [term]), u, (0.0, 0.01), method="etd4", first_step=0.01)
    assert found.steps == 1
    expected = np.stack([expm(0.01 * matrix.toarray()) @ row for matrix, row in zip(term.jacobian(2), u, strict=True)])
    np.testing.assert_allclose(found.u[-1], expected, atol=1e-13)


@pytest.mark.parametrize(
    ("length", "cells", "counts", "power"), [(1.0, 128, (4, 8, 16, 512), 0), (6.0, 8, (8, 16, 32, 512), 1)]
)
def test_the_order_is_four_whether_or_not_a_term_is_stiff(length, cells, counts, power):
    """The example of Hochbruck and Ostermann (2005), ∂ₜu = Δu + x ∫u + f(t, x), with steps of 10³ to 10⁴ fast times.

    With the integral of xu, steps of 1/8 to 1 fast times show the classical conditions.
    The weights of the error estimate, which are those of u less the estimate, have the order 3.
    """
    mesh = interval(0.0, length, cells)
    x = mesh.centers[:, 0] / length
    equation = Equation(mesh, [Diffusion(mesh, 1.0), lambda t, u: (u @ x**power) / cells * x + np.exp(t) * x**2])
    integrator = METHODS["etd4"](equation, 1e-4, 1e-8, None)
    for part, order in ((0.0, 4), (1.0, 3)):
        ends = []
        for count in counts:
            state = State(0.0, x**2 * (1 - x) ** 2)
            integrator.begin(state)
            for k in range(count):
                values, error = integrator.attempt(replace(state, time=k / count), 1 / count)
                state.values = values - part * error
            ends.append(state.values)
        errors = [np.abs(end - ends[-1]).max() for end in ends[:-1]]
        orders = exact.orders(errors, counts[:-1])
        assert orders[-1] == pytest.approx(order, abs=0.2), f"orders {orders}, errors {errors}"


class Decay:
    """Stiff term −1000 u without a matrix."""

    def longest_step(self, values):
        return np.inf

    def step(self, dt, values, limited=True):
        values *= np.exp(-1000 * dt)
        return np.inf

    def prepare(self, time, values):
        self.values = values
        return np.inf

    def rate(self, dt, rate):
        rate -= 1000 * self.values


WIDE = 2 * np.pi
CIRCLE, LINE, BOX = circle(16), interval(0.0, WIDE, 24, periodic=True), box((6, 5), (1.0, 1.0))
CHANNEL = box((6, 5), (WIDE, 1.0), periodic=(True, False))
INFLOW = Diffusion(BOX, 1.0, boundaries={"left": Flux(lambda t, x: np.cos(5 * t))})
HELD = Diffusion(BOX, 1.0, boundaries={"left": Value(lambda t, x: np.sin(5 * t)), "top": Robin(1.0, 1.0, 1.0)})
EQUATIONS = {
    "dispersion": from_text("dt(u) = dx(laplace(u)) - laplace(laplace(u))/10 - dx(u**2) + 0.1*sin(t)", LINE),
    "one of two diffuses": Equation(CIRCLE, [Diffusion(CIRCLE, [0.3, 0.0]), lambda t, u: u[::-1] - u**3]),
    "two fields": from_text("dt(u) = laplace(u) - u**3 - v; dt(v) = u - v**3", BOX),
    "data of walls": Equation(BOX, [INFLOW, lambda t, u: -(u**3)]),
    "channel": from_text("dt(u) = laplace(u) + dx(u) + sin(u)", CHANNEL),
    "no waves": Equation(BOX, [HELD, lambda t, u: np.sin(u)]),
    "complex": from_text("dt(u) = (0.1 + 0.5j)*laplace(u) - 1j*abs(u)**2*u", CHANNEL),
    "complex state": from_text("dt(u) = laplace(u) - 1j*abs(u)**2*u", CIRCLE),
}


@pytest.mark.parametrize("name", EQUATIONS)
def test_solutions_are_those_of_an_explicit_method(name):
    equation, mesh = EQUATIONS[name], EQUATIONS[name].mesh
    u0 = np.random.default_rng(0).standard_normal((2, mesh.cells))
    u0 = u0[0] + 1j * u0[1] if "complex" in name else u0 if "two" in name else u0[0]
    one, other = (
        solve(equation, u0, (0.0, 0.3), times=[0.3], method=method, rtol=1e-8) for method in ("etd4", "dopri5")
    )
    np.testing.assert_allclose(one.u[-1], other.u[-1], atol=1e-6)  # a hundred steps of rtol


def test_errors_of_a_forced_field_are_estimated():
    """u = (1 − cos 9t)/9: weights with the same nodes in time, such as Krogstad's, find no error here."""
    equation = Equation(CIRCLE, [Diffusion(CIRCLE, 1.0), lambda t, u: 0 * u + np.sin(9 * t)])
    u = solve(equation, np.zeros(16), (0.0, 3.0), times=[3.0], method="etd4", rtol=1e-6).u[-1]
    np.testing.assert_allclose(u, (1 - np.cos(27.0)) / 9, atol=1e-6)


def test_integrals_and_steady_states_are_kept_to_rounding():
    equation = from_text("dt(u) = -laplace(u) - laplace(laplace(u)) - dx(u**2)/2", LINE)
    u = solve(equation, 1 + np.sin(LINE.centers[:, 0]), (0.0, 10.0), method="etd4").u
    assert np.abs(u @ LINE.volumes - WIDE).max() < 1e-10  # t times the rounding of the entries 10³ of the matrix
    ends = {"left": Value(1.0), "right": Value(1.0), "bottom": Value(1.0), "top": Value(1.0)}
    steady = Equation(BOX, [Diffusion(BOX, 1.0, boundaries=ends), lambda t, u: u - u**3])
    assert np.abs(solve(steady, np.ones(30), (0.0, 1e3), method="etd4").u - 1).max() < 1e-12


ENDS, SIDE = interval(0.0, 1.0, 16), {"left": Robin(1.0, 1.0, 1.0)}


@pytest.mark.parametrize(
    ("equation", "part"),
    [
        (Equation(LINE, [lambda t, u: -u]), "without a stiff term: expected a term such as"),
        (Equation(LINE, [Diffusion(LINE, 1.0), Decay()]), r"with Decay: expected a stiff term with"),
        (Equation(sphere(8), [Diffusion(sphere(8), 1.0)]), r"on a mesh of kind 'sphere': expected equal cells"),
        (Equation(LINE, [Diffusion(LINE, 1 + LINE.centers[:, 0])]), r"with Diffusion, whose coefficients vary"),
        (from_text("dt(u) = laplace(u) - x*u", ENDS), r"with the linear part of the text, whose coefficients vary"),
        (Equation(ENDS, [Diffusion(ENDS, 1.0, boundaries=SIDE)]), r"with Diffusion, whose conditions on the boundary"),
        (from_text("dt(u) = -laplace(laplace(u))", ENDS, boundaries={"left": "u = 1"}), r"text, whose conditions on"),
        (Equation(BOX, [Diffusion(BOX, [1.0, 2.0], boundaries=SIDE)]), r"fields of different matrices: expected walls"),
    ],
)
def test_a_refusal_names_the_part_that_does_not_fit_and_another_method(equation, part):
    fields = 2 if "fields" in part else 1
    with pytest.raises(ValueError, match=rf'^method = "etd4" .*{part}.* take "a(uto|rk4)"$') as caught:
        solve(equation, np.ones((fields, equation.mesh.cells)), (0.0, 1.0), method="etd4")
    assert "\n" not in str(caught.value)
