"""Time of symmetry breaking of n uniform tokens: against simulations of tokens, exact distributions, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

import meanfield as mf
from meanfield.analysis.escapes.replicas import TokenSystem, rates_of_tokens
from meanfield.analysis.symmetry_breaking import AMPLITUDE, breaking_times, count_modes, mode_variances
from meanfield.cli.parser import main
from meanfield.domains.particles.motion import to_unit_length
from meanfield.model.linear_stability import growth_rates


def power_of_growing_modes(positions, degrees):
    """Return Σ a² (systems,) over the modes of the degrees: on S² by Σ_m Y_lm(x)Y_lm(y) = (2l + 1) P_l(⟨x, y⟩)."""
    if positions.shape[-1] == 2:
        z = positions[..., 0] + 1j * positions[..., 1]
        return sum(2 * np.abs((z**l).mean(axis=1)) ** 2 for l in degrees)
    legendre = np.zeros(int(degrees.max()) + 1)
    legendre[degrees] = 2 * degrees + 1
    cosines = positions @ positions.transpose(0, 2, 1)
    return np.polynomial.legendre.legval(cosines, legendre).mean(axis=(1, 2))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("d", "beta", "n", "systems"), [(3, 1.0, 500, 40), (2, 3.0, 1500, 80)])
def test_tokens_break_the_symmetry_at_the_predicted_times(d, beta, n, systems):
    l = np.arange(1, 20)
    rates = growth_rates(d, beta, l, "unnormalized")
    shown = l[rates > 0.05 * rates.max()]  # slower modes hardly grow
    rates = rates[shown - 1]
    modes = np.array([count_modes(d, int(degree)) for degree in shown])
    predicted = breaking_times(rates, np.zeros_like(rates), modes, n)
    positions = np.random.default_rng(5).standard_normal((systems, n, d))
    to_unit_length(positions)
    velocity, dt = rates_of_tokens(TokenSystem(d, beta, 1.0, 0.0, n, 0.0)), 0.1 / rates.max()
    powers = [power_of_growing_modes(positions, shown)]
    while powers[-1].min() < AMPLITUDE**2 and len(powers) * dt < 2 * predicted[-1]:
        half = positions + dt / 2 * velocity(positions)
        to_unit_length(half)
        positions += dt * velocity(half)
        to_unit_length(positions)
        powers.append(power_of_growing_modes(positions, shown))
    logs = np.log(np.array(powers) / AMPLITUDE**2)
    step = (logs >= 0).argmax(axis=0)
    after, before = (np.take_along_axis(logs, index[None], axis=0)[0] for index in (step, np.maximum(step - 1, 0)))
    times = np.where(step > 0, dt * (step - after / np.where(step > 0, after - before, 1.0)), 0.0)
    assert kstest(times, lambda t: np.searchsorted(predicted, t) / len(predicted)).pvalue > 0.01
    # terms beyond linear theory delay the median by up to a tenth of an e-folding time of S
    assert abs(np.median(times) - np.median(predicted)) < 0.05 / rates.max() + 1.6 * times.std() / np.sqrt(systems)


def test_one_degree_on_the_circle_has_the_distribution_of_gumbel():
    """S = (2/n) e^{2λt} E with E exponential, so that P(T > t) = 1 − e^{−nA²e^{−2λt}/2}."""
    n, rate = 10_000, 0.7
    times = breaking_times(np.array([rate]), np.zeros(1), np.array([2]), n)
    exact = [np.log(n * AMPLITUDE**2 / (-2 * np.log(p))) / (2 * rate) for p in (0.05, 0.5, 0.95)]
    assert np.quantile(times, (0.05, 0.5, 0.95)) == pytest.approx(exact, abs=0.04)


def test_the_variance_with_noise_solves_its_equation():
    """dV/dt = 2λV + 2l(l + d − 2)κ/n."""
    rates, damping, n, step = np.array([0.3]), np.array([0.8]), 100, 1e-5
    early, at, late = (mode_variances(np.array([t]), rates, damping, n)[0, 0] for t in (1 - step, 1.0, 1 + step))
    assert (late - early) / (2 * step) == pytest.approx(2 * 0.3 * at + 2 * 0.8 / n, rel=1e-6)


@pytest.mark.parametrize(("d", "degree", "count"), [(2, 1, 2), (2, 5, 2), (3, 4, 9), (4, 2, 9), (5, 1, 5)])
def test_numbers_of_harmonics(d, degree, count):
    assert count_modes(d, degree) == count


def test_the_command_prints_quantiles(capsys):
    assert main(["stability", "growth_circle", "--tokens", "1000"]) == 0
    assert "1000 independent uniform tokens: growing modes reach 0.3 of the mean density" in capsys.readouterr().out


def test_a_stable_uniform_density_and_a_wrong_number_are_refused(capsys):
    assert main(["stability", "noise_above", "--tokens", "100"]) == 2
    assert "--tokens 100: only allowed where a mode grows" in capsys.readouterr().err
    with pytest.raises(mf.CaseError, match=r"^tokens = 0: expected a whole number >= 1$"):
        mf.stability("growth_circle", tokens=0)
