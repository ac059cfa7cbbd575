"""Control of step lengths: formula, limits, agreement of rows and scalars, and damping of oscillations."""

import numpy as np
import pytest

from solvers.timestepping.control import Attempts, Proposal, StepController, allowed_error


@pytest.mark.parametrize("order", [2, 3, 5, 8])
@pytest.mark.parametrize(("error", "factor"), [(np.nan, 0.1), (np.inf, 0.1), (1e30, 0.1), (0.0, 10.0), (1e-30, 10.0)])
def test_a_change_is_limited(order, error, factor):
    assert StepController(order).factor(error) == factor


@pytest.mark.parametrize("order", [2, 5])
def test_a_change_is_that_of_the_error_and_of_the_one_before(order):
    """The factor is s^0.7 / s'^0.4, s = 0.9 error^(−1/order), and s itself without a previous error."""
    now, before = (0.9 * error ** (-1 / order) for error in (0.4, 0.7))
    assert StepController(order).factor(0.4) == pytest.approx(now, rel=1e-15)
    assert StepController(order).factor(0.4, 0.7) == pytest.approx(now**0.7 / before**0.4, rel=1e-15)
    assert StepController(order).factor(0.4, 0.0) == pytest.approx(now, rel=1e-15)  # a zero error allows any step
    assert StepController(order).factor(0.0, 0.0) == 10.0


def test_rows_are_controlled_as_numbers_are():
    """A power of an array may differ in the last bit from that of a number, by other instructions of the processor."""
    random = np.random.default_rng(0)
    dt, error, before, last = 10.0 ** random.uniform(-4, 1, (4, 60))
    error[:3], before[3:30], last[20:40], refused = (0.0, np.nan, np.inf), np.nan, np.inf, random.random(60) < 0.3
    control = StepController(3)
    found = control.next(dt, error, Proposal(last, before), refused)
    for k in range(60):
        alone = control.next(dt[k], error[k], Proposal(last[k], before[k]), refused[k])
        np.testing.assert_allclose([found.step[k], found.error[k]], alone, rtol=4 * np.finfo(float).eps)


def test_no_step_grows_after_one_that_was_refused_and_one_that_was_cut_shortens_no_other():
    control = StepController(2)
    assert control.next(1.0, 0.0, refused=True) == (1.0, pytest.approx(np.nan, nan_ok=True))
    assert control.next(1.0, 0.9, Proposal(3.0)).step == 3.0
    assert np.isnan(control.next(1.0, 0.9, Proposal(3.0)).error)  # gives no information about a step of 3
    assert control.next(1.0, 1e-2, Proposal(3.0)).step == pytest.approx(9.0)


def test_steps_at_the_limit_of_stability_settle():
    """u' = −100 (u − cos t) by Heun's method, with an error by Euler's, settles at the longest stable steps of 2/100.

    Integral control alone makes steps oscillate about that length four times as much.
    """

    def spread(with_memory):
        control, dt, t, u, last, lengths = StepController(2), 1e-3, 0.0, 1.0, Proposal(), []
        while len(lengths) < 400:
            euler = u - dt * 100 * (u - np.cos(t))
            heun = (u + euler) / 2 - dt * 50 * (euler - np.cos(t + dt))
            error = abs(heun - euler) / 0.1
            if error > 1:
                dt, last = dt * float(control.factor(error)), Proposal()
                continue
            lengths.append(dt)
            t, u, last = t + dt, heun, control.next(dt, error, last if with_memory else Proposal())
            dt = float(last.step)
        assert np.mean(lengths[50:]) == pytest.approx(0.02, rel=1e-3)
        return np.std(lengths[50:])

    assert spread(True) < 0.5 * spread(False), (spread(True), spread(False))


def test_the_least_step_is_accepted_with_any_error():
    attempts = Attempts(StepController(2), longest=1.0, least=0.5)
    assert not attempts.accept(1.0, 100.0, stable=1.0)
    assert attempts.longest == 0.5
    assert attempts.accept(0.5, 90.0, stable=1.0)


def test_the_allowed_error_of_uniform_fields_is_absolute():
    """Only deviations from the mean of a field count, whatever the values of the other fields."""
    fields = np.array([[1.0], [100.0]]) * np.ones((2, 8))
    assert allowed_error(fields, fields, rtol=1e-2, atol=1e-8) == 1e-8
    assert allowed_error(fields, fields + np.array([[3.0], [3.0]]), rtol=1e-2, atol=1e-8) == pytest.approx(3e-2)
