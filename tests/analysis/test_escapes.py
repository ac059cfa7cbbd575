"""Escapes from metastable densities: barrier, prefactor, reduction to one dimension, simulation, estimates."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest
from scipy.integrate import cumulative_simpson
from scipy.optimize import root
from scipy.special import iv

import meanfield as mf
from meanfield.analysis.branches.equilibria import Equilibria
from meanfield.analysis.escapes.barrier import _fluctuations, harmonics_of_order
from meanfield.analysis.escapes.replicas import TokenSystem, first_passages, rates_of_tokens
from meanfield.analysis.escapes.waiting_times import WaitingTime, slope_of
from meanfield.cli.parser import main
from meanfield.domains.particles.systems import RatesOfSystems
from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.model.heads import Head
from meanfield.model.linear_stability import critical_noise, growth_rates, transition_coefficient

CIRCLE = ["attention.normalization=unnormalized", "attention.beta=7", "stabilizers.noise=24.5"]
SPHERE = {"attention.normalization": "unnormalized", "attention.beta": 6, "stabilizers.noise": 5.5}


def circle_case(beta: float, noise: float) -> mf.Case:
    keys = {"attention.normalization": "unnormalized", "attention.beta": beta, "stabilizers.noise": noise}
    return mf.load_case("noise_below", keys)


def critical_point(beta: float, noise: float, order: float) -> tuple[float, float]:
    """Return ∫cos θ ρ and F − F(uniform) of a stationary density on the circle, by moments and the trapezoidal rule."""
    degrees, theta = np.arange(1, 33), 2 * np.pi * np.arange(512) / 512
    bessel, cosines = iv(degrees, beta), np.cos(np.outer(degrees, theta))

    def density(moments):
        potential = 2 * (bessel * moments) @ cosines / (beta * noise)
        values = np.exp(potential - potential.max())
        return values / (2 * np.pi * values.mean())

    def moments_of(moments):
        return cosines @ density(moments) * (2 * np.pi / 512)

    start = np.zeros(32)
    for _ in range(300):
        start = moments_of(start)
        start[0] = order
    found = root(lambda moments: moments_of(moments) - moments, start, tol=1e-13)
    rho = density(found.x)
    entropy = 2 * np.pi * (rho * np.log(2 * np.pi * rho)).mean()
    return found.x[0], noise * entropy - (bessel @ moments_of(found.x) ** 2) / beta


@pytest.mark.parametrize(("beta", "noise", "near"), [(7, 24.5, 0.3), (4, 2.5, 0.25), (7, 25.5, 0.4)])
def test_the_barrier_is_that_of_a_quadrature_of_the_free_energy(beta, noise, near):
    order, barrier = critical_point(beta, noise, near)
    found = mf.escape(circle_case(beta, noise), n=())
    assert found.forward.saddle.order == pytest.approx(order, rel=1e-9)
    assert found.barrier == pytest.approx(barrier / noise, rel=1e-7)


def test_the_barrier_of_the_issue():
    assert round(mf.escape(circle_case(7, 24.5), n=()).barrier, 5) == 0.00435


@pytest.mark.parametrize("manifold", ["circle", "sphere"])
def test_the_barrier_near_the_transition_is_that_of_landau(manifold):
    """Φ(a) = (εa² − Ca⁴/2)/2d with ε = 1 − κ#/κ has the maximum ε²/4dC; corrections are of relative order ε/C."""
    case = circle_case(7, 24.5) if manifold == "circle" else mf.load_case("growth_sphere", SPHERE)
    d, beta = case.domain.d, case.attention.beta
    critical, excess = critical_noise(d, beta, "unnormalized"), 1e-3
    found = mf.escape(case.replace({"stabilizers.noise": critical / (1 - excess)}), n=())
    coefficient = transition_coefficient(d, beta, "unnormalized")
    assert found.barrier == pytest.approx(excess**2 / (4 * d * coefficient), rel=5 * excess / coefficient)


@pytest.mark.parametrize(("d", "beta"), [(2, 5.0), (3, 4.0), (5, 3.0)])
def test_fluctuations_about_the_uniform_density_are_those_of_linear_theory(d, beta):
    noise = 1.3 * critical_noise(d, beta, "unnormalized")
    equations, l = Equilibria(d, beta, "unnormalized"), np.arange(1, 40)
    critical = growth_rates(d, beta, l, "unnormalized") / (l * (l + d - 2))
    harmonics = np.array([sum(harmonics_of_order(d, m) for m in range(degree + 1)) for degree in l])
    state = equations.equilibrium(np.zeros_like(equations.nodes), noise)
    log_determinant, rotation = _fluctuations(equations, state)
    assert rotation == 0
    assert log_determinant == pytest.approx(harmonics @ np.log(1 - critical / noise), rel=1e-9)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("start", ["uniform", "ordered"])
@pytest.mark.parametrize("manifold", ["circle", "sphere"])
def test_the_reduction_agrees_with_eyring_and_kramers_for_high_barriers(manifold, start):
    """Corrections to the limit are of relative order κ/(nΔF), with the lower one of both barriers ΔF at the saddle."""
    case = circle_case(5, 5.2) if manifold == "circle" else mf.load_case("growth_sphere", SPHERE)
    found = mf.escape(case, n=(), start=start)
    high = 200 / min(found.barrier, found.reverse.height)
    log_ratio = found.reduction.log_time(high) - found.forward.log_time(high)
    assert abs(log_ratio) < 0.03


def test_velocities_on_the_circle_are_sums_over_pairs():
    angles = np.random.default_rng(1).uniform(0, 2 * np.pi, (3, 20))
    positions = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    velocity = ParticleVelocity(7.0, "unnormalized", (Head(value=1.3),))
    exact = RatesOfSystems([velocity], np.full((1, 20), 1 / 20), 2)(np.zeros(3, int), np.zeros(3), positions)
    found = rates_of_tokens(TokenSystem(2, 7.0, 1.3, 1.0, 20, 0.1))(positions)
    assert np.abs(found - exact).max() < 1e-5 * np.abs(exact).max()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("d", [2, 3])
def test_two_tokens_escape_in_the_exact_mean_time(d):
    """The angle δ between two tokens is a diffusion with the density sin^{d−2}δ e^{e^{β cos δ}/2βκ}, diffusivity 2κ."""
    beta, noise, systems, opened = 2.0, 1.5, 4000, 2.0
    delta = np.linspace(0, opened, 4001)[1:] - opened / 8000
    weight = np.sin(delta) ** (d - 2) * np.exp(np.exp(beta * np.cos(delta)) / (2 * beta * noise))
    below = cumulative_simpson(weight, x=delta, initial=0)
    exact = float(np.trapezoid(below / weight, delta)) / (2 * noise)
    system = TokenSystem(d, beta, 1.0, noise, 2, 2e-3)
    positions = np.zeros((systems, 2, d))
    positions[:, :, 0] = 1.0
    found = first_passages(system, positions, np.cos(opened / 2), False, np.inf, seed=4)
    error = found.times.std() / np.sqrt(systems)
    assert found.passed.all()
    # passages are seen at the ends of steps: later by the mean overshoot 0.58 √(4κΔt) over the speed at the threshold
    late = 0.5826 * np.sqrt(4 * noise * system.step) * below[-1] / weight[-1] / (2 * noise)
    assert abs(found.times.mean() - exact - late) < 3.5 * error
    assert late < 0.1 * exact


def test_intervals_cover_the_mean_of_censored_exponentials():
    random, covered = np.random.default_rng(2), 0
    for _ in range(400):
        times = random.exponential(3.0, 30)
        kept = np.minimum(times, 4.0)
        found = WaitingTime(100, 30, int((times < 4.0).sum()), float(kept.sum()))
        covered += found.interval[0] <= 3.0 <= found.interval[1]
    assert 0.93 <= covered / 400 <= 0.99  # the interval is conservative for censored times


def test_a_waiting_time_without_escapes_has_no_mean():
    found = WaitingTime(10, 5, 0, 20.0)
    assert found.mean == np.inf
    assert found.interval[1] == np.inf
    assert slope_of([found, WaitingTime(20, 5, 3, 20.0)]) is None


def test_the_slope_of_exponentials_is_found():
    random, hits = np.random.default_rng(3), 0
    n = np.array([100, 200, 300, 400])
    for _ in range(200):
        exposures = [50 * random.gamma(50, np.exp(0.004 * count) / count**0.5) / 50 for count in n]
        found = slope_of([WaitingTime(int(c), 50, 50, e) for c, e in zip(n, exposures, strict=True)], -0.5 * np.log(n))
        assert found is not None
        hits += found.contains(0.004)
    assert 0.9 <= hits / 200 <= 0.99


def test_simulated_times_are_those_of_the_reduction():
    found = mf.escape(circle_case(7, 24.5), n=[40, 80], seeds=150, jobs=1)
    for one in found.times:
        # four standard deviations, and 10 % for the step and for modes that are not fast
        assert abs(np.log(one.mean / found.predicted(one.n))) < 4 / np.sqrt(one.escaped) + 0.1
    table = found.to_dataframe()
    assert table.index.tolist() == [40, 80]
    assert table["escaped"].sum() > 280
    assert "slope of log mean time" in found.report
    assert pickle.loads(pickle.dumps(found)).report == found.report
    one, two = (mf.escape(circle_case(7, 24.5), n=[40], seeds=20, jobs=jobs) for jobs in (1, 2))
    assert one.times == two.times


def test_the_clock_of_rescaled_attention():
    rescaled = circle_case(7, 24.5).replace(
        {"attention.rescaled": True, "stabilizers.noise": 24.5 * float(np.exp(-7.0))}
    )
    one, other = mf.escape(circle_case(7, 24.5), n=()), mf.escape(rescaled, n=())
    assert other.barrier == pytest.approx(one.barrier, rel=1e-9)
    assert other.predicted(300) == pytest.approx(np.exp(7.0) * one.predicted(300), rel=1e-6)


def test_an_interrupted_simulation_keeps_what_is_done(monkeypatch, capsys):
    monkeypatch.setattr("meanfield.runtime.signals.Stop.__bool__", lambda stop: True)
    assert main(["escape", "noise_below", "--n", "40", "--seeds", "4", "--json", "--set", *CIRCLE]) == 130
    found = json.loads(capsys.readouterr().out)
    assert (found["interrupted"], found["times"]) == (True, [])


def test_the_command_predicts(capsys, tmp_path):
    figure = tmp_path / "escape.png"
    assert main(["escape", "noise_below", "--predict", "-o", str(figure), "--set", *CIRCLE]) == 0
    text = capsys.readouterr().out
    assert "barrier           0.00434563 per token" in text
    assert "n^-0.5 exp(0.00434563 n)" in text
    assert figure.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"attention.normalization": "softmax"}, 'attention.normalization = "softmax": expected "unnormalized": with'),
        ({"stabilizers.noise": 30}, r"stabilizers.noise = 30\.0: expected a number between 22\.2913 and 27\.3041, wh"),
        ({"stabilizers.noise": 20}, r"stabilizers.noise = 20\.0: expected a number between 22\.2913 and 27\.3041, wh"),
        ({"attention.beta": 2}, r"the transition at the critical noise 0\.795318 is continuous"),
        ({"attention.kernel": "gaussian"}, 'attention.kernel = "gaussian": expected "exponential"'),
    ],
)
def test_cases_without_a_metastable_density_are_refused(changes, message):
    with pytest.raises(mf.CaseError, match=message):
        mf.escape(circle_case(7, 24.5).replace(changes))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": [5]}, "n = 5: expected whole numbers >= 10"),
        ({"seeds": 0}, "seeds = 0: expected a whole number >= 1"),
        ({"jobs": 0}, "jobs = 0: expected a whole number >= 1"),
        ({"start": "saddle"}, "start = 'saddle': expected one of uniform, ordered"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(mf.CaseError, match=message):
        mf.escape(circle_case(7, 24.5), **arguments)
