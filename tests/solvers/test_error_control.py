"""Steps of `solve`: their lengths by their errors, the error estimates, and the solves within a step."""

import numpy as np
import pytest
from scipy.optimize import brentq

from solvers.mesh.interval import interval
from solvers.terms.diffusion import Diffusion
from solvers.terms.source import Source
from solvers.timestepping.equation import Equation
from solvers.timestepping.runge_kutta.error_controlled import ErrorControlled
from solvers.timestepping.runge_kutta.exponential import ExponentialRosenbrock
from solvers.timestepping.runge_kutta.semi_discrete import SemiDiscrete
from solvers.timestepping.runge_kutta.super_time_stepping import SuperTimeStepping, spectral_radius
from solvers.timestepping.state import NonFinite, State


class Prescribed(ErrorControlled):
    """Steps that change nothing, with prescribed errors over the tolerance."""

    order = 3

    def __init__(self, *errors):
        super().__init__(Equation(None, [Source(lambda t, u: 4.0, fastest=1e-9)]), 1e-12, 1.0, 1.0)
        self.errors, self.lengths = list(errors), []

    def attempt(self, state, dt):
        self.lengths.append(dt)
        return state.values, np.full(1, self.errors.pop(0))


def lengths_of(*errors, dt=1.0, target=1e9):
    """Return the lengths of the attempts, one for each error; steps to a far target equal the proposed ones."""
    method, state = Prescribed(*errors), State(0.0, np.full(1, 2.0), dt=dt)
    method.begin(state)
    while method.errors:
        method.step(state, target)
    return method.lengths


@pytest.mark.parametrize(
    ("error", "factor"), [(8.0, 0.45), (1e12, 0.1), (1.0001, 0.9), (np.inf, 0.1), (np.nan, 0.1), (1.2, 0.847)]
)
def test_a_refused_step_is_tried_again_and_does_not_grow(error, factor):
    """The factor is 0.9 error^(−1/3), at least a tenth; the next step is as long, whatever the error of the second
    attempt."""
    assert lengths_of(error, 0.0, 0.0) == pytest.approx([1.0, factor, factor], rel=1e-3)


@pytest.mark.parametrize(("error", "factor"), [(0.5, 1.134), (1e-12, 10.0), (0.0, 10.0), (1.0, 0.9), (0.001, 9.0)])
def test_the_step_after_an_accepted_one_is_what_its_error_asks_for_and_at_most_ten_times_as_long(error, factor):
    assert lengths_of(error, 0.0) == pytest.approx([1.0, factor], rel=1e-3)


def test_a_step_that_is_shortened_to_meet_its_target_shortens_no_other():
    method, state = Prescribed(0.9, 0.9, 0.9), State(0.0, np.full(1, 2.0), dt=1.0)
    method.begin(state)
    for target in (0.3, 0.5, 100.0):
        method.step(state, target)
    assert method.lengths == pytest.approx([0.3, 0.2, 1.0], rel=0.01)  # equal steps: 99.5 in 100


def test_the_first_step_is_a_thousandth_of_the_state_over_its_rate():
    """|u| + atol = 3, and |∂ₜu| = 4."""
    assert lengths_of(0.0, dt=np.nan) == pytest.approx([7.5e-4], rel=1e-6)


def linear(*eigenvalues):
    return Equation(None, [Source(lambda t, u: np.array(eigenvalues) * u, fastest=1e-9)])


@pytest.mark.parametrize("dt", [0.01, 0.1, 1.0])
def test_super_time_stepping_takes_as_many_stages_as_are_stable_and_no_more(dt):
    """The stages satisfy (s² + s − 2)/2 ≥ dt |λ| for a bound of |λ| that is a tenth larger, and are at least three."""
    method, state = SuperTimeStepping(linear(-1.0, -100.0, -500.0), 1e-4, 1e-8, 1.0), State(0.0, np.ones(3))
    method.begin(state)
    calls, full = [], method.problem.full
    method.problem.full = lambda *arguments: calls.append(0) or full(*arguments)
    values, error = method.attempt(state, dt)
    stages = len(calls) - 1
    fewest = int(np.ceil((np.sqrt(9 + 8 * dt * 500.0) - 1) / 2))
    assert max(fewest, 3) <= stages <= max(1.1 * fewest + 1, 3)
    assert np.abs(values).max() <= 1
    np.testing.assert_allclose(
        error, 0.8 * (1 - values) + 0.4 * dt * np.array([-1.0, -100.0, -500.0]) * (1 + values), rtol=1e-9, atol=1e-12
    )


def test_the_estimate_of_super_time_stepping_is_of_third_order_and_of_the_size_of_the_error():
    """0.8 (u₀ − u₁) + 0.4 dt (f₀ + f₁) = λ³dt³/15 + …; the error of RKL2 with three stages is about λ³dt³ (1/6 −
    0.1)."""
    found, errors = [], []
    for dt in (0.1, 0.05, 0.025):
        method, state = SuperTimeStepping(linear(-1.0), 1e-4, 1e-8, 1.0), State(0.0, np.ones(1))
        method.begin(state)
        values, error = method.attempt(state, dt)
        found.append(abs(float(error[0])))
        errors.append(abs(float(values[0]) - np.exp(-dt)))
    assert np.log2(found[0] / found[1]) == pytest.approx(3.0, abs=0.3)
    assert np.log2(found[1] / found[2]) == pytest.approx(3.0, abs=0.2)
    assert 0.2 < found[-1] / errors[-1] < 5, f"estimates {found}, errors {errors}"


def test_the_spectral_radius_is_a_bound_and_a_tenth_above():
    state = State(0.0, np.ones(3))
    assert spectral_radius(SemiDiscrete(linear(-1.0, -20.0, -500.0)), state) == pytest.approx(550.0, rel=1e-3)
    assert spectral_radius(SemiDiscrete(linear(0.0, 0.0, 0.0)), state) == 0.0


def test_the_estimate_of_exponential_steps_is_of_third_order_and_of_the_size_of_the_error():
    """u̇ = −u²: the remainder beyond J is −(u₁ − u₀)², and the error ⅓ dt times the remainder to leading order."""
    for dt in (0.1, 0.05, 0.02):
        method = ExponentialRosenbrock(Equation(None, [Source(lambda t, u: -(u**2))]), 1e-4, 1e-8, 1.0)
        values, error = method.attempt(State(0.0, np.ones(1)), dt)
        exact = 1 / (1 + dt)
        assert float(error[0]) / float(exact - values[0]) == pytest.approx(1.0, abs=2 * dt)


@pytest.mark.parametrize("start", [0.5, 1.0, 2.0, 5.0, 10.0])
def test_newton_s_iteration_ends_a_hundredth_of_the_allowed_error_from_the_solution(start):
    """Y + Y³ = u₀ is solved from the guess of an explicit step."""
    problem = SemiDiscrete(Equation(None, [Source(lambda t, u: -(u**3))]))
    exact = brentq(lambda y: y + y**3 - start, 0.0, start, xtol=1e-15)
    for allowed in (1e-2, 1e-4, 1e-6):
        found = problem.solve_full(0.0, np.full(1, start), 1.0, allowed, np.zeros(1))
        assert abs(found[0] - exact) < 1e-2 * allowed


def test_newton_s_iteration_of_a_linear_equation_takes_one_solve_and_one_to_see_it():
    """Y + 100 L Y = u₀ without a preconditioner: each iteration solves its linear equation to a thousandth."""
    cells = 50
    matrix = 2 * np.eye(cells) - np.eye(cells, k=1) - np.eye(cells, k=-1)
    problem, calls = SemiDiscrete(Equation(None, [Source(lambda t, u: -(matrix @ u))])), []
    full = problem.full
    problem.full = lambda *arguments: calls.append(0) or full(*arguments)
    start = np.random.default_rng(0).standard_normal(cells)
    found = problem.solve_full(0.0, start, 100.0, 1e-3, np.zeros(cells))
    np.testing.assert_allclose(found, np.linalg.solve(np.eye(cells) + 100 * matrix, start), atol=1e-5)
    assert len(calls) < 4 * cells


def test_a_reaction_in_each_cell_is_part_of_the_factorization():
    """Diffusion and −1000 (u + u³/10) − t: Newton's iteration needs no Krylov space, each product of which calls f."""
    mesh, calls = interval(0.0, 1.0, 40), []
    term, start = Diffusion(mesh, 1.0), np.cos(3 * mesh.centers[:, 0])
    matrix, step, values = term.jacobian(1)[0].toarray(), 0.1, start
    problem = SemiDiscrete(Equation(mesh, [term, lambda t, u: calls.append(0) or -1000 * (u + u**3 / 10) - t]))
    found = problem.solve_full(2.0, start, step, 1e-6, 0 * start)
    for _ in range(50):
        residual = values - step * (matrix @ values - 1000 * (values + values**3 / 10) - 2.0) - start
        values = values - np.linalg.solve(np.eye(40) - step * (matrix - np.diag(1000 + 300 * values**2)), residual)
    np.testing.assert_allclose(found, values, atol=1e-8)
    assert len(calls) < 25


def test_a_solution_that_is_not_finite_is_refused():
    problem = SemiDiscrete(Equation(None, [Source(lambda t, u: u**2)]))
    with pytest.raises(NonFinite, match="Newton's iteration does not converge"):
        problem.solve_full(0.0, np.ones(1), 1.0, 1e-6, np.zeros(1))  # Y = 1 + Y² has no real solution


class WithoutMatrix:
    """Diffusion given by its rate alone."""

    coefficient = 1.0

    def __init__(self, mesh):
        self.mesh, self._diffusion = mesh, Diffusion(mesh, 1.0)

    def longest_step(self, values):
        return self._diffusion.longest_step(values)

    def step(self, dt, values, limited=True):
        return self._diffusion.step(dt, values, limited)

    def laplacian(self, values, rate):
        self._diffusion.laplacian(values, rate)


def test_a_factorization_serves_steps_within_half_as_much_again():
    problem, start = SemiDiscrete(Equation(None, [WithoutMatrix(interval(0.0, 1.0, 32))])), np.ones(32)
    for step, factorized in ((1e-3, 1e-3), (1.4e-3, 1e-3), (0.7e-3, 1e-3), (1.6e-3, 1.6e-3), (1e-3, 1e-3)):
        problem.preconditioner(0.0, start, step)
        assert problem._factorized[0] == factorized
