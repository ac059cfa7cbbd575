"""Growth rates by Bessel functions, compared with Funk–Hecke's integral, and derived quantities."""

import numpy as np
import pytest
from scipy import optimize, special
from support import exact

from meanfield.analysis.stability_report import critical_noise_of, report
from meanfield.case.load import load
from meanfield.model.errors import ArgumentError
from meanfield.model.linear_stability import (
    MAX_DENSITY,
    BelowTwiceTheMean,
    continuous_up_to,
    critical_noise,
    expected_clusters_from_tokens,
    growth_rates,
    transition_coefficient,
)
from meanfield.model.metastability import equally_spaced_rates
from solvers.mesh.mesh import circle

DEGREES = np.arange(1, 9)


@pytest.mark.sampled
@pytest.mark.parametrize("noise", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("value", [1.0, -1.0])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("beta", [-4.0, 1.0, 2.0, 4.0, 5.0, 7.0, 9.0, 16.0])
@pytest.mark.parametrize("dimension", [2, 3])
def test_growth_rates_are_the_integrals(dimension, beta, normalization, value, noise):
    found = growth_rates(dimension, beta, DEGREES, normalization, noise, value)
    expected = [exact.growth_rate(dimension, beta, l, normalization, noise, value) for l in DEGREES]
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert error < 1e-12, f"{error:.1e}"  # rounding of the integral itself, e^β relative to its Legendre coefficients


def test_growth_rates_of_the_paper():
    """The rates for softmax, β = 5, l = 1 … 4, have the digits of ORACLES."""
    circle, sphere = growth_rates(2, 5.0, [1, 2, 3, 4]), growth_rates(3, 5.0, [1, 2, 3, 4])
    assert circle == pytest.approx([0.17867663, 0.5141174, 0.68267833, 0.60008914], abs=1e-8)
    assert sphere == pytest.approx([0.32003632, 0.62393462, 0.67234869, 0.51096847], abs=1e-8)


@pytest.mark.parametrize("dimension", [2, 3, 8])
def test_only_the_first_degree_grows_at_beta_zero(dimension):
    """X = Pₓ∫yρ: λ₁ = (d − 1)/d and no other rate; critical noise 1/d."""
    for normalization in ("softmax", "unnormalized"):
        rates = growth_rates(dimension, 0.0, [0, 1, 2, 3], normalization)
        assert rates == pytest.approx([0, (dimension - 1) / dimension, 0, 0], abs=1e-15)
        assert critical_noise(dimension, 0.0, normalization) == pytest.approx(1 / dimension, rel=1e-14)


def test_rescaled_rates_are_in_units_of_the_clock():
    plain, slow = (growth_rates(3, 9.0, DEGREES, "unnormalized", rescaled=r) for r in (False, True))
    assert plain == pytest.approx(np.exp(9.0) * slow, rel=1e-14)


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("dimension", [2, 3])
def test_critical_noise_is_where_the_last_mode_stops_growing(dimension, normalization):
    def largest(noise):
        return max(exact.growth_rate(dimension, 4.0, l, normalization, noise) for l in range(1, 12))

    expected = optimize.brentq(largest, 1e-3, 10.0, xtol=1e-13)
    assert critical_noise(dimension, 4.0, normalization) == pytest.approx(expected, rel=1e-11)


def test_nothing_needs_noise_when_repelled():
    assert critical_noise(2, 4.0, value=-1.0) == 0.0


def fastest_degree(dimension, beta):
    """Return the degree of the fastest mode without noise."""
    return 1 + int(growth_rates(dimension, beta, np.arange(1, 300)).argmax())


@pytest.mark.parametrize("dimension", [2, 3])
def test_fastest_degree_is_the_largest_integral(dimension):
    for beta in (0.5, 1.5, 5.0, 7.0, 9.0, 16.0, 30.0):
        rates = [exact.growth_rate(dimension, beta, l) for l in range(1, 20)]
        assert fastest_degree(dimension, beta) == 1 + int(np.argmax(rates)), f"beta {beta}"


@pytest.mark.parametrize(
    ("dimension", "switches"), [(2, (1.0444568621, 3.1654344427)), (3, (1.8161545254, 4.4252930124))]
)
def test_fastest_degree_switches_where_two_rates_are_equal(dimension, switches):
    for degree, beta in enumerate(switches, start=1):
        assert fastest_degree(dimension, beta - 1e-8) == degree
        assert fastest_degree(dimension, beta + 1e-8) == degree + 1


@pytest.mark.parametrize("dimension", [2, 3])
def test_large_beta(dimension):
    """l*(l* + d − 2) ≈ 2β, and the largest softmax rate tends to 2/e: I_{l+ν}/I_ν ≈ e^{−l²/2β}."""
    beta = 1e4
    l = fastest_degree(dimension, beta)
    assert l * (l + dimension - 2) / (2 * beta) == pytest.approx(1, abs=0.01)  # l is whole: ±½ of 141
    assert growth_rates(dimension, beta, [l])[0] == pytest.approx(2 / np.e, rel=1e-3)  # the next term is O(1/β)


@pytest.mark.parametrize("beta", [0.0, 1e-200, 1e-3])
def test_expected_clusters_from_tokens_where_beta_is_small(beta):
    assert expected_clusters_from_tokens(beta) == pytest.approx(1.0, abs=1e-6)


def test_expected_clusters_from_tokens():
    """√(Σk⁴I_k²/Σk²I_k²): the mean square slope of e^{β cos} as integrals; √(3β/2) for large β."""
    angle = (np.arange(2000) + 0.5) * np.pi / 1000
    for beta in (1.0, 5.0, 9.0):
        slope = np.sin(angle) * np.exp(beta * np.cos(angle))
        bend = (np.cos(angle) - beta * np.sin(angle) ** 2) * np.exp(beta * np.cos(angle))
        expected = np.sqrt((bend**2).sum() / (slope**2).sum())
        assert expected_clusters_from_tokens(beta) == pytest.approx(expected, rel=1e-12)
    assert expected_clusters_from_tokens(1000.0) == pytest.approx(np.sqrt(1500), rel=1e-3)  # O(1/β)


@pytest.mark.parametrize(("dimension", "beta"), [(2, 2.4469), (3, 1.8162)])
def test_unnormalized_transition_changes_its_type_where_the_paper_says(dimension, beta):
    """β* of Mun and Rosenzweig has the digits of ORACLES: continuous below and discontinuous above."""
    assert continuous_up_to(dimension) == pytest.approx(beta, abs=5e-5)
    assert transition_coefficient(dimension, beta - 0.1, "unnormalized") < 0
    assert transition_coefficient(dimension, beta + 0.1, "unnormalized") > 0


def _stationary(dimension, beta, normalization, amplitude):
    """Return the noise at which ρ ∝ Z^p or e^{qZ} has ∫⟨x,e⟩ρ/∫⟨x,e⟩² = a: self-consistent density of z by Gauss
    quadrature.

    The fixed-point map determines all modes except the first; κ follows from the condition that the first is a.
    """
    z, weights = special.roots_jacobi(80, (dimension - 3) / 2, (dimension - 3) / 2)
    weights /= weights.sum()
    sines = np.sqrt(1 - z**2)
    kernel = np.exp(beta * np.outer(z, z)) * special.hyp0f1(
        (dimension - 1) / 2, (beta * np.outer(sines, sines) / 2) ** 2
    )
    law = 1 + amplitude * z
    for _ in range(200):
        potential = kernel @ (weights * law)
        log = np.log(potential) if normalization == "softmax" else potential

        def first_mode(strength, log=log):
            law = np.exp(strength * (log - log.max()))
            return law / (weights @ law)

        strength = optimize.brentq(
            lambda s: dimension * (weights * z) @ first_mode(s) - amplitude, 1e-6, 1e6, xtol=1e-14
        )
        law = first_mode(strength)
    return 1 / (beta * strength)  # the strength is p = 1/(βκ)


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize(("dimension", "beta"), [(2, 1.0), (2, 4.0), (3, 1.0), (3, 4.0), (8, 2.0)])
def test_stationary_densities_branch_off_as_the_coefficient_says(dimension, beta, normalization):
    """1 = κ#/κ + C a² + O(a⁴): two amplitudes give C, and their difference is of the size of the next term."""
    critical = critical_noise(dimension, beta, normalization)
    found = [(1 - critical / _stationary(dimension, beta, normalization, a)) / a**2 for a in (0.02, 0.04)]
    extrapolated = (4 * found[0] - found[1]) / 3
    # rounding of κ, 1e-13, over a² = 4e-4, and the remaining a⁴
    assert extrapolated == pytest.approx(transition_coefficient(dimension, beta, normalization), rel=2e-4, abs=1e-7)


def test_small_rates_are_told_with_their_digits():
    """i₂/i₁ ≈ β/5 on the sphere: degree 2 grows at (2·3 β/15)/β·β = 0.4 β."""
    text = report(load("uniform", ["attention.beta=1e-7"]))
    assert "     2   +4.0000e-08   2.5e+07" in text
    assert "neutral" not in text


def test_a_mode_is_neutral_at_the_critical_noise_as_it_is_told():
    case = load("uniform", ["attention.beta=1"])
    critical = f"{critical_noise_of(case):.8g}"
    rows = report(load("uniform", ["attention.beta=1", f"stabilizers.noise={critical}"])).splitlines()[3:]
    assert [row.endswith("neutral") for row in rows[:3]] == [True, False, False]


def test_softmax_on_the_circle_as_in_oracles():
    """C₃ = (p(p−1)/16)[r(p−1)/(1−r) − (p+2)] with a₁² = (κ#/κ − 1)/(8|C₃|r₁³): the same C, for ρ̄(1 + 2a₁ cos θ)."""
    i0, i1, i2 = special.iv([0, 1, 2], 4.0)
    p, r, first = i0 / i1, i2 / i1, i1 / i0
    third = p * (p - 1) / 16 * (r * (p - 1) / (1 - r) - (p + 2))
    assert transition_coefficient(2, 4.0) == pytest.approx(8 * third * first**3 / 4, rel=1e-12)


def test_report_tells_transition_and_metastable_states():
    text = report(load("metastable_circle"))
    assert "transition at the critical noise: continuous" in text
    three = next(line.split() for line in text.splitlines() if line.startswith("       3   "))
    assert float(three[1]) * float(three[2]) == pytest.approx(1, rel=1e-3)  # rate and lifetime
    hysteresis = report(load("noise_below", ["attention.normalization='unnormalized'", "attention.beta=4"]))
    assert "discontinuous" in hysteresis
    assert "continuous up to beta = 2.4469" in hysteresis


def test_sinkhorn_rates_are_those_of_its_velocity_on_the_circle():
    """The doubly stochastic kernel of cells, found by iteration, gives −(1/β) Δ log a for ρ = ρ̄(1 + ε cos lφ)."""
    beta, cells, small = 3.0, 64, 1e-4
    angle = 2 * np.pi * np.arange(cells) / cells
    kernel = np.exp(beta * np.cos(angle[:, None] - angle)) / cells
    for l in (1, 2, 5):
        density, a = 1 + small * np.cos(l * angle), np.ones(cells)
        for _ in range(400):
            a = np.sqrt(a / (kernel @ (a * density)))
        wave = 2 * np.cos(l * angle) @ np.log(a) / cells  # amplitude of log a, so that div(ρX) has l²/β times it
        expected = growth_rates(2, beta, [l], "sinkhorn")[0]
        assert -(l**2) * wave / (beta * small) == pytest.approx(expected, rel=1e-6)  # of order ε²


@pytest.mark.parametrize("normalization", ["sinkhorn", "softmx"])
def test_theory_refuses_a_normalization_that_it_is_not_for(normalization):
    """The table of normalizations decides, instead of treating every other word as unnormalized attention."""
    for theory in (
        lambda: transition_coefficient(3, 2.0, normalization),
        lambda: equally_spaced_rates(3, 2.0, normalization),
    ):
        expected = f"normalization = '{normalization}': expected one of softmax, unnormalized"
        with pytest.raises(ArgumentError, match=expected):
            theory()


def test_nearness_is_that_of_the_highest_cell_whichever_it_was_before():
    """A NaN, or a value above twice the mean, is not near."""
    mesh, random = circle(16), np.random.default_rng(2)
    if_near, found = BelowTwiceTheMean(mesh), []
    for k in range(200):
        values = 1.0 + 0.2 * random.random(16)
        values[random.integers(16)] = (1.5, 4.0, np.nan)[k % 3 if k < 150 else 0]
        found.append(if_near(values, 0.5) == 0.5)
        assert found[-1] == bool(values.max() < MAX_DENSITY * (values @ mesh.volumes) / mesh.volume)
    assert 0 < sum(found) < 200
