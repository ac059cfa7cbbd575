"""Harmonics of sums with the kernel e^{⟨x,By⟩}, and their rotations and products with coordinates."""

import numpy as np
import pytest

from solvers.backends import cpu
from solvers.transforms.anisotropic import bilinear
from solvers.transforms.anisotropic.bilinear import Bilinear
from solvers.transforms.anisotropic.blocks import BlockMatrix
from solvers.transforms.anisotropic.principal_axes import PrincipalAxes
from solvers.transforms.anisotropic.rotation import (
    complex_coefficients,
    real_coefficients,
    rotation_blocks,
    times_coordinates,
)
from solvers.transforms.exponential import exponential_degree
from solvers.transforms.gauss_grid import GaussGrid
from solvers.transforms.harmonics import SphereHarmonics
from solvers.transforms.harmonics_points import PointHarmonics

DEGREE = 11
GRID = GaussGrid(DEGREE)
HARMONICS = SphereHarmonics(GRID, DEGREE)
RANDOM = np.random.default_rng(0)
LEVERS = RANDOM.standard_normal((4, 3))


def function(points):
    """Return a polynomial of degree 7, (n,)."""
    return (points @ LEVERS[0]) ** 7 + (points @ LEVERS[1]) ** 4 - (points @ LEVERS[2]) ** 3 + points @ LEVERS[3]


def coefficients_of(values):
    return HARMONICS.analysis(GRID.volumes * values)


def a_rotation():
    matrix = np.linalg.qr(RANDOM.standard_normal((3, 3)))[0]
    return matrix * np.linalg.det(matrix)


ROTATIONS = {
    "any": a_rotation(),
    "none": np.eye(3),
    "about z": np.array([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]]),
    "turned over": np.array([[0.6, 0.8, 0.0], [0.8, -0.6, 0.0], [0.0, 0.0, -1.0]]),
    "x to z": np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]]),
}


def test_real_coefficients_are_orthonormal_and_turn_back():
    coefficients = coefficients_of(function(GRID.centers))
    real = real_coefficients(coefficients)
    assert np.sum(real**2) == pytest.approx(GRID.volumes @ function(GRID.centers) ** 2, rel=1e-13)  # Parseval
    np.testing.assert_allclose(complex_coefficients(real, DEGREE), coefficients, atol=1e-13)


@pytest.mark.parametrize("name", ROTATIONS)
def test_a_rotated_function(name):
    rotation = ROTATIONS[name]
    real = real_coefficients(coefficients_of(function(GRID.centers)))
    turned = BlockMatrix(rotation_blocks(rotation, DEGREE), cpu).apply(real[None])[0]
    exact = real_coefficients(coefficients_of(function(GRID.centers @ rotation)))  # f(R⁻¹x)
    np.testing.assert_allclose(turned, exact, atol=1e-14 * np.abs(exact).max() * DEGREE)


def test_products_with_the_coordinates():
    values = function(GRID.centers)
    products = times_coordinates(coefficients_of(values))
    for product, factor in zip(products, (1.0, *GRID.centers.T), strict=True):
        exact = coefficients_of(values * factor)[:DEGREE, :DEGREE]
        np.testing.assert_allclose(product, exact, atol=1e-14 * np.abs(exact).max() * DEGREE)


def test_a_matrix_of_blocks():
    blocks = [RANDOM.standard_normal(shape) for shape in ((2, 3), (4, 1), (0, 2), (3, 3))]
    dense = np.zeros((9, 9))
    row = column = 0
    for block in blocks:
        dense[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    vectors = RANDOM.standard_normal((9, 5)).T
    np.testing.assert_allclose(BlockMatrix(blocks, cpu).apply(vectors), vectors @ dense.T, rtol=1e-13, atol=1e-14)


MATRICES = {
    "any": RANDOM.standard_normal((3, 3)),
    "rank one": np.outer([0.2, 1.0, -0.5], [1.0, 0.4, 2.0]),
    "identity": np.eye(3),
    "opposite": -np.eye(3),
    "reflection": np.diag([-1.0, 1.0, 0.3]),
    "none": np.zeros((3, 3)),
}


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("size", [0.5, 9.0])
def test_sums_over_points(name, size):
    """Z e^{−s} and N e^{−s} of three points, at the nodes of a grid, equal the direct sums."""
    matrix = MATRICES[name] * (size / max(np.linalg.norm(MATRICES[name], 2), 1e-300))
    degree = exponential_degree(3, size) + 1
    most = int(1.5 * degree)
    smoothing = bilinear._SMOOTHNESS * size / most

    def scale(lengths):
        return np.hypot(lengths, smoothing)

    points = RANDOM.standard_normal((3, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    weights = np.array([0.5, 0.3, 0.2])
    axes = PrincipalAxes(matrix, scale, degree, most, cpu)
    sets = axes.apply(PointHarmonics(points, degree).analysis(weights))
    grid = GaussGrid(most)
    harmonics = SphereHarmonics(grid, most)
    towards = grid.centers @ matrix
    kernel = np.exp(towards @ points.T - scale(np.linalg.norm(towards, axis=1))[:, None]) * weights
    normalizer, vectors = harmonics.vectors(sets)
    np.testing.assert_allclose(normalizer, kernel.sum(axis=1), atol=2e-13)  # the degree neglects 1e-16 of e^size
    np.testing.assert_allclose(vectors, kernel @ points, atol=2e-13)


def test_a_matrix_too_large_is_a_dense_sum_between_grids(monkeypatch):
    """The results agree to 4e-11, the tolerance of a grid."""
    from solvers.mesh.mesh import sphere

    mesh, matrix = sphere(64), MATRICES["any"]
    masses = mesh.volumes * np.exp(3 * mesh.centers[:, 0])
    by_axes = Bilinear(mesh, matrix)
    monkeypatch.setattr(bilinear, "_MAX_BYTES", 0)
    by_grid = Bilinear(mesh, matrix)
    assert by_axes._targets.axes is not None
    assert by_grid._targets.axes is None
    for one, other in zip(by_axes.apply(masses), by_grid.apply(masses), strict=True):
        np.testing.assert_allclose(one, other, rtol=4e-11, atol=1e-12)


def test_a_matrix_between_harmonics_up_to_the_size_that_the_docs_state():
    sizes = [exponential_degree(3, size) + 1 for size in (50, 51)]
    fits = [PrincipalAxes.bytes(degree, int(np.ceil(1.5 * degree))) <= bilinear._MAX_BYTES for degree in sizes]
    assert fits == [True, False]


def test_points_that_move_do_without_a_matrix_between_harmonics():
    """The matrix would be rebuilt for each velocity, which takes as long as several sums between grids."""
    sums = Bilinear(GaussGrid(40).centers, MATRICES["any"])
    assert sums._targets is not None
    assert sums._targets.axes is None
