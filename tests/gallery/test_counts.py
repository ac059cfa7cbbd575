"""Counts of random points: sequential parking centers, and Wendel's probability."""

import numpy as np
import pytest

from meanfield.gallery.counts import in_one_hemisphere, parking_centers, share_in_one_hemisphere


def test_parking_centers_are_apart_and_cover_the_rest():
    points = np.random.default_rng(0).standard_normal((300, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    centers = parking_centers(points, 0.4)
    angles = np.arccos(np.clip(points @ points[centers].T, -1, 1))
    assert centers[0] == 0
    assert np.sort(angles[centers], axis=1)[:, 1].min() > 0.4  # between two different centers
    for k in set(range(300)) - set(centers):
        assert angles[k, centers < k].min() <= 0.4


def test_points_of_a_hemisphere_are_told_from_those_about_the_origin():
    corner = np.eye(3)
    assert in_one_hemisphere(corner)
    assert in_one_hemisphere(np.vstack([corner, [[-0.5, -0.5, 0.7]]]))
    assert not in_one_hemisphere(np.vstack([corner, -np.full((1, 3), 0.6)]))


@pytest.mark.parametrize(("count", "dimension"), [(3, 3), (4, 2), (6, 3)])
def test_shares_are_those_of_draws(count, dimension):
    generator = np.random.default_rng(1)
    draws = [in_one_hemisphere(generator.standard_normal((count, dimension))) for _ in range(400)]
    # The tolerance is five standard deviations of 400 draws.
    assert np.mean(draws) == pytest.approx(share_in_one_hemisphere(count, dimension), abs=5 * 0.5 / 20)
    assert share_in_one_hemisphere(dimension, dimension) == 1.0
