"""The push-forward by a map: mass and sign, order of accuracy, maps that tear, fold and collapse, concentrated
masses."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from support import exact

from meanfield.domains.sphere.initial import initial_moebius, initial_uniform
from solvers.mesh.icosphere import icosphere
from solvers.mesh.interval import from_edges, interval, line
from solvers.mesh.mesh import circle, sphere
from solvers.mesh.product import box
from solvers.remap.dual import Dual
from solvers.remap.pieces import split_into_pieces
from solvers.remap.push_forward import PushForward, push_forward

AXES = {2: (0.6, 0.8), 3: (0.3, -0.5, 0.8)}
meshes = pytest.mark.parametrize(
    "mesh", [circle(64), sphere(16), sphere(33), line(80, 9.0, 1.0)], ids=lambda m: m.cells
)


def identity(points):
    return points


def rotation(dimension, angle):
    """Return a rotation about an axis that is not an axis of the mesh."""
    if dimension == 2:
        matrix = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    else:
        matrix = Rotation.from_rotvec(angle * np.array([0.5, 0.7, -0.5])).as_matrix()
    return matrix, lambda points: points @ matrix.T


def moebius(dimension, parameter):
    """Return the flow of ẋ = Pₓ e over the time s: z ↦ tanh(artanh z + s) along the axis e."""
    axis = np.array(AXES[dimension]) / np.linalg.norm(AXES[dimension])

    def move(points):
        z, t = points @ axis, np.tanh(parameter)
        ratio = np.sqrt(1 - t * t) / (1 + z * t)  # ratio of the distances from the axis, after over before
        return ((z + t) / (1 + z * t))[:, None] * axis + ratio[:, None] * (points - z[:, None] * axis)

    return move


def smooth(mesh):
    x = mesh.centers
    density = 1 + 0.4 * np.sin(x[:, 0]) + 0.3 * x[:, -1] ** 2
    return density / (density @ mesh.volumes)


def rough(mesh):
    density = np.random.default_rng(0).random(mesh.cells)
    return density / (density @ mesh.volumes)


def center(mesh, density):
    """Return the center of mass and its length; widths are √2(1 − length)."""
    moment = density * mesh.volumes @ mesh.centers
    return moment / np.linalg.norm(moment), np.linalg.norm(moment)


@meshes
@pytest.mark.parametrize("density", [smooth, rough])
def test_the_identity_changes_nothing(mesh, density):
    before = density(mesh)
    assert np.abs(push_forward(mesh, before, identity) - before).max() < 1e-13 * before.max()  # sums of ~100 shares


@meshes
def test_pieces_fill_their_cells(mesh):
    pieces = split_into_pieces(mesh)
    assert np.add.reduceat(pieces.volumes, pieces.start[:-1]) == pytest.approx(mesh.volumes, rel=1e-13)
    assert np.linalg.norm(pieces.centroids - mesh.centers, axis=1).max() < 0.3 * mesh.volumes.max()


@pytest.mark.parametrize("rings", [16, 33])
def test_bulges_end_on_circles_of_latitude(rings):
    """Points of a chord, moved by their bulges towards the center, have the chord's latitude, also near the equator."""
    mesh = sphere(rings)
    pieces = split_into_pieces(mesh)
    center, first, second = pieces.points[pieces.corners].swapaxes(0, 1)
    along = first[:, 2] == second[:, 2]
    assert along.sum() >= mesh.cells
    for part, bulge in zip((0.25, 0.5, 0.75), pieces.bulges[along].T, strict=True):
        chord = (1 - part) * first[along] + part * second[along]
        point = chord + bulge[:, None] * (center[along] - chord)
        np.testing.assert_allclose(point[:, 2] / np.linalg.norm(point, axis=1), first[along, 2], atol=1e-14)
    assert (pieces.bulges[~along] == 0).all()


@meshes
@pytest.mark.parametrize("density", [smooth, rough])
def test_mass_and_sign_are_kept_by_any_map(mesh, density):
    random = np.random.default_rng(1).standard_normal((mesh.centers.shape[1],) * 2)
    dual = Dual(mesh)

    def wild(points):  # folds, and jumps where the first coordinate changes its sign
        return dual.project(np.sin(3 * points @ random) + np.sign(points[:, :1]))

    after = push_forward(mesh, density(mesh), wild)
    assert after.min() >= 0
    assert after @ mesh.volumes == pytest.approx(1.0, abs=1e-13)


ORDERS = [
    ("rotation", 2, 1.9, (64, 128, 256)),
    ("moebius", 2, 1.9, (64, 128, 256)),
    ("rotation", 3, 0.9, (32, 64, 128)),  # a triangle's polar angle is not linear: h cot θ/100 of a cell is misplaced
    ("moebius", 3, 1.6, (32, 64, 128)),  # twenty small steps: that error is proportional to the displacement
]


@pytest.mark.parametrize(("name", "dimension", "order", "sizes"), ORDERS)
def test_order_of_accuracy(name, dimension, order, sizes):
    errors = []
    for size in sizes:
        mesh = (circle if dimension == 2 else sphere)(size)
        push = PushForward(mesh)
        if name == "rotation":
            matrix, move = rotation(dimension, 0.6)
            density, steps = initial_moebius(mesh, AXES[dimension], 0.5), 1
            expected = initial_moebius(mesh, matrix @ np.array(AXES[dimension]), 0.5)
        else:
            move, density, steps = moebius(dimension, 0.05), initial_uniform(mesh), 20
            expected = initial_moebius(mesh, AXES[dimension], 1.0)
        for _ in range(steps):
            density = push.apply(density, move)
        errors.append(np.abs(density - expected) @ mesh.volumes)
    found = exact.orders(errors, sizes)
    assert found.min() > order, f"orders {found} of errors {errors}"
    assert errors[-1] < 1e-3


def test_uniform_stays_uniform_under_rotation():
    """The error is 3 % in a cell next to the poles, 0.05 % on average: flat triangles cut by bent circles of
    latitude."""
    mesh = sphere(64)
    after = push_forward(mesh, initial_uniform(mesh), rotation(3, 0.6)[1]) * mesh.volume
    assert np.abs(after - 1).max() < 0.03
    assert np.abs(after - 1) @ mesh.volumes / mesh.volume < 1e-3


def test_a_small_rotation_makes_a_small_error():
    """The error is proportional to the angle, 0.6 % a radian, mostly at the poles: many small layers are as good as
    one."""
    mesh = sphere(64)
    push = PushForward(mesh)
    for angle in (1e-4, 1e-3):
        after = push.apply(initial_uniform(mesh), rotation(3, angle)[1]) * mesh.volume
        assert np.abs(after - 1) @ mesh.volumes / mesh.volume < 0.01 * angle


def test_a_fold_adds_up():
    """φ ↦ 2φ maps 1 + a cos 2φ + b cos φ to 1 + a cos φ."""
    mesh = circle(256)
    x, y = mesh.centers.T
    density = (1 + 0.5 * (x * x - y * y) + 0.3 * x) / (2 * np.pi)

    def double(points):
        return np.stack([points[:, 0] ** 2 - points[:, 1] ** 2, 2 * points[:, 0] * points[:, 1]], axis=1)

    after = push_forward(mesh, density, double)
    assert np.abs(after - (1 + 0.5 * x) / (2 * np.pi)).max() < 1e-4  # (2 widths)²/12 of the second derivative


@pytest.mark.parametrize("mesh", [circle(64), sphere(32)], ids=["circle", "sphere"])
@pytest.mark.parametrize("density", [smooth, rough])
def test_a_map_to_one_point_makes_a_point_mass(mesh, density):
    point = np.array(AXES[mesh.centers.shape[1]]) / np.linalg.norm(AXES[mesh.centers.shape[1]])
    after = push_forward(mesh, density(mesh), lambda points: np.broadcast_to(point, points.shape))
    assert np.count_nonzero(after * mesh.volumes > 1e-12) == len(point)
    assert np.abs(center(mesh, after)[0] - point).max() < 1e-12


def test_a_stretched_cell_leaves_no_holes():
    mesh = from_edges(np.linspace(-4, 4, 161), "line")
    density = np.zeros(mesh.cells)
    density[80] = 20.0  # the cell [0, 0.05]
    after = push_forward(mesh, density, lambda x: 40 * x)
    assert after[80:120] == pytest.approx(np.full(40, 0.5), rel=1e-12)
    assert after[:80].max() == after[120:].max() == 0


def test_a_stretched_peak_leaves_no_holes():
    mesh = sphere(64)
    after = push_forward(mesh, initial_moebius(mesh, AXES[3], 1.2), moebius(3, -1.2)) * mesh.volume
    assert np.abs(after - 1).max() < 0.08  # 4 % next to the poles of the mesh; a hole would be 100 %
    assert np.abs(after - 1) @ mesh.volumes / mesh.volume < 0.006


@pytest.mark.parametrize("mesh", [circle(65), sphere(33)], ids=["circle", "sphere"])
def test_nothing_lands_within_a_jump(mesh):
    """x ↦ N(x ± 2e) with the sign of ⟨x,e⟩: |⟨x,e⟩| is at least 2/√5 = 0.894, with cells of 0.1."""
    dual, e = Dual(mesh), np.eye(mesh.centers.shape[1])[0]
    after = push_forward(mesh, smooth(mesh), lambda x: dual.project(x + np.where(x[:, :1] < 0, -2, 2) * e))
    assert after[np.abs(mesh.centers[:, 0]) < 0.84].max() == 0


def test_walls_hold_what_leaves():
    mesh = from_edges(np.linspace(0, 1, 11), "line")
    after = push_forward(mesh, np.ones(10), lambda x: 3 * x)
    assert after * mesh.volumes == pytest.approx([1 / 30] * 9 + [0.7], rel=1e-12)
    lump = np.zeros(10)
    lump[4] = 10.0
    assert push_forward(mesh, lump, lambda x: x - 7) * mesh.volumes == pytest.approx([1.0] + [0.0] * 9)


@pytest.mark.parametrize("mesh", [circle(128), sphere(32)], ids=["circle", "sphere"])
@pytest.mark.parametrize("angle", [0.004, 0.3])
def test_a_point_mass_stays_one_for_a_hundred_rotations(mesh, angle):
    point = np.array(AXES[mesh.centers.shape[1]]) / np.linalg.norm(AXES[mesh.centers.shape[1]])
    matrix, move = rotation(len(point), angle)
    push = PushForward(mesh)
    density = push.dual.deposit(point[None], np.ones(1)) / mesh.volumes
    for _ in range(100):
        density, point = push.apply(density, move), matrix @ point
    assert np.count_nonzero(density * mesh.volumes > 1e-6) <= len(point)
    assert np.abs(center(mesh, density)[0] - point).max() < 1e-9 * mesh.width  # empty simplices receive a share of 1e-9


@pytest.mark.parametrize("mesh", [circle(128), sphere(32)], ids=["circle", "sphere"])
def test_a_slowly_drifting_cluster_is_not_pinned(mesh):
    """A contraction towards a point that moves by a thousandth of a cell a map collapses the cluster, which follows."""
    point = np.array(AXES[mesh.centers.shape[1]]) / np.linalg.norm(AXES[mesh.centers.shape[1]])
    matrix, rotate = rotation(len(point), 1e-3 * mesh.width)
    density = np.exp((mesh.centers @ point - 1) / (3 * mesh.width) ** 2)
    push, density = PushForward(mesh), density / (density @ mesh.volumes)
    for k in range(300):
        where = center(mesh, density)[0]
        if k == 100:
            start = point = where
        density = push.apply(density, lambda x, where=where: rotate(push.dual.project(x + 0.1 * where)))
        point = matrix @ point
    where, length = center(mesh, density)
    assert np.sqrt(2 * (1 - length)) < mesh.width
    travelled = np.linalg.norm(point - start)
    assert np.linalg.norm(where - point) < 0.05 * travelled, f"off by {np.linalg.norm(where - point) / travelled:.1%}"


@meshes
def test_points_lie_in_their_simplex(mesh):
    dual = Dual(mesh)
    random = np.random.default_rng(0).standard_normal((500, mesh.centers.shape[1]))
    points = np.concatenate([dual.project(random), mesh.centers, mesh.face_centers[1:-1]])
    points = dual.project(points)
    cells, weights = dual.locate(points)
    assert weights.min() >= 0
    assert weights.sum(axis=1) == pytest.approx(np.ones(len(points)))
    sums = dual.project(np.einsum("nk,nkd->nd", weights, mesh.centers[cells]))
    assert np.abs(sums - points).max() < 1e-11  # rounding 1e-15 over the size of a triangle


@meshes
def test_gathered_atoms_are_deposited_again(mesh):
    dual, masses = Dual(mesh), rough(mesh) * mesh.volumes
    atoms, held = dual.gather(masses)
    assert dual.deposit(atoms, held) == pytest.approx(masses, rel=1e-11)


@meshes
def test_the_smallest_numbers_are_gathered_too(mesh):
    """Masses of cells that tokens have left shrink layer by layer, down to the smallest subnormal numbers."""
    dual, tiny = Dual(mesh), np.finfo(float).smallest_subnormal
    masses = np.where(np.random.default_rng(0).random(mesh.cells) < 0.2, tiny, 0.0)
    masses[:3] = 1.0, 7 * tiny, 1e-310
    atoms, held = dual.gather(masses)
    assert np.isfinite(atoms).all()
    assert held.sum() == pytest.approx(1.0)


def test_the_result_does_not_depend_on_the_number_of_workers(monkeypatch):
    mesh = sphere(32)
    density, move = rough(mesh), rotation(3, 0.6)[1]
    one = push_forward(mesh, density, move)
    monkeypatch.setattr("solvers.backends.cpu.launching.SHARE", 1)
    monkeypatch.setattr("solvers.backends.cpu.launching.WORKERS", 3)
    assert np.array_equal(push_forward(mesh, density, move), one)


def test_a_map_that_is_not_finite_is_refused():
    with pytest.raises(FloatingPointError, match="not finite at 128 points"):
        push_forward(circle(64), np.ones(64), lambda points: np.full_like(points, np.nan))


@pytest.mark.parametrize(
    "mesh", [box((4, 4), (1.0, 1.0)), icosphere(1), interval(0.0, 1.0, 16, periodic=True)], ids=lambda m: m.manifold
)
def test_other_meshes_are_refused(mesh):
    with pytest.raises(
        ValueError, match=f"mesh of a {mesh.manifold}: expected a circle, a sphere of rings or an interval"
    ):
        push_forward(mesh, np.ones(mesh.cells), identity)


def test_a_density_of_another_size_is_refused():
    """Kernels would read beyond the end of the density."""
    with pytest.raises(ValueError, match=r"^density of shape \(72,\): expected \(64,\)"):
        PushForward(circle(64)).apply(np.ones(72), identity)


@meshes
@pytest.mark.parametrize(
    ("map", "kind", "message"),
    [
        (lambda x: x[:3], ValueError, r"^map\(x\) of shape \(3, \d\): expected \(\d+, \d\), the shape of x$"),
        (lambda x: x[:, 0], ValueError, r"^map\(x\) of shape \(\d+,\): expected \(\d+, \d\), the shape of x$"),
        (lambda x: 0.5, ValueError, r"^map\(x\) of shape \(\): expected \(\d+, \d\), the shape of x$"),
        (lambda x: x + 0j, TypeError, r"^map\(x\) of dtype complex128: expected real numbers$"),
        (lambda x: None, TypeError, r"^map\(x\) = NoneType: expected real numbers$"),
        (lambda x: "x", TypeError, r"^map\(x\) = str: expected real numbers$"),
        (lambda x, y: x, TypeError, r"^map = <lambda>\(x, y\): expected a function of \(x\)$"),
        (np.eye(2), TypeError, r"^map = ndarray: expected a function of \(x\)$"),
    ],
)
def test_a_map_with_other_results_is_refused(mesh, map, kind, message):
    """Kernels would read beyond the end of the images."""
    with pytest.raises(kind, match=message):
        PushForward(mesh).apply(smooth(mesh), map)


def test_integer_images_are_points():
    mesh = circle(16)
    after = push_forward(mesh, smooth(mesh), lambda x: np.full(x.shape, [1, 0]))
    np.testing.assert_array_equal(after, push_forward(mesh, smooth(mesh), lambda x: np.full(x.shape, [1.0, 0.0])))


def test_a_density_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match=r"^density\[3\] = nan: expected finite numbers$"):
        push_forward(circle(64), np.where(np.arange(64) == 3, np.nan, 1.0), identity)


@meshes
def test_negative_densities_keep_their_mass(mesh):
    """The push-forward is linear: the positive and the negative part move alike."""
    density = rough(mesh) - 0.7 * smooth(mesh)
    move = rotation(mesh.centers.shape[1], 0.3)[1] if mesh.manifold != "line" else lambda x: 0.5 * x
    for field in (-smooth(mesh), density):
        assert np.abs(push_forward(mesh, field, identity) - field).max() < 1e-13 * np.abs(field).max()
        after = push_forward(mesh, field, move)
        assert after @ mesh.volumes == pytest.approx(field @ mesh.volumes, abs=1e-13 * (np.abs(field) @ mesh.volumes))
    np.testing.assert_array_equal(push_forward(mesh, -smooth(mesh), move), -push_forward(mesh, smooth(mesh), move))


def test_a_field_of_both_signs_moves_to_second_order():
    """A third of a turn is a third of a cell beyond a cell's edge, or before it, for all sizes."""
    errors, sizes, (matrix, move) = [], (64, 128, 256), rotation(2, 2 * np.pi / 3)
    for size in sizes:
        mesh = circle(size)
        after = push_forward(mesh, mesh.centers[:, 0].copy(), move)
        errors.append(np.abs(after - mesh.centers @ matrix[:, 0]) @ mesh.volumes)
    found = exact.orders(errors, sizes)
    assert found.min() > 1.9, f"orders {found} of errors {errors}"
