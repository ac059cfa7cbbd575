"""Short pulses in time, which no method steps over; the longest step; costs of the look-ahead."""

import numpy as np
import pytest
from support.methods import GENERAL

from solvers import (
    Advection,
    ConservationLaw,
    Diffusion,
    DriftDiffusion,
    Equation,
    NonlinearDiffusion,
    Outflow,
    Source,
    Value,
    circle,
    interval,
    solve,
)
from solvers.mesh.checks import ignores_time
from solvers.timestepping.look_ahead import LookAhead
from solvers.timestepping.state import State

AREA, WIDTH, PEAK, END = 6.537, 0.1, 30.0, 40.0
CIRCLE = circle(16)
TURN = np.stack([-CIRCLE.centers[:, 1], CIRCLE.centers[:, 0]], axis=1)
# Tolerances of low-order methods, for few steps.
LOW_ORDER = {"euler": 3e-2, "ssprk2": 1e-3, "ars2": 1e-2, "exponential": 1e-2}


def gauss(t, u):
    return np.full_like(u, AREA / (WIDTH * np.sqrt(np.pi)) * np.exp(-(((t - PEAK) / WIDTH) ** 2)))


def box(t, u):
    return np.full_like(u, AREA / WIDTH if abs(t - PEAK) < WIDTH / 2 else 0.0)


def growth(method, equation, u0, exact=AREA, end=END):
    """Return the largest relative error of the growth by a pulse, and the solution."""
    found = solve(equation, u0, (0.0, end), method=method, rtol=LOW_ORDER.get(method, 1e-4))
    return np.abs(found.u[-1] - exact).max() / exact, found


@pytest.mark.sampled
@pytest.mark.parametrize("pulse", [gauss, box])
@pytest.mark.parametrize("method", GENERAL)
def test_no_method_steps_over_a_pulse(method, pulse):
    """The solution starts at rest, where no error bounds a step, for 400 times the width of the pulse."""
    error, found = growth(method, Equation(None, [pulse]), [0.0])
    # A jump is detected within one step of its width.
    allowed = 3 * LOW_ORDER.get(method, 1e-3) if pulse is gauss else 0.25
    assert error < allowed, f"{error:.1e}: {found.message}"


@pytest.mark.parametrize("method", ["ssprk3", "dop853", "ark4", "implicit", "exponential"])
def test_no_method_steps_over_a_pulse_where_its_steps_have_grown(method):
    """The equation is u' = −u/10 + pulse from 1."""
    exact = np.exp(-END / 10) + AREA * np.exp((PEAK - END) / 10 + WIDTH**2 / 400)
    error, found = growth(method, Equation(None, [gauss, lambda t, u: -u / 10]), [1.0], exact)
    assert error < 3 * LOW_ORDER.get(method, 1e-3), f"{error:.1e}: {found.message}"


def wind_later(t, u):
    """Return a velocity that is zero except in a pulse."""
    return gauss(t, np.zeros((16, 1))) * TURN


BARS = {
    "fluxes": ("ssp3", [gauss, ConservationLaw(CIRCLE, lambda u: u * u / 2, abs)], 0 * TURN[:, 0], AREA),
    "steady diffusion": ("ark4", [gauss, Diffusion(CIRCLE, 1.0)], 0 * TURN[:, 0], AREA),
}


@pytest.mark.parametrize("name", BARS)
def test_a_pulse_beside_terms_with_a_mesh(name):
    method, terms, u0, exact = BARS[name]
    error, found = growth("auto", Equation(CIRCLE, terms), u0, exact)
    assert error < 1e-3, f"{error:.1e}: {found.message}"
    assert method in found.message


def test_a_pulse_of_a_velocity():
    """The field turns by 6.537 radians within 0.4, as with a steady velocity."""
    later, steady = (
        Equation(CIRCLE, [Advection(CIRCLE, velocity, limiter="none")]) for velocity in (wind_later, lambda t, u: TURN)
    )
    start = 2 + CIRCLE.centers[:, 0]
    found, exact = (
        solve(equation, start, (0.0, end), method="dop853") for equation, end in ((later, END), (steady, AREA))
    )
    np.testing.assert_allclose(found.u[-1], exact.u[-1], atol=1e-3)


def test_a_pulse_at_a_boundary():
    """Heat enters while an end is at 1, for 0.1 of 40, √(4·0.1/π), and later leaves, by e^{−π² t/4}."""
    mesh, end = interval(0.0, 1.0, 32), PEAK + WIDTH / 2
    ends = {"left": Value(lambda t, x: np.full(len(x), float(abs(t - PEAK) < WIDTH / 2)))}
    equation = Equation(mesh, [Diffusion(mesh, 1.0, boundaries=ends)])
    found = solve(equation, np.zeros(32), (0.0, END), times=[end, END])
    assert found.u[0] @ mesh.volumes == pytest.approx(np.sqrt(4 * WIDTH / np.pi), rel=2e-3)


@pytest.mark.parametrize("data", [lambda t, x: 1.5 + 0.5 * np.sin(6 * t), lambda t, x: 1.0 + (t > 0.5)])
def test_smooth_or_constant_data_of_a_boundary_need_no_additional_rates(data):
    """Inflow of Burgers' equation brings the integral of data²/2 until a wave arrives at the right."""
    mesh, evaluations = interval(0.0, 4.0, 40), []

    def flux(u):
        evaluations.append(0)
        return u * u / 2

    ends = {"left": Value(data), "right": Outflow()}
    law = ConservationLaw(mesh, flux, lambda u: u, boundaries=ends)
    found = solve(Equation(mesh, [law]), np.ones(40), (0.0, 1.0), times=[1.0])
    times = np.linspace(0.0, 1.0, 20_001)
    inflow = (np.array([float(data(t, None)) for t in times]) ** 2).mean() / 2 - 0.5
    assert found.u[-1] @ mesh.volumes - 4.0 == pytest.approx(inflow, rel=0.02)  # numerical diffusion at the end
    assert len(evaluations) < 14 * found.steps  # two for each of the four stages of a step; 49 and 62 with all rates


@pytest.mark.parametrize("method", GENERAL)
def test_no_step_is_longer_than_max_step(method):
    found = solve(Equation(None, [lambda t, u: 0 * u]), [1.0], (0.0, 1.0), method=method, max_step=0.03)
    steps = np.diff(found.t)
    assert steps.max() <= 0.03 * (1 + 1e-12)
    assert len(steps) <= 1 / 0.03 + 20  # 20 steps of growth from a thousandth, by factors 3 or 4
    assert solve(Equation(None, [lambda t, u: 0 * u]), [1.0], (0.0, 1.0), method=method).steps <= 30


def test_max_step_shows_a_pulse_that_looking_ahead_does_not():
    """The pulse is a fifth as long as a thousandth of the span, between two evaluation times of the look-ahead."""
    equation = Equation(None, [lambda t, u: np.full_like(u, 1e4 * (abs(t - 0.10055) < 1e-4))])
    missed, seen = (
        solve(equation, [0.0], (0.0, 1.0), max_step=longest, callbacks=lambda state: state.time > 0.102).u[-1, 0]
        for longest in (None, 2e-4)
    )
    assert missed == 0.0
    assert seen == pytest.approx(2.0, rel=1e-3)


@pytest.mark.parametrize("method", ["euler", "ssprk2", "ssprk3", "ars2"])
def test_max_step_bounds_the_error_at_jumps(method):
    """A rectangular pulse of integral 1: each step with a jump errs by less than its length, times 1.71 for ars2.

    A step from t = a of length h has weights of sum 1, all positive, or −0.71 at a and 1.71 at a + 0.29 h for ars2.
    """
    longest = WIDTH / 60
    for peak in (0.3003, 0.3053):  # without max_step, each method exceeds the bound at one of them
        pulse = Equation(None, [lambda t, u, peak=peak: np.full_like(u, (abs(t - peak) < WIDTH / 2) / WIDTH)])
        options = {"method": method, "max_step": longest, "callbacks": lambda state: state.time > 0.4}
        found = solve(pulse, [0.0], (0.0, END), **options)
        assert abs(found.u[-1, 0] - 1) < 2 * longest / WIDTH, f"pulse at {peak}: {found.u[-1, 0]}"


@pytest.mark.parametrize("max_step", [0.0, -1.0, np.nan, "long"])
def test_a_longest_step_that_is_none_is_refused(max_step):
    with pytest.raises(ValueError, match=r"max_step = .*: expected a finite number > 0"):
        solve(Equation(None, [gauss]), [0.0], (0.0, 1.0), max_step=max_step)


def counted(terms, rate, u0=1.0, **options):
    """Return the number of evaluations of a rate, and the solution."""
    calls = []

    def f(t, u):
        calls.append(t)
        return rate(t, u)

    found = solve(Equation(None, [f, *terms]), np.full(16, u0), (0.0, 20.0), **options)
    assert max(calls) <= 20.0
    return len(calls), found


def test_looking_ahead_costs_few_rates_at_each_of_a_thousand_times():
    count, found = counted([], lambda t, u: -u * np.exp(-t), method="dop853")
    assert count < 2500 + 13 * (found.steps + 2)  # distances of times are 1/2 to 1 times a thousandth


AUTONOMOUS = {
    "source": lambda mesh: Source(lambda t, u: 1 - u),
    "velocity": lambda mesh: Advection(mesh, lambda t, u: 0 * mesh.centers),
    "potential": lambda mesh: DriftDiffusion(mesh, 1.0, mesh.centers[:, 0]),
    "interaction": lambda mesh: DriftDiffusion(mesh, 1.0, lambda t, u: mesh.centers[:, 0] + 0 * u),
    "φ(u)": lambda mesh: NonlinearDiffusion(mesh, lambda u: u),
    "boundary": lambda mesh: Diffusion(mesh, 1.0, boundaries={"left": Value(lambda t, x: x[:, 0])}),
}


@pytest.mark.parametrize("name", AUTONOMOUS)
def test_a_term_whose_functions_never_read_the_time_is_autonomous(name):
    assert AUTONOMOUS[name](interval(0.0, 1.0, 16)).is_autonomous


def test_only_rates_that_depend_on_the_time_are_evaluated_ahead():
    """The evaluations of an autonomous term are those of the steps."""

    class Counted:
        is_autonomous, calls = True, 0

        def prepare(self, time, values):
            Counted.calls += 1
            return np.inf

        def rate(self, dt, rate):
            rate += 1.0

    changing = Source(lambda t, u: np.cos(t) + 0 * u)
    found = solve(Equation(interval(0.0, 1.0, 16), [changing, Counted()]), np.ones(16), (0.0, 0.2))
    np.testing.assert_allclose(found.u[-1], 1.2 + np.sin(0.2), rtol=1e-4)
    assert Counted.calls < 100, found.message  # 1000 more with evaluations at later times


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda t, u: u, True),
        (lambda t, u, power=2: u**power, True),
        (lambda t, u: u * t, False),
        (lambda t, u: [k * t for k in u], False),  # a function within the function may read t
        (lambda t, u: (lambda: t)(), False),
        (lambda t, u: eval("t*u"), False),
        (lambda *both: both[1], False),
        (np.multiply, False),
    ],
)
def test_a_function_that_never_reads_the_time_is_recognized(function, expected):
    assert ignores_time(function) is expected


def test_short_steps_need_no_look_ahead():
    """The cfl requires 100 steps and more per turn: four stages of a step, and its stable length."""
    turning = Advection(CIRCLE, lambda t, u: 12 * TURN)
    count, found = counted([turning], lambda t, u: 0 * u, method="ssp3")
    assert count <= 5 * found.steps + 10
    assert found.steps > 500


def test_steps_grow_fourfold_at_most():
    """Steps of a rate that never changes begin at the distance of the look-ahead's evaluation times."""
    ahead = LookAhead(Equation(None, [lambda t, u: 0 * u]), None, 1e-4, 1e-8, 0.01)
    state, lengths = State(0.0, np.ones(1)), []
    for _ in range(6):
        _, end = ahead(state, 1e3)
        lengths.append(end - state.time)
        state.time, state.dt = end, lengths[-1]
    assert lengths == pytest.approx(0.01 * 4.0 ** np.arange(6))


def test_a_smooth_change_in_time_does_not_shorten_steps():
    """u' = cos t over 20: steps of order 8 stay about as long as without the look-ahead."""
    _, found = counted([], lambda t, u: np.full_like(u, np.cos(t)), method="dop853")
    assert found.u[-1] == pytest.approx(1 + np.sin(20.0), abs=1e-3)
    assert found.steps < 60


@pytest.mark.parametrize("start", [1.0, -3.0, 1e3])
@pytest.mark.parametrize("method", ["dop853", "exponential"])
def test_steps_grow_at_any_time(method, start):
    """Rounding of the time that the first step takes does not hold the later steps at its length."""
    equation = Equation(None, [Diffusion(CIRCLE, 1.0), lambda t, u: np.full_like(u, t - start)])
    early, late = (
        solve(equation, np.ones(CIRCLE.cells), (first, first + 1.0), method=method, atol=1e-6).steps
        for first in (0.0, start)
    )
    assert late < 2 * early + 10
    assert early < 100
