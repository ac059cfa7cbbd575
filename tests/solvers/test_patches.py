"""Masses at the nodes of patches attract as the points that they replace, at any target."""

import numpy as np
import pytest

from solvers.transforms.pairwise import exponential_sums
from solvers.transforms.patches import gathered_sums, interpolated_sources


def cloud(kind, d, n=20_000):
    random = np.random.default_rng(1)
    points = random.standard_normal((n, d))
    corner = np.ones(d) / np.sqrt(d)  # corner where faces of the cube meet
    if kind == "clusters":
        points = np.where(random.random(n)[:, None] < 0.9, corner, -np.eye(d)[-1]) + 0.002 * points
    if kind == "axis":
        points = np.eye(d)[0] + 1e-17 * points
    return points / np.linalg.norm(points, axis=1)[:, None], random.random(n) / n


@pytest.mark.parametrize("steepness", [0.0, 5.0, 60.0, 300.0])
@pytest.mark.parametrize(("kind", "d"), [("clusters", 2), ("clusters", 3), ("axis", 2), ("axis", 3), ("uniform", 2)])
def test_nodes_attract_as_the_points_do(kind, d, steepness):
    points, weights = cloud(kind, d)
    nodes, masses = interpolated_sources(points, weights, steepness)
    assert len(nodes) < len(points)
    assert np.abs(np.linalg.norm(nodes, axis=1) - 1).max() < 1e-14
    targets = np.random.default_rng(2).standard_normal((60, d))
    targets *= steepness / np.linalg.norm(targets, axis=1)[:, None]
    scale, normalizer, sums = exponential_sums(targets, points, weights)
    other, found, vectors = exponential_sums(targets, nodes, masses)
    # 2 I_12(1) = 1e-12 in each direction, times a Lebesgue constant of about 6
    assert np.abs(found * np.exp(other - scale) / normalizer - 1).max() < 1e-11
    assert np.abs(vectors / found[:, None] - sums / normalizer[:, None]).max() < 1e-11


def test_points_stay_where_nodes_are_no_fewer():
    points, weights = cloud("uniform", 3, 500)
    nodes, masses = interpolated_sources(points, weights, 50.0)
    assert nodes is points
    assert masses is weights


@pytest.mark.parametrize("count", [10, 3000])
def test_sums_of_few_and_of_many_targets(count):
    points, weights = cloud("clusters", 3)
    targets = 40 * points[:count]
    scale, normalizer, sums = gathered_sums(targets, points, weights)
    other, expected, vectors = exponential_sums(targets[:10], points, weights)
    assert np.abs(normalizer[:10] * np.exp(scale[:10] - other) / expected - 1).max() < 1e-11
    assert np.abs(sums[:10] / normalizer[:10, None] - vectors / expected[:, None]).max() < 1e-11
