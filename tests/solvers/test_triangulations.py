"""Gradients, heat and advection on triangulations, even, displaced at random, and stretched: orders of the errors."""

import numpy as np
import pytest
from scipy.spatial import Delaunay
from scipy.special import jn_zeros, jnp_zeros
from support import exact

from solvers import Advection, Diffusion, Equation, Laplacian, Value, disk, solve, triangles
from solvers.mesh.simplices.triangulation import triangles_of


def square(n, shift):
    """Return points (n + 1)² of the unit square, those inside displaced by up to ``shift`` of an edge, and corners."""
    line = np.linspace(0.0, 1.0, n + 1)
    points = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    inside = ((points > 0) & (points < 1)).all(axis=1)
    points[inside] += shift / n * np.random.default_rng(0).uniform(-1, 1, (inside.sum(), 2))
    i, j = np.divmod(np.arange(n * n), n)
    a = i * (n + 1) + j
    halves = [np.stack([a, a + n + 1, a + 1], axis=1), np.stack([a + n + 1, a + n + 2, a + 1], axis=1)]
    return points, np.concatenate(halves)


def even(n):
    return triangles(*square(n, 0.0))


def uneven(n):
    return triangles(*square(n, 0.24))


def stretched(n):
    """Return a Delaunay triangulation of points at random places, stretched by 1 : 10."""
    points = square(n, 0.45)[0]
    return triangles(points * [1.0, 0.1], Delaunay(points).simplices)


@pytest.mark.parametrize("shift", [0.0, 0.24])
def test_the_triangles_of_a_mesh_are_the_given_ones(shift):
    points, corners = square(6, shift)
    found = triangles_of(triangles(points, corners))
    assert sorted(np.sort(found, axis=1).tolist()) == sorted(np.sort(corners, axis=1).tolist())
    a, b, c = points[found].swapaxes(0, 1)
    assert ((b - a)[:, 0] * (c - a)[:, 1] > (b - a)[:, 1] * (c - a)[:, 0]).all()  # counterclockwise


@pytest.mark.parametrize("make", [even, uneven, stretched])
def test_the_gradient_of_a_parabola_is_exact_at_the_boundary_too(make):
    mesh = make(8)
    x, y = mesh.centers.T
    found = mesh.gradient(x**2 - 3 * x * y + 2 * y**2 - y)
    np.testing.assert_allclose(found, np.stack([2 * x - 3 * y, 4 * y - 3 * x - 1], axis=1), atol=1e-11)


@pytest.mark.parametrize("make", [uneven, stretched])
def test_the_gradient_is_of_second_order(make):
    sizes, errors = (32, 64), []
    for n in sizes:
        mesh = make(n)
        height = mesh.centers[:, 1].max()
        x, y = mesh.centers[:, 0], mesh.centers[:, 1] / height
        found = mesh.gradient(np.sin(3 * x) * np.cos(2 * y)) * [1.0, height]
        slope = np.stack([3 * np.cos(3 * x) * np.cos(2 * y), -2 * np.sin(3 * x) * np.sin(2 * y)], axis=1)
        errors.append(np.sqrt(((found - slope) ** 2).sum(axis=1).mean()))
    assert exact.orders(errors, sizes)[-1] > 1.9, errors


@pytest.mark.parametrize("make", [even, uneven, stretched])
def test_heat_is_of_second_order(make):
    """A mode of the square decays to e^(−1/2) between walls."""
    sizes, errors = (16, 32), []
    for n in sizes:
        mesh = make(n)
        height = mesh.centers[:, 1].max()
        mode = np.cos(np.pi * mesh.centers[:, 0]) * np.cos(np.pi * mesh.centers[:, 1] / height)
        decay = np.pi**2 * (1 + 1 / height**2)
        found = solve(Equation(mesh, [Diffusion(mesh, 1.0)]), 2 + mode, (0.0, 0.5 / decay), rtol=1e-6).u[-1]
        errors.append(np.sqrt(mesh.integrate((found - 2 - np.exp(-0.5) * mode) ** 2) / mesh.volume))
    assert exact.orders(errors, sizes)[-1] > 1.9, errors


def wave(x, t):
    """Return a Gaussian that moves with the velocity (0.5, 0.3) and does not reach the walls."""
    return np.exp(-(((x - [0.4, 0.45] - np.multiply([0.5, 0.3], t)) / 0.1) ** 2).sum(axis=1))


@pytest.mark.parametrize("make", [even, uneven])
def test_advection_of_a_smooth_profile_is_of_second_order(make):
    sizes, errors, end = (24, 48), [], 0.2
    for n in sizes:
        mesh = make(n)
        flow = np.tile([0.5, 0.3], (mesh.cells, 1))
        equation = Equation(mesh, [Advection(mesh, lambda t, u: flow)])  # noqa: B023
        found = solve(equation, wave(mesh.centers, 0.0), (0.0, end), method="ssp3", rtol=None).u[-1]
        errors.append(mesh.integrate(np.abs(found - wave(mesh.centers, end))))
    assert exact.orders(errors, sizes)[-1] > 1.7, errors


def test_poisson_s_equation_and_the_eigenvalues_of_a_disk_are_of_second_order():
    """Δu = −8x for u = x (1 − r²); the eigenvalues are squares of zeros of J₀ and J₁, and of J₁′ between walls."""
    rings, errors = (8, 16), []
    for number in rings:
        mesh = disk(2.0, number)
        assert mesh.cells == 3 * number * (number + 1) + 1
        x, y = mesh.centers.T / 2
        held, free = Laplacian(mesh, {"boundary": Value(0.0)}), Laplacian(mesh)
        poisson = np.abs(held.solve(-2 * x) - x * (1 - x**2 - y**2)).max()
        drum = held.eigs(3)[0] * 4 / -(np.repeat([jn_zeros(0, 1)[0], jn_zeros(1, 1)[0]], [1, 2]) ** 2)
        plate = free.eigs(3)[0][1:] * 4 / -(jnp_zeros(1, 1)[0] ** 2)
        errors.append([poisson, *np.abs(drum - 1), *np.abs(plate - 1), 1 - mesh.volume / (4 * np.pi)])
    orders = [exact.orders(each, rings)[-1] for each in zip(*errors, strict=True)]
    assert min(orders) > 1.9, f"orders {orders}, errors {errors}"
    assert max(errors[-1]) < 0.01, errors


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((0.0, 4), ValueError, r"^radius = 0\.0: expected a number > 0"),
        ((1j, 4), TypeError, r"^radius = 1j: expected "),
        ((1.0, 0), ValueError, r"^rings = 0: expected a whole number >= 1"),
        ((1.0, 10**9), ValueError, r"^rings = 1000000000: expected a mesh of at most "),
    ],
)
def test_other_disks_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        disk(*arguments)
