"""Gradient, divergence, interpolation and integral of fields on a mesh, beside exact ones."""

import numpy as np
import pytest

from solvers import box, circle, icosphere, interval, product, sphere, triangles
from solvers.mesh.calculus import least_squares_weights, quadratic_weights, tangent_planes

RNG = np.random.default_rng(0)


def ring(cells):
    return interval(0.0, 2 * np.pi, cells, periodic=True)


def walled(cells):
    return interval(0.0, 1.0, cells)


def wave(x):
    """Return a function of x and y, its gradient and its Laplacian."""
    a, b = x[:, 0], x[:, 1] if x.shape[1] > 1 else 0 * x[:, 0]
    slopes = [np.cos(a) * np.cos(2 * b), -2 * np.sin(a) * np.sin(2 * b)][: x.shape[1]]
    f = np.sin(a) * np.cos(2 * b)
    return f, np.stack(slopes, axis=1), -f * (1 if x.shape[1] == 1 else 5)


def harmonic(x):
    """Return x z (on the circle x), its gradient and its Laplacian on the unit sphere, or the unit circle."""
    degree = x.shape[1] - 1
    f = x[:, 0] * x[:, 2] if degree == 2 else x[:, 0]
    slope = np.zeros_like(x)
    slope[:, 0] = x[:, 2] if degree == 2 else 1.0
    slope[:, -1] += x[:, 0] if degree == 2 else 0.0
    return f, slope - (slope * x).sum(axis=1)[:, None] * x, -degree * (degree + x.shape[1] - 2) * f


# mesh, exact functions, two numbers of cells, least orders of gradient and divergence in the mean, of values at points
KINDS = {
    "periodic line": (ring, wave, (64, 128), 1.95, 1.95, 1.9),
    "line": (walled, wave, (64, 128), 1.45, 1.45, 1.9),
    "circle": (circle, harmonic, (64, 128), 1.95, 1.95, 1.9),
    "torus": (lambda n: product(ring(n), ring(n)), wave, (32, 64), 1.85, 1.85, 1.8),
    "channel": (lambda n: product(ring(n), walled(n)), wave, (32, 64), 1.4, 1.4, 1.8),
    "sphere": (sphere, harmonic, (32, 64), 1.3, 1.3, 1.8),
    "icosphere": (icosphere, harmonic, (3, 4), 1.8, 1.8, 1.8),
}


def errors(make, exact, size):
    """Return the errors of gradient and divergence in root mean square, and the largest of values at points."""
    mesh = make(size)
    f, slope, laplacian = exact(mesh.centers)
    points = mesh.centers[RNG.integers(0, mesh.cells, 400)]
    points = points + RNG.uniform(-0.5, 0.5, points.shape) * mesh.width
    if exact is harmonic:
        points /= np.linalg.norm(points, axis=1)[:, None]
    found = mesh.gradient(f), mesh.divergence(slope), mesh.interpolate(f, points)
    squares = ((found[0] - slope) ** 2).sum(axis=1), (found[1] - laplacian) ** 2
    means = [float(np.sqrt(mesh.integrate(square) / mesh.volume)) for square in squares]
    return np.array([*means, np.abs(found[2] - exact(points)[0]).max()])


@pytest.mark.parametrize("kind", KINDS)
def test_orders(kind):
    make, exact, sizes, *least = KINDS[kind]
    coarse, fine = (errors(make, exact, size) for size in sizes)
    orders = np.log2((coarse + 1e-14) / (fine + 1e-14))
    is_exact = coarse < 1e-12  # least squares on a circle
    assert (is_exact | (orders >= least)).all(), f"orders {orders} from errors {coarse}, {fine}"


def triangulation(n=8):
    """Return a triangulated unit square whose inner corners are displaced."""
    x, y = np.meshgrid(np.linspace(0, 1, n + 1), np.linspace(0, 1, n + 1), indexing="ij")
    inside = np.zeros_like(x)
    inside[1:-1, 1:-1] = 0.2 / n
    points = np.stack([x + inside * np.sin(9 * y), y + inside * np.cos(7 * x)], axis=-1).reshape(-1, 2)
    corner = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    halves = [[corner, corner + n + 1, corner + n + 2], [corner, corner + n + 2, corner + 1]]
    return triangles(points, np.concatenate([np.stack(half, axis=1) for half in halves]))


@pytest.mark.parametrize("mesh", [triangulation(), product(walled(5), walled(7))], ids=repr)
def test_linear_fields_are_exact(mesh):
    slope = np.array([2.0, -3.0])
    u, points = mesh.centers @ slope + 1.0, RNG.uniform(0.0, 1.0, (50, 2))
    np.testing.assert_allclose(mesh.gradient(u) - slope, 0.0, atol=1e-12)
    np.testing.assert_allclose(mesh.interpolate(u, points), points @ slope + 1.0, atol=1e-12)
    if mesh.shape:  # faces of other cells are not plane
        np.testing.assert_allclose(mesh.divergence(mesh.centers * slope), -1.0, atol=1e-11)


@pytest.mark.parametrize("mesh", [sphere(16), icosphere(2), circle(20), product(ring(8), ring(9))], ids=repr)
def test_the_integral_of_a_divergence_on_a_closed_mesh_is_0(mesh):
    v = RNG.standard_normal((mesh.cells, mesh.ambient_dimension))
    assert abs(mesh.integrate(mesh.divergence(v))) < 1e-12 * mesh.integrate(np.abs(mesh.divergence(v)))


def test_several_fields_are_taken_at_once():
    mesh = sphere(16)
    u = RNG.standard_normal((2, 3, mesh.cells))
    slopes = mesh.gradient(u)
    points = mesh.centers[:5] + 0.01
    assert slopes.shape == (2, 3, mesh.cells, 3)
    np.testing.assert_allclose(slopes[1, 2], mesh.gradient(u[1, 2]), atol=1e-13)
    np.testing.assert_allclose(mesh.divergence(slopes)[1, 2], mesh.divergence(slopes[1, 2]), atol=1e-11)
    np.testing.assert_allclose(mesh.interpolate(u, points)[1, 2], mesh.interpolate(u[1, 2], points), atol=1e-13)
    np.testing.assert_allclose(mesh.integrate(u)[1, 2], u[1, 2] @ mesh.volumes)


def test_points_across_a_period_are_near():
    mesh = product(ring(64), walled(8))
    u = np.cos(mesh.centers[:, 0])
    points = np.array([[0.0, 0.5], [2 * np.pi, 0.5], [-1e-20, 0.5], [-0.3, 0.5], [2 * np.pi + 0.2, 0.5]])
    np.testing.assert_allclose(mesh.interpolate(u, points), np.cos(points[:, 0]), atol=2e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda mesh: mesh.gradient(np.ones(7)), r"^u of shape \(7,\): expected 8 cells$"),
        (lambda mesh: mesh.integrate(1.0), r"^u of shape \(\): expected 8 cells$"),
        (lambda mesh: mesh.divergence(np.ones(8)), r"^v of shape \(8,\): expected \(\.\.\., 8, 1\)$"),
        (lambda mesh: mesh.interpolate(np.ones(8), [0.5]), r"^points of shape \(1,\): expected \(n, 1\)$"),
    ],
)
def test_other_shapes_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(walled(8))


def fitted_gradient(mesh, values, weights_of):
    """Return the gradient (cells, d) by the weights that ``weights_of`` returns for a mesh without periods."""
    cells = np.repeat(np.arange(mesh.cells), np.diff(mesh.cell_start))
    neighbors = mesh.side_cells[mesh.cell_sides ^ 1]
    offsets = mesh.centers[neighbors] - mesh.centers[cells]
    weights = weights_of(cells, offsets, tangent_planes(mesh))
    return np.add.reduceat((values[neighbors] - values[cells])[:, None] * weights, mesh.cell_start[:-1], axis=0)


def test_the_gradient_of_a_quadratic_fit_is_exact_for_parabolas_on_unequal_cells():
    mesh = interval(0.0, 1.0, 12, stretch=lambda s: s**2)
    x = mesh.centers[:, 0]
    found = fitted_gradient(mesh, x**2 - 3 * x, quadratic_weights)[1:-1, 0]
    np.testing.assert_allclose(found, (2 * x - 3)[1:-1], atol=1e-12)
    solid = box((3, 4, 5), (1.0, 1.0, 1.0))
    linear = fitted_gradient(solid, solid.centers @ [1.0, 2.0, 3.0], quadratic_weights)
    np.testing.assert_allclose(linear, np.tile([1.0, 2.0, 3.0], (60, 1)), atol=1e-12)


def test_the_gradient_of_a_quadratic_fit_is_north_of_a_zonal_field_where_rings_change_their_cells():
    mesh = sphere(32)
    east = np.cross([0.0, 0.0, 1.0], mesh.centers)
    plain, fit = (
        np.abs((fitted_gradient(mesh, mesh.centers[:, 2] ** 2, weights) * east).sum(axis=1)).max()
        for weights in (least_squares_weights, quadratic_weights)
    )
    assert fit < 0.3 * plain  # 2.8e-3 and 1.4e-2 near the poles
