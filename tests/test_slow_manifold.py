"""Rates of slow motion against closed forms, for rates down to e^{−200}, and against the motion itself."""

import numpy as np
import pytest

from meanfield.atoms import AtomLaw, Atoms
from meanfield.atoms_flow import advance
from meanfield.heads import Head
from meanfield.particles import ParticleLaw
from meanfield.slow_manifold import clusters_equally_spaced, equally_spaced_rates, lifetimes, slow_rates


def law(beta, normalization="softmax", **fields):
    return AtomLaw(ParticleLaw(float(beta), normalization, **fields))


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("beta", [1, 5, 20, 100])
@pytest.mark.parametrize("d", [2, 3, 4])
def test_rates_of_equally_spaced_clusters_are_those_of_the_circulant(d, beta, normalization):
    for count in (2, 3, 4, 5, 8, 12):
        along, across = equally_spaced_rates(count, beta, normalization)
        expected = np.sort(np.concatenate([along, *[across] * (d - 2)]))[::-1]
        rates = slow_rates(law(beta, normalization), clusters_equally_spaced(count, d))
        # differences of fourth order with their step: 1e-11 of the largest rate
        np.testing.assert_allclose(rates, expected, rtol=0, atol=1e-10 * np.abs(expected).max(), err_msg=f"k = {count}")


def test_two_opposite_clusters_in_closed_form():
    """φ̇ = −2 sin φ e/(1 + e), e = e^{β(cos φ − 1)}: they leave φ = π at 2/(e^{2β} + 1), on the circle and off it."""
    for beta in (1.0, 10.0, 100.0):
        rate = 2 / (np.exp(2 * beta) + 1)
        rates = slow_rates(law(beta), clusters_equally_spaced(2, 3))
        np.testing.assert_allclose(rates, [rate, rate, 0, 0], rtol=1e-9, atol=1e-9 * rate)
        np.testing.assert_allclose(lifetimes(rates), [1 / rate] * 2, rtol=1e-9)


def test_symmetries_are_rates_of_zero():
    """d(d − 1)/2 rotations move no cluster against another; five clusters on a circle have one, on a sphere three."""
    for d, rotations in ((2, 1), (3, 3)):
        rates = slow_rates(law(10), clusters_equally_spaced(5, d))
        assert (np.abs(rates) < 1e-9 * np.abs(rates).max()).sum() == rotations


def test_a_perturbation_grows_at_the_rate():
    """Opposite clusters of masses 0.6 and 0.4, β = 9: δ̇ = λδ to δ = 1e-4 from 1e-6, up to terms of order βδ."""
    masses = np.array([0.6, 0.4])
    opposite = Atoms(np.array([[1.0, 0.0], [-1.0, 0.0]]), masses)
    life = lifetimes(slow_rates(law(9), opposite))[0]
    tilted = Atoms(np.array([[1.0, 0.0], [-np.cos(1e-6), np.sin(1e-6)]]), masses)
    later, _ = advance(law(9), tilted, 0.0, 4 * life)
    tilt = np.linalg.norm(later.positions.sum(axis=0))
    assert tilt == pytest.approx(1e-6 * np.exp(4), rel=1e-3)  # the tolerance of the flow is 1e-3 of 1e-6


def test_what_repels_is_stable():
    rates = slow_rates(law(9, heads=(Head(value=-1.0),)), clusters_equally_spaced(5, 2))
    assert len(lifetimes(rates)) == 0
    assert rates.real.min() < 0


def test_impossible_clusters_are_refused():
    with pytest.raises(ValueError, match="at least 1, in at least 2"):
        clusters_equally_spaced(0, 2)
    with pytest.raises(ValueError, match="at least 1, in at least 2"):
        clusters_equally_spaced(3, 1)
