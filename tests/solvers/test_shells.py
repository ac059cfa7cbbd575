"""Attention over shells, compared with sums over all pairs of cells."""

import numpy as np
import pytest

from meanfield.domains.free_radius.attention import VISIBLE, ShellAttention, output_at_positions
from meanfield.domains.free_radius.equation import FreeRadius, radial_mesh
from meanfield.domains.free_radius.initial import initial_gaussian
from solvers.mesh.mesh import circle, sphere
from solvers.transforms.shells import shells

ROUNDING = 5e-12  # rounding of transforms and Bessel functions, which differ by version: 2.3e-12 with SciPy 1.15
VALUE = np.array([[0.3, -1.0, 0.2], [0.7, 0.4, -0.5], [0.1, 0.6, 0.8]])
KEY_QUERY = np.array([[1.0, -0.5, 0.3], [0.2, 0.0, 0.4], [0.0, 0.7, -0.6]])


def two_clouds(space):
    away = np.zeros(space.directions.centers.shape[1])
    away[0] = 1.0
    return 0.5 * initial_gaussian(space, 0.6 * away, 0.2) + 0.5 * initial_gaussian(space, -away, 0.1)


def by_pairs(space, density, form, value, time=0.0):
    """Return V Σ y e^{⟨Bx,y⟩} m / Σ e^{⟨Bx,y⟩} m over all pairs of visible cells, and the masses."""
    masses = (density * space.volumes).ravel()
    x = space.centers(time).reshape(masses.size, -1)
    seen = masses > VISIBLE * masses.sum()
    output = np.empty_like(x)
    for rows in np.array_split(np.arange(len(x)), 1 + len(x) // 400):
        exponents = x[rows] @ form.T @ x[seen].T
        kernel = np.exp(exponents - exponents.max(axis=1, keepdims=True)) * masses[seen]
        output[rows] = kernel @ x[seen] / kernel.sum(axis=1, keepdims=True)
    return output @ value.T, masses


def mass_weighted(masses, found, expected, space):
    return masses @ np.linalg.norm(found.reshape(expected.shape) - expected, axis=1) / space.radii().max()


@pytest.mark.parametrize("directions", [circle(64), circle(33)], ids=lambda mesh: f"{mesh.cells} cells")
@pytest.mark.parametrize("beta", [-3.0, 0.0, 1.0, 8.0, 50.0, 2000.0])
def test_attention_on_the_circle(directions, beta):
    """Transforms, pairs and their mixture agree with sums over cells to rounding, for any β."""
    space = FreeRadius(directions, radial_mesh(0.02, 6.0, 32, 0.5), expansion=0.2)
    density, value = two_clouds(space), VALUE[:2, :2]
    output = output_at_positions(space, ShellAttention(directions, beta, value))
    for time in (0.0, 1.0):  # the radii have grown in the meantime
        expected, masses = by_pairs(space, density, beta * np.eye(2), value, time)
        assert mass_weighted(masses, output(time, density), expected, space) < 1e-10


@pytest.mark.parametrize("beta", [8.0, 2000.0])
def test_attention_on_the_sphere_by_pairs(beta):
    """Pairs are summed where shells are too far apart for transforms, and with general Q and K."""
    space = FreeRadius(sphere(12), radial_mesh(0.1, 6.0, 12, 0.5))
    density = two_clouds(space)
    for key_query in (KEY_QUERY, np.eye(3)):
        attention = ShellAttention(space.directions, beta, VALUE, key_query)
        if beta == 8.0 and key_query is not KEY_QUERY:
            continue  # the test below covers shells by transforms
        found = output_at_positions(space, attention)(0.0, density)
        expected, masses = by_pairs(space, density, beta * key_query, VALUE)
        weights = (
            masses if key_query is KEY_QUERY else masses * (space.radii() ** 2 * beta > 200).repeat(len(density[0]))
        )
        assert mass_weighted(weights, found, expected, space) < 1e-10


def test_shells_of_the_sphere():
    """Transforms agree with pairs; 1 − (2D)² of the uniform part is in closed form: ∫ e^{b⟨ω,ω'⟩} dω' = 4π
    sinh(b)/b."""
    mesh = sphere(12)
    radii, random = np.array([0.4, 1.1, 2.5]), np.random.default_rng(0)
    masses = random.random((3, mesh.cells)) * mesh.volumes
    sums, exponents = shells(mesh), 8.0 * np.outer(radii, radii)
    found = sums.sums(sums.multipliers.of(exponents), masses, radii)
    mean = masses.sum(axis=1) / mesh.volume
    mean *= 1 - (np.abs(masses - mean[:, None] * mesh.volumes).sum(axis=1) / masses.sum(axis=1)) ** 2
    rest = masses - mean[:, None] * mesh.volumes
    for i in range(3):
        normalizer, numerator = np.zeros(mesh.cells), np.zeros((mesh.cells, 3))
        for j, b in enumerate(exponents[i]):
            kernel = np.exp(b * (mesh.centers @ mesh.centers.T - 1)) * rest[j]
            normalizer += kernel.sum(axis=1) + mean[j] * 2 * np.pi * -np.expm1(-2 * b) / b
            # Derivative of 4π sinh(b)/b, over e^b.
            slope = 2 * np.pi * ((1 + np.exp(-2 * b)) / b + np.expm1(-2 * b) / b**2)
            numerator += radii[j] * (kernel @ mesh.centers + mean[j] * slope * mesh.centers)
        np.testing.assert_allclose(found[0][i], normalizer, rtol=0, atol=ROUNDING * normalizer.max())
        np.testing.assert_allclose(found[1][i], numerator, rtol=0, atol=ROUNDING * np.abs(numerator).max())


def test_uniform_shells_turn_nothing():
    """Uniform directions stay uniform: A is radial to rounding, whatever the quadrature of the cells."""
    space = FreeRadius(sphere(12), radial_mesh(0.3, 3.0, 6, 0.5))
    attention = ShellAttention(space.directions, 2.0)
    output = attention.output(space.radii(), np.outer([1, 2, 4, 3, 2, 1], space.directions.volumes))
    x = space.directions.centers
    across = output - np.einsum("rnd,nd->rn", output, x)[..., None] * x
    assert np.abs(across).max() < 1e-13 * np.abs(output).max()


def test_unnormalized():
    """A = V N for two points on a line through the origin, in the plane."""
    directions = circle(4)  # centers at 45°, 135°, …
    radii, masses = np.array([0.5, 1.0, 2.0]), np.zeros((3, 4))
    masses[0, 0], masses[2, 2] = 0.3, 0.9
    output = ShellAttention(directions, 1.5, normalization="unnormalized").output(radii, masses)
    points = np.array([0.5 * directions.centers[0], 2.0 * directions.centers[2]])
    for shell, radius in enumerate(radii):
        kernel = np.exp(1.5 * radius * directions.centers @ points.T) * [0.3, 0.9]
        np.testing.assert_allclose(output[shell], kernel @ points, rtol=1e-12, atol=1e-12)
    with pytest.raises(ValueError, match="normalization = 'none'"):
        ShellAttention(directions, 1.0, normalization="none")


def test_a_lost_state_is_passed_on():
    """NaN is returned where the state is lost, for the loop in time to report; no other error is raised."""
    masses = np.ones((3, 8))
    masses[1, 2] = np.nan
    assert np.isnan(ShellAttention(circle(8), 1.0).output(np.array([0.5, 1.0, 2.0]), masses)).all()


def test_the_unit_of_mass_does_not_matter():
    space = FreeRadius(circle(16), radial_mesh(0.1, 4.0, 12, 0.5))
    masses, attention = two_clouds(space) * space.volumes, ShellAttention(space.directions, 3.0)
    once, thousand = (attention.output(space.radii(), unit * masses) for unit in (1.0, 1024.0))
    np.testing.assert_allclose(thousand, once, rtol=1e-12, atol=1e-14)


def test_output_is_bounded_where_nothing_is():
    """|A| is at most the largest radius that holds mass, also where Z is only rounding."""
    space = FreeRadius(circle(32), radial_mesh(0.1, 10.0, 24, 0.5))
    masses = np.zeros(space.shape)
    masses[12, 3] = 1.0
    output = ShellAttention(space.directions, 30.0).output(space.radii(), masses)
    assert np.linalg.norm(output, axis=2).max() <= space.radii()[12] * (1 + 1e-12)


def test_clusters_on_shells_see_the_cells_sum():
    """The difference of a uniform shell from the sum of its cells, 1e-2 on so few, does not enter clusters."""
    mesh, radii = sphere(6), np.array([0.7, 1.4])
    masses = np.zeros((2, mesh.cells))
    masses[0, 5], masses[1, [20, 40]] = 0.5, (0.2, 0.3)
    found = ShellAttention(mesh, 2.0).output(radii, masses)
    points = (radii[:, None, None] * mesh.centers).reshape(-1, 3)
    weights = np.exp(2.0 * points @ points.T) * masses.ravel()
    exact = (weights @ points / weights.sum(axis=1)[:, None]).reshape(found.shape)
    np.testing.assert_allclose(found, exact, rtol=0, atol=ROUNDING)
