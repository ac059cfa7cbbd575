"""Stochastic equations: stationary spectra, means in both calculi, conserved mass, particles, seeds, refused input."""

import numpy as np
import pytest

from solvers import Diffusion, Equation, Noise, NonFinite, box, interval, solve

LINE = interval(0.0, 2 * np.pi, 32, periodic=True)
MANY = interval(0.0, 1.0, 20_000)  # cells without a link are independent samples


FIELDS = 200  # independent samples on LINE
RATES = (np.sin(np.arange(1, 5) * np.pi / 32) * 32 / np.pi) ** 2  # of decay of modes 1 to 4 by ``heat``


def heat(t, u):
    """Return Δu by the fluxes between two cells, for many fields at once."""
    return (np.roll(u, 1, axis=-1) - 2 * u + np.roll(u, -1, axis=-1)) / LINE.volumes[0] ** 2


def spectrum(u):
    """Return the variances of the modes 1 to 4 of fields on LINE, ∫u e^{−ikx} dx/√2π: those of dW have variance dt."""
    waves = np.exp(-1j * np.arange(1, 5)[:, None] * LINE.centers[:, 0])
    return (np.abs((u * LINE.volumes) @ waves.T) ** 2).mean(axis=0) / (2 * np.pi)


def of_steps(rate, step):
    """Return the stationary variance of du = −rate·u dt + dW by Strang's splitting: the exact one times x/sinh x."""
    return step / (2 * np.sinh(rate * step))


def test_the_variance_of_steps_is_of_second_order():
    """A step of 0.8 has 90 % of the exact variance 1/(2V); four standard errors of 20,000 cells are 4 %."""
    noise = Noise(MANY, 1.0, step=0.8, seed=1)
    relaxing = Equation(MANY, [lambda t, u: -u])
    u = solve(relaxing, np.zeros(MANY.cells), (0.0, 8.0), times=np.arange(0.8, 8.1, 0.8), method=noise, rtol=1e-6).u[-1]
    assert u.var() * MANY.volumes[0] == pytest.approx(of_steps(1.0, 0.8), rel=0.04)


def test_the_spectrum_of_a_linear_equation():
    """du = (Δu − u) dt + g dW has the variance g²/(2 (1 + k²)) in the mode k; the standard error is a fourteenth."""
    equation = Equation(LINE, [heat, lambda t, u: -u])
    noise = Noise(LINE, 0.3, step=0.1, seed=2)
    found = solve(equation, np.zeros((FIELDS, 32)), (0.0, 3.0), times=[3.0], method=noise).u[-1]
    expected = 0.3**2 * of_steps(1 + RATES, 0.1)
    assert spectrum(found) == pytest.approx(expected, rel=4 / np.sqrt(FIELDS))


@pytest.mark.parametrize(("first", "fewest", "most"), [(0.2, 5, 5), (None, 6, 10)])
def test_steps_have_their_length_from_the_first_one_if_that_is_given(first, fewest, most):
    equation, noise = Equation(LINE, [Diffusion(LINE, 1.0)]), Noise(LINE, 0.3, step=0.2)
    found = solve(equation, np.zeros(32), (0.0, 1.0), method=noise, first_step=first)
    assert fewest <= found.steps <= most


@pytest.mark.parametrize(("calculus", "growth"), [("ito", 0.0), ("stratonovich", 0.5)])
def test_means_of_multiplicative_noise(calculus, growth):
    """du = σ u dW has the mean u₀ (Itô) and u₀ e^{σ²t/2} (Stratonovich), for σ² = 1 in a cell of volume V."""
    size = np.sqrt(MANY.volumes[0])
    noise = Noise(MANY, lambda t, u: size * u, step=0.02, seed=3, calculus=calculus)
    u = solve(Equation(MANY, [lambda t, u: 0 * u]), np.ones(MANY.cells), (0.0, 1.0), times=[1.0], method=noise).u[-1]
    assert u.mean() == pytest.approx(np.exp(growth), abs=4 * u.std() / np.sqrt(MANY.cells) + 0.01)  # 0.01: the step


def test_a_conserved_noise_keeps_the_mass_on_every_mesh():
    mesh = box((6, 5), (1.0, 2.0))
    noise = Noise(mesh, 0.2, step=0.1, seed=4, conservative=True)
    start = np.stack([np.ones(30), np.arange(30.0)])
    found = solve(Equation(mesh, [Diffusion(mesh, 0.1)]), start, (0.0, 1.0), method=noise).u
    assert found @ mesh.volumes == pytest.approx(np.tile(start @ mesh.volumes, (len(found), 1)), rel=1e-12)
    assert np.ptp(found[-1][0]) > 0.1


def particles(t, u):
    return np.sqrt(2 * np.maximum(u, 0))


def test_the_noise_of_independent_particles():
    """dρ = Δρ dt + div(√(2ρ) dW) has the variance ρ̄ of a Poisson process in each mode (Dean, Kawasaki)."""
    noise = Noise(LINE, particles, step=0.05, seed=5, calculus="ito", conservative=True)
    found = solve(Equation(LINE, [heat]), np.full((FIELDS, 32), 1000.0), (0.0, 3.0), times=[3.0], method=noise).u[-1]
    assert found @ LINE.volumes == pytest.approx(np.full(FIELDS, 2000 * np.pi), rel=1e-12)
    expected = 2000 * RATES * of_steps(RATES, 0.05)
    assert spectrum(found - 1000) == pytest.approx(expected, rel=4 / np.sqrt(FIELDS))


def test_a_seed_gives_the_same_bits_and_another_one_does_not():
    equation = Equation(LINE, [Diffusion(LINE, 1.0)])
    each = [
        solve(equation, np.zeros(32), (0.0, 0.5), method=Noise(LINE, 1.0, step=0.1, seed=seed)) for seed in (0, 0, 1)
    ]
    assert np.array_equal(each[0].u, each[1].u)
    assert np.abs(each[0].u[-1] - each[2].u[-1]).max() > 0.1
    between = each[0](each[0].t[1:])
    assert between == pytest.approx(each[0].u[1:], abs=1e-12)
    assert "by Noise in" in each[0].message


def test_an_amplitude_that_is_not_finite_ends_the_run():
    noise = Noise(LINE, lambda t, u: np.log(-1 - u**2), step=0.1, calculus="ito")
    with np.errstate(invalid="ignore"), pytest.raises(NonFinite, match=r"^at time 0\.\d+: amplitude of shape \(32,\)"):
        solve(Equation(LINE, [Diffusion(LINE, 1.0)]), np.zeros(32), (0.0, 1.0), method=noise)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"step": 0.0}, ValueError, r"^step = 0\.0: expected a finite number > 0$"),
        ({"seed": -1}, ValueError, "^seed = -1: expected a whole number >= 0$"),
        ({"amplitude": "1"}, TypeError, "^amplitude = '1': expected a number >= 0$"),
        ({"amplitude": lambda u: u}, TypeError, r"^amplitude = <lambda>\(u\): expected a function of \(t, u\)$"),
        ({"amplitude": lambda t, u: u}, ValueError, '^calculus = None: expected "ito" or "stratonovich"'),
        ({"calculus": "Ito"}, ValueError, "^calculus = 'Ito': expected"),
        ({"mesh": 8}, TypeError, "^mesh = int: expected a Mesh"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        Noise(**{"mesh": LINE, "amplitude": 1.0, "step": 0.1, **changes})


def test_a_reaction_beside_noise_needs_no_factorization(monkeypatch):
    """Steps of changing lengths without noise are those of `solve`, by transforms."""
    mesh = interval(0.0, 20.0, 64)
    x, times = mesh.centers[:, 0], [0.1, 0.23, 1.0]
    equation = Equation(mesh, [Diffusion(mesh, 1.0), lambda t, u: u - u**3])
    fine = solve(equation, np.cos(x), (0.0, 1.0), times=times, rtol=1e-7).u
    monkeypatch.setattr("scipy.sparse.linalg.splu", None)
    found = solve(equation, np.cos(x), (0.0, 1.0), times=times, method=Noise(mesh, 0.0, step=0.07)).u
    np.testing.assert_allclose(found, fine, atol=1e-4)  # rtol
