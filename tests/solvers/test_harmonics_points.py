"""Harmonics at arbitrary points, compared with sums of the harmonics and with those at the cells of a mesh."""

import numpy as np
import pytest
from scipy.special import sph_harm_y

from solvers.mesh.mesh import circle, sphere
from solvers.transforms.harmonics import harmonic_transform
from solvers.transforms.harmonics_points import PointHarmonics, fold_to_sphere, grid_equiangular, unfold_to_torus

ROUNDING = 1e-12  # the transform's tolerance is 1e-13 of the largest value


def points(n, d, seed=0):
    drawn = np.random.default_rng(seed).standard_normal((n, d))
    return drawn / np.linalg.norm(drawn, axis=1)[:, None]


def with_poles(n=40):
    """Return tokens at random, on both poles, on the meridian where φ jumps, and two at one point."""
    places = points(n, 3)
    places[:6] = [[0, 0, 1], [0, 0, -1], [-1, 0, 0], [-0.6, -1e-17, 0.8], [0, 0, 1], [1e-9, 0, -1]]
    return places


def harmonic(places, degree):
    """Return conj(Y) (n, …) of all degrees and orders m ≥ 0, numbered as in the transforms."""
    azimuth = np.arctan2(places[:, 1], places[:, 0])
    if places.shape[1] == 2:
        return np.exp(-1j * np.outer(azimuth, np.arange(degree + 1))) / np.sqrt(2 * np.pi)
    theta, order = np.arctan2(np.hypot(*places[:, :2].T), places[:, 2])[:, None, None], np.arange(degree + 1)
    values = sph_harm_y(np.arange(degree + 1)[:, None], order, theta, azimuth[:, None, None])
    return np.conj(np.where(np.tri(degree + 1, dtype=bool), values, 0)) * (-1.0) ** order


@pytest.mark.parametrize("degree", [1, 2, 11])
@pytest.mark.parametrize("places", [points(60, 2), with_poles(), points(1, 2), points(1, 3)], ids=len)
def test_analysis_and_synthesis_are_sums_of_harmonics(places, degree):
    basis, transform = harmonic(places, degree), PointHarmonics(places, degree)
    weights = np.random.default_rng(1).standard_normal(len(places))
    found = transform.analysis(weights)
    expected = np.tensordot(weights, basis, 1)
    assert np.abs(found - expected).max() < ROUNDING * np.abs(weights).sum()
    coefficients = expected + 0.1
    coefficients.imag[..., 0] = 0.0  # real functions
    coefficients = coefficients * (basis != 0).any(axis=0)
    twice = np.where(np.arange(degree + 1) > 0, 2, 1)
    wanted = (np.conj(basis) * coefficients * twice).real.reshape(len(places), -1).sum(axis=1)
    size = np.abs(coefficients * twice).sum()
    assert np.abs(transform.synthesis(coefficients) - wanted).max() < ROUNDING * size


@pytest.mark.parametrize("mesh", [circle(300), sphere(30)], ids=["circle", "sphere"])
def test_cells_are_points(mesh):
    """The sets have an odd number, and the degree is not resolved by few points."""
    degree = 60
    own, transform = harmonic_transform(mesh, degree), PointHarmonics(mesh.centers, degree)
    weights = np.random.default_rng(0).random((3, mesh.cells))
    found = transform.analysis(weights)
    assert np.abs(found - [own.analysis(row) for row in weights]).max() < ROUNDING * weights.sum(axis=1).max()
    values, expected = transform.synthesis(found), np.array([own.synthesis(row) for row in found])
    assert np.abs(values - expected).max() < ROUNDING * np.abs(expected).max()
    assert transform.synthesis(found[1]).shape == (mesh.cells,)


@pytest.mark.parametrize("d", [2, 3])
def test_stand_in_and_interpolation_are_transposes(d):
    """Σ_cells W f = Σ_j w_j f(x_j) for every f on the grid."""
    places, degree = points(50, d), 7
    transform, random = PointHarmonics(places, degree), np.random.default_rng(1)
    weights, coefficients = random.random(50), PointHarmonics(points(9, d, seed=3), degree).analysis(random.random(9))
    on_grid = harmonic_transform(transform.grid, degree).synthesis(coefficients)
    left, right = transform.equivalent_weights(weights) @ on_grid, weights @ transform.interpolate(on_grid)
    assert abs(left - right) < ROUNDING * np.abs(on_grid).max() * weights.sum()


@pytest.mark.parametrize("d", [2, 3])
def test_many_points_are_summed_in_parts(d, monkeypatch):
    """Parts add up to the whole, and the bits are the same for any number of workers."""
    places, weights, degree = points(40_000, d), np.random.default_rng(1).random(40_000), 9
    found = []
    for workers in (1, 2, 3):
        monkeypatch.setattr("solvers.backends.cpu.launching.WORKERS", workers)
        transform = PointHarmonics(places, degree)
        coefficients = transform.analysis(weights)
        found.append((coefficients, transform.synthesis(coefficients)))
    for other in found[1:]:
        assert all(np.array_equal(one, same) for one, same in zip(found[0], other, strict=True))
    parts = [PointHarmonics(places[half::2], degree) for half in (0, 1)]
    total = sum(part.analysis(weights[half::2]) for half, part in enumerate(parts))
    assert np.abs(coefficients - total).max() < ROUNDING * weights.sum()
    assert np.abs(found[0][1][1::2] - parts[1].synthesis(coefficients)).max() < ROUNDING * np.abs(found[0][1]).max()


def test_lengths_do_not_count():
    places, weights = with_poles(), np.ones(40)
    longer = PointHarmonics(places * np.linspace(0.1, 9.0, 40)[:, None], 5)
    assert np.abs(PointHarmonics(places, 5).analysis(weights) - longer.analysis(weights)).max() < 1e-13 * 40


def test_no_points():
    transform = PointHarmonics(np.empty((0, 3)), 4)
    assert not transform.analysis(np.empty(0)).any()
    assert transform.synthesis(np.ones((5, 5), complex)).shape == (0,)


def test_equiangular_grid_covers_the_sphere():
    """The grid's sums over the torus are those over the sphere: folding is the transpose of unfolding."""
    grid = grid_equiangular(6)
    assert grid.volumes.sum() == pytest.approx(4 * np.pi, rel=1e-14)
    random = np.random.default_rng(0)
    values, torus = random.random((1, 7, 14)), random.random((1, 14, 14))
    assert np.sum(unfold_to_torus(values) * torus) == pytest.approx(np.sum(values * fold_to_sphere(torus)), rel=1e-14)


@pytest.mark.parametrize(("places", "degree", "kind", "message"), [
    (np.ones((4, 4)), 3, ValueError, r"points \(4, 4\): expected \(n, 2\) or \(n, 3\)"),
    (np.full((4, 3), np.nan), 3, ValueError, r"points\[0\] = nan: expected finite numbers"),
    ("xyz", 3, TypeError, "points = str: expected real numbers"),
    (np.ones((4, 3)) * 1j, 3, TypeError, "points of dtype complex128: expected real numbers"),
    (np.ones((4, 3)), 0, ValueError, "degree = 0: expected a whole number >= 1"),
    (np.ones((4, 3)), 2.5, TypeError, r"degree = 2\.5: expected a whole number >= 1"),
])  # fmt: skip
def test_impossible_points_are_refused(places, degree, kind, message):
    with pytest.raises(kind, match=f"^{message}$"):
        PointHarmonics(places, degree)


def test_points_may_be_a_list():
    places = [[1, 0, 0], [0, 3, 4]]
    expected = PointHarmonics(np.array(places, dtype=float), 3).analysis(np.ones(2))
    np.testing.assert_array_equal(PointHarmonics(places, 3).analysis(np.ones(2)), expected)
