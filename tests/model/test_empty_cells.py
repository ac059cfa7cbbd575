"""Velocities in cells far from all mass, compared with sums over all pairs minus the largest exponent."""

import numpy as np
import pytest

from meanfield.domains.sphere.causal import CausalVelocity
from meanfield.domains.sphere.initial import initial_points, initial_von_mises_fisher
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from meanfield.model.heads import Head, matrix_of
from meanfield.model.kernel import KERNELS, kernel_of
from meanfield.model.normalization import weighted_mean
from solvers.backends import cpu
from solvers.mesh.mesh import circle, sphere

CIRCLE, SPHERE = circle(512), sphere(26)
MESHES = [CIRCLE, SPHERE]
GENERAL = np.array([[0.5, -0.8, 0.1], [0.7, 0.3, -0.4], [-0.2, 0.1, 0.6]])
HEADS = {
    "identity": Head(),
    "diagonal": Head(query=np.diag([1.0, 1.0, 0.9])),
    "general": Head(query=GENERAL),
    "opposite": Head(query=-1.0),
}


def by_manifold(mesh):
    return mesh.manifold


def head_on(mesh, name):
    head, d = HEADS[name], mesh.ambient_dimension
    return head if np.ndim(head.query) == 0 else Head(query=np.asarray(head.query)[-d:, -d:])


def density_points(mesh):
    """Return three single cells, in a quarter of the manifold, one of them light."""
    points = np.eye(mesh.ambient_dimension)[:2].tolist()
    return initial_points(mesh, [*points, (np.ones(mesh.ambient_dimension)).tolist()], [0.6, 0.4, 1e-7])


def density_smooth(mesh):
    """Return two narrow bumps, with masses down to 1e-300 in their tails."""
    density = initial_von_mises_fisher(mesh, np.eye(mesh.ambient_dimension)[:2], [300.0, 60.0], [0.7, 0.3])
    return density / (density @ mesh.volumes)


def dense(mesh, exponents, masses):
    """Return log Z (cells,) and N/Z (cells, d) for the kernel e^{exponents}."""
    logs = exponents + np.log(masses, where=masses > 0, out=np.full_like(masses, -np.inf))
    largest = logs.max(axis=1)
    weights = np.exp(logs - largest[:, None])
    total = weights.sum(axis=1)
    return largest + np.log(total), weights @ mesh.centers / total[:, None]


def dense_of_head(mesh, beta, head, masses):
    d = mesh.ambient_dimension
    form = beta * matrix_of(head.query, d).T @ matrix_of(head.key, d)
    return dense(mesh, mesh.centers @ form @ mesh.centers.T, masses)


def tangent(mesh, vectors):
    return vectors - (vectors * mesh.centers).sum(axis=1)[:, None] * mesh.centers


@pytest.mark.sampled
@pytest.mark.parametrize("build", [density_points, density_smooth])
@pytest.mark.parametrize("beta", [5.0, 20.0, 60.0, 200.0])
@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_velocity_in_every_cell(mesh, name, beta, build):
    density, head = build(mesh), head_on(mesh, name)
    log_normalizer, mean = dense_of_head(mesh, beta, head, density * mesh.volumes)
    attention = Attention(mesh, beta, heads=[head])
    normalizer, output = attention.normalizer_and_output(density)
    off = np.linalg.norm(output - (tangent(mesh, mean) if attention.tangent else mean), axis=1)
    assert off.max() <= 1e-10, f"{off.max():.1e}"  # rounding of 1e-16 over the smallest accepted Z, 1e-5, with a margin
    with np.errstate(divide="ignore"):
        found = np.log(normalizer) + attention.log_bound
    held = normalizer > 1e-290  # smaller values are near the range of numbers
    assert np.abs(found - log_normalizer)[held].max() <= 1e-10


@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("exponent", [-300, -200, -162, -155, -150, -121, -100, 0])
def test_means_of_tiny_sums_have_their_length(d, exponent):
    """The squares of components below 1e-162 underflow."""
    direction = np.arange(1.0, d + 1)
    numerator = 10.0**exponent * direction[None] / np.linalg.norm(direction)
    for normalizer, length in [(1.25 * 10.0**exponent, 0.8), (0.5 * 10.0**exponent, 1.0)]:
        mean = weighted_mean(np.array([normalizer]), numerator.copy(), reach=1.0)
        assert np.linalg.norm(mean) == pytest.approx(length, rel=1e-14)


@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_a_cell_with_all_mass_far_from_the_largest_kernel_is_exact_by_default_and_in_runs(mesh):
    """A trace of mass where the kernel is largest reduces the sums of the cell with mass to about 1e-160."""
    x, mass = mesh.centers[:, 0], np.full(mesh.cells, 1e-250)
    cell = int(x.argmax())
    mass[cell] = 1.0 / mesh.volumes[cell]
    query = np.diag([-1.0, *[-0.99] * (mesh.ambient_dimension - 1)])
    attention = Attention(mesh, 186.28, heads=[Head(query=query)], include_radial=True)
    for empty in ("exact", "bounded", "nan"):
        assert attention.output(mass, empty=empty)[cell] == pytest.approx(mesh.centers[cell], abs=1e-12), empty


@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_nan_where_asked_to_be_cheap(mesh):
    """Values other than NaN are accurate, and cells with mass are never NaN."""
    for name, head in ((name, head_on(mesh, name)) for name in HEADS):
        density = density_points(mesh)
        attention = Attention(mesh, 40.0, heads=[head])
        exact, cheap = attention.output(density), attention.output(density, empty="nan")
        lost = np.isnan(cheap).any(axis=1)
        assert not lost[density * mesh.volumes > 1e-3].any()
        assert lost.any() or attention.sums[0].apply(density)[1].min() > 0  # few cells with mass are summed exactly
        assert np.abs(cheap - exact)[~lost].max() <= 1e-10
        assert lost.mean() > 0.2 or name != "identity"
    with pytest.raises(ValueError, match="empty = 'cheap': expected one of exact, nan, bounded"):
        attention.output(density, empty="cheap")


@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_unnormalized_to_the_digits_of_its_own_size(mesh):
    """N has an error of 1e-10 of Z in every cell, also where Z is e^{−80} of the largest."""
    density, beta = density_smooth(mesh), 40.0
    log_normalizer, mean = dense_of_head(mesh, beta, Head(), density * mesh.volumes)
    found = Attention(mesh, beta, "unnormalized", include_radial=True).output(density)
    off = np.linalg.norm(found * np.exp(-log_normalizer)[:, None] - mean, axis=1)
    assert off.max() <= 1e-10


def test_heads_are_summed_in_every_cell():
    density, beta = density_points(SPHERE), 30.0
    heads = [Head(value=2.0), Head(query=GENERAL, weight=0.5)]
    expected = sum(
        weight * dense_of_head(SPHERE, beta, head, density * SPHERE.volumes)[1]
        for head, weight in zip(heads, (2.0, 0.5), strict=True)
    )
    assert np.abs(Attention(SPHERE, beta, heads=heads).output(density) - expected).max() <= 1e-10


@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_components_and_rows_are_those_of_the_output(mesh):
    attention, densities = Attention(mesh, 60.0), np.stack([density_points(mesh), density_smooth(mesh)])
    normalizers, outputs = attention.of_rows(densities)
    for density, normalizer, output in zip(densities, normalizers, outputs, strict=True):
        alone, expected = attention.normalizer_and_output(density)
        np.testing.assert_array_equal(normalizer, alone)
        if mesh is SPHERE:
            components = attention.along_rings(density)
            np.testing.assert_array_equal(output.T, components)
            length = np.linalg.norm(expected, axis=1)
            np.testing.assert_allclose(np.hypot(*components), length, atol=1e-15)
        else:
            np.testing.assert_array_equal(output, expected)


@pytest.mark.parametrize("window", [0.3, 1.2])
@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_windowed_kernel_beyond_all_windows(mesh, window):
    """Tokens whose Z is e^{−10⁴} of the largest attend to their nearest tokens."""
    density, beta, kernel = density_points(mesh), 3.0, kernel_of("windowed", window)
    exponents = kernel.log_values(mesh.centers @ mesh.centers.T, beta) + beta
    _, mean = dense(mesh, exponents, density * mesh.volumes)
    found = Attention(mesh, beta, kernel=kernel, include_radial=True).output(density)
    assert np.linalg.norm(found - mean, axis=1).max() <= 1e-9


def test_logarithm_of_the_windowed_kernel():
    kernel, cosines = kernel_of("windowed", 0.8), np.linspace(-1.0, 1.0, 50)
    assert KERNELS["windowed"].log_zonal is not None
    values = kernel.values(cosines, 2.0)
    held = values > 1e-300
    np.testing.assert_allclose(kernel.log_values(cosines, 2.0)[held], np.log(values[held]), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_sinkhorn_attention_in_every_cell(mesh):
    """f in an empty cell makes the mean of its row 1, as elsewhere."""
    density, beta = density_points(mesh), 8.0
    masses = density * mesh.volumes
    held = masses > 0
    kernel = np.exp(beta * (mesh.centers[held] @ mesh.centers[held].T - 1))
    scaling = np.ones(held.sum())
    for _ in range(200):  # f ← √(f / ∫ k f ρ) halves the error
        scaling = np.sqrt(scaling / (kernel @ (scaling * masses[held])))
    weights = np.zeros_like(masses)
    weights[held] = scaling * masses[held]
    _, mean = dense(mesh, beta * mesh.centers @ mesh.centers.T, weights)
    found = Attention(mesh, beta, "sinkhorn", include_radial=True).output(density)
    assert np.linalg.norm(found - mean, axis=1).max() <= 1e-9


def test_causal_labels_in_every_cell():
    labels = np.stack([density_points(SPHERE), density_smooth(SPHERE)])
    beta, velocity = 40.0, Velocity(Attention(SPHERE, 40.0))
    found = CausalVelocity(velocity, 2)(0.0, labels / 2).reshape(2, -1, 3)
    for k, seen in enumerate(np.cumsum(labels, axis=0)):
        _, mean = dense_of_head(SPHERE, beta, Head(), seen / (k + 1) * SPHERE.volumes)
        assert np.abs(found[k] - tangent(SPHERE, mean)).max() <= 1e-10


def test_a_hole_in_a_uniform_density():
    """The uniform sum's error is subtracted outside a hole, where it would be many times the sum."""
    density = np.where(SPHERE.centers[:, 2] > np.cos(0.9), 0.0, 1.0)
    density /= density @ SPHERE.volumes
    _, mean = dense_of_head(SPHERE, 100.0, Head(), density * SPHERE.volumes)
    off = np.linalg.norm(Attention(SPHERE, 100.0).output(density) - tangent(SPHERE, mean), axis=1)
    assert off[SPHERE.centers[:, 2] > np.cos(0.6)].max() <= 1e-10


@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_single_precision(mesh):
    density, beta = density_points(mesh), 40.0
    _, mean = dense_of_head(mesh, beta, Head(), density * mesh.volumes)
    single = mesh.on(cpu, np.float32)
    found = Attention(single, beta).output(density.astype(np.float32))
    assert np.abs(found - tangent(mesh, mean)).max() <= 1e-4  # 6e-8 of a largest exponent of 40, and of Z over 1e-2


def test_runs_take_the_velocity_where_mass_is():
    velocity = Velocity(Attention(SPHERE, 40.0))
    term = mean_field_equation(SPHERE, velocity).terms[0]
    assert term.velocity.empty == "bounded"
    density, masses = density_points(SPHERE), density_points(SPHERE) * SPHERE.volumes
    off = np.linalg.norm(velocity(0.0, density) - velocity.restricted_to_mass(0.0, density), axis=1)
    assert off[masses > 1e-3].max() <= 1e-12
    assert off.max() > 0.1
