"""Harmonic transforms equal their defining sums, on any number of rings and for orders beyond a ring's cells."""

import numpy as np
import pytest
from support import exact

from meanfield.domains.sphere.initial import initial_harmonic
from solvers.mesh.mesh import circle, sphere
from solvers.transforms.gauss_grid import GaussGrid
from solvers.transforms.harmonics import CircleHarmonics, SphereHarmonics, harmonic_transform
from solvers.transforms.ring_transforms import RingTransform
from solvers.transforms.zonal import CircleZonal, zonal_operator

DEGREE = 40  # beyond half of the cells of every ring of these meshes: aliased orders are exact, too


def angles(mesh):
    return np.arccos(mesh.centers[:, 2]), np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])


def table(function, mesh, degree):
    """Return the table [l, m, cell] of a function(degree, order, theta, phi), zero for m > l."""
    theta, phi = angles(mesh)
    values = np.zeros((degree + 1, degree + 1, mesh.cells), dtype=complex)
    for l in range(degree + 1):
        for m in range(l + 1):
            values[l, m] = function(l, m, theta, phi)
    return values


def random_coefficients(degree, seed=0):
    random = np.random.default_rng(seed)
    coefficients = np.tril(random.standard_normal((degree + 1, degree + 1))).astype(complex)
    coefficients += 1j * np.tril(random.standard_normal((degree + 1, degree + 1)), -1)
    coefficients[:, 0] = coefficients[:, 0].real
    return coefficients


@pytest.mark.parametrize("rings", [4, 5, 9, 16])
def test_analysis_is_the_sum_over_cells(rings):
    mesh = sphere(rings)
    masses = np.random.default_rng(rings).random(mesh.cells) / mesh.cells
    expected = np.conj(table(exact.harmonic, mesh, DEGREE)) @ masses
    error = np.abs(SphereHarmonics(mesh, DEGREE).analysis(masses) - expected).max()
    assert error < 1e-12, f"analysis is off by {error:.1e} at {rings} rings"  # |Y| ≤ 2, recurrences of 40 steps


@pytest.mark.parametrize("rings", [4, 5, 9, 16])
def test_synthesis_is_the_sum_over_harmonics(rings):
    mesh = sphere(rings)
    coefficients = random_coefficients(DEGREE)
    twice = np.where(np.arange(DEGREE + 1) > 0, 2.0, 1.0)
    expected = np.einsum("lm,lmi->i", twice * coefficients, table(exact.harmonic, mesh, DEGREE)).real
    error = np.abs(SphereHarmonics(mesh, DEGREE).synthesis(coefficients) - expected).max()
    assert error < 1e-11, f"synthesis is off by {error:.1e} at {rings} rings"  # sums of size 40 with 800 terms


def test_modes_stay_when_others_are_found():
    """Two threads may use a transform at the same time."""
    mesh = sphere(9)
    transform, values = RingTransform(mesh, 5), np.random.default_rng(1).random((2, mesh.cells))
    found = transform.analysis(values[0])
    before = found.copy()
    transform.analysis(values[1])
    assert np.array_equal(found, before)


def test_synthesis_inverts_analysis_to_second_order():
    """Areas as weights integrate products of harmonics with errors O(h²), as cell averages do."""
    coefficients, errors = random_coefficients(6), []
    for rings in (32, 64, 128):
        mesh = sphere(rings)
        transform = SphereHarmonics(mesh, 6)
        found = transform.analysis(transform.synthesis(coefficients) * mesh.volumes)
        errors.append(np.abs(found - coefficients).max())
    observed = exact.orders(errors[::2], (32, 128))  # over both refinements, since the rings where counts change vary
    assert observed[0] > 1.9, f"order {observed[0]:.2f}, errors {errors}"
    assert errors[-1] < 2e-3, f"error {errors[-1]:.1e} at 128 rings"


@pytest.mark.sampled
@pytest.mark.parametrize("degree", [1, 7, 40])
@pytest.mark.parametrize("mesh", [*map(sphere, range(4, 34)), GaussGrid(5), GaussGrid(6)])
def test_modes_along_rings_are_sums_over_cells(mesh, degree):
    """Values and a gradient, with another function and without: sums of 80 terms of size 1, times m ≤ 40 for ∂/∂φ."""
    random = np.random.default_rng(degree)
    masses, rings, m = random.standard_normal(mesh.cells), len(mesh.ring_cells), np.arange(degree + 1)
    modes = random.standard_normal((2, 4, degree + 1, rings))
    which = np.repeat(np.arange(rings), mesh.ring_cells)
    turns = (np.arange(mesh.cells) - mesh.ring_start[which] + 0.5) / mesh.ring_cells[which]
    waves = np.exp(2j * np.pi * np.outer(m, turns))
    of_rings = np.add.reduceat(masses * waves.conj(), mesh.ring_start[:-1], axis=1)
    half = (rings + 1) // 2
    mirrored = of_rings[:, ::-1][:, :half] * (np.arange(half) != rings - 1 - np.arange(half))
    pairs = [of_rings[:, :half] + mirrored, of_rings[:, :half] - mirrored]
    expected = [np.stack([part for pair in pairs for part in (pair.real, pair.imag)])]
    complex_modes = np.where(m > 0, 2.0, 1.0)[:, None] * (modes[0] + 1j * modes[1])
    value, north, east, radial = (
        (factor[:, None] * each[:, which] * waves).sum(axis=0).real
        for factor, each in zip((m**0, m**0, 1j * m, m**0), complex_modes, strict=True)
    )
    sine = mesh.ring_axis[0][which]
    gradient = np.stack([east / sine, -north / sine])
    expected += [value, value, gradient, value, gradient, radial]
    transform = RingTransform(mesh, degree)
    found = [transform.analysis(masses), transform.synthesis(*modes[:, :1])]
    found += [*transform.gradient(*modes[:, :3])[:2], *transform.gradient(*modes)]
    for one, other in zip(found, expected, strict=True):
        error = np.abs(one - other).max() / np.abs(other).max()
        assert error < 1e-13 * (degree + 1), f"relative error {error:.1e}"


@pytest.mark.parametrize("rings", [4, 5, 9, 16])
def test_density_above_a_level(rings):
    """The masses (ρ − level) V vanish for a uniform density to the last bit."""
    mesh, level = sphere(rings), np.float64(0.7)
    density, transform = np.random.default_rng(rings).random(mesh.cells), SphereHarmonics(mesh, DEGREE)
    for found, masses in (
        (transform.of_density(density), density * mesh.volumes),
        (transform.of_density(density, level), (density - level) * mesh.volumes),
    ):
        assert np.abs(found - transform.analysis(masses)).max() < 1e-13
    assert not transform.of_density(np.full(mesh.cells, level), level).any()


@pytest.mark.parametrize("mesh", [circle(16), sphere(8)], ids=["circle", "sphere"])
@pytest.mark.parametrize("radial", [False, True])
def test_the_uniform_part_of_a_density_is_summed_exactly(mesh, radial):
    """∫K ρ and ∇∫G ρ + x ∫R ρ are sums over cells of the part above the level, plus the level's integrals."""
    random, level = np.random.default_rng(0), np.float64(0.3)
    value, gradient, along = random.random((3, 6))
    operator = zonal_operator(mesh, value, gradient, along if radial else None)
    density = random.random(mesh.cells)
    values, vectors = operator.apply((density - level) * mesh.volumes)
    found = operator.of_density(density, level)
    np.testing.assert_allclose(found[0], values + value[0] * level, atol=1e-13)
    np.testing.assert_allclose(found[1], vectors + radial * along[0] * level * mesh.centers, atol=1e-13)
    uniform = operator.of_density(np.full(mesh.cells, level), level)
    assert np.ptp(uniform[0]) == 0.0
    assert np.abs(uniform[1] - radial * along[0] * level * mesh.centers).max() < 1e-15


def test_rows_of_a_circle_have_uniform_parts_of_their_own():
    mesh, random = circle(16), np.random.default_rng(0)
    operators = [zonal_operator(mesh, *random.random((3, 5))) for _ in range(3)]
    densities, levels = random.random((3, mesh.cells)), random.random(3)
    rows = CircleZonal.of_rows(operators).of_density(densities, levels)
    for k, operator in enumerate(operators):
        for found, alone in zip(rows, operator.of_density(densities[k], levels[k]), strict=True):
            np.testing.assert_array_equal(found[k], alone)


@pytest.mark.parametrize("degree", [1, 2, 7, 20])
def test_gradient_along_theta(degree):
    """The highest degree has to vanish: f has degree l, and the coefficients degree up to l + 1."""
    mesh = sphere(9)
    transform, masses = SphereHarmonics(mesh, degree + 1), np.random.default_rng(degree).standard_normal(mesh.cells)
    multipliers = np.append(np.linspace(1.0, 2.0, degree + 1), 0.0)
    coefficients = (multipliers[:, None] * transform.analysis(masses))[:-1, :-1]
    twice = np.where(np.arange(degree + 1) > 0, 2.0, 1.0)
    slopes = table(exact.harmonic_sine_derivative, mesh, degree)
    expected = np.einsum("lm,lmi->i", twice * coefficients, slopes).real
    modes = transform.along_rings.analysis(masses)
    _, (_, north) = transform.gradient_along_rings(modes, np.stack([multipliers] * 2))
    error = np.abs(north * np.hypot(*mesh.centers.T[:2]) + expected).max() / np.abs(expected).max()
    assert error < 1e-13, f"relative error {error:.1e}"  # a few roundings


@pytest.mark.parametrize("degree", [0, 1, 2, 5])
def test_circle_power_finds_one_mode(degree):
    mesh = circle(50)
    density = initial_harmonic(mesh, degree, 0, 0.3) if degree else np.full(50, 1 / mesh.volume)
    power = CircleHarmonics(mesh, 12).power(density * mesh.volumes)
    expected = np.where(np.arange(13) == 0, 1.0, np.where(np.arange(13) == degree, 0.09, 0.0))
    assert np.abs(power - expected).max() < 1e-14  # discrete orthogonality is exact


@pytest.mark.parametrize("cells", [49, 50])
def test_circle_power_is_parseval(cells):
    """Σ_l power = ∫(ρ/ρ̄)² for a density without modes beyond half of the cells."""
    mesh = circle(cells)
    density = 1.0 + np.cos(3 * np.arange(cells) * 2 * np.pi / cells) + np.random.default_rng(0).random()
    density /= density @ mesh.volumes
    power = CircleHarmonics(mesh, cells // 2).power(density * mesh.volumes)
    assert power.sum() == pytest.approx(np.mean((density * mesh.volume) ** 2), rel=1e-13)


@pytest.mark.parametrize("cells", [49, 50])
def test_circle_transform_is_the_sum_over_modes(cells):
    """The transform equals the sums by definition, and inverts them for a density without the highest mode."""
    mesh = circle(cells)
    transform = CircleHarmonics(mesh, 20)
    angle = np.arctan2(mesh.centers[:, 1], mesh.centers[:, 0])
    modes = np.exp(1j * np.outer(np.arange(21), angle)) / np.sqrt(2 * np.pi)
    random = np.random.default_rng(0)
    masses = random.random(cells)
    np.testing.assert_allclose(transform.analysis(masses), modes.conj() @ masses, atol=1e-13)
    coefficients = random.random(21) + 1j * random.random(21)
    coefficients[0] = 1.0
    values = transform.synthesis(coefficients)
    np.testing.assert_allclose(values, (2 * coefficients @ modes).real - modes[0].real, atol=1e-13)
    np.testing.assert_allclose(transform.analysis(values * mesh.volumes), coefficients, atol=1e-13)
    with pytest.raises(ValueError, match="half"):
        CircleHarmonics(mesh, 26)


@pytest.mark.parametrize(("degree", "order"), [(1, 0), (1, -1), (2, 2), (4, -3)])
def test_sphere_power_finds_one_mode(degree, order):
    mesh = sphere(96)
    power = SphereHarmonics(mesh, 6).power(initial_harmonic(mesh, degree, order, 0.2) * mesh.volumes)
    expected = np.where(np.arange(7) == 0, 1.0, np.where(np.arange(7) == degree, 0.04, 0.0))
    error = np.abs(power - expected).max()
    assert error < 1e-4, f"power is off by {error:.1e}"  # the O(h²) of cell averages: 0.04 · 2 · 1e-3


def test_table_of_transforms():
    assert isinstance(harmonic_transform(circle(8), 3), CircleHarmonics)
    assert isinstance(harmonic_transform(sphere(8), 3), SphereHarmonics)
    with pytest.raises(ValueError, match="expected a circle, got sphere"):
        CircleHarmonics(sphere(8), 3)
    with pytest.raises(ValueError, match="expected a sphere, got circle"):
        SphereHarmonics(circle(8), 3)


@pytest.mark.parametrize("mesh", [circle(8), sphere(8)], ids=["circle", "sphere"])
@pytest.mark.parametrize(("degree", "kind"), [(-1, ValueError), (1.5, TypeError), ("3", TypeError), (None, TypeError)])
def test_a_degree_is_a_whole_number(mesh, degree, kind):
    with pytest.raises(kind, match=f"^degree = {degree!r}: expected a whole number >= 0$"):
        harmonic_transform(mesh, degree)


@pytest.mark.parametrize("mesh", [circle(8), sphere(8)], ids=["circle", "sphere"])
@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"gradient": np.ones(3)}, ValueError, r"^gradient of shape \(3,\): expected \(4,\), the shape of value$"),
        ({"radial": np.ones(5)}, ValueError, r"^radial of shape \(5,\): expected \(4,\), the shape of value$"),
        ({"value": np.ones((2, 4))}, ValueError, r"^value of shape \(2, 4\): expected \(degrees,\), at least one$"),
        ({"value": np.ones(0)}, ValueError, r"^value of shape \(0,\): expected \(degrees,\), at least one$"),
        ({"value": "ones"}, TypeError, "^value = str: expected real numbers$"),
        ({"gradient": np.ones(4) + 0j}, TypeError, "^gradient of dtype complex128: expected real numbers$"),
    ],
)
def test_multipliers_of_all_kernels_have_one_shape(mesh, change, kind, message):
    with pytest.raises(kind, match=message):
        zonal_operator(mesh, **({"value": np.ones(4), "gradient": np.ones(4)} | change))


@pytest.mark.parametrize("mesh", [circle(8), sphere(8)], ids=["circle", "sphere"])
def test_a_uniform_part_may_be_a_number(mesh):
    operator, density = zonal_operator(mesh, [1.0, 0.5], [1, 2], [0.3, 0.2]), np.linspace(0.0, 1.0, mesh.cells)
    for found, expected in zip(
        operator.of_density(density, 0.4), operator.of_density(density, np.array(0.4)), strict=True
    ):
        np.testing.assert_array_equal(found, expected)
