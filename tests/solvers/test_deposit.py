"""Deposition of point masses on cells: mass and position are kept."""

import numpy as np
import pytest

from solvers.mesh.mesh import circle, sphere
from solvers.remap.deposit import deposit_points


def points_on(mesh, count=400, seed=0):
    """Return random unit vectors, and poles, equator, cell centers and face centers."""
    random = np.random.default_rng(seed)
    points = np.concatenate(
        [
            random.standard_normal((count, mesh.centers.shape[1])),
            np.eye(mesh.centers.shape[1]),
            -np.eye(mesh.centers.shape[1]),
            mesh.centers[:: max(1, mesh.cells // 20)],
            mesh.face_centers[:: max(1, mesh.faces // 200)],
        ]
    )
    return points / np.linalg.norm(points, axis=1, keepdims=True)


@pytest.mark.parametrize(
    "mesh", [circle(3), circle(64), circle(65), sphere(5), sphere(32), sphere(64)], ids=lambda m: str(m.cells)
)
def test_each_point_keeps_mass_place_and_sign(mesh):
    off = 0.0
    for point in points_on(mesh):
        density = deposit_points(mesh, point[None], np.array([0.3]))
        masses = density * mesh.volumes
        center = masses @ mesh.centers
        assert masses.min() >= 0
        assert masses.sum() == pytest.approx(0.3, rel=1e-14)
        assert np.count_nonzero(masses) <= mesh.centers.shape[1]
        off = max(off, np.linalg.norm(center / np.linalg.norm(center) - point))
    assert off < 1e-13, f"a center of mass is {off:.1e} off its point"


def test_brackets_that_are_not_chosen_do_no_harm():
    """The weights of a bracket at a right angle to the point, on three cells, add up to exactly 0."""
    mesh, point = circle(3), np.array([0.0, 1.0])
    with np.errstate(all="raise"):
        masses = deposit_points(mesh, point[None], np.ones(1)) * mesh.volumes
    np.testing.assert_allclose(masses, [2 / 3, 1 / 3, 0.0], atol=1e-15)
    center = masses @ mesh.centers
    np.testing.assert_allclose(center / np.linalg.norm(center), point, atol=1e-15)


def test_a_point_at_a_center_fills_one_cell():
    mesh = sphere(16)
    density = deposit_points(mesh, mesh.centers[[77]], np.array([1.0]))
    assert density[77] * mesh.volumes[77] == pytest.approx(1.0, rel=1e-13)


def test_points_add_up():
    mesh = sphere(16)
    points, masses = points_on(mesh, 20), np.random.default_rng(1).random(20)
    points = points[:20]
    together = deposit_points(mesh, points, masses)
    one_by_one = sum(deposit_points(mesh, points[[k]], masses[[k]]) for k in range(20))
    assert np.abs(together - one_by_one).max() < 1e-13 * together.max()
