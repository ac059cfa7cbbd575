"""Rates of slow motion in closed form, compared with differences of the atoms' velocity down to e^{−200}, and the
motion."""

import numpy as np
import pytest

from meanfield.domains.atoms.flow import advance
from meanfield.domains.atoms.velocity import Atoms, AtomVelocity
from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.model.metastability import equally_spaced_rates, lifetimes

STEP = 2e-3  # relative to the angle 1/(1 + β) on which the kernel varies: fourth-order errors and rounding near 1e-11


def law(beta, normalization="softmax"):
    return AtomVelocity(ParticleVelocity(float(beta), normalization))


def equally_spaced(count, d):
    """Return k atoms of mass 1/k, 2π/k apart on a great circle of S^{d−1}."""
    angles = 2 * np.pi * np.arange(count) / count
    return Atoms(np.stack([np.cos(angles), np.sin(angles)], axis=1) @ np.eye(2, d), np.full(count, 1 / count))


def rates_by_differences(law, atoms):
    """Return the eigenvalues of J, largest first: column (j, b) is the change of velocities for atom j along tangent b.

    Differences are of fourth order; velocities are accurate relative to their size, and so are rates to the largest
    rate.
    """
    k, d = atoms.positions.shape
    frames = np.stack([np.linalg.svd(x[None])[2][1:] for x in atoms.positions])  # (k, d − 1, d) tangent vectors
    step = STEP / (1 + abs(law.particles.beta))

    def velocities(j, b, angle):
        positions = atoms.positions.copy()
        positions[j] = np.cos(angle) * positions[j] + np.sin(angle) * frames[j, b]
        return law.velocities(0.0, positions, atoms.masses)

    def column(j, b):
        near, far = (velocities(j, b, m * step) - velocities(j, b, -m * step) for m in (1, 2))
        return np.einsum("id,ibd->ib", (8 * near - far) / (12 * step), frames).ravel()

    jacobian = np.stack([column(j, b) for j in range(k) for b in range(d - 1)], axis=1)
    return np.sort(np.linalg.eigvals(jacobian).real)[::-1]


@pytest.mark.sampled
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("beta", [1, 5, 20, 100])
@pytest.mark.parametrize("d", [2, 3, 4])
def test_rates_of_equally_spaced_clusters(d, beta, normalization):
    for count in (2, 3, 4, 5, 8, 12):
        along, across = equally_spaced_rates(count, beta, normalization)
        rates = np.sort(np.concatenate([along, *[across] * (d - 2)]))[::-1]
        expected = rates_by_differences(law(beta, normalization), equally_spaced(count, d))
        # differences of fourth order with their step: 1e-11 of the largest rate
        np.testing.assert_allclose(rates, expected, rtol=0, atol=1e-10 * np.abs(expected).max(), err_msg=f"k = {count}")


def test_two_opposite_clusters_in_closed_form():
    """φ̇ = −2 sin φ e/(1 + e), e = e^{β(cos φ − 1)}: the departure from φ = π has the rate 2/(e^{2β} + 1), in any
    direction."""
    for beta in (1.0, 10.0, 100.0):
        rate = 2 / (np.exp(2 * beta) + 1)
        for rates in equally_spaced_rates(2, beta):
            np.testing.assert_allclose(np.sort(rates), [0, rate], rtol=1e-12, atol=1e-12 * rate)
            np.testing.assert_allclose(lifetimes(rates), [1 / rate], rtol=1e-12)


def test_symmetries_are_rates_of_zero():
    """Rotations have zero rates: one in the circle's plane, two that tilt it, for each direction across."""
    along, across = equally_spaced_rates(5, 10.0)
    for rates, rotations in ((along, 1), (across, 2)):
        assert (np.abs(rates) < 1e-9 * np.abs(rates).max()).sum() == rotations


def test_slow_rates_are_unstable_down_to_rounding_of_the_largest():
    """1e-8 of the largest is a rate; 1e-10 may be the zero of a rotation."""
    np.testing.assert_allclose(lifetimes(np.array([1e-10, -5.0, 10.0, 1e-7, 2.0])), [0.1, 0.5, 1e7], rtol=1e-15)


def test_a_perturbation_grows_at_the_rate():
    """Opposite clusters, β = 9: δ̇ = λδ to δ = 1e-4 from 1e-6, up to terms of order βδ."""
    [life] = lifetimes(equally_spaced_rates(2, 9.0)[0])
    tilted = Atoms(np.array([[1.0, 0.0], [-np.cos(1e-6), np.sin(1e-6)]]), np.array([0.5, 0.5]))
    later, _ = advance(law(9), tilted, 0.0, 4 * life)
    tilt = np.linalg.norm(later.positions.sum(axis=0))
    assert tilt == pytest.approx(1e-6 * np.exp(4), rel=1e-3)  # the tolerance of the flow is 1e-3 of 1e-6


def test_what_repels_is_stable_on_the_circle():
    """V = −1 changes all signs: five clusters 72° apart return to their positions, up to a rotation."""
    along, _ = equally_spaced_rates(5, 9.0)
    assert len(lifetimes(along)) == 4
    assert len(lifetimes(-along)) == 0
