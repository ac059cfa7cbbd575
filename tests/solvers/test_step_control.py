"""The error tolerance of `evolve`: textbook problems in a default call, and the effect of limiters."""

from itertools import pairwise

import numpy as np
import pytest

from solvers.mesh.interval import from_edges
from solvers.mesh.mesh import circle, sphere
from solvers.terms.advection import Advection
from solvers.terms.diffusion import Diffusion
from solvers.timestepping.control import Attempts, HalvingError, StepController
from solvers.timestepping.equation import Equation
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import NonFinite, State
from solvers.timestepping.steppers import STEPPERS


class Source:
    """A term from its rate f(t, u), without a step limit of its own."""

    def __init__(self, rate_of):
        self.rate_of = rate_of

    def prepare(self, time, values):
        self.current = self.rate_of(time, values)
        return np.inf

    def rate(self, dt, rate):
        rate += self.current


LINE = from_edges(np.linspace(0.0, 1.0, 201), "line")
CIRCLE, SPHERE = circle(128), sphere(64)
HEAT = {  # mesh, κ, mode, λ
    "circle": (CIRCLE, 1.0, CIRCLE.centers[:, 0], 1.0),
    "circle, cos 4x": (CIRCLE, 0.1, np.cos(4 * np.arctan2(*CIRCLE.centers.T[::-1])), 1.6),
    "interval": (LINE, 0.1, np.cos(np.pi * LINE.centers[:, 0]), 0.1 * np.pi**2),
    "sphere": (SPHERE, 1.0, SPHERE.centers[:, 2], 2.0),
}


@pytest.mark.sampled
@pytest.mark.parametrize("amplitude", [0.5, 1e-3])
@pytest.mark.parametrize("name", HEAT)
def test_heat_is_right_to_its_tolerance_by_default(name, amplitude):
    """The cfl alone gives errors of 1.5e-3 to 2.6e-2. Meshes contribute 2e-5 or less: (kh)²/12 of λ, h⁴ on a circle."""
    mesh, coefficient, mode, rate = HEAT[name]
    state = State(0.0, 1 + amplitude * mode)
    evolve(state, Equation(None, [Diffusion(mesh, coefficient)]), "ssprk3", 1.0)
    error = np.abs(state.values - 1 - amplitude * np.exp(-rate) * mode).max() / amplitude
    assert error < 1e-4, f"{error:.1e} in {state.steps} steps"


@pytest.mark.sampled
@pytest.mark.parametrize("stepper", sorted(STEPPERS))
@pytest.mark.parametrize("rtol", [1e-3, 1e-4, 1e-5])
def test_errors_follow_the_tolerance(stepper, rtol):
    """u' = u² cos t as in the loop's own tests; Euler meets the tolerance in more steps."""
    state = State(0.0, np.array([0.5]))
    evolve(state, Equation(None, [Source(lambda t, u: u * u * np.cos(t))]), stepper, 1.0, rtol=rtol)
    error = abs(state.values[0] - 1 / (2 - np.sin(1.0)))
    assert error < 3 * rtol, f"{error:.1e} in {state.steps} steps"  # an early error grows by (u(1)/u(0))² = 2.98
    assert error > 1e-3 * rtol, f"{error:.1e} in {state.steps} steps: they are too many"


def schnakenberg(mode, a=0.1, b=0.9, diffusions=(0.01, 0.4)):
    """Return the steady state, the equation (2, cells) on the circle, the growth rate of cos(mode·x) and its shape
    (2,)."""
    steady = np.array([a + b, b / (a + b) ** 2])

    fields = [Diffusion(CIRCLE, diffusion) for diffusion in diffusions]

    class Both:
        """Two fields, each with its diffusion."""

        def longest_step(self, values):
            return np.inf

        def step(self, dt, values, limited=True):
            return min(field.step(dt, row, limited) for field, row in zip(fields, values, strict=True))

    def reaction(time, values):
        u, v = values
        return np.stack([a - u + u * u * v, b - u * u * v])

    u, v = steady
    jacobian = np.array([[2 * u * v - 1, u * u], [-2 * u * v, -u * u]]) - np.diag(diffusions) * mode**2
    growth, shapes = np.linalg.eig(jacobian)
    best = np.argmax(growth.real)
    assert growth[best].imag == 0
    return steady, Equation(None, [Source(reaction), Both()]), growth[best].real, shapes[:, best].real


def test_a_turing_pattern_grows_at_its_rate_by_default():
    mode = 4
    steady, equation, growth, shape = schnakenberg(mode)
    cosine = np.cos(mode * np.arctan2(CIRCLE.centers[:, 1], CIRCLE.centers[:, 0]))
    state = State(0.0, steady[:, None] + 1e-4 * shape[:, None] * cosine)
    evolve(state, equation, "ssprk3", 5.0)
    amplitude = 2 * ((state.values[0] - steady[0]) * cosine).mean()
    observed = np.log(amplitude / (1e-4 * shape[0])) / 5.0
    assert observed == pytest.approx(growth, rel=0.01), f"{observed:.4f} for {growth:.4f} in {state.steps} steps"


def test_a_turing_pattern_is_the_same_with_a_smaller_tolerance():
    """The height, 2.42, is almost that of a steady state, which splitting shifts by O(dt²).

    A tolerance of 1e-2 gives 2.41, the cfl alone 0.73.
    """
    heights = []
    for rtol in (1e-4, 3e-5):
        steady, equation, _, shape = schnakenberg(4)
        cosine = np.cos(4 * np.arctan2(CIRCLE.centers[:, 1], CIRCLE.centers[:, 0]))
        state = State(0.0, steady[:, None] + 0.1 * shape[:, None] * cosine)
        evolve(state, equation, "ssprk3", 8.0, rtol=rtol)
        heights.append(state.values[0].max())
    assert heights[0] == pytest.approx(heights[1], rel=2e-4), f"{heights}"
    assert heights[0] > 1.2  # relative to the steady 1


def test_a_cluster_that_the_mesh_does_not_resolve_does_not_stop_the_loop():
    """Limiters cause the errors of an unresolved cluster, which no shorter step reduces."""
    mesh = circle(64)
    x = mesh.centers
    state = State(0.0, (1 + 0.5 * x[:, 0]) / (2 * np.pi))
    east = np.array([1.0, 0.0])
    transport = Advection(mesh, lambda time, density: east - (x @ east)[:, None] * x)
    evolve(state, Equation(None, [transport]), "ssprk3", 12.0)
    free = State(0.0, (1 + 0.5 * x[:, 0]) / (2 * np.pi))
    evolve(free, Equation(None, [transport]), "ssprk3", 12.0, rtol=None)
    assert state.values @ mesh.volumes == pytest.approx(1.0, abs=1e-13)
    assert state.values.min() >= 0
    assert state.steps < 20 * free.steps, f"{state.steps} steps, {free.steps} without tolerance"


def test_without_a_tolerance_steps_are_those_of_the_cfl():
    """The step is the stepper's own, bit for bit."""
    equation = Equation(None, [Diffusion(CIRCLE, 1.0)])
    first = 1 + 0.5 * CIRCLE.centers[:, 0]
    state, by_hand = State(0.0, first.copy()), first.copy()
    evolve(state, equation, "ssprk3", 0.1, rtol=None)
    assert state.steps == 1
    for _ in range(2):
        equation.stiff.step(0.05, by_hand)
    np.testing.assert_array_equal(state.values, by_hand)


def test_a_step_that_leaves_the_numbers_is_taken_again_shorter():
    """u' = −u³ from 10³ without a step limit: the first step of 1 overflows."""
    state = State(0.0, np.array([1e3]))
    with np.errstate(over="ignore", invalid="ignore"):
        evolve(state, Equation(None, [Source(lambda t, u: -(u**3) * np.exp(u * u * 1e-6))]), "ssprk3", 1.0)
    assert np.isfinite(state.values).all()
    with pytest.raises(NonFinite, match="step"):
        evolve(State(0.0, np.ones(1)), Equation(None, [Source(lambda t, u: u * np.nan)]), "ssprk3", 1.0)


def attempts_of(order=2, **state):
    return Attempts(StepController(order), 1.0, **state)


def test_an_error_that_shorter_steps_do_not_lessen_is_accepted():
    """The longest step with about the same error is taken, and tried next."""
    attempts = attempts_of()
    assert not attempts.accept(1.0, 10.0, np.inf)
    assert attempts.longest < 1.0
    assert not attempts.accept(0.4, 10.0, np.inf)
    assert attempts.longest == 1.0
    assert attempts.accept(1.0, 10.0, np.inf)
    assert attempts.next.step == 1.0


@pytest.mark.parametrize("power", [1, 2, 4])
def test_a_smooth_error_is_never_accepted_above_the_tolerance(power):
    """Errors ∝ dtᵖ: steps are refused until the tolerance is met, each attempt between a tenth and half of the last."""
    attempts, dt, sizes = attempts_of(), 1.0, [1.0]
    while not attempts.accept(dt, 1000.0 * dt**power, np.inf):
        dt = attempts.longest
        sizes.append(dt)
    assert 1000.0 * dt**power <= 1.0
    assert all(0.1 * before <= after <= 0.5 * before for before, after in pairwise(sizes))
    assert dt > 0.05 * 1000.0 ** (-1 / power)  # no shorter than a tenth of half of the longest accepted step


def test_what_is_allowed_beyond_the_tolerance_is_twice_the_error():
    """An error of 10 that does not fall allows 20, also in the steps after it."""
    for factor, accepted in ((0.99, True), (1.01, False)):
        attempts = attempts_of()
        assert not any(attempts.accept(dt, 10.0, np.inf) for dt in (1.0, 0.5))
        following = attempts_of(tolerated=attempts.tolerated)
        assert following.accept(1.0, factor * 20.0, np.inf) == accepted


@pytest.mark.parametrize(
    ("explicit", "net", "error"),
    [(5.0, 0.0, 100.0), (1.0, 0.0, 4.0), (1.0, 0.09, 4.0), (1.0, 0.11, 0.0), (0.4, 0.0, 0.64), (0.01, 0.0, 4e-4)],
)
def test_terms_in_balance_err_where_they_change_more_than_half_of_the_values_in_a_step(explicit, net, error):
    """Values 1 change by ``net``, and by ``explicit`` through explicit terms: balanced below a tenth."""
    halving, before = HalvingError(1.0, 1.0, 2, np.zeros(2)), np.ones(2)
    after = before - net  # not above 1, so that half of the values is 0.5
    halving.keep_whole(after, before, explicit)
    assert halving.of_halves(after, before) == pytest.approx(error, rel=1e-12)


@pytest.mark.parametrize(("name", "value"), [("rtol", 0.0), ("rtol", -1e-4), ("rtol", np.nan), ("atol", 0.0)])
def test_a_tolerance_that_is_no_positive_number_is_refused(name, value):
    with pytest.raises(ValueError, match=rf"^{name} = .*: expected a finite number > 0$"):
        evolve(State(0.0, np.ones(1)), Equation(None, [Source(lambda t, u: -u)]), "ssprk3", 1.0, **{name: value})


class Decay:
    """The rate ∂ₜu = −λu, solved exactly."""

    rate = 1000.0

    def longest_step(self, values):
        return np.inf

    def step(self, dt, values, limited=True):
        values *= np.exp(-self.rate * dt)
        return values.min()


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_a_source_in_balance_with_a_stiff_term_rests(spread):
    """u' = λ(f − u): whole steps and half steps agree on almost nothing where λ dt ≫ 1, since both have decayed."""
    rest = 1.0 + spread * np.linspace(0.0, 1.0, 16)
    state = State(0.0, rest.copy())
    evolve(state, Equation(None, [Source(lambda time, values: Decay.rate * rest), Decay()]), "ssprk3", 0.01)
    np.testing.assert_allclose(state.values, rest, rtol=1e-4)
