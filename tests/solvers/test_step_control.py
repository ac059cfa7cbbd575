"""The error tolerance of `evolve`: figures of textbook problems in a default call, and what limiters leave of it."""

from itertools import pairwise

import numpy as np
import pytest

from solvers.mesh.interval import from_edges
from solvers.mesh.mesh import circle, sphere
from solvers.terms.advection import Advection
from solvers.terms.diffusion import Diffusion
from solvers.timestepping.equation import Equation
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import NonFinite, State
from solvers.timestepping.step_control import StepControl
from solvers.timestepping.steppers import STEPPERS


class Source:
    """A term from its rate f(t, u), without a limit of its own."""

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


@pytest.mark.parametrize("amplitude", [0.5, 1e-3])
@pytest.mark.parametrize("name", HEAT)
def test_heat_is_right_to_its_tolerance_by_default(name, amplitude):
    """cfl alone is off by 1.5e-3 to 2.6e-2. The meshes err by 2e-5 or less: (kh)²/12 of λ, h⁴ on a circle."""
    mesh, coefficient, mode, rate = HEAT[name]
    state = State(0.0, 1 + amplitude * mode)
    evolve(state, Equation([], Diffusion(mesh, coefficient)), "ssprk3", 1.0)
    error = np.abs(state.values - 1 - amplitude * np.exp(-rate) * mode).max() / amplitude
    assert error < 1e-4, f"{error:.1e} in {state.steps} steps"


@pytest.mark.parametrize("stepper", sorted(STEPPERS))
@pytest.mark.parametrize("rtol", [1e-3, 1e-4, 1e-5])
def test_errors_follow_the_tolerance(stepper, rtol):
    """u' = u² cos t of the loop's own tests; Euler too, in more steps."""
    state = State(0.0, np.array([0.5]))
    evolve(state, Equation([Source(lambda t, u: u * u * np.cos(t))]), stepper, 1.0, rtol=rtol)
    error = abs(state.values[0] - 1 / (2 - np.sin(1.0)))
    assert error < 3 * rtol, f"{error:.1e} in {state.steps} steps"  # an early error grows by (u(1)/u(0))² = 2.98
    assert error > 1e-3 * rtol, f"{error:.1e} in {state.steps} steps: they are too many"


def schnakenberg(mode, a=0.1, b=0.9, diffusions=(0.01, 0.4)):
    """Steady state, equation of (2, cells) on the circle, growth rate of cos(mode·x) and its shape (2,)."""
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
    return steady, Equation([Source(reaction)], Both()), growth[best].real, shapes[:, best].real


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
    """Its height is a steady state, which splitting shifts by O(dt²)."""
    heights = []
    for rtol in (1e-4, 1e-5):
        steady, equation, _, shape = schnakenberg(4)
        cosine = np.cos(4 * np.arctan2(CIRCLE.centers[:, 1], CIRCLE.centers[:, 0]))
        state = State(0.0, steady[:, None] + 0.1 * shape[:, None] * cosine)
        evolve(state, equation, "ssprk3", 20.0, rtol=rtol)
        heights.append(state.values[0].max())
    assert heights[0] == pytest.approx(heights[1], rel=2e-4), f"{heights}"
    assert heights[0] > 1.2  # of the steady 1


def test_a_cluster_that_the_mesh_does_not_resolve_does_not_stop_the_loop():
    """Limiters make its errors, which no shorter step makes smaller."""
    mesh = circle(64)
    x = mesh.centers
    state = State(0.0, (1 + 0.5 * x[:, 0]) / (2 * np.pi))
    east = np.array([1.0, 0.0])
    transport = Advection(mesh, lambda time, density: east - (x @ east)[:, None] * x)
    evolve(state, Equation([transport]), "ssprk3", 12.0)
    free = State(0.0, (1 + 0.5 * x[:, 0]) / (2 * np.pi))
    evolve(free, Equation([transport]), "ssprk3", 12.0, rtol=None)
    assert state.values @ mesh.volumes == pytest.approx(1.0, abs=1e-13)
    assert state.values.min() >= 0
    assert state.steps < 20 * free.steps, f"{state.steps} steps, {free.steps} without tolerance"


def test_without_a_tolerance_steps_are_those_of_the_cfl():
    """A stepper's own step, bit for bit."""
    equation = Equation([], Diffusion(CIRCLE, 1.0))
    first = 1 + 0.5 * CIRCLE.centers[:, 0]
    state, by_hand = State(0.0, first.copy()), first.copy()
    evolve(state, equation, "ssprk3", 0.1, rtol=None)
    assert state.steps == 1
    for _ in range(2):
        equation.stiff.step(0.05, by_hand)
    np.testing.assert_array_equal(state.values, by_hand)


def test_a_step_that_leaves_the_numbers_is_taken_again_shorter():
    """u' = −u³ from 10³ without a limit of its own: the first step of 1 overflows."""
    state = State(0.0, np.array([1e3]))
    with np.errstate(over="ignore", invalid="ignore"):
        evolve(state, Equation([Source(lambda t, u: -(u**3) * np.exp(u * u * 1e-6))]), "ssprk3", 1.0)
    assert np.isfinite(state.values).all()
    with pytest.raises(NonFinite, match="step"):
        evolve(State(0.0, np.ones(1)), Equation([Source(lambda t, u: u * np.nan)]), "ssprk3", 1.0)


def test_an_error_that_shorter_steps_do_not_lessen_is_accepted_and_then_less_of_it():
    control = StepControl(1.0, 1.0, 2, np.zeros(2))
    before, halves = np.zeros(2), np.zeros(2)
    control.keep_whole(np.full(2, 30.0), before, 0.0)
    assert not control.accepts(1.0, halves, before)
    assert control.longest(np.inf) < 1.0
    assert control.accepts(0.4, halves, before)
    assert 0.4 <= control.longest(np.inf) <= 3.0


def attempt(control, dt, error):
    """Whether a step of two numbers with this error over the tolerance is accepted; |u₂ − u₁|/3 for order 2."""
    control.keep_whole(np.full(2, 3.0 * error), np.zeros(2), 0.0)
    return control.accepts(dt, np.zeros(2), np.zeros(2))


@pytest.mark.parametrize("power", [1, 2, 4])
def test_a_smooth_error_is_never_accepted_above_the_tolerance(power):
    """∝ dtᵖ: steps are refused until it is met, by attempts of at most half each, and of a tenth at least."""
    control, dt, sizes = StepControl(1.0, 1.0, 2, np.zeros(2)), 1.0, [1.0]
    while not attempt(control, dt, 1000.0 * dt**power):
        dt = control.longest(np.inf)
        sizes.append(dt)
    assert 1000.0 * dt**power <= 1.0
    assert all(0.1 * before <= after <= 0.5 * before for before, after in pairwise(sizes))
    assert dt > 0.05 * 1000.0 ** (-1 / power)  # no further than a tenth of half of it


def test_what_is_allowed_beyond_the_tolerance_is_twice_the_error_and_a_tenth_less_each_step():
    """An error of 10 that does not fall allows 20, 18, 16.2, … until it is the tolerance again."""
    for steps in (0, 5, 20, 40):
        allowed = max(1.0, 20.0 * 0.9 ** (steps + 1))
        for factor, accepted in ((0.99, True), (1.01, False)):
            control = StepControl(1.0, 1.0, 2, np.zeros(2))
            assert not attempt(control, 1.0, 10.0)
            assert attempt(control, 0.5, 10.0)
            assert all(attempt(control, 0.5, 0.0) for _ in range(steps))
            assert attempt(control, 0.5, factor * allowed) == accepted, f"{factor} of {allowed} after {steps} steps"


@pytest.mark.parametrize(
    ("explicit", "net", "accepted", "longest"),
    [(5.0, 0.0, False, 0.1), (1.0, 0.0, False, 0.45), (1.0, 0.09, False, 0.45), (1.0, 0.11, True, 3.0),
     (0.4, 0.0, True, 1.125), (0.01, 0.0, True, 3.0)],
)  # fmt: skip
def test_terms_in_balance_change_less_than_half_of_the_values_in_a_step(explicit, net, accepted, longest):
    """Values 1 that change by ``net``, where explicit terms change them by ``explicit``: balanced below a tenth."""
    control, before = StepControl(1.0, 1.0, 2, np.zeros(2)), np.ones(2)
    after = before - net  # not above 1, so that half of the values is 0.5
    control.keep_whole(after, before, explicit)
    assert control.accepts(1.0, after, before) == accepted
    assert control.longest(np.inf) == pytest.approx(longest, rel=1e-12)


@pytest.mark.parametrize(("name", "value"), [("rtol", 0.0), ("rtol", -1e-4), ("rtol", np.nan), ("atol", 0.0)])
def test_a_tolerance_that_is_no_positive_number_is_refused(name, value):
    with pytest.raises(ValueError, match=rf"^{name} = .*: expected a finite number > 0$"):
        evolve(State(0.0, np.ones(1)), Equation([Source(lambda t, u: -u)]), "ssprk3", 1.0, **{name: value})


class Decay:
    """∂ₜu = −λu, exactly."""

    rate = 1000.0

    def longest_step(self, values):
        return np.inf

    def step(self, dt, values, limited=True):
        values *= np.exp(-self.rate * dt)
        return values.min()


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_a_source_in_balance_with_a_stiff_term_rests(spread):
    """u' = λ(f − u): whole steps and halves agree on nearly nothing where λ dt ≫ 1, as both have decayed."""
    rest = 1.0 + spread * np.linspace(0.0, 1.0, 16)
    state = State(0.0, rest.copy())
    evolve(state, Equation([Source(lambda time, values: Decay.rate * rest)], Decay()), "ssprk3", 0.01)
    np.testing.assert_allclose(state.values, rest, rtol=1e-4)
