"""Tokens drawn from initial densities: their moments, to four standard errors, and exact maps."""

import numpy as np
import pytest
from scipy import integrate
from support import exact

from meanfield import load_case
from meanfield.case.load import load
from meanfield.domains.particles.field import CELL_RADIUS, Field, _field_on_mesh, _random_points_in_cells, _upper_bounds
from meanfield.domains.particles.initial import (
    tokens_equiangular,
    tokens_gaussian,
    tokens_harmonic,
    tokens_moebius,
    tokens_perturbed,
    tokens_uniform,
    tokens_von_mises_fisher,
)
from meanfield.domains.particles.initial_tokens import draw_tokens
from meanfield.domains.sphere import initial
from meanfield.domains.sphere.fields import harmonic_coefficients, perturbed_coefficients
from meanfield.sections import initial as sections
from meanfield.simulation import set_up
from solvers.mesh.mesh import circle, sphere
from solvers.transforms.harmonics import harmonic_transform

COUNT = 40_000
FREE_RADIUS = {"manifold": "free_radius_circle", "resolution": 8, "radii": 8}
MESHES = {2: circle(4096), 3: sphere(160)}


def axis(dimension):
    vector = np.random.default_rng(1).standard_normal(dimension)
    return vector / np.linalg.norm(vector)


def monomials(points):
    """Return all products of up to two coordinates, (n, …)."""
    d = points.shape[1]
    pairs = [points[:, i] * points[:, j] for i in range(d) for j in range(i + 1)]
    return np.column_stack([points, *pairs])


def mean_cosine(dimension, concentration):
    """Return I_{d/2}(c)/I_{d/2−1}(c) by Gauss's continued fraction c/(d + c·c/(d + 2 + …)), also where both
    underflow."""
    if concentration > 1e5:
        return 1 - (dimension - 1) / (2 * concentration)
    ratio = 0.0
    for k in reversed(range(1000)):
        ratio = concentration / (dimension + 2 * k + concentration * ratio)
    return ratio


def assert_mean(samples, expected, slack=0.0):
    """Assert that the mean of samples (n, …) is the expected one to four standard errors and the slack."""
    error = samples.std(axis=0) / np.sqrt(len(samples))
    off = np.abs(samples.mean(axis=0) - expected) / (4 * error + slack)
    assert np.max(off) < 1, f"means {samples.mean(axis=0)} are {4 * off} standard errors from {expected}"


@pytest.mark.parametrize("dimension", [2, 3, 7, 64])
def test_uniform(dimension):
    points = tokens_uniform(COUNT // dimension, dimension, seed=1)
    assert np.abs(np.linalg.norm(points, axis=1) - 1).max() < 1e-15
    z = points @ axis(dimension)
    assert_mean(np.stack([z, z**2, z**4], axis=1), [0, 1 / dimension, 3 / (dimension * (dimension + 2))])


@pytest.mark.parametrize("concentration", [0.0, 1e-8, 2.0, 60.0, 1e6, 1e14])
@pytest.mark.parametrize("dimension", [2, 3, 8, 512])
def test_von_mises_fisher(dimension, concentration):
    """⟨z⟩ = R and ⟨z²⟩ = 1 − (d − 1)R/c; the distribution is isotropic about the center."""
    center, count = axis(dimension), COUNT if dimension < 100 else 2000
    points = tokens_von_mises_fisher(count, [center], [concentration], [3.0], seed=2)
    assert np.abs(np.linalg.norm(points, axis=1) - 1).max() < 1e-15
    away = points - (points @ center)[:, None] * center
    resultant = mean_cosine(dimension, concentration)
    square = (dimension - 1) * resultant / concentration if concentration > 1e-3 else 1 - 1 / dimension
    assert_mean((away**2).sum(axis=1), square, slack=1e-3 * square)  # R = 1 up to d/c
    sideways = np.linalg.svd(center[None])[2][1]
    assert_mean(away @ sideways, 0.0)
    assert_mean((away @ sideways) ** 2, square / (dimension - 1), slack=1e-3 * square / (dimension - 1))
    if concentration < 1e3:
        assert_mean(points @ center, resultant, slack=1e-9)


def test_mixture_has_its_masses():
    center = axis(5)
    points = tokens_von_mises_fisher(COUNT, [center, -center], [200.0, 400.0], [3.0, 1.0], seed=3)
    assert_mean((points @ center > 0).astype(float), 0.75)
    assert_mean((points @ center)[points @ center < 0], -exact.resultant(5, 400.0))


@pytest.mark.parametrize("parameter", [-1.0, 0.3, 2.0])
@pytest.mark.parametrize("dimension", [2, 3, 16, 128])
def test_moebius_pushes_uniform_tokens(dimension, parameter):
    """artanh z grows by s, and the direction across the axis is constant: closed form, token by token."""
    e = axis(dimension)
    before, after = tokens_uniform(500, dimension, seed=4), tokens_moebius(500, 3 * e, parameter, seed=4)
    assert np.abs(np.linalg.norm(after, axis=1) - 1).max() < 1e-15
    assert np.abs(after @ e - np.tanh(np.arctanh(before @ e) + parameter)).max() < 1e-14
    across = [points - (points @ e)[:, None] * e for points in (before, after)]
    directions = [vectors / np.linalg.norm(vectors, axis=1)[:, None] for vectors in across]
    assert np.abs(directions[0] - directions[1]).max() < 1e-10


def test_moebius_is_the_density_of_that_name():
    for s in (0.7, 1.5):
        assert_mean(tokens_moebius(COUNT, axis(2), s), np.tanh(s / 2) * axis(2))
        assert_mean(tokens_moebius(COUNT, axis(3), s), exact.mean_cosine(s) * axis(3))
    d, s = 9, 0.8
    weight = lambda t: np.sin(t) ** (d - 2)  # noqa: E731
    total = integrate.quad(weight, 0, np.pi)[0]
    mean = integrate.quad(lambda t: weight(t) * np.tanh(np.arctanh(np.cos(t)) + s), 0, np.pi)[0] / total
    assert_mean(tokens_moebius(COUNT, axis(d), s), mean * axis(d))


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("degree", [1, 7, 40])
def test_fields_are_those_of_the_transform(dimension, degree):
    mesh = circle(128) if dimension == 2 else sphere(48)
    transform = harmonic_transform(mesh, degree)
    for coefficients in (perturbed_coefficients(dimension, degree, 5), harmonic_coefficients(dimension, degree, 0)):
        expected = transform.synthesis(coefficients)
        error = np.abs(Field(coefficients)(mesh.centers) - expected).max()
        assert error < 1e-13 * np.abs(expected).max()  # rounding of the recurrences, some 40 terms


@pytest.mark.parametrize("dimension", [2, 3])
def test_bounds_of_a_field_hold_all_over_a_cell(dimension):
    """√2 cos 9φ has the largest slope for its degree; on the sphere cos 9φ sin⁹θ nearly does."""
    field, random = Field(harmonic_coefficients(dimension, 9, 9 * (dimension - 2))), np.random.default_rng(1)
    mesh, values, reach = _field_on_mesh(field)
    cells = np.repeat(np.arange(mesh.cells), 100_000 // mesh.cells + 1)
    points = _random_points_in_cells(mesh, cells, random)
    bounds = _upper_bounds(values, 9 * reach)[cells]
    assert (field(points) <= bounds).all()
    assert np.abs(bounds - values[cells]).max() < 0.5  # few draws are rejected


def test_points_fill_their_cells():
    """The ring has 24 cells: z is uniform between its edges and φ in the cell, and CELL_RADIUS reaches the corners."""
    mesh, ring = sphere(24), 5
    first = int(mesh.ring_start[ring]) + 3
    points = _random_points_in_cells(mesh, np.full(COUNT, first), np.random.default_rng(2))
    top, bottom = np.cos(mesh.ring_edges[ring : ring + 2])
    angle = np.arctan2(points[:, 1], points[:, 0]) * mesh.ring_cells[ring] / (2 * np.pi) - 3
    for share in ((points[:, 2] - bottom) / (top - bottom), angle):
        assert share.min() >= 0 <= 1 - share.max()
        assert_mean(np.stack([share, share**2], axis=1), [1 / 2, 1 / 3])
    for rings in (24, 40, 96):
        mesh = sphere(rings)
        cells = np.repeat(np.arange(mesh.cells), 20)
        cosines = np.einsum(
            "nd,nd->n", _random_points_in_cells(mesh, cells, np.random.default_rng(3)), mesh.centers[cells]
        )
        assert np.arccos(cosines.min()) < CELL_RADIUS * np.pi / (2 * rings)


@pytest.mark.parametrize(("dimension", "amplitude", "degrees"), [
    (2, 1e-3, 12), (2, 1.5, 5), (2, 20.0, 12), (3, 1e-3, 12), (3, 1.0, 6), (3, 8.0, 4),
])  # fmt: skip
def test_perturbed(dimension, amplitude, degrees):
    """Moments of the tokens are those of the density's cells, and so is the mean of the field itself."""
    mesh = MESHES[dimension]
    density = initial.initial_perturbed(mesh, amplitude, degrees, 11)
    field = Field(perturbed_coefficients(dimension, degrees, 11))
    points = tokens_perturbed(COUNT, dimension, amplitude, degrees, field_seed=11, seed=6)
    expected = np.column_stack([monomials(mesh.centers), field(mesh.centers)]).T @ (density * mesh.volumes)
    found = np.column_stack([monomials(points), field(points)])
    assert_mean(found, expected, slack=2e-4)  # a tenth of the standard errors: cells count as points, O(h²)


@pytest.mark.parametrize(("dimension", "degree", "order", "amplitude"), [
    (2, 1, 0, 0.7), (2, 5, 0, -0.7), (3, 1, 1, 0.5), (3, 2, -1, 0.4), (3, 4, 0, 0.3), (3, 3, 3, -0.3),
])  # fmt: skip
def test_harmonic(dimension, degree, order, amplitude):
    """⟨Y⟩ is the amplitude, and the moments are those of the density's cells."""
    mesh = MESHES[dimension]
    density = initial.initial_harmonic(mesh, degree, order, amplitude)
    field = Field(harmonic_coefficients(dimension, degree, order))
    points = tokens_harmonic(COUNT, dimension, degree, order, amplitude, seed=7)
    assert_mean(field(points), amplitude)
    assert_mean(monomials(points), monomials(mesh.centers).T @ (density * mesh.volumes), slack=2e-4)  # as above


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match=r"^amplitude = 0.8: expected at most 0.70"):
        tokens_harmonic(10, 2, 1, 0, 0.8)


@pytest.mark.parametrize("domain", [{"manifold": "particles", "dimension": 2, "count": 4}, FREE_RADIUS])
def test_the_mean_of_a_gaussian_may_be_the_zero_vector(domain):
    start = {"kind": "gaussian", "variance": 0.3}
    case = {"domain": domain, "attention": {"beta": 1.0}, "stabilizers": {"layer_norm": "none"}, "time": {"end": 1.0}}
    number, vector = (load_case(case | {"initial": start | {"mean": mean}}) for mean in (0.0, [0.0, 0.0]))
    np.testing.assert_array_equal(set_up(number).initial(), set_up(vector).initial())


def test_gaussian():
    root = np.random.default_rng(3).standard_normal((5, 5))
    mean, covariance = np.arange(5.0), root @ root.T + np.eye(5)
    points = tokens_gaussian(COUNT, 5, mean, covariance, seed=8)
    assert_mean(points, mean)
    away = points - mean
    assert_mean(np.einsum("ni,nj->nij", away, away).reshape(COUNT, -1), covariance.reshape(-1))
    assert_mean(tokens_gaussian(COUNT, 64, 0.0, 2.5)[:, :3] ** 2, 2.5)


CENTER = (0.0, 0.0, 1.0)
KINDS = [
    sections.Uniform(),
    sections.Perturbed(amplitude=0.5, degrees=4),
    sections.Harmonic(degree=2, order=1, amplitude=0.2),
    sections.VonMisesFisher(components=(sections.Component(center=CENTER, concentration=4.0),)),
    sections.Moebius(axis=CENTER, parameter=0.5),
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: type(kind).__name__)
def test_the_seed_draws_the_tokens(kind):
    first, masses = draw_tokens(kind, 50, 3, seed=1)
    assert first.shape == (50, 3)
    assert masses == pytest.approx(np.full(50, 0.02))
    assert np.abs(np.linalg.norm(first, axis=1) - 1).max() < 1e-15
    assert np.array_equal(first, draw_tokens(kind, 50, 3, seed=1)[0])
    assert np.abs(first - draw_tokens(kind, 50, 3, seed=2)[0]).max() > 0.01


def test_sections_without_a_draw(tmp_path):
    embeddings = np.array([[3.0, 4.0], [0.0, -2.0], [1.0, 0.0]])
    np.save(tmp_path / "tokens.npy", embeddings)
    found, masses = draw_tokens(sections.Tokens(file=str(tmp_path / "tokens.npy"), radius=2.0), 1, 2)
    assert found == pytest.approx(np.array([[1.2, 1.6], [0.0, -2.0], [2.0, 0.0]]), rel=1e-15)
    assert masses == pytest.approx([1 / 3] * 3)
    found, masses = draw_tokens(sections.Points(points=((1.0, 0.0), (0.0, 1.0)), masses=(1.0, 3.0)), 2, 2)
    assert np.array_equal(found, np.eye(2))
    assert np.array_equal(masses, [0.25, 0.75])
    assert np.array_equal(draw_tokens(sections.Equiangular(cosine=0.2), 4, 6)[0], tokens_equiangular(4, 6, 0.2))
    found, _ = draw_tokens(sections.Gaussian(mean=(1.0, 2.0), variance=1e-8), 30, 2)
    assert found == pytest.approx(np.tile([1.0, 2.0], (30, 1)), abs=1e-3)  # ten standard deviations
    with pytest.raises(ValueError, match=r"expected an array \(n, 3\), got \(3, 2\)"):
        draw_tokens(sections.Tokens(file=str(tmp_path / "tokens.npy")), 1, 3)


@pytest.mark.parametrize("norm", ["none", "pre"])
def test_points_keep_their_radii_where_tokens_have_one(norm, tmp_path):
    """Radii are exactly those given in a case or in a file; with initial.radius only the directions count."""
    points = np.array([[2.0, 0.0], [0.0, -0.5], [3.0, 4.0]])
    np.save(tmp_path / "tokens.npy", points)
    common = ["domain.dimension=2", f"stabilizers.layer_norm={norm}"]
    given = ["initial.kind=points", f"initial.points={points.tolist()}"]
    file = ["initial.kind=tokens", f"initial.file={tmp_path}/tokens.npy"]
    for start in given, file:
        assert np.array_equal(set_up(load("tokens_high_dimension", [*common, *start])).initial(), points)
        scaled = set_up(load("tokens_high_dimension", [*common, *start, "initial.radius=2"])).initial()
        np.testing.assert_allclose(np.linalg.norm(scaled, axis=1), 2.0, rtol=1e-15)
