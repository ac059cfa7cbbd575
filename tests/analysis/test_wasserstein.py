"""Distances between distributions: closed forms, linear programs, invariances, convergence of patches and their
bound."""

import numpy as np
import pytest
from scipy.optimize import linprog

from meanfield.analysis import wasserstein_patches
from meanfield.analysis.measure import CELL_EXTENT, PointMeasure, atoms
from meanfield.analysis.ring_overlap import overlay
from meanfield.analysis.wasserstein import common_patches, wasserstein
from meanfield.domains.sphere.initial import initial_uniform, initial_von_mises_fisher
from solvers.mesh.mesh import sphere
from solvers.mesh.rings import sphere_cells

ROUNDING = 1e-12  # sums of some thousand terms of order one; the linear programs converge to about 1e-12, too
TURN = np.linalg.qr(np.random.default_rng(3).standard_normal((3, 3)))[0]


def on_circle(angles):
    angles = np.atleast_1d(angles)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def random_atoms(seed, n, d, equal=False):
    rng = np.random.default_rng(seed)
    points, masses = rng.standard_normal((n, d)), rng.random(n)
    return atoms(f"S{d - 1}", points / np.linalg.norm(points, axis=1)[:, None], None if equal else masses)


def density_on_circle(values, shift=0.0):
    """Return cells of equal width with these densities, rotated by ``shift``."""
    width = 2 * np.pi / len(values)
    angles = (np.arange(len(values)) + 0.5) * width + shift
    return PointMeasure("S1", on_circle(angles), np.asarray(values) * width, np.full(len(values), width))


def density_on_sphere(rings, density):
    """Return ``density``, a function of a mesh, on ``rings`` rings."""
    mesh = sphere(rings)
    extents = CELL_EXTENT * np.sqrt(mesh.volumes)
    return PointMeasure("S2", mesh.centers, density(mesh) * mesh.volumes, extents, mesh.ring_cells)


def linear_program(a, b, order):
    """Return the least Σ P_ij d_ij^order over plans, by a general linear program without geometry."""
    n, m = len(a.masses), len(b.masses)
    costs = np.arccos(np.clip(a.points @ b.points.T, -1, 1)) ** order
    rows = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
    marginals = np.concatenate([a.masses / a.masses.sum(), b.masses / b.masses.sum()])
    return linprog(costs.ravel(), A_eq=np.concatenate(rows), b_eq=marginals, method="highs").fun ** (1 / order)


# --- exactly, on the circle and the line ------------------------------------------------------------------


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("n", "m", "equal"), [(1, 4, False), (7, 7, True), (12, 9, False), (20, 20, False)])
def test_atoms_against_a_linear_program(d, order, n, m, equal):
    a, b = random_atoms(n, n, d, equal), random_atoms(m + 100, m, d, equal)
    # 1e-9: the linear program's own tolerance on its constraints is 1e-10 or so
    assert wasserstein(a, b, order).value == pytest.approx(linear_program(a, b, order), abs=1e-9)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("angle", [1e-9, 0.5, 3.0, 4.0])
def test_two_diracs(angle, order):
    """The distance is the shorter arc, wherever the circle is cut open."""
    for start in (0.0, 3.0, 5.9):
        a, b = atoms("S1", on_circle(start)), atoms("S1", on_circle(start + angle))
        assert wasserstein(a, b, order).value == pytest.approx(min(angle, 2 * np.pi - angle), abs=ROUNDING)


@pytest.mark.parametrize(("order", "distance"), [(1, np.pi / 2), (2, np.pi / np.sqrt(3))])
def test_uniform_against_a_dirac(order, distance):
    """∫₀^π θ dθ/π = π/2 and ∫₀^π θ² dθ/π = π²/3 on any mesh, since cells are extended."""
    for cells in (5, 64):
        found = wasserstein(density_on_circle(np.ones(cells)), atoms("S1", on_circle(1.234)), order)
        assert found.value == pytest.approx(distance, abs=ROUNDING)
        assert found.error == 0


def test_uniform_against_an_arc():
    """Mass 1 on an arc of 2w against the uniform distribution: F − G has height (1 − w/π)/2, so W₁ = π/2 (1 − w/π)."""
    half = 0.7
    arc = PointMeasure("S1", on_circle(2.0), np.ones(1), np.array([2 * half]))
    expected = np.pi / 2 * (1 - half / np.pi)
    assert wasserstein(density_on_circle(np.ones(8)), arc, 1).value == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize("order", [1, 2])
def test_a_density_turned_a_little(order):
    """The mass lies within half of the circle, where θ has slope 1, so that W₁ = W₂ = the rotation angle."""
    bump = np.where(np.arange(40) < 12, 1.0 + np.arange(40) % 4, 0.0)
    for cells in (3, 6):
        turned = np.roll(bump, cells)
        found = wasserstein(density_on_circle(bump), density_on_circle(turned), order)
        assert found.value == pytest.approx(cells * 2 * np.pi / 40, abs=ROUNDING)


@pytest.mark.parametrize("order", [1, 2])
def test_the_same_density_on_two_meshes(order):
    fine = np.repeat([1.0, 3.0, 2.0, 0.0, 1.0, 5.0], 4)
    found = wasserstein(density_on_circle(fine[::4]), density_on_circle(fine), order).value
    assert found == pytest.approx(0, abs=1e-7)  # √ε: W₂ where masses are equal up to rounding


def test_points_that_stand_for_cells_come_near_their_density():
    """The error of cells replaced by n points each is at most a quarter of a point's share, and W₁ the mean distance
    moved."""
    density = 1 + 0.8 * np.cos(np.arange(24) * 2 * np.pi / 24)
    whole, dirac = density_on_circle(density), atoms("S1", on_circle(0.3))
    gap = []
    for parts in (1, 10, 100):
        cut = density_on_circle(np.repeat(density, parts))
        points = atoms("S1", cut.points, cut.masses)
        gap.append(wasserstein(whole, points, 1).value)
        assert wasserstein(whole, dirac, 1).value == pytest.approx(wasserstein(points, dirac, 1).value, abs=0.1 / parts)
    np.testing.assert_allclose(gap, np.pi / 48 * 10.0 ** -np.arange(2 + 1), rtol=0.3)


def test_the_line():
    """Two atoms move by 1 and by 3, and Gaussians have W₂² = (m − m')² + (σ − σ')², W₁ = |m − m'| where σ = σ'."""
    a, b = atoms("R1", np.array([[0.0], [10.0]])), atoms("R1", np.array([[13.0], [1.0]]))
    assert wasserstein(a, b, 1).value == pytest.approx(2)
    assert wasserstein(a, b, 2).value == pytest.approx(np.sqrt(5))

    def gaussian(mean, deviation, cells=4000):
        width = 24 / cells
        x = -12 + (np.arange(cells) + 0.5) * width
        masses = np.exp(-((x - mean) ** 2) / (2 * deviation**2))
        return PointMeasure("R1", x[:, None], masses, np.full(cells, width))

    # 1e-5: cells of 0.006 with the value at their center have errors of their width squared
    assert wasserstein(gaussian(0.5, 1.0), gaussian(-1.0, 1.0), 1).value == pytest.approx(1.5, abs=1e-5)
    assert wasserstein(gaussian(0.5, 1.0), gaussian(-1.0, 2.0), 2).value == pytest.approx(np.hypot(1.5, 1), abs=1e-5)


def test_axisymmetric_laws():
    """Rings of latitude at θ = 0.5 and 2 move along meridians, as on S² with rings of points."""
    rings = [atoms("polar3", np.array([[theta]])) for theta in (0.5, 2.0)]
    assert wasserstein(*rings, 1).value == pytest.approx(1.5)
    azimuth = np.linspace(0, 2 * np.pi, 200, endpoint=False)
    drawn = [
        atoms("S2", np.column_stack([np.sin(t) * on_circle(azimuth), np.full(200, np.cos(t))])) for t in (0.5, 2.0)
    ]
    assert wasserstein(*drawn, 1).value == pytest.approx(1.5, abs=1e-9)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("d", [2, 3])
def test_a_metric_that_no_rotation_changes(order, d):
    a, b, c = random_atoms(1, 15, d), random_atoms(2, 11, d), random_atoms(3, 13, d)
    ab, ba = wasserstein(a, b, order).value, wasserstein(b, a, order).value
    assert ab == pytest.approx(ba, abs=ROUNDING)
    assert ab <= wasserstein(a, c, order).value + wasserstein(c, b, order).value
    assert wasserstein(a, a, order).value == pytest.approx(0, abs=1e-7)  # √ε: rounded masses in W₂
    turn = np.linalg.qr(np.random.default_rng(4).standard_normal((d, d)))[0]
    turned = [PointMeasure(m.space, m.points @ turn.T, m.masses, m.extents) for m in (a, b)]
    assert wasserstein(*turned, order).value == pytest.approx(ab, abs=1e-9)  # arcsin near antipodes keeps 9 digits


def test_many_atoms_on_the_circle():
    """10⁵ tokens of the uniform distribution: F − G is a Brownian bridge over √n, so W₁ is about 2π·0.2/√n."""
    n = 10**5
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, n)
    found = wasserstein(atoms("S1", on_circle(angles)), density_on_circle(np.ones(16)), 1).value
    assert 0.1 < found * np.sqrt(n) / (2 * np.pi) < 0.5


def test_what_cannot_be_compared():
    a, b = atoms("S1", on_circle(0.0)), atoms("S2", np.eye(3)[:1])
    for arguments in ((a, b, 1), (a, a, 3), (a, atoms("S1", a.points, np.zeros(1)), 1)):
        with pytest.raises(ValueError, match=r"expected order|without mass"):
            wasserstein(*arguments)


# --- on the sphere ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [3, 5])
def test_two_diracs_on_a_sphere(d):
    a, b = atoms(f"S{d - 1}", np.eye(d)[:1]), atoms(f"S{d - 1}", -np.eye(d)[:1])
    assert wasserstein(a, b, 1).value == pytest.approx(np.pi, abs=1e-7)
    middle = np.eye(d)[:1] + 1e-5 * np.eye(d)[1:2]
    near = atoms(f"S{d - 1}", middle / np.linalg.norm(middle))
    assert wasserstein(a, near, 2).value == pytest.approx(1e-5, rel=1e-6)  # arccos would lose it


def test_uniform_against_a_dirac_on_the_sphere():
    """Mean angle π/2, mean square π²/2 − 2: the reported error is a bound, and halves with four times the patches."""
    uniform = density_on_sphere(64, initial_uniform)
    dirac = atoms("S2", TURN[:1])
    for order, exact in ((1, np.pi / 2), (2, np.sqrt(np.pi**2 / 2 - 2))):
        found = [wasserstein(uniform, dirac, order, supports) for supports in (100, 400)]
        assert abs(found[0].value - exact) < 0.01 * exact  # patches are nearly symmetric about their centroids
        assert all(abs(distance.value - exact) < distance.error for distance in found)
        assert 1.7 < found[0].error / found[1].error < 2.3
        assert 0.08 < found[1].error < 0.2  # discs of area 4π/400 have radius 0.1


def test_patches_against_finer_patches():
    """Bounds for any transport hold for a von Mises–Fisher density and the same density rotated by 0.24.

    The upper bound is the rotation, which moves x by 2 arcsin(sin(α/2) sin η), η its angle from the axis. The lower
    bound is ∫f dν − ∫f dμ for f(x) = arcsin⟨x, u⟩, which has slope 1, u the direction between the centers.
    """
    centers = np.array([[0.6, 0.0, 0.8], [0.6, 0.8 * np.sin(0.3), 0.8 * np.cos(0.3)]])
    angle = np.arccos(centers[0] @ centers[1])
    axis, between = np.cross(*centers) / np.sin(angle), (centers[1] - centers[0]) / (2 * np.sin(angle / 2))
    a, b = (
        density_on_sphere(48, lambda mesh, c=c: initial_von_mises_fisher(mesh, [c], [12.0], [1.0])) for c in centers
    )
    above = a.masses @ (2 * np.arcsin(np.sin(angle / 2) * np.linalg.norm(np.cross(a.points, axis), axis=1)))
    below = b.masses @ np.arcsin(b.points @ between) - a.masses @ np.arcsin(a.points @ between)
    found = [wasserstein(a, b, 1, supports) for supports in (100, 300, 1200)]
    values, errors = np.array([[distance.value, distance.error] for distance in found]).T
    assert (np.diff(errors) < 0).all()
    assert (np.abs(values - values[-1]) < errors).all()
    assert np.abs(values[:-1] - values[-1])[1] < 0.5 * np.abs(values[:-1] - values[-1])[0], values
    assert 0.999 * below < values[-1] < 1.001 * above, (below / angle, values / angle, above / angle)
    assert values[-1] == pytest.approx(below, rel=0.01)


@pytest.mark.parametrize(("first", "second"), [(48, 32), (32, 48), (21, 34), (16, 32)])
def test_two_meshes_laid_over_each_other(first, second):
    """Pieces fill the cells of both meshes, and lie in them."""
    a, b = sphere(first), sphere(second)
    pieces = overlay(a.ring_cells, b.ring_cells)
    np.testing.assert_allclose(np.bincount(pieces.first, pieces.shares), 1, rtol=1e-12)
    areas = pieces.shares * a.volumes[pieces.first]
    np.testing.assert_allclose(np.bincount(pieces.second, areas), b.volumes, rtol=1e-12)
    polar, azimuth = np.arccos(pieces.points[:, 2]), np.arctan2(pieces.points[:, 1], pieces.points[:, 0])
    np.testing.assert_array_equal(sphere_cells(a.ring_cells, polar, azimuth), pieces.first)
    np.testing.assert_array_equal(sphere_cells(b.ring_cells, polar, azimuth), pieces.second)


@pytest.mark.parametrize("rings", [96, 80])
def test_a_density_on_two_meshes_is_nearly_one(rings):
    """W₁ is the difference of the meshes' cell averages, nested or not: of second order in the width."""
    gaps = []
    for size in (24, 48):
        laws = [density_on_sphere(n, lambda mesh: 1 + 0.7 * mesh.centers[:, 0]) for n in (size, rings)]
        gaps.append(wasserstein(*laws, 1, 300).value)
    assert gaps[1] < 1.5e-3
    assert gaps[0] > 2.5 * gaps[1]


def test_atoms_that_coincide_are_one_patch():
    """3000 tokens at four points are four patches of no extent, so that the distance is exact."""
    places = TURN[np.array([0, 1, 2, 0])] * np.array([1, 1, 1, -1.0])[:, None]
    tokens = atoms("S2", np.repeat(places, 750, axis=0))
    few = random_atoms(5, 6, 3)
    found = wasserstein(tokens, few, 1)
    assert found.error == pytest.approx(0, abs=1e-6)  # a centroid is rounded, and arcs are square roots of rounding
    assert found.value == pytest.approx(wasserstein(atoms("S2", places), few, 1).value, abs=1e-6)


def test_patches_keep_mass_and_centroid():
    a = random_atoms(6, 4000, 3)
    b = density_on_sphere(32, initial_uniform)
    for before, after in zip((a, b), common_patches(a, b, 200), strict=True):
        assert len(after.masses) <= 200
        assert after.masses.sum() == pytest.approx(before.masses.sum())
        np.testing.assert_allclose(np.linalg.norm(after.points, axis=1), 1)
        # Each centroid is projected to the sphere.
        np.testing.assert_allclose(after.centroid, before.centroid, atol=0.01)


def test_measures_on_the_same_points_are_cut_into_patches_once(monkeypatch):
    """The work is proportional to the points of one measure; the patches are those of all points of both."""
    a, b = (random_atoms(seed, 900, 3) for seed in (1, 2))
    b = PointMeasure(b.space, a.points, b.masses, b.extents)
    of_both = wasserstein_patches.patch_labels(
        np.concatenate([a.points, b.points]), np.concatenate([m.masses / m.masses.sum() for m in (a, b)]), 50
    )
    sizes = []

    def counted(points, masses, max_patches):
        sizes.append(len(points))
        return wasserstein_patches.patch_labels(points, masses, max_patches)

    monkeypatch.setattr("meanfield.analysis.wasserstein.patch_labels", counted)
    found = common_patches(a, b, 50)
    assert sizes == [900]
    for patches, measure, labels in zip(found, (a, b), np.split(of_both, 2), strict=True):
        np.testing.assert_allclose(np.sort(patches.masses), np.sort(np.bincount(labels, measure.masses)), rtol=1e-12)
