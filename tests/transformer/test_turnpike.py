"""Configurations recovered from pairwise cosines of known clusters."""

import numpy as np
import pytest

from meanfield.transformer.studies.stacking import pair_cosines
from meanfield.transformer.studies.turnpike import Configuration, gromov_wasserstein, recover_atoms

MASS = 0.006  # products of masses are known to 1/500, the distance of quantiles, and their squares only in sums
CLUSTERS = {
    1: ([60], [[0.0, 0.0, 1.0]]),
    2: ([40, 20], [[1.0, 0.0, 0.0], [0.2, np.sqrt(0.96), 0.0]]),
    3: ([60, 36, 24], [[1.0, 0.0, 0.0], [0.5, np.sqrt(0.75), 0.0], [-0.6, 0.0, 0.8]]),
}


def tokens(count, spread=0.0):
    sizes, centers = CLUSTERS[count]
    x = np.repeat(centers, sizes, axis=0)
    x = x + spread * np.random.default_rng(0).standard_normal(x.shape)
    return x / np.linalg.norm(x, axis=1)[:, None]


@pytest.mark.parametrize("count", CLUSTERS)
def test_clusters_are_recovered_from_their_cosines(count):
    x = tokens(count)
    found = recover_atoms(pair_cosines(x), max_atoms=3)
    sizes, centers = CLUSTERS[count]
    assert len(found.masses) == count
    np.testing.assert_allclose(found.masses, np.array(sizes) / sum(sizes), rtol=0, atol=MASS)
    np.testing.assert_allclose(found.gram, np.array(centers) @ np.transpose(centers), rtol=0, atol=0.01)
    # Mass errors move mass between cosines that differ by at most 1.6.
    assert gromov_wasserstein(found, x) < np.sqrt(2 * MASS) * 1.6


def test_gromov_wasserstein_of_the_clusters_themselves_is_zero_and_of_others_is_not():
    sizes, centers = CLUSTERS[3]
    exact = Configuration(np.array(sizes) / sum(sizes), np.array(centers) @ np.transpose(centers), 0.0)
    assert gromov_wasserstein(exact, tokens(3)) == pytest.approx(0, abs=1e-7)
    one = Configuration(np.ones(1), np.ones((1, 1)), 0.0)
    x = tokens(3)
    assert gromov_wasserstein(one, x) == pytest.approx(np.sqrt(((1 - x @ x.T) ** 2).mean()), rel=1e-9)
    turned = Configuration(exact.masses, exact.gram[::-1, ::-1], 0.0)  # the cosines are kept, with other masses
    assert gromov_wasserstein(turned, x) > 0.1
