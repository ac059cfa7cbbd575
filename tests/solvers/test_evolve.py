"""The loop: orders in time, due times, observers, splitting, and stops on a lost state."""

from inspect import signature

import numpy as np
import pytest
from support import exact

from solvers.mesh.mesh import circle
from solvers.terms.advection import Advection
from solvers.terms.diffusion import Diffusion
from solvers.timestepping.equation import Equation
from solvers.timestepping.evolution import SplitIntegrator, evolve
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Every, Listed, Logarithmic, events_before
from solvers.timestepping.state import NonFinite, State
from solvers.timestepping.steppers import STEPPERS


class Ordinary:
    """The equation u' = f(t, u) with a fixed time step, as a term."""

    def __init__(self, slope, dt):
        self.slope, self.dt = slope, dt

    def prepare(self, time, values):
        self.current = self.slope(time, values)
        return self.dt

    def rate(self, dt, rate):
        rate += self.current


class Decay:
    """The equation u' = −u, solved exactly: a stiff term."""

    def longest_step(self, values):
        return np.inf

    def step(self, dt, values, limited=True):
        values *= np.exp(-dt)
        return 0.0


class Undershoots(Decay):
    """The equation u' = −u with undershoots between 0.6 and 0.5, which turn the value into NaN unless they are
    limited."""

    def __init__(self):
        self.trusted = []

    def step(self, dt, values, limited=True):
        undershoots = 0.5 < values[0] < 0.6
        super().step(dt, values)
        if undershoots and not limited:
            values[0] = np.nan
        self.trusted.append(not limited)
        return -1.0 if undershoots else 0.0


def solve(stepper, slope, steps, until=1.0, start=1.0, stiff=(), **more):
    state = State(0.0, np.array([start]))
    # Otherwise rounding requires one more step.
    equation = Equation(None, [Ordinary(slope, until / steps * (1 + 1e-9)), *stiff])
    return evolve(state, equation, STEPPERS[stepper], until, cfl=1.0, rtol=None, **more)


@pytest.mark.parametrize(("stepper", "order"), [("euler", 1), ("ssprk2", 2), ("ssprk3", 3)])
def test_order_in_time(stepper, order):
    """u' = u² cos t, u = 1/(1 − sin t), is nonlinear and depends on time, so that stage times matter."""
    errors = []
    for steps in (40, 80, 160):
        state = solve(stepper, lambda t, u: u * u * np.cos(t), steps, start=0.5)
        assert state.steps == steps
        errors.append(abs(state.values[0] - 1 / (2 - np.sin(1.0))))
    observed = exact.orders(errors, (40, 80, 160))
    assert STEPPERS[stepper].order == order
    assert observed == pytest.approx([order, order], abs=0.1), f"orders {observed}"  # asymptotic to O(dt)


def test_splitting_around_the_stiff_term_is_second_order():
    """u' = u² − u has parts that do not commute; the exact solution is u = 1/(1 + (1/u₀ − 1)eᵗ)."""
    errors = []
    for steps in (20, 40, 80):
        state = solve("ssprk3", lambda t, u: u * u, steps, start=0.5, stiff=[Decay()])
        errors.append(abs(state.values[0] - 1 / (1 + np.e)))
    observed = exact.orders(errors, (20, 40, 80))
    assert observed == pytest.approx([2, 2], abs=0.1), f"orders {observed}"


def test_a_step_that_undershoots_is_taken_again():
    """A step without the limiter is tried only after some steps without undershoots."""
    term = Undershoots()
    expected, found = (solve("euler", lambda t, u: 0.0 * u, 40, stiff=[stiff]) for stiff in (Decay(), term))
    assert found.values[0] == expected.values[0]
    assert found.steps == 40
    assert len(term.trusted) == 80 + 2  # one step was repeated
    steps = signature(SplitIntegrator).parameters["unlimited_after"].default
    assert term.trusted[: 2 * steps] == [False] * 2 * steps
    assert any(term.trusted)


def test_limit_is_applied_after_each_stage():
    state = State(0.0, np.array([1.0]))
    seen = []

    def limit(values):
        seen.append(values.copy())
        np.maximum(values, 0.9, out=values)

    evolve(
        state,
        Equation(None, [Ordinary(lambda t, u: -u, 0.5)], limit=limit),
        STEPPERS["ssprk3"],
        1.0,
        cfl=1.0,
        rtol=None,
    )
    assert len(seen) == 2 * 3
    assert state.values[0] == 0.9


def test_due_times_come_from_the_count():
    assert [Every(1.0, 10).due(k) for k in (0, 3, 7, 10)] == [
        0.0,
        3 / 10,
        7 / 10,
        1.0,
    ]  # summing 0.1 gives 0.7999…
    assert Every(0.5).due(7) == 3.5
    assert Listed((0.1, 2.0)).due(1) == 2.0
    assert Listed((0.1, 2.0)).due(2) == np.inf
    log = Logarithmic(1e-3, 1e3, 7)
    assert [log.due(k) for k in (0, 1, 7)] == [0.0, 1e-3, 1e3]
    ratios = [log.due(k + 1) / log.due(k) for k in range(1, 9)]
    assert ratios == pytest.approx([10.0] * 8, rel=1e-12)


def test_steps_land_on_due_times_and_observers_see_the_state():
    seen, rare = [], []
    times = Listed((0.0, 0.123, 1 / 3, 0.9999))
    observers = [
        Observer(lambda s: seen.append((s.time, s.values[0])), times),
        Observer(lambda s: rare.append(s.time), Every(0.5)),
    ]
    solve("ssprk3", lambda t, u: -u, 17, observers=observers)
    assert [time for time, _ in seen] == list(times.times)
    assert rare == [0.0, 0.5, 1.0]
    error = max(abs(value - np.exp(-time)) for time, value in seen)
    assert error < 1e-5, f"{error:.1e}"  # (1/17)³/24 of third order


def test_an_observer_does_not_change_the_end():
    times = []
    plain = solve("ssprk3", lambda t, u: -u, 1000).values[0]
    watched = solve(
        "ssprk3", lambda t, u: -u, 1000, observers=[Observer(lambda s: times.append(s.time), Every(1.0, 100))]
    ).values[0]
    assert watched == pytest.approx(plain, rel=1e-8)  # steps of nearly the same length, third order: (1e-3)³
    assert times == [k / 100 for k in range(101)]


def test_after_step_stops_the_loop():
    state = solve("euler", lambda t, u: -u, 10, after_step=lambda s: s.steps == 3)
    assert (state.steps, state.time) == (3, pytest.approx(0.3))


def test_nothing_to_do_at_the_end():
    state = State(1.0, np.array([2.0]))
    evolve(state, Equation(None, [Ordinary(lambda t, u: -u, 0.1)]), STEPPERS["euler"], 1.0, rtol=None)
    assert (state.time, state.steps, state.values[0]) == (1.0, 0, 2.0)


class Breaking:
    """The equation u' = −u, lost once ``time`` is reached, as Advection reports it: a NaN for the time step."""

    def __init__(self, time):
        self.time = time

    def prepare(self, time, values):
        self.current = -values if time < self.time else values * np.nan
        return 0.1 if np.isfinite(self.current).all() else np.nan

    def rate(self, dt, rate):
        rate += self.current


@pytest.mark.parametrize("stepper", sorted(STEPPERS))
@pytest.mark.parametrize("stiff", [(), (Decay(),)])
@pytest.mark.parametrize("time", [0.0, 0.3, 0.34, 0.36])
def test_a_lost_state_raises_and_leaves_the_last_good_one(stepper, stiff, time):
    """A stage within a step, not its start, reaches 0.34 and 0.36."""
    state, seen = State(0.0, np.array([1.0])), []
    observer = Observer(lambda s: seen.append(s.values[0]), Every(1.0, 20))
    with pytest.raises(NonFinite, match="step"):
        evolve(state, Equation(None, [Breaking(time), *stiff]), STEPPERS[stepper], 1.0, [observer], cfl=0.5, rtol=None)
    assert np.isfinite(seen).all(), f"an observer was shown {seen}"
    rate = 2.0 if stiff else 1.0
    assert state.time <= time + 0.05
    assert state.values[0] == pytest.approx(np.exp(-rate * state.time), rel=0.05)  # Euler's own error is 2 %


class Refusing(Ordinary):
    """The equation u' = −u, whose evaluation fails from call number ``calls`` on."""

    def __init__(self, calls):
        super().__init__(lambda t, u: -u, 0.1)
        self.calls = calls

    def prepare(self, time, values):
        self.calls -= 1
        if self.calls < 0:
            raise NonFinite("no balance")
        return super().prepare(time, values)


@pytest.mark.parametrize("stepper", sorted(STEPPERS))
@pytest.mark.parametrize("stiff", [(), (Decay(),)])
@pytest.mark.parametrize("calls", range(3, 9))
def test_a_term_that_cannot_be_evaluated_leaves_the_last_good_state(stepper, stiff, calls):
    state, seen = State(0.0, np.array([1.0])), [1.0]
    with pytest.raises(NonFinite, match=r"at time .*, step \d+: no balance"):
        evolve(
            state, Equation(None, [Refusing(calls), *stiff]), STEPPERS[stepper], 1.0,
            after_step=lambda state: seen.append(float(state.values[0])), rtol=None,
        )  # fmt: skip
    assert (state.values[0], state.steps) == (seen[-1], len(seen) - 1)


def test_a_step_that_shrinks_to_nothing_raises():
    state = State(1.0, np.array([1.0]))
    with pytest.raises(NonFinite, match="stable time step is 1e-20"):
        evolve(state, Equation(None, [Ordinary(lambda t, u: u, 1e-20)]), STEPPERS["euler"], 2.0, cfl=1.0, rtol=None)
    assert state.values[0] == 1.0


@pytest.mark.parametrize("schedule", [Every(0.5), Listed((0.0, 1.0, 1.5)), Logarithmic(0.01, 10.0, 7)])
@pytest.mark.parametrize("time", [0.0, 0.01, 0.7, 1.0, 9.0])
def test_events_of_a_schedule_are_counted(schedule, time):
    due = np.array([schedule.due(count) for count in range(40)])
    rounding = 1e-15 * time  # 0.01·10^(3·4/6) is an ulp beyond 1
    assert events_before(schedule, time) == np.count_nonzero(due < time - rounding)
    assert events_before(schedule, time, or_at=True) == np.count_nonzero(due <= time + rounding)


@pytest.mark.parametrize(
    ("speed", "turn"), [(lambda t: 6 * np.sin(t), 6 - 6 * np.cos(1.0)), (lambda t: 6 * np.sin(np.pi * t) ** 2, 3.0)]
)
@pytest.mark.parametrize("diffusion", [(), (0.0,)])
def test_a_wind_that_rises_from_zero_shortens_its_step(speed, turn, diffusion):
    """No step is too long where nothing moves; the second wind is zero at both ends of the whole run."""
    mesh = circle(64)
    angle = np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])
    east = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
    equation = Equation(mesh, [Advection(mesh, lambda t, u: speed(t) * east), *(Diffusion(mesh, D) for D in diffusion)])
    state = evolve(State(0.0, 1 + 0.5 * np.cos(angle)), equation, "ssprk3", 1.0, rtol=None)
    error = np.abs(state.values - 1 - 0.5 * np.cos(angle - turn)).max()
    assert error < 0.01  # at most 5.2e-3; second order: 1.7e-3 at 128 cells
    assert state.steps > turn / (2 * np.pi / 64)


@pytest.mark.parametrize("rtol", [None, 1e-4])
def test_a_wind_that_rises_keeps_the_bounds_of_a_jump(rtol):
    """The error of limiters is no smaller in shorter steps, which alone would accept an unstable step."""
    mesh = circle(128)
    angle = np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])
    east = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
    equation = Equation(None, [Advection(mesh, lambda t, u: 600 * np.sin(t) * east)])
    end = evolve(State(0.0, (np.abs(angle) < 1).astype(float)), equation, "ssprk3", 0.3, rtol=rtol).values
    assert -1e-12 < end.min() < end.max() < 1 + 1e-12  # rounding of some 2000 steps


def test_a_wind_at_rest_at_the_quarters_of_the_run_is_seen():
    mesh = circle(64)
    angle = np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])
    east = np.stack([-np.sin(angle), np.cos(angle)], axis=1)
    equation = Equation(None, [Advection(mesh, lambda t, u: 2 * np.sin(4 * np.pi * t) ** 2 * east)])
    end = evolve(State(0.0, 1 + 0.5 * np.cos(angle)), equation, "ssprk3", 1.0).values
    assert np.abs(end - 1 - 0.5 * np.cos(angle - 1.0)).max() < 0.01  # 3.2e-3; 1.1e-3 at 128 cells
