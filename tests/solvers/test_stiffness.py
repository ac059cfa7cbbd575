"""Change of the default method to an implicit one where an equation turns out to be stiff."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from solvers import Advection, Diffusion, Equation, NonlinearDiffusion, Threshold, circle, interval, solve

CIRCLE = circle(32)
TURN = Advection(CIRCLE, lambda t, u: CIRCLE.centers[:, ::-1] * [-1, 1])


def robertson(t, u):
    """Return the rates of Robertson's reactions (1966), with constants 0.04, 10⁴ and 3·10⁷."""
    a, b, c = u
    return np.stack([-0.04 * a + 1e4 * b * c, 0.04 * a - 1e4 * b * c - 3e7 * b**2, 3e7 * b**2])


TIMES, START = [4.0, 10.0, 20.0, 40.0], [1.0, 0.0, 0.0]
AT_4, AT_10, AT_20, AT_40 = solve_ivp(robertson, (0, 40), START, "Radau", TIMES, rtol=1e-10, atol=1e-14).y.T


@pytest.fixture(scope="module")
def reactions():
    return solve(Equation(None, [robertson]), START, (0, 40))


def test_robertson_s_reactions_become_implicit_by_themselves(reactions):
    assert reactions.steps <= 200
    assert ", by dopri5, from t = 0.04 on by implicit (stiff), in" in reactions.message
    assert np.abs(reactions.u[-1] - AT_40).max() < 1e-4


def test_between_its_steps_a_stiff_solution_is_implicit_too(reactions):
    assert np.abs(reactions(20.0) - AT_20).max() < 1e-4


def test_given_times_and_events_of_a_stiff_equation():
    event = Threshold(float(AT_40[2]), of=lambda u: u[2])
    found = solve(Equation(None, [robertson]), START, (0, 100), times=[0.0, 20.0], events=event)
    assert np.abs(found.u[1] - AT_20).max() < 1e-4
    assert found.event == 0
    assert found.t[-1] == pytest.approx(40.0, rel=2e-3)
    assert np.abs(found(10.0) - AT_10).max() < 1e-4


def test_stiff_reactions_beside_diffusion():
    mesh = interval(0.0, 1.0, 10)
    start = np.zeros((3, 10))
    start[0] = 1.0
    found = solve(Equation(mesh, [robertson, Diffusion(mesh, 1e-3)]), start, (0, 4))
    assert found.steps <= 200
    assert "by ark4, from t = " in found.message
    assert np.abs(found.u[-1] - AT_4[:, None]).max() < 1e-4


def test_a_porous_medium_with_aggregation_becomes_implicit():
    """∂ₜu = Δu² − ∂ₓ(u V), with V = G ∗ u: the parabolic limit is 30 times below that of transport."""
    mesh = interval(-3.0, 3.0, 60)
    x = mesh.centers[:, 0]
    apart = x - x[:, None]
    pull = 0.6 * apart * np.exp(-(apart**2) / 2) * mesh.volumes
    terms = [NonlinearDiffusion(mesh, lambda u: u**2), Advection(mesh, lambda t, u: (pull @ u)[:, None])]
    start = np.where(np.abs(x) < 2, 0.5 + 0.05 * np.cos(3 * x), 0.0)
    found, implicit = (solve(Equation(mesh, terms), start, (0, 3), method=each) for each in ("auto", "implicit"))
    assert "by ssp3, from t = " in found.message
    assert found.steps <= 400
    assert np.ptp(found.u @ mesh.volumes) < 1e-13
    assert np.abs(found.u[-1] - implicit.u[-1]).max() < 1e-3


@pytest.mark.parametrize(
    ("equation", "start"),
    [
        (Equation(None, [lambda t, u: np.array([u[0] - u[0] * u[1], u[0] * u[1] - u[1]])]), [2.0, 1.0]),
        (
            Equation(CIRCLE, [Advection(CIRCLE, lambda t, u: CIRCLE.centers[:, ::-1] * [-1, 1])]),
            2 + CIRCLE.centers[:, 0],
        ),
    ],
)
def test_an_equation_that_is_not_stiff_keeps_its_method(equation, start):
    found = solve(equation, start, (0, 20 * math.pi))
    assert found.steps > 100
    assert "implicit" not in found.message


def test_a_given_method_is_kept():
    assert "implicit" not in solve(Equation(None, [lambda t, u: -1e3 * u]), [1.0], (0, 1), method="dopri5").message
