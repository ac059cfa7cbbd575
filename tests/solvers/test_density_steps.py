"""Steps of densities by the error of their moments: interpolation, continuation, and errors independent of the step."""

import numpy as np
import pytest

from solvers.mesh.mesh import circle, sphere
from solvers.terms.advection import Advection
from solvers.terms.diffusion import Diffusion
from solvers.timestepping.control import MAX_REFUSED, Attempts
from solvers.timestepping.density.integrator import DensityIntegrator
from solvers.timestepping.density.moments import CosineMoments, HarmonicMoments, PolynomialMoments
from solvers.timestepping.density.rows import CONTROL, OTHERS_PART, DensityRows, EndMoments, step_error
from solvers.timestepping.equation import Equation
from solvers.timestepping.integrate import fixed, integrate
from solvers.timestepping.observers import Observer
from solvers.timestepping.schedules import Every, Listed
from solvers.timestepping.state import State

MESH = circle(64)
ANGLE = np.arctan2(MESH.centers[:, 1], MESH.centers[:, 0])
EAST = np.stack([-np.sin(ANGLE), np.cos(ANGLE)], axis=1)


def attract(time, density):
    """Return X = P_x m of tokens that are attracted to their mean m."""
    mean = (density * MESH.volumes) @ MESH.centers
    return (EAST @ mean)[:, None] * EAST


def integrator(noise=0.0, stepper="ssprk3", cfl=0.5, moments=HarmonicMoments, rtol=1e-3):
    diffusion = [Diffusion(MESH, noise, nonnegative=True)] if noise else []
    equation = Equation(MESH, [Advection(MESH, attract, nonnegative=True), *diffusion])
    return DensityIntegrator(equation, stepper, moments(MESH), cfl, rtol)


def peak():
    density = np.exp(2 * np.cos(ANGLE)) + 0.3
    return density / (density @ MESH.volumes)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_values_within_a_step_are_of_third_order_and_nonnegative(noise):
    """The error at the middle of a step decreases as dt³, relative to steps of a 64th."""
    errors = []
    for dt in (0.04, 0.02):
        one, fine = State(0.0, peak()), State(0.0, peak())
        steps = integrator(noise)
        steps.begin(one)
        steps.step(one, dt)
        assert one.time == dt
        middle = steps.interpolate(0.5 * dt)
        integrate(fine, fixed(integrator(noise, cfl=1.0)), 0.5 * dt, [Observer(id, Every(dt / 128), keeps=True)])
        errors.append(np.abs(middle - fine.values).max())
        assert middle.min() >= 0
        np.testing.assert_allclose(middle @ MESH.volumes, 1.0, rtol=1e-14)
    order = np.log2(errors[0] / errors[1])
    assert order > 2.7, f"{errors}: order {order:.2f}"


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_looks_change_nothing(noise):
    plain, seen = State(0.0, peak()), State(0.0, peak())
    times = []
    integrate(plain, fixed(integrator(noise)), 2.0)
    integrate(seen, fixed(integrator(noise)), 2.0, [Observer(lambda state: times.append(state.time), Every(0.01))])
    assert len(times) == 201
    assert (plain.values.tobytes(), plain.steps) == (seen.values.tobytes(), seen.steps)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_a_state_after_any_step_goes_on_bit_for_bit(noise):
    whole, part = State(0.0, peak()), State(0.0, peak())
    integrate(whole, fixed(integrator(noise)), 2.0)
    integrate(part, fixed(integrator(noise)), 2.0, after_step=lambda state: state.steps == whole.steps // 2)
    assert part.time < 2.0
    resumed = State(part.time, part.values.copy(), part.steps, part.dt)
    integrate(resumed, fixed(integrator(noise)), 2.0)
    assert (whole.values.tobytes(), whole.steps) == (resumed.values.tobytes(), resumed.steps)


def test_a_state_that_is_kept_needs_no_step_to_try():
    kept = []
    whole = State(0.0, peak())
    look = Observer(lambda state: kept.append(state.values.copy()), Listed((0.7,)), keeps=True)
    integrate(whole, fixed(integrator()), 2.0, [look])
    again = integrate(State(0.7, kept[0]), fixed(integrator()), 2.0)
    assert again.values.tobytes() == whole.values.tobytes()


class Chatter(HarmonicMoments):
    """Moments that jump, as where limiters switch: shorter steps have no smaller error."""

    calls = 0

    def __call__(self, *fields):
        found = super().__call__(*fields)
        for moments in found:
            Chatter.calls += 1
            moments += 0.1 if Chatter.calls % 3 else -0.1
        return found


def test_errors_that_are_not_of_time_end_no_run(monkeypatch):
    """Attempts of a step are limited, and steps do not shrink permanently: 10 × the work of steps by cfl alone."""
    attempts, attempt = [], DensityRows.attempt
    monkeypatch.setattr(DensityRows, "attempt", lambda *each: attempts.append(each[1]) or attempt(*each))
    state = integrate(State(0.0, peak()), fixed(integrator(moments=Chatter)), 2.0)
    monkeypatch.undo()
    by_cfl = integrate(State(0.0, peak()), fixed(integrator()), 2.0)
    assert len(attempts) > state.steps  # some were refused
    assert len(attempts) <= (1 + MAX_REFUSED) * state.steps
    assert len(attempts) < 10 * by_cfl.steps


MOMENTS = [(HarmonicMoments, MESH), (HarmonicMoments, sphere(8)), (PolynomialMoments, MESH), (CosineMoments, MESH)]


@pytest.mark.parametrize(("kind", "mesh"), MOMENTS)
def test_moments_of_several_fields_come_in_one_transfer(monkeypatch, kind, mesh):
    fields, moments = np.random.default_rng(0).random((3, mesh.cells)), kind(mesh)
    apart = [moments(field)[0] for field in fields]
    transfers = []
    monkeypatch.setattr(mesh.backend, "to_host", lambda array: transfers.append(array) or array)
    for together, alone in zip(moments(*fields), apart, strict=True):
        np.testing.assert_allclose(together, alone, rtol=1e-13, atol=1e-15)
    assert len(transfers) == 1


def test_a_wind_that_rises_within_a_step_shortens_it():
    """The wind is zero at both ends of the run, and moves a density whose moments do not change."""
    wind = Advection(MESH, lambda time, density: 6 * np.sin(np.pi * time) ** 2 * EAST, nonnegative=True)
    state, cells = State(0.0, 1 + np.cos(8 * ANGLE)), 64 / (2 * np.pi)
    steps = DensityIntegrator(Equation(None, [wind]), "ssprk3", HarmonicMoments(MESH), 0.5)
    integrate(state, fixed(steps), 1.0)
    assert state.steps > 3.0 * cells


def test_the_next_step_of_a_smooth_error_is_accepted_and_hardly_shorter_than_the_longest():
    """Errors (dt/d)²: from any fraction of d the next step is between 0.8 d and d, or ten times as long."""
    for dt in (0.2, 0.5, 0.99):
        attempts = Attempts(CONTROL, dt)
        assert attempts.accept(dt, dt**2, np.inf)
        assert 0.8 <= attempts.next.step <= 1.0
    refused = Attempts(CONTROL, 5.0)
    assert not refused.accept(5.0, 25.0, np.inf)
    assert 0.8 <= refused.longest <= 1.0
    small = Attempts(CONTROL, 1e-3)
    assert small.accept(1e-3, 1e-6, np.inf)
    assert small.next.step == pytest.approx(1e-2)


def test_an_error_that_does_not_fall_is_of_limiters_where_it_is_small_or_the_end_as_stable():
    """The longer step is taken for errors of 30 and 29 tolerances; 300 and 290 may fall later, unless the end is as
    stable."""
    for first, second, stable, is_last in ((30, 29, 0.1, True), (300, 290, 0.1, False), (300, 290, 1.0, True)):
        attempts = Attempts(CONTROL, 1.0)
        assert not attempts.accept(1.0, first, stable)
        assert not attempts.accept(0.5, second, stable)
        assert (attempts.longest == 1.0) == is_last, (first, stable)


def test_the_longest_step_that_errs_about_as_little_is_taken_and_tried_next():
    """Errors 1000, 45 and 44 are no better than at 0.1, which is taken, and is the length of the next step."""
    attempts = Attempts(CONTROL, 1.0)
    for dt, error in ((1.0, 1000.0), (0.1, 45.0), (0.05, 44.0)):
        assert not attempts.accept(dt, error, np.inf)
    assert attempts.longest == 0.1
    assert attempts.accept(0.1, 45.0, np.inf)
    assert attempts.next.step == 0.1


def test_small_moments_count_down_to_a_millionth_of_the_larger():
    start = EndMoments(np.zeros(2), np.zeros(2), None)
    end = EndMoments(np.array([1.0, 0.0]), np.array([2.0, 2e-9]), None)  # errors 0 and 1e-9
    assert step_error(1.0, start, end, np.abs, 1e-3, 0.0) == pytest.approx(1.0)


def test_what_explicit_terms_change_is_allowed_to_err_too():
    """Balanced moments may have an error of 0.3 rtol of the explicit terms' change."""
    still, rates = np.zeros(2), np.array([1.0, 0.0])
    start, end = (EndMoments(still, part * 0.3e-3 * rates, explicit) for part, explicit in ((1, None), (1, rates)))
    assert step_error(0.1, start, end, np.abs, 1e-3, 0.0) == pytest.approx(1 / (1 + OTHERS_PART), rel=1e-14)  # rounding


def test_a_density_errs_by_a_thousandth_of_its_change():
    found, fine = State(0.0, peak()), State(0.0, peak())
    integrate(found, fixed(integrator(0.05, cfl=1.0)), 1.0)
    integrate(fine, fixed(integrator(0.05, cfl=1.0, rtol=1e-6)), 1.0)
    first, change = ((a * MESH.volumes) @ MESH.centers for a in (found.values - fine.values, fine.values - peak()))
    assert np.linalg.norm(first) < 1e-3 * np.linalg.norm(change)
