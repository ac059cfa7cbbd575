"""Sums and largest values in one launch, and formulas of single numbers, on both devices."""

import numpy as np
import pytest
from numba import njit
from support.device import SIMULATED, gpu

from solvers.backends import cpu, formulas
from solvers.backends.gpu import launching, reductions

COUNTS = [1, 7, 300] if SIMULATED else [1, 7, 300, 100_000]


@njit
def _value_of(worker, workers, values):
    """Stand for a CPU kernel: return a worker's value, or the first one for a worker without a value."""
    return values[worker] if worker < len(values) else values[0]


def largest_of(values):
    """Return the result of a kernel that finds the largest value on the device."""
    return launching.launch(reductions.largest_on_grid(_value_of), len(values), values)


@pytest.fixture(params=COUNTS)
def values(request, monkeypatch):
    """Return values of which each thread reduces one or more, in several blocks."""
    monkeypatch.setattr(reductions, "CELLS", 1)
    monkeypatch.setattr(reductions, "BLOCKS", 5)
    return np.random.default_rng(request.param).standard_normal(request.param)


def test_sums_and_largest_values(values):
    weights = 1.0 + np.arange(len(values))
    there, to = gpu.to_device(values), gpu.to_device(weights)
    assert float(gpu.dot(there, to)) == pytest.approx(values @ weights, rel=1e-13)
    assert float(gpu.largest_share(largest_of(there))) == values.max()
    mass, occupied, largest = gpu.summary(there, to, 0.25)
    assert float(mass) == pytest.approx(values @ weights, rel=1e-13)
    assert float(occupied[0]) == 0.25 * float(mass)
    assert float(largest) == values.max()


def test_uniform_part(values):
    density, volumes = np.abs(values) + 1.0, np.full(len(values), 0.5)
    mass, volume = density @ volumes, float(volumes.sum())
    expected = cpu.uniform_part(density, volumes, mass, volume)
    found = gpu.uniform_part(gpu.to_device(density), gpu.to_device(volumes), gpu.to_device(np.array(mass)), volume)
    assert float(found) == pytest.approx(float(expected), rel=1e-12)


def test_not_a_number_stays(values):
    values[len(values) // 2] = np.nan
    there = gpu.to_device(values)
    assert np.isnan(float(gpu.largest_share(largest_of(there))))
    assert np.isnan(float(gpu.step_of_shares(largest_of(there))))
    assert np.isnan([float(number) for number in (gpu.summary(there, there, 1.0).mass, gpu.dot(there, there))]).all()


def test_results_are_the_same_bits_again(values):
    there = gpu.to_device(values)
    assert float(gpu.dot(there, there)) == float(gpu.dot(there, there))


def test_time_step_of_the_largest_rate():
    for rates, step in (([0.5, 4.0, 2.0], 0.25), ([0.0, 0.0, 0.0], np.inf)):
        assert cpu.step_of_shares([np.array(rates)]) == step
        assert float(gpu.step_of_shares(largest_of(gpu.to_device(np.array(rates))))) == step


FORMULAS = [
    (formulas.step_below, (1.0, 2.0, 0.75, 0.1), 0.1),
    (formulas.step_below, (2.0, 2.0, 0.75, 0.1), np.inf),
    (formulas.step_below, (np.nan, 2.0, 0.75, 0.1), np.inf),
    (formulas.finite_step, (1.0, 0.3, 0.2, np.inf), 0.2),
    (formulas.finite_step, (1.0, 0.3, 0.2, 0.1), 0.1),
    (formulas.finite_step, (np.inf, 0.3, 0.2, 0.1), np.nan),
    (formulas.finite_step, (np.nan, 0.3, 0.2, 0.1), np.nan),
    (formulas.finite_step, (1.0, np.nan, 0.2, 0.1), np.nan),
    (formulas.finite_step, (1.0, 0.2, np.nan, 0.1), np.nan),
    (formulas.finite_step, (1.0, 0.2, 0.1, np.nan), np.nan),
    (formulas.mean_density, (1.0 + 1e-13, 3.0), 1.0 / 3.0),
    (formulas.mean_density, (3.0, 4.0), 0.75),
    (formulas.uniform_part, (0.5, 1.0, 1.0), 0.75),
    (formulas.uniform_part, (2.0, 1.0, 1.0), 0.0),
    (formulas.uniform_part, (0.0, 0.0, 1.0), 0.0),
]


@pytest.mark.parametrize(("formula", "numbers", "expected"), FORMULAS)
def test_formulas(formula, numbers, expected):
    on_device = [gpu.to_device(np.array(number)) if k % 2 else np.float64(number) for k, number in enumerate(numbers)]
    for found in (cpu.evaluate(formula, *numbers), gpu.evaluate(formula, *on_device)):
        assert float(found) == pytest.approx(expected, rel=1e-15, nan_ok=True)
