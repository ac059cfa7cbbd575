"""The velocity of attention: comparison with dense sums, bounds, exact cases and identities."""

import numpy as np
import pytest
from support import exact

from meanfield.domains.sphere.initial import initial_points, initial_uniform
from meanfield.equation import Velocity
from meanfield.model.attention import Attention
from meanfield.model.heads import Head
from meanfield.model.layer_norm import LayerNorm
from meanfield.model.sinkhorn import Unbalanced
from solvers.mesh.mesh import circle, sphere
from solvers.transforms.pairwise import exponential_sums

CIRCLE, SPHERE = circle(256), sphere(48)
MESHES = [CIRCLE, SPHERE]


def by_manifold(mesh):
    return mesh.manifold


def density_smooth(mesh):
    direction = np.linspace(0.5, -1.0, mesh.centers.shape[1])
    density = np.exp(3 * mesh.centers @ direction)
    return density / (density @ mesh.volumes)


def density_dirac(mesh):
    points = np.random.default_rng(5).standard_normal((5, mesh.centers.shape[1]))
    return initial_points(mesh, points, [1.0, 2.0, 3.0, 0.1, 1e-3])


def misfit(mesh, beta, density, normalization, value=1.0):
    """Return the mass-weighted difference to the dense sum, relative to the largest |X|."""
    attention = Attention(mesh, beta, normalization, heads=(Head(value=value),), rescaled=True)
    expected, _ = exact.velocity(mesh, beta, density, normalization, value)
    off = np.linalg.norm(attention.output(density) - expected, axis=1)
    return (density * mesh.volumes) @ off / np.linalg.norm(expected, axis=1).max()


@pytest.mark.sampled(21)  # each β, and each mesh with each normalization and density
@pytest.mark.parametrize("build", [density_smooth, density_dirac])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("beta", [0.0, 1e-3, 1.0, 9.0, 100.0, 1000.0, -4.0, -9.0])
@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_velocity_is_the_dense_sum(mesh, beta, normalization, build):
    reach = 1e-12 if beta <= 100 else 1e-10
    for value in (1.0, -1.0):
        error = misfit(mesh, beta, build(mesh), normalization, value)
        assert error <= reach, f"beta {beta}, value {value}: {error:.1e}"


@pytest.mark.sampled
@pytest.mark.parametrize("build", [density_smooth, density_dirac])
@pytest.mark.parametrize(
    ("normalization", "beta"), [("softmax", -10.0), ("softmax", -40.0), ("softmax", -400.0), ("sinkhorn", -40.0)]
)
@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_tokens_that_attend_to_what_is_opposite(mesh, normalization, beta, build):
    """Z at a cluster is e^{−2|β|} of the largest, and still accurate; columns of sinkhorn attention have mean 1."""
    density = build(mesh)
    masses = density * mesh.volumes
    attention = Attention(mesh, beta, normalization, include_radial=True)
    found = attention.output(density)
    if normalization == "sinkhorn":
        assert np.abs(masses @ (found - mesh.centers)).max() <= 1e-12
        return
    _, normalizer, expected = exponential_sums(beta * mesh.centers, mesh.centers, masses)
    assert masses @ np.linalg.norm(found - expected / normalizer[:, None], axis=1) <= 1e-11


def test_scalings_of_too_many_decades_are_refused():
    """Scalings range over e^{2|β|} where tokens attend to what is opposite."""
    with pytest.raises(Unbalanced, match="scalings range over"):
        Attention(CIRCLE, -400.0, "sinkhorn").output(density_smooth(CIRCLE))


@pytest.mark.parametrize("kernel", ["exponential", "gaussian"])
@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_uniform_density_that_attends_to_what_is_opposite(mesh, kernel):
    """A = −x I_{d/2}(β)/I_{d/2−1}(β): nothing moves, whether or not the part along x is included."""
    density, heads = initial_uniform(mesh), (Head(query=-1.0),)
    for include_radial, along in ((True, -exact.resultant(mesh.centers.shape[1], 9.0)), (False, 0.0)):
        attention = Attention(mesh, 9.0, heads=heads, kernel=kernel, include_radial=include_radial)
        assert np.abs(attention.output(density) - along * mesh.centers).max() <= 1e-15
    smooth = density_smooth(mesh)
    output = attention.output(smooth)
    assert np.abs((output * mesh.centers).sum(axis=1)).max() <= 1e-14


@pytest.mark.parametrize("beta", [3.0, 9.0, 14.0])
@pytest.mark.parametrize("rings", [32, 57])
def test_a_light_cluster_moves_by_what_attracts_it(rings, beta):
    """The error of the cells' sum over the uniform density, 1e-6, which exceeds e^{−β(1 − cos)}, does not move the
    cluster."""
    mesh = sphere(rings)
    density = initial_points(mesh, [[1.0, 0.0, 0.0], [-0.42, 0.73, 0.54]], [999.0, 1.0])
    masses = density * mesh.volumes
    _, normalizer, vectors = exponential_sums(beta * mesh.centers, mesh.centers, masses)
    expected = vectors / normalizer[:, None]
    expected -= (expected * mesh.centers).sum(axis=1)[:, None] * mesh.centers
    off = np.linalg.norm(Attention(mesh, beta).output(density) - expected, axis=1)
    assert off[masses > 1e-9].max() <= 1e-12


@pytest.mark.parametrize("mesh", [circle(7), circle(1001), sphere(5), sphere(33)], ids=lambda m: str(m.cells))
def test_velocity_is_the_dense_sum_on_any_mesh(mesh):
    error = misfit(mesh, 9.0, density_smooth(mesh), "softmax")
    assert error <= 1e-12, f"{error:.1e}"


@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_gaussian_kernel_where_tokens_are_hardly_attended_to(mesh):
    """Tokens whose e^{−β|Ky|²/2} is e^{−90} of that of other tokens still attend to those tokens."""
    key = np.diag([1.0, 4.0, 1.0][: mesh.centers.shape[1]])
    density, beta = density_smooth(mesh), 12.0
    found = Attention(mesh, beta, heads=[Head(key=key)], kernel="gaussian").output(density)
    logs = beta * mesh.centers @ key @ mesh.centers.T - beta / 2 * ((mesh.centers @ key) ** 2).sum(axis=1)
    kernel = np.exp(logs - logs.max(axis=1)[:, None]) * density * mesh.volumes
    off = np.linalg.norm(found - kernel @ mesh.centers / kernel.sum(axis=1)[:, None], axis=1)
    assert off.max() <= 1e-9  # sums right to 2e-10


@pytest.mark.parametrize("beta", [0.0, 9.0, 1000.0])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_uniform_density_does_not_move(mesh, normalization, beta):
    attention = Attention(mesh, beta, normalization, rescaled=True)
    assert not attention.output(initial_uniform(mesh)).any()


@pytest.mark.parametrize("beta", [4.0, 100.0, 1000.0, -100.0])
@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_velocity_is_tangent_and_at_most_one(mesh, beta):
    """Softmax averages unit vectors, so that |X| ≤ 1, also where there is no mass and Z is lost to rounding."""
    for density in (density_smooth(mesh), density_dirac(mesh)):
        vectors = Attention(mesh, beta).output(density)
        assert np.isfinite(vectors).all()
        assert np.linalg.norm(vectors, axis=1).max() <= 1 + 1e-14
        assert np.abs((vectors * mesh.centers).sum(axis=1)).max() < 1e-15 * 5  # rounding of three products


@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_beta_zero_moves_towards_the_mean(mesh):
    """β = 0: X(x) = Pₓ m with m = ∫ y ρ dy, for either normalization."""
    density = density_smooth(mesh)
    mean = (density * mesh.volumes) @ mesh.centers
    expected = mean - (mesh.centers @ mean)[:, None] * mesh.centers
    for normalization in ("softmax", "unnormalized"):
        error = np.abs(Attention(mesh, 0.0, normalization).output(density) - expected).max()
        assert error < 1e-14, f"{normalization}: {error:.1e}"


@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_rescaling_is_a_clock(mesh):
    density = density_smooth(mesh)
    plain = Attention(mesh, 9.0, "unnormalized").output(density)
    slow = Attention(mesh, 9.0, "unnormalized", rescaled=True).output(density)
    assert np.abs(plain - np.exp(9.0) * slow).max() < 1e-14 * np.abs(plain).max()


@pytest.mark.parametrize("beta", [4.0, -4.0])
@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_normalizer_is_the_dense_sum(mesh, beta):
    density = density_smooth(mesh)
    normalizer, _ = Attention(mesh, beta).normalizer_and_output(density)
    error = np.abs(normalizer / exact.velocity(mesh, beta, density)[1] - 1).max()
    assert error < 1e-12, f"{error:.1e}"  # the smallest Z is some 1e-2 of the largest


@pytest.mark.parametrize("build", [density_smooth, density_dirac])
@pytest.mark.parametrize("mesh", MESHES, ids=by_manifold)
def test_unnormalized_attention_turns_nothing(mesh, build):
    """∫ x∧X dμ = 0: pairs attract each other along the same great circle with the same force.

    For sums over cells this holds to rounding for the summed part; the uniform density's share, whose force is
    exactly zero, leaves a quadrature error in the whole.
    """
    density = build(mesh)
    vectors = Attention(mesh, 4.0, "unnormalized", rescaled=True).output(density)
    largest = np.linalg.norm(vectors, axis=1).max()
    distance = 0.5 * np.abs(density - 1 / mesh.volume) @ mesh.volumes
    share = max(0.0, 1 - 4 * distance**2)
    for masses, reach in (
        ((density - share / mesh.volume) * mesh.volumes, 1e-14),
        (
            density * mesh.volumes,
            3e-5,
        ),  # (h/2)² times the size of the velocity, mostly canceled by symmetry
    ):
        turn = np.einsum("i,ia,ib->ab", masses, mesh.centers, vectors)
        error = np.abs(turn - turn.T).max() / largest
        assert error < reach, f"{error:.1e}"


def test_reported_rate_is_the_fastest():
    for mesh, dimension in ((CIRCLE, 2), (SPHERE, 3)):
        for normalization in ("softmax", "unnormalized"):
            attention = Attention(mesh, 5.0, normalization)
            rates = [exact.growth_rate(dimension, 5.0, l, normalization) for l in range(1, 12)]
            assert attention.rate == pytest.approx(max(rates), rel=1e-12)
            assert attention.rate_degree == 1 + int(np.argmax(rates))


def test_unknown_normalization_is_refused():
    with pytest.raises(ValueError, match=r"normalization = 'softmx': expected one of softmax, unnormalized, sinkhorn"):
        Attention(CIRCLE, 1.0, "softmx")


@pytest.mark.parametrize("norm", ["post", "ngpt", "cod"])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
def test_components_along_rings_are_those_of_vectors(normalization, norm):
    """Two heads have different weights, summed by waves and, for more degrees, by FFTs."""
    for mesh, beta in ((SPHERE, 3.0), (sphere(9), 120.0)):
        heads = (Head(value=0.7), Head(query=0.5, value=-0.2, weight=2.0))
        attention = Attention(mesh, beta, normalization, heads=heads, rescaled=True)
        velocity = Velocity(attention, LayerNorm(norm, alpha=0.6))
        vectors, components = (each(2.0, density_smooth(mesh)) for each in (velocity, velocity.along_rings))
        x, y, z = mesh.centers.T
        east, north = np.stack([-y, x, 0 * x]), np.stack([-z * x, -z * y, x * x + y * y])
        expected = np.stack([(each.T * vectors).sum(axis=1) for each in (east, north)]) / np.hypot(x, y)
        assert np.abs(components - expected).max() < 1e-13 * np.abs(expected).max()


def test_vectors_in_space_where_components_are_not_enough():
    """Vectors are needed for matrices, a network, sinkhorn attention, a layer norm with the part along x, and the
    circle."""
    turned = Attention(SPHERE, 2.0, heads=(Head(value=np.diag([1.0, 2.0, 3.0])),))
    density = density_smooth(SPHERE)
    assert turned.along_rings(density) is None
    assert Attention(SPHERE, 2.0, "sinkhorn").along_rings(density) is None
    assert Attention(SPHERE, 2.0, include_radial=True).along_rings(density) is None
    assert Attention(CIRCLE, 2.0).along_rings(density_smooth(CIRCLE)) is None
    assert Velocity(Attention(SPHERE, 2.0), feed_forward=np.ones_like).along_rings(0.0, density) is None
