"""Distribution of ⟨x, y⟩ of two tokens, compared with dense sums and closed forms."""

from functools import cache

import numpy as np
import pytest

from meanfield.clusters import pairs
from meanfield.clusters.pairs import ANGLES, BINS, CLOSE, EDGES, close_pairs, pairs_of_points
from solvers.mesh.mesh import circle, sphere
from solvers.transforms.harmonics import harmonic_transform

mesh_circle, mesh_sphere = cache(circle), cache(sphere)


def unit(random, count, dimension):
    points = random.standard_normal((count, dimension))
    return points / np.linalg.norm(points, axis=1)[:, None]


def pairs_of_density(mesh, masses):
    """Return the probabilities (bins,) of ⟨x, y⟩ for two tokens of a density with masses (cells)."""
    if mesh.dimension == 1:
        return pairs.pairs_on_circle(masses[None])[0]
    transform = harmonic_transform(mesh, pairs.resolved_degree(mesh))
    return pairs.pairs_on_sphere(mesh, masses[None], pairs.spectra(mesh, transform, masses[None]))[0]


def by_brute_force(points, masses, different):
    weights = np.outer(masses, masses)
    if different:
        np.fill_diagonal(weights, 0.0)
    z = np.minimum(points @ points.T, 1.0)
    return np.histogram(z, EDGES, weights=weights)[0] / weights.sum()


def test_bins_reach_from_opposite_to_equal_and_end_with_those_that_have_met():
    assert (len(EDGES), EDGES[0], EDGES[-1]) == (BINS + 1, -1.0, 1.0)
    assert (np.diff(EDGES) > 0).all()
    np.testing.assert_allclose(EDGES[-1 - CLOSE], 1 - 1e-3, rtol=1e-15)
    np.testing.assert_allclose(-np.diff(ANGLES[:60]), np.radians(3), rtol=1e-12)


@pytest.mark.parametrize("different", [True, False])
@pytest.mark.parametrize(("count", "dimension"), [(2, 3), (100, 2), (700, 3), (600, 64)])
def test_points_against_all_pairs(count, dimension, different):
    random = np.random.default_rng(count)
    points, masses = unit(random, count, dimension), random.random(count) / count
    points[: count // 2] = points[0] + 1e-3 * random.standard_normal((count // 2, dimension))  # for the fine bins
    points /= np.linalg.norm(points, axis=1)[:, None]
    found = pairs_of_points(points, masses, different=different)
    # Rounding of z moves a pair in 1e13 across an edge: none here, so that sums are equal to rounding.
    np.testing.assert_allclose(found, by_brute_force(points, masses, different), atol=1e-13)


def test_equiangular_tokens_and_a_single_one():
    found = pairs_of_points(np.eye(7), np.full(7, 1 / 7))
    at_right_angle = np.searchsorted(EDGES, 0.0, side="right") - 1
    assert found[at_right_angle - 1 : at_right_angle + 2].sum() == pytest.approx(1.0, abs=1e-14)  # 90° is an edge
    assert close_pairs(found) == 0.0
    assert close_pairs(pairs_of_points(np.eye(3)[:1], np.ones(1))) == 1.0
    assert close_pairs(pairs_of_points(np.repeat(np.eye(3)[:1], 5, axis=0), np.ones(5))) == pytest.approx(
        1.0, abs=1e-14
    )


def test_many_points_by_some_of_them(monkeypatch):
    """Every tenth of 5000 has the distribution of all within the sampling error: 3 ‰ a bin and more."""
    points = unit(np.random.default_rng(1), 5000, 3)
    monkeypatch.setattr(pairs, "MAX_POINTS", 500)
    found = pairs_of_points(points, np.full(5000, 2e-4))
    np.testing.assert_allclose(found, by_brute_force(points[::10], np.full(500, 2e-3), True), atol=1e-13)
    np.testing.assert_allclose(found, np.diff(EDGES) / 2, atol=5e-3)  # uniform on S²: z is uniform on [−1, 1]


def triangle(u):
    """Return P(X − Y ≤ u) of two uniform numbers X, Y in [0, 1]."""
    inside = np.clip(u, -1, 1)
    return np.where(inside < 0, (1 + inside) ** 2 / 2, 1 - (1 - inside) ** 2 / 2)


@pytest.mark.parametrize("cells", [64, 65, 256])
def test_circle_against_all_pairs_of_cells(cells):
    """Uniform tokens in two cells k apart differ by k and a triangular variable: P(angle ≤ a) is summed pair by
    pair."""
    masses = np.random.default_rng(cells).random(cells)
    masses /= masses.sum()
    width, up_to = 2 * np.pi / cells, np.zeros(len(ANGLES))
    apart = np.subtract.outer(np.arange(cells), np.arange(cells))
    for turn in (-cells, 0, cells):
        within = [triangle(a / width - apart - turn) - triangle(-a / width - apart - turn) for a in ANGLES]
        up_to += [masses @ held @ masses for held in within]
    found = pairs_of_density(mesh_circle(cells), masses)
    np.testing.assert_allclose(found, -np.diff(up_to), atol=1e-13)  # rounding of an FFT
    assert found.sum() == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize("build", [lambda: mesh_circle(100), lambda: mesh_sphere(32)], ids=["circle", "sphere"])
def test_uniform(build):
    """The distribution is uniform in the angle on S¹, in z on S²."""
    mesh = build()
    exact = -np.diff(ANGLES) / np.pi if mesh.dimension == 1 else np.diff(EDGES) / 2
    found = pairs_of_density(mesh, mesh.volumes / mesh.volume)
    # The error is rounding on the circle, and that of the highest degrees of a uniform density on rings.
    np.testing.assert_allclose(found, exact, rtol=1e-11 if mesh.dimension == 1 else 5e-3)


@pytest.mark.parametrize("rings", [32, 64])
def test_a_point_mass_makes_no_ripples(rings):
    """Half of the mass in one cell, half uniform: P is ¾ of the uniform one at angles above the smoothing, 45° to
    180°."""
    mesh = mesh_sphere(rings)
    masses = 0.5 * mesh.volumes / mesh.volume
    masses[mesh.cells // 2] += 0.5
    found = pairs_of_density(mesh, masses)
    # the highest degree is damped by e⁻¹⁰ = 5e-5; some ten degrees add up to 4e-4 and 2e-4
    np.testing.assert_allclose(found[:45], 0.75 * np.diff(EDGES)[:45] / 2, rtol=1e-3)


def test_von_mises_fisher_on_the_sphere_converges_with_the_blur():
    """ρ ∝ e^{κx·μ} has z with density ∝ sinh(κR)/R, R = √(2 + 2z); the smoothing is of second order in the mesh
    width."""
    kappa, errors = 20.0, []
    z = np.linspace(-1, 1, 400001)[1:]
    length = np.sqrt(2 + 2 * z)
    density = np.exp(kappa * (length - 2)) * -np.expm1(-2 * kappa * length) / length
    up_to = np.cumsum(density) / density.sum()
    exact = np.diff(np.interp(EDGES, z, up_to))
    for rings in (32, 64, 128):
        mesh = mesh_sphere(rings)
        masses = np.exp(kappa * (mesh.centers[:, 2] - 1)) * mesh.volumes
        errors.append(np.abs(pairs_of_density(mesh, masses / masses.sum()) - exact).max())
    rates = np.log2(np.array(errors[:-1]) / errors[1:])
    assert rates.min() > 1.8, f"errors {errors}, rates {rates}"
    assert errors[-1] < 5e-4


@pytest.mark.parametrize("rings", [32, 80])
def test_clusters_on_the_sphere_are_counted_cell_by_cell(rings):
    """Two clusters of 0.7 and 0.3 give P(z ≥ 1 − 1e-3) = 0.58, and 0.42 at their angle."""
    mesh = mesh_sphere(rings)
    masses = np.zeros(mesh.cells)
    masses[[3, mesh.cells // 2]] = 0.7, 0.3
    found = pairs_of_density(mesh, masses)
    assert close_pairs(found) == pytest.approx(0.58, abs=1e-12)
    there = np.searchsorted(EDGES, mesh.centers[3] @ mesh.centers[mesh.cells // 2]) - 1
    assert found[there] == pytest.approx(0.42, abs=1e-12)
