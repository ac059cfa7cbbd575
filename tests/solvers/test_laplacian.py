"""Poisson's equation and eigenvalues of the Laplacian beside exact ones, on all kinds of meshes."""

import pickle

import numpy as np
import pytest

from solvers import (
    Flux,
    Laplacian,
    Robin,
    Value,
    circle,
    icosphere,
    interval,
    product,
    sphere,
    stack,
    triangles,
)


def wave(x):
    """Return sin 2a cos b (on a line sin 2a) of the coordinates a and b, an eigenvector of Δ."""
    return np.sin(2 * x[:, 0]) * (np.cos(x[:, 1]) if x.shape[1] > 1 else 1.0)


def ring(cells):
    return interval(0.0, 2 * np.pi, cells, periodic=True)


def stretched(cells):
    return interval(0.0, 1.0, cells, stretch=lambda s: s**2)


def square(cells):
    """Return a triangulated unit square with displaced inner points."""
    x, y = np.meshgrid(np.linspace(0, 1, cells + 1), np.linspace(0, 1, cells + 1), indexing="ij")
    inside = np.zeros_like(x)
    inside[1:-1, 1:-1] = 0.1 / cells
    points = np.stack([x + inside * np.sin(9 * y), y + inside * np.cos(7 * x)], axis=-1).reshape(-1, 2)
    corner = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    halves = [[corner, corner + cells + 1, corner + cells + 2], [corner, corner + cells + 2, corner + 1]]
    return triangles(points, np.concatenate([np.stack(half, axis=1) for half in halves]))


# mesh, two sizes, exact solution, its eigenvalue, least order; the boundary holds the exact values
KINDS = {
    "circle": (circle, (32, 64), lambda x: x[:, 0], -1.0, 3.9),
    "stretched line": (stretched, (32, 64), wave, -4.0, 1.9),
    "box": (lambda n: product(interval(0, 1, n), interval(0, 1, n)), (16, 32), wave, -5.0, 1.9),
    "torus": (lambda n: product(ring(n), ring(n)), (16, 32), wave, -5.0, 3.8),
    "sphere": (sphere, (24, 48), lambda x: x[:, 0] * x[:, 2], -6.0, 1.9),
    "icosphere": (icosphere, (2, 3), lambda x: x[:, 0] * x[:, 2], -6.0, 1.9),
    "triangles": (square, (12, 24), wave, -5.0, 1.8),
}


def held(mesh):
    return {tag: Value(lambda t, x: wave(x)) for tag, faces in mesh.boundary_faces.items() if len(faces)}


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_poisson_s_equation(kind):
    make, sizes, exact, eigenvalue, least = KINDS[kind]
    errors = []
    for size in sizes:
        mesh = make(size)
        u = exact(mesh.centers)
        expected = u if held(mesh) else u - mesh.integrate(u) / mesh.volume
        found = Laplacian(mesh, held(mesh)).solve(eigenvalue * u)
        errors.append(float(np.sqrt(mesh.integrate((found - expected) ** 2) / mesh.volume)))
    order = np.log2(errors[0] / errors[1])
    assert order > least, f"order {order:.3g}, errors {errors}"


@pytest.mark.parametrize(
    "mesh", [sphere(16), icosphere(2), circle(20), product(interval(0, 1, 6), interval(0, 2, 7)), square(5)], ids=repr
)
def test_the_solution_solves_the_equation_and_has_mean_0(mesh):
    laplacian = Laplacian(mesh)
    f = np.random.default_rng(0).standard_normal((2, 3, mesh.cells))
    f -= (mesh.integrate(f) / mesh.volume)[..., None]
    u = laplacian.solve(f)
    np.testing.assert_allclose((laplacian.matrix @ u.reshape(6, -1).T).T.reshape(f.shape), f, atol=1e-8)
    np.testing.assert_allclose(mesh.integrate(u), 0.0, atol=1e-10)


def test_conditions_of_all_kinds_hold():
    """Δu = 2 with u' = −1 at 0 and u + u' = 5 at 1 has the solution x² − x + 4."""
    mesh = interval(0.0, 1.0, 40)
    ends = {"left": Flux(1.0), "right": Robin(1.0, 1.0, 5.0)}
    x = mesh.centers[:, 0]
    np.testing.assert_allclose(Laplacian(mesh, ends).solve(2.0), x**2 - x + 4.0, atol=5e-4)


def test_a_source_that_the_flux_through_the_boundary_balances_has_a_solution():
    """Inflow 1 at both ends balances Δu = 2; u = x² − x + 1/6 has mean 0."""
    mesh = interval(0.0, 1.0, 40)
    x = mesh.centers[:, 0]
    ends = {"left": Flux(1.0), "right": Flux(1.0)}
    np.testing.assert_allclose(Laplacian(mesh, ends).solve(2.0), x**2 - x + 1 / 6, atol=2e-4)
    with pytest.raises(
        ValueError, match=r"^f: integral of 1, .*: expected 0, as constants are the nullspace .* Value$"
    ):
        Laplacian(mesh).solve(1.0)


def test_each_part_of_a_mesh_has_a_nullspace():
    one = circle(16)
    f = np.cos(np.arctan2(one.centers[:, 1], one.centers[:, 0]))
    found = Laplacian(stack(one, 3)).solve(np.concatenate([f, 2 * f, 3 * f])).reshape(3, 16)
    np.testing.assert_allclose(found, [-f, -2 * f, -3 * f], atol=1e-3)


def test_eigenvalues_and_fields_of_the_sphere():
    mesh = sphere(24)
    laplacian = Laplacian(mesh)
    values, fields = laplacian.eigs(9)
    np.testing.assert_allclose(values, [0, -2, -2, -2, -6, -6, -6, -6, -6], atol=1e-3 * 6)
    np.testing.assert_allclose(mesh.integrate(fields**2), 1.0)
    np.testing.assert_allclose(laplacian.matrix @ fields.T, fields.T * values, atol=1e-8)
    assert np.linalg.matrix_rank(fields, tol=1e-3) == 9


def test_modes_of_a_drum():
    """A unit square that is held at its sides has the eigenvalues −π² (m² + n²)."""
    mesh = product(interval(0, 1, 40), interval(0, 1, 40))
    values, _ = Laplacian(mesh, {tag: Value(0.0) for tag in mesh.boundary_faces}).eigs(4)
    np.testing.assert_allclose(values / -(np.pi**2), [2, 5, 5, 8], rtol=5e-3)


def test_a_laplacian_that_has_solved_can_be_pickled():
    laplacian = Laplacian(circle(16))
    x = laplacian.mesh.centers[:, 0]
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(laplacian)).solve(x), laplacian.solve(x))


@pytest.mark.parametrize("f", [np.ones(7), np.full(16, np.nan)])
def test_other_right_hand_sides_are_refused(f):
    with pytest.raises(ValueError, match=r"^f"):
        Laplacian(circle(16)).solve(f)
