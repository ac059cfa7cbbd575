"""Heat kernel of the sphere: its means e^{−l(l + d − 2)τ} of Gegenbauer polynomials, by quadrature and by draws."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.special import roots_genlaguerre

from meanfield.domains.particles.heat_kernel import _distance_of_length, _matched_beta, draw_distances

DEGREES = np.arange(9)


def exact(d, tau):
    return np.exp(-DEGREES * (DEGREES + d - 2) * tau)


def gegenbauer(d, cosines):
    """Return P_l (9, n) with P_l(1) = 1."""
    found = [np.ones_like(cosines), cosines]
    for k in DEGREES[1:-1]:
        found.append(((2 * k + d - 2) * cosines * found[k] - k * found[k - 1]) / (k + d - 2))
    return np.array(found)


def beta_means(d, tau):
    """Return the means of P_l(1 − 2y) = Σ_k (−l)_k (l + d − 2)_k / ((d − 1)/2)_k y^k/k!, in 50 digits due to
    cancellation."""
    with localcontext() as context:
        context.prec = 50
        a, b = map(Decimal, _matched_beta(d, tau))
        means = []
        for l in DEGREES.tolist():
            total, term = Decimal(0), Decimal(1)
            for k in range(l + 1):
                total += term
                term *= Decimal(k - l) * (l + d - 2 + k) * (a + k) / (a + b + k)
                term /= (Decimal(d - 1) / 2 + k) * (k + 1)
            means.append(float(total))
    return np.array(means)


@pytest.mark.parametrize("d", [3, 4, 8, 32])
def test_inverted_distribution_has_the_means_of_the_kernel(d):
    """Means by Gauss–Laguerre quadrature of squared lengths are exact; on S² the spline has an error of 1e-7 near θ
    = π."""
    nodes, weights = roots_genlaguerre(150, (d - 3) / 2)
    for tau in np.logspace(-3, 1, 9):
        cosines = np.cos(_distance_of_length(d, tau)(np.sqrt(2 * nodes)))
        error = np.abs(gegenbauer(d, cosines) @ weights / weights.sum() - exact(d, tau)).max()
        assert error < (1e-7 if d == 3 else 1e-9), f"d = {d}, τ = {tau:.2g}: {error:.1e}"


@pytest.mark.parametrize(
    ("d", "tau", "third", "eighth"),
    [
        (3, 1e-3, 2e-8, 5e-7),
        (32, 1e-3, 2e-8, 5e-7),
        (3, 1e-9, 1e-12, 1e-12),
        (33, 0.5 / 32, 1e-4, 3e-3),
        (1000, 0.5 / 999, 1e-6, 1e-5),
    ],
)
def test_matched_beta_distribution_has_the_rates_of_the_kernel(d, tau, third, eighth):
    means = beta_means(d, tau)
    rates = np.log(means[1:]) / np.log(exact(d, tau)[1:]) - 1
    # rounding of e^{−λτ}, whose logarithm has 16 digits relative to 1
    rounding = 4e-16 / (tau * (d - 1))
    assert np.abs(rates[:2]).max() < 1e-13 + rounding
    assert abs(rates[2]) < third + rounding
    assert np.abs(rates).max() < eighth + rounding


@pytest.mark.parametrize("d", [33, 100, 1000])
def test_matched_beta_distribution_is_near_the_kernel_at_any_time(d):
    error = max(np.abs(beta_means(d, tau) - exact(d, tau)).max() for tau in np.logspace(-6, 1, 29))
    assert error < 2e-4


@pytest.mark.parametrize("d", [2, 3, 8, 32, 33, 500])
@pytest.mark.parametrize("x", [1e-8, 2e-3, 0.3, 2.0])
def test_draws_have_the_means_of_the_kernel(d, x):
    """Means are exact to four standard errors, relative to 1 − e^{−λτ}; x = (d − 1)τ."""
    count = 20_000
    distances = draw_distances(np.random.default_rng(1), count, d, x / (d - 1))
    deviations = 2 * np.sin(distances / 2) ** 2  # 1 − cos, without rounding
    assert abs(deviations.mean() + np.expm1(-x)) < 4 * deviations.std() / np.sqrt(count)
    means, expected = gegenbauer(d, np.cos(distances))[2:4], exact(d, x / (d - 1))[2:4]
    assert (np.abs(means.mean(axis=1) - expected) < 4 * means.std(axis=1) / np.sqrt(count) + 2e-4 + 1e-14).all()


@pytest.mark.parametrize("d", [2, 3, 40])
def test_extreme_times_have_a_kernel(d):
    """The times are a step that moves nothing, and one after which tokens are uniform."""
    random = np.random.default_rng(2)
    assert np.abs(draw_distances(random, 100, d, 1e-300)).max() < 1e-40
    assert np.isfinite(draw_distances(random, 100, d, 1e300)).all()
    assert np.abs(np.cos(draw_distances(random, 10_000, d, 1e3)).mean()) < 4 / np.sqrt(10_000 * d)
