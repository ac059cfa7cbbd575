"""Clusters of tokens: right count, mass and position in any dimension."""

import numpy as np
import pytest
from msgspec.structs import replace

import meanfield as mf
from meanfield.clusters import among_tokens
from meanfield.clusters.among_tokens import find_clusters_of_tokens
from meanfield.clusters.near import SCALE
from meanfield.clusters.on_cells import find_clusters
from meanfield.domains.particles.initial import tokens_equiangular
from meanfield.domains.particles.initial_tokens import draw_tokens
from meanfield.domains.sphere.initial_density import initial_density
from solvers.mesh.mesh import circle, sphere

DIMENSIONS = pytest.mark.parametrize("dimension", [2, 3, 4, 64])


def unit(points):
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def apart(dimension, count, seed=0, least=1.2):
    """Return random directions (count, d) at least ``least`` radians apart."""
    random, points = np.random.default_rng(seed), np.empty((0, dimension))
    while len(points) < count:
        x = unit(random.standard_normal(dimension))
        if (points @ x < np.cos(least)).all():
            points = np.vstack([points, x])
    return points


def assert_found(points, masses, found):
    assert found.count == len(points)
    order = np.argsort(-masses)
    np.testing.assert_allclose(found.masses, masses[order], atol=1e-14)
    np.testing.assert_allclose(found.centers, points[order], atol=1e-12)


@pytest.mark.parametrize("dimension", [2, 3, 64])
def test_few_tokens_have_the_clusters_that_many_have(dimension, monkeypatch):
    """All pairs of a hundred tokens are summed; the transform and the leaders of many find the same clusters."""
    random, centers = np.random.default_rng(3), apart(dimension, 4)
    points = unit(
        centers[random.integers(4, size=100)] + 0.05 / np.sqrt(dimension) * random.standard_normal((100, dimension))
    )
    masses = random.random(100)
    few = find_clusters_of_tokens(points, masses)
    monkeypatch.setattr(among_tokens, "FEW_TOKENS", 0)
    many = find_clusters_of_tokens(points, masses)
    assert few.count == many.count == 4
    assert (few.basin == many.basin).all()
    np.testing.assert_allclose(few.centers, many.centers, atol=1e-14)


@DIMENSIONS
@pytest.mark.parametrize("count", [1, 3])
def test_collapsed_clouds(dimension, count):
    """All tokens lie at 1 or 3 points: clusters have these masses and points, and each token belongs to its own."""
    points, sizes = apart(dimension, count), np.array([50, 200, 100][:count])
    home = np.random.default_rng(1).permutation(np.repeat(np.arange(count), sizes))
    weights = np.random.default_rng(2).random(len(home))
    weights /= weights.sum()
    found = find_clusters_of_tokens(points[home], weights)
    assert_found(points, np.bincount(home, weights), found)
    np.testing.assert_array_equal(np.argsort(-np.bincount(home, weights))[found.basin], home)


@DIMENSIONS
def test_blurred_clouds(dimension):
    """Tokens within 0.05 rad of three points, a fifth of the scale, form three clusters; radii do not count."""
    points, random = apart(dimension, 3, seed=4), np.random.default_rng(5)
    home = np.repeat(np.arange(3), [300, 100, 200])
    cloud = unit(points[home] + 0.05 * unit(random.standard_normal((600, dimension))))
    found = find_clusters_of_tokens(cloud * random.uniform(0.1, 9.0, (600, 1)), np.full(600, 1 / 600))
    np.testing.assert_allclose(found.masses, [1 / 2, 1 / 3, 1 / 6], atol=1e-14)
    np.testing.assert_array_equal(found.basin, np.array([0, 2, 1])[home])
    # the mean of n tokens at 0.05 rad: 0.05/√n from the middle, with a safety factor of 3
    assert np.linalg.norm(found.centers - points[[0, 2, 1]], axis=1).max() < 3 * 0.05 / np.sqrt(100)


@pytest.mark.parametrize("dimension", [3, 8])
def test_each_token_is_told_its_cluster(dimension):
    """Masses of the basins are those of the clusters, in an order that is not its own inverse."""
    points, home = apart(dimension, 6, seed=1, least=0.9), np.repeat(np.arange(6), [30, 60, 10, 50, 20, 40])
    found = find_clusters_of_tokens(points[home], np.full(210, 1 / 210))
    np.testing.assert_allclose(np.bincount(found.basin) / 210, found.masses, atol=1e-14)
    assert (np.diff(found.masses) < 0).all()


@pytest.mark.parametrize("cosine", [0.0, 0.5])
@pytest.mark.parametrize("count", [8, 64])
def test_equiangular_tokens_are_a_cluster_each(count, cosine):
    tokens = tokens_equiangular(count, 64, cosine)
    found = find_clusters_of_tokens(tokens, np.full(count, 1 / count))
    assert found.count == count
    np.testing.assert_allclose(found.masses, 1 / count, rtol=1e-14)
    assert sorted(found.basin) == list(range(count))
    together = tokens_equiangular(count, 64, np.cos(0.9 * SCALE))
    assert find_clusters_of_tokens(together, np.full(count, 1 / count)).count == 1


@pytest.mark.parametrize(("dimension", "count"), [(2, 10_000), (3, 10_000), (4, 10_000)])
def test_uniform_tokens_have_no_cluster(dimension, count):
    """More than 100 of these tokens lie within a scale: their density never doubles."""
    tokens = unit(np.random.default_rng(0).standard_normal((count, dimension)))
    found = find_clusters_of_tokens(tokens, np.full(count, 1 / count), scale=0.5)
    assert found.count == 0
    assert found.centers.shape == (0, dimension)
    assert (found.basin == -1).all()


@DIMENSIONS
@pytest.mark.parametrize("copies", [1, 100])
def test_the_scale_decides_how_near_two_clusters_are_one(dimension, copies):
    """Two clusters separate beyond one scale, in every dimension, for few tokens and for many."""
    first, second = np.eye(dimension)[:2]
    for angle, expected in ((0.99 * SCALE, 1), (1.01 * SCALE, 2)):
        points = np.repeat([first, np.cos(angle) * first + np.sin(angle) * second], copies, axis=0)
        assert find_clusters_of_tokens(points, np.full(2 * copies, 0.5 / copies)).count == expected


@pytest.mark.parametrize("dimension", [4, 16])
def test_two_clouds_joined_by_a_thin_bridge_are_two(dimension):
    """The density on the bridge is a tenth of that at its ends: one island with two peaks."""
    first, second = np.eye(dimension)[:2]
    angles = np.linspace(0, 1.5, 40)
    bridge = np.outer(np.cos(angles), first) + np.outer(np.sin(angles), second)
    masses = np.full(40, 0.002)
    masses[[0, -1]] = 0.6, 0.4
    found = find_clusters_of_tokens(bridge, masses)
    assert found.count == 2
    level = np.full(40, 1 / 40)  # all equal: one ridge, one cluster
    assert find_clusters_of_tokens(bridge, level).count == 1


def test_many_tokens_go_with_the_nearest_that_are_looked_at():
    points = apart(6, 4, seed=7)
    home = np.random.default_rng(8).integers(0, 4, 5000)
    cloud = unit(points[home] + 0.03 * unit(np.random.default_rng(9).standard_normal((5000, 6))))
    found = find_clusters_of_tokens(cloud, np.full(5000, 2e-4), max_tokens=100)
    assert found.count == 4
    np.testing.assert_allclose(found.masses, np.sort(np.bincount(home))[::-1] / 5000, atol=1e-12)


@pytest.mark.parametrize("dimension", [2, 3, 64, 384])
@pytest.mark.parametrize("angle", [0.26, 0.5, 0.82, 2.78])
def test_groups_at_known_angles_are_counted_as_they_are_seen(dimension, angle):
    """Two groups of ten tokens, ± 0.01 rad, are two clusters from 15° to 159° apart, with exact masses and
    positions."""
    random = np.random.default_rng(2)
    points = np.stack(
        [np.eye(dimension)[0], np.cos(angle) * np.eye(dimension)[0] + np.sin(angle) * np.eye(dimension)[1]]
    )
    home = np.repeat([0, 1], [7, 13])
    spread = 0.01 * unit(random.standard_normal((20, dimension)))
    if dimension == 2:
        spread *= 0.1  # along one line: no nearer than 0.25 rad
    found = find_clusters_of_tokens(unit(points[home] + spread * (0.1 if angle < 0.3 else 1.0)), np.full(20, 1 / 20))
    np.testing.assert_allclose(found.masses, [13 / 20, 7 / 20], rtol=1e-14)
    assert np.linalg.norm(found.centers - points[[1, 0]], axis=1).max() < 0.01


@pytest.mark.parametrize("dimension", [64, 384])
def test_tokens_29_degrees_apart_are_not_one(dimension):
    """Tokens with equal angles, as before collapse in many dimensions, are a cluster each until 14.3°."""
    for degrees, expected in ((29.0, 32), (15.0, 32), (14.0, 1)):
        tokens = tokens_equiangular(32, dimension, np.cos(np.radians(degrees)))
        assert find_clusters_of_tokens(tokens, np.full(32, 1 / 32)).count == expected


@pytest.mark.parametrize(("dimension", "count"), [(2, 400), (3, 4000)])
def test_an_arc_is_one_and_a_gap_parts_it(dimension, count):
    """Evenly spaced tokens along 2 rad form one chain; without a quarter of a radian in the middle, two."""
    angles = np.linspace(0, 2, count)
    arc = np.zeros((count, dimension))
    arc[:, 0], arc[:, 1] = np.cos(angles), np.sin(angles)
    assert find_clusters_of_tokens(arc, np.full(count, 1 / count), 0.2).count == 1
    kept = arc[np.abs(angles - 1) > 0.125]
    assert find_clusters_of_tokens(kept, np.full(len(kept), 1 / len(kept)), 0.2).count == 2


@pytest.mark.parametrize("sampling", ["random", "quantiles"])
def test_many_tokens_have_the_clusters_of_their_density(sampling):
    """The third bump would be on the slope of the first at a bandwidth of a quarter radian."""
    bumps = (((0.0, 0.0, 1.0), 10.0, 0.6), ((1.0, 0.0, 0.0), 20.0, 0.3), ((0.0, -1.0, 0.0), 15.0, 0.1))
    parts = [{"center": center, "concentration": c, "mass": mass} for center, c, mass in bumps]
    case = mf.load_case(
        {
            "domain": {"manifold": "sphere", "resolution": 64},
            "attention": {"beta": 9.0},
            "initial": {"kind": "von_mises_fisher", "components": parts},
            "time": {"end": 1.0},
        }
    )
    mesh = sphere(64)
    density = find_clusters(mesh, initial_density(case, mesh), reach=SCALE)
    points, masses = draw_tokens(replace(case.initial, sampling=sampling), 4000, 3)
    assert density.count == 3
    np.testing.assert_allclose(find_clusters_of_tokens(points, masses).masses, density.masses, atol=0.02)


def test_peaks_below_twice_the_mean_are_clusters_of_tokens_as_of_the_density():
    """Maxima are 1.7 and minima 0.3 times the mean: the smoothed peaks are 1.6, and the passes 0.4."""
    mesh = circle(512)
    density = 1 + 0.7 * np.cos(5 * np.arctan2(*mesh.centers.T[::-1]))
    below = np.append(0, np.cumsum(density)) / density.sum()
    angles = np.interp((np.arange(2000) + 0.5) / 2000, below, np.linspace(0, 2 * np.pi, 513))
    tokens = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert find_clusters(mesh, density, reach=SCALE).count == 5
    np.testing.assert_allclose(find_clusters_of_tokens(tokens, np.full(2000, 5e-4)).masses, np.full(5, 0.2), atol=0.01)


@pytest.mark.parametrize("sampling", ["random", "quantiles"])
def test_tokens_of_a_nearly_uniform_density_have_no_cluster(sampling):
    """The density lies within a factor of 1.2: 20 000 tokens show that they are not uniform, but no cluster."""
    angles = np.random.default_rng(2).random(20_000) if sampling == "random" else (np.arange(20_000) + 0.5) / 20_000
    angles = 2 * np.pi * angles
    angles -= 0.09 * np.sin(angles)  # density 1/(1 − 0.09 cos)
    tokens = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert find_clusters_of_tokens(tokens, np.full(20_000, 5e-5)).count == 0


def test_groups_all_around_the_circle_are_found():
    """Fifteen tight groups at equal distances of four scales: the kernel density doubles nowhere."""
    angles = 2 * np.pi / 15 * np.repeat(np.arange(15), 10) + 0.005 * np.random.default_rng(1).standard_normal(150)
    tokens = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert find_clusters_of_tokens(tokens, np.full(150, 1 / 150), 0.1).count == 15


def test_the_line_is_refused():
    with pytest.raises(ValueError, match="d of 2 or more"):
        find_clusters_of_tokens(np.ones((3, 1)), np.full(3, 1 / 3))


def test_stray_tokens_between_the_clusters_of_many_are_none():
    """Single tokens between two groups of 150 are not clusters; among five tokens each one counts."""
    angles = np.concatenate([np.zeros(150), np.full(150, 2.0), [0.7, 1.0, 1.3]])
    points = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    found = find_clusters_of_tokens(points, np.full(303, 1 / 303))
    np.testing.assert_allclose(found.masses, 150 / 303)
    assert (found.basin[300:] == -1).all()
    few = points[[0, 150, 300, 301, 302]]
    assert len(find_clusters_of_tokens(few, np.full(5, 1 / 5)).masses) == 5
