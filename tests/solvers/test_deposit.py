"""Deposition of point masses on cells: mass and position are kept."""

import numpy as np
import pytest

from solvers.mesh.icosphere import icosphere
from solvers.mesh.interval import interval
from solvers.mesh.mesh import circle, sphere
from solvers.mesh.product import product
from solvers.mesh.simplices.triangles import triangles
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


TENT = triangles([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
CYLINDER = product(circle(8), interval(0.0, 1.0, 4))


@pytest.mark.parametrize("mesh", [TENT, CYLINDER, interval(0.0, 1.0, 8)], ids=["triangles", "cylinder", "interval"])
def test_other_meshes_are_refused(mesh):
    expected = "expected a circle, a sphere of rings or an icosphere"
    with pytest.raises(ValueError, match=f"^mesh of a {mesh.manifold}: {expected}$"):
        deposit_points(mesh, np.eye(mesh.centers.shape[1])[:1], np.ones(1))


@pytest.mark.parametrize(
    ("points", "masses", "kind", "message"),
    [
        ([[1.0, 0.0, 0.0]], [1.0], ValueError, r"points of shape \(1, 3\): expected \(1, 2\), as there are masses"),
        ([[1.0, 0.0]], 1.0, ValueError, r"masses of shape \(\): expected \(n,\)"),
        ([[np.nan, 0.0]], [1.0], ValueError, r"points\[0\] = nan: expected finite numbers"),
        ([[1.0, 0.0]], [np.inf], ValueError, r"masses\[0\] = inf: expected finite numbers"),
        ("x", [1.0], TypeError, "points = str: expected real numbers"),
        ([[1.0, 0.0]], None, TypeError, "masses = NoneType: expected real numbers"),
    ],
)
def test_impossible_points_are_refused(points, masses, kind, message):
    with pytest.raises(kind, match=f"^{message}$"):
        deposit_points(circle(8), points, masses)


@pytest.mark.parametrize("mesh", [circle(8), sphere(6), icosphere(1)], ids=lambda mesh: mesh.manifold)
def test_points_may_be_lists(mesh):
    points = np.eye(mesh.centers.shape[1])[:1]
    expected = deposit_points(mesh, points, np.ones(1))
    np.testing.assert_array_equal(deposit_points(mesh, points.astype(int).tolist(), [1]), expected)
