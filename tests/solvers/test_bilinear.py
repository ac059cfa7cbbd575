"""Sums with the kernel e^{⟨x,By⟩}, compared with dense sums over all pairs of cells."""

import numpy as np
import pytest

from meanfield.domains.sphere.initial import initial_perturbed, initial_points, initial_von_mises_fisher
from solvers.mesh.mesh import circle, sphere
from solvers.transforms.anisotropic.bilinear import Bilinear
from solvers.transforms.gauss_grid import GaussGrid
from solvers.transforms.harmonics import SphereHarmonics

SPHERE, CIRCLE = sphere(40), circle(512)


def matrix_of(kind, d, size):
    """Return a random matrix of spectral norm ``size``."""
    matrix = np.random.default_rng(5).standard_normal((d, d))
    u, values, v = np.linalg.svd(matrix)
    if kind == "rank one":
        matrix = u[:, :1] * values[:1] @ v[:1]
    elif kind == "nearly singular":
        matrix = u * np.append(values[:-1], 1e-3 * values[0]) @ v
    elif kind == "repelling":
        matrix = -np.eye(d)
    return matrix * (size / np.linalg.norm(matrix, 2))


def density_of(kind, mesh):
    d = mesh.centers.shape[1]
    if kind == "smooth":
        return initial_perturbed(mesh, 0.5, 6, seed=1)
    places = np.random.default_rng(3).standard_normal((3, d))
    if kind == "bumps":
        return initial_von_mises_fisher(mesh, places[:2], [20, 40], [0.6, 0.4])
    return initial_points(mesh, places, [0.5, 0.3, 0.2])


def dense(mesh, matrix, masses):
    """Return the logarithm of the scale of Z, Z, and the mean of y, by dense sums."""
    held = masses > 0
    exponent = mesh.centers @ matrix @ mesh.centers[held].T
    highest = exponent.max(axis=1)
    weights = np.exp(exponent - highest[:, None]) * masses[held]
    normalizer = weights.sum(axis=1)
    return highest, normalizer, weights @ mesh.centers[held] / normalizer[:, None]


@pytest.mark.parametrize("size", [5.0, 50.0, 200.0])
@pytest.mark.parametrize("kind", ["ginibre", "rank one", "nearly singular", "repelling"])
@pytest.mark.parametrize("density", ["smooth", "bumps", "points"])
@pytest.mark.parametrize("mesh", [SPHERE, CIRCLE], ids=["sphere", "circle"])
def test_means_are_those_of_dense_sums(mesh, density, kind, size):
    matrix = matrix_of(kind, mesh.centers.shape[1], size)
    masses = density_of(density, mesh) * mesh.volumes
    highest, normalizer, mean = dense(mesh, matrix, masses)
    scale, sums, vectors = Bilinear(mesh, matrix).apply(masses)
    held = masses > 0
    off = np.linalg.norm(vectors[held] / sums[held, None] - mean[held], axis=1)
    assert masses[held] @ off <= 1e-11  # ten times smaller than the tolerance of the velocity
    off = np.abs(sums[held] * np.exp(scale - highest)[held] / normalizer[held] - 1)
    assert masses[held] @ off <= 1e-10


@pytest.mark.parametrize(("kind", "rings", "size"), [("ginibre", 96, 20.0), ("rank one", 140, 50.0)])
def test_grids_on_both_sides_where_cells_are_many(kind, rings, size):
    """A mesh with more cells than the grid of targets uses both the grid of sources and that of targets."""
    mesh = sphere(rings)
    matrix = matrix_of(kind, 3, size)
    operator = Bilinear(mesh, matrix)
    assert operator._targets is not None
    assert (len(operator._targets.near) > 0) == (kind == "rank one")
    for density in ("smooth", "bumps", "points"):
        masses = density_of(density, mesh) * mesh.volumes
        _, sums, vectors = operator.apply(masses)
        some = np.flatnonzero(masses)[:: max(1, np.count_nonzero(masses) // 500)]
        held = masses > 0
        exponent = mesh.centers[some] @ matrix @ mesh.centers[held].T
        weights = np.exp(exponent - exponent.max(axis=1)[:, None]) * masses[held]
        mean = weights @ mesh.centers[held] / weights.sum(axis=1)[:, None]
        off = np.linalg.norm(vectors[some] / sums[some, None] - mean, axis=1)
        assert masses[some] @ off / masses[some].sum() <= 1e-11, density


def test_no_kernel_at_all():
    masses = density_of("smooth", SPHERE) * SPHERE.volumes
    _, sums, vectors = Bilinear(SPHERE, np.zeros((3, 3))).apply(masses)
    np.testing.assert_allclose(sums, masses.sum(), rtol=1e-12)
    np.testing.assert_allclose(vectors, np.tile(masses @ SPHERE.centers, (len(sums), 1)), atol=1e-13)


def test_gauss_grid_integrates_products_of_harmonics():
    degree = 9
    grid = GaussGrid(degree)
    transform = SphereHarmonics(grid, degree)
    random = np.random.default_rng(0)
    coefficients = np.tril(random.standard_normal((degree + 1, degree + 1)) + 0j)
    again = transform.analysis(grid.volumes * transform.synthesis(coefficients))
    np.testing.assert_allclose(again, coefficients, atol=1e-13)
    assert grid.volumes.sum() == pytest.approx(4 * np.pi, rel=1e-14)
