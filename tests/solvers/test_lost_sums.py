"""Sums over groups of targets and sources, compared with sums over all pairs, also where they are far below the
largest."""

import numpy as np
import pytest

from solvers.mesh.mesh import circle, sphere
from solvers.transforms import lost_sums as module
from solvers.transforms.lost_sums import lost_sums
from solvers.transforms.pairwise import exponential_sums

CIRCLE, SPHERE = circle(6000), sphere(56)


def masses_of(kind, mesh):
    x, log = mesh.centers, np.log(mesh.volumes)
    if kind == "smooth":  # every cell has mass, from 1 to 1e-280
        return np.exp(320 * (x[:, 0] - 1) + log)
    if kind == "background":  # so even that nodes replace patches of many sources
        return np.exp(2 * x[:, 1] + log)
    return np.where(np.abs(x[:, 1]) < 0.2, np.exp(log), 0.0) * (x[:, 0] > 0)


@pytest.mark.parametrize("steepness", [3.0, 30.0, 200.0])
@pytest.mark.parametrize("kind", ["smooth", "background", "band"])
@pytest.mark.parametrize("mesh", [CIRCLE, SPHERE], ids=["circle", "sphere"])
def test_groups_leave_nothing_out(mesh, kind, steepness, monkeypatch):
    monkeypatch.setattr(module, "FEW_PAIRS", 0)
    masses = masses_of(kind, mesh)
    skew = np.eye(mesh.ambient_dimension) + 0.3 * np.eye(mesh.ambient_dimension, k=1)
    targets = steepness * mesh.centers @ skew
    scale, normalizer, vectors = lost_sums(targets, mesh.centers, masses)
    some = np.arange(0, mesh.cells, 37)
    held = masses > 0
    expected = exponential_sums(
        targets[some], mesh.centers[held], np.ones(held.sum()), log_weights=np.log(masses[held])
    )
    ratio = normalizer[some] / expected[1] * np.exp(scale[some] - expected[0])
    assert np.abs(ratio - 1).max() <= 1e-11
    off = vectors[some] / normalizer[some, None] - expected[2] / expected[1][:, None]
    assert np.abs(off).max() <= 1e-11


def test_masses_below_the_range_of_numbers_beside_others():
    """A source of 1e-310 nearby outweighs one of 1 with the factor e^{−1000}."""
    sources, masses = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1e-310, 1.0])
    scale, normalizer, vectors = lost_sums(np.array([[500.0, 0.0]]), sources, masses)
    assert scale[0] + np.log(normalizer[0]) == pytest.approx(500 + np.log(1e-310))
    np.testing.assert_allclose(vectors / normalizer, [[1.0, 0.0]], rtol=1e-12)


def test_nothing_to_attend_to():
    _, normalizer, vectors = lost_sums(SPHERE.centers, SPHERE.centers, np.zeros(SPHERE.cells))
    assert not normalizer.any()
    assert not vectors.any()
