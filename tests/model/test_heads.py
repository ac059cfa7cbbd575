"""Attention with matrices, heads, other kernels and other normalizations, compared with dense sums."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.linalg import expm

from meanfield.case.load import parse
from meanfield.domains.atoms.velocity import AtomVelocity
from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.domains.sphere.initial import initial_moebius, initial_perturbed, initial_points, initial_uniform
from meanfield.domains.sphere.rows import VelocityOfRows
from meanfield.equation import Velocity, mean_field_equation
from meanfield.model.attention import Attention
from meanfield.model.heads import Head, merge_heads, steepness
from meanfield.model.kernel import windowed_kernel
from meanfield.model.matrices import ENSEMBLES, random_matrix
from meanfield.simulation import set_up
from solvers.mesh.mesh import circle, sphere
from solvers.timestepping.evolution import evolve
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS

SPHERE, CIRCLE = sphere(32), circle(300)
MESHES = pytest.mark.parametrize("mesh", [SPHERE, CIRCLE], ids=["sphere", "circle"])
UNNORMALIZED = "unnormalized"
GAUSSIAN = """
attention = { beta = 2.0, normalization = "unnormalized" }
initial = { kind = "von_mises_fisher", components = [{ center = [1.0, 0.5], concentration = 3.0 }] }
time = { end = 1.0 }
"""


def three_heads(d, norm):
    """Return heads without symmetry whose QᵀK have spectral norm ``norm``; that of the second is singular."""
    random = np.random.default_rng(7)
    heads = []
    for k, weight in enumerate((0.5, 1.0, -0.25)):
        query, key, value = random.standard_normal((3, d, d))
        if k == 1:
            key[:, 0] = 0.0
        heads.append(Head(query * (norm / np.linalg.norm(query.T @ key, 2)), key, value, weight))
    return heads


def dense_output(mesh, beta, heads, masses, kernel, normalization="softmax"):
    """Return A by sums over all pairs; ``kernel`` (Qx (n, d), Ky (m, d)) → logarithms (n, m)."""
    return dense_output_of_points(mesh.centers, beta, heads, masses, kernel, normalization)


def dense_output_of_points(x, beta, heads, masses, kernel, normalization="softmax"):
    held, one = masses > 0, np.eye(x.shape[1])
    total = np.zeros_like(x)
    for head in heads:
        query, key, value = (m if np.ndim(m) else m * one for m in (head.query, head.key, head.value))
        log = kernel(x @ query.T, x[held] @ key.T)
        highest = log.max(axis=1, keepdims=True) if normalization == "softmax" else 0.0
        weights = np.exp(log - highest) * masses[held]
        mean = weights @ x[held]
        if normalization == "softmax":
            mean /= weights.sum(axis=1)[:, None]
        total += head.weight * mean @ (value if head.out is None else head.out @ value).T
    return total


def heads_with_factors(d):
    """Return lists of heads with a left factor ``out`` of V."""
    turn, thin = random_matrix("orthogonal", d, seed=3), np.random.default_rng(2).standard_normal((4, d - 1, d))
    return {
        "identity": [Head(value=np.eye(d), out=turn)],
        "alone": [Head(out=turn)],
        "scales": [Head(-0.5, 2.0, 3.0, 0.5, out=turn)],
        "thin": [Head(*thin[:3], out=thin[3].T)],
        "several": [Head(value=np.eye(d), out=turn), Head(value=2.0, weight=-0.5), Head(value=-1.0)],
        "weights that cancel": [Head(key=-0.5, out=turn), Head(), Head(key=-0.5, weight=-1.0)],
    }


@MESHES
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("name", heads_with_factors(2))
def test_heads_with_a_left_factor_are_the_dense_sum(mesh, name, normalization):
    """The tangential part of A is the dense sum, for densities, rows of densities, particles and atoms."""
    beta, heads = 1.5, heads_with_factors(mesh.centers.shape[1])[name]

    def tangential(points, vectors):
        return vectors - (points * vectors).sum(axis=1)[:, None] * points

    def expected(points, masses):
        found = dense_output_of_points(points, beta, heads, masses, lambda q, k: beta * q @ k.T, normalization)
        return tangential(points, found)

    density = initial_perturbed(mesh, 0.5, 6, seed=2)
    attention = Attention(mesh, beta, normalization, heads=heads)
    dense = expected(mesh.centers, density * mesh.volumes)
    found = [tangential(mesh.centers, attention.output(density)), Velocity(attention)(0.0, density)]
    if attention.takes_rows:
        found.append(VelocityOfRows([Velocity(attention)])(np.zeros(1), density[None])[0])
    for each in found:  # the sum of the cells over the uniform density has an error O(h²) on the sphere
        reach = 1e-11 if attention.takes_rows or name == "thin" else 1e-3
        np.testing.assert_allclose(each, dense, atol=reach * np.abs(dense).max())
    tokens = mesh.centers[::37]
    masses = np.full(len(tokens), 1 / len(tokens))
    particles = ParticleVelocity(beta, normalization, tuple(heads), masses)
    for velocity in (
        particles.rates(0.0, tokens, np.ones(len(tokens)))[0],
        AtomVelocity(particles).velocities(0.0, tokens, masses),
    ):
        np.testing.assert_allclose(velocity, expected(tokens, masses), atol=1e-13 * np.exp(5 * beta))


@pytest.mark.parametrize("name", heads_with_factors(20))
def test_heads_with_a_left_factor_in_many_dimensions(name):
    heads = heads_with_factors(20)[name]
    tokens, masses = np.random.default_rng(1).standard_normal((9, 20)) / np.sqrt(20), np.full(9, 1 / 9)
    expected = dense_output_of_points(tokens, 0.1, heads, masses, lambda q, k: 0.1 * q @ k.T)
    for each in (heads, merge_heads(heads, 20)):
        found = ParticleVelocity(0.1, heads=tuple(each), masses=masses).output_at(tokens)
        np.testing.assert_allclose(found, expected, atol=1e-13 * np.abs(expected).max())


def test_heads_of_equal_kernels_are_merged():
    """Numbers and multiples of the identity are equal; heads whose weights cancel stay separate."""
    merged = {name: merge_heads(heads, 3) for name, heads in heads_with_factors(3).items()}
    assert [len(heads) for heads in merged.values()] == [1, 1, 1, 1, 1, 3]
    heads = three_heads(3, 1.0)
    assert [head.weight for head in merge_heads([*heads, *heads, Head(np.eye(3))], 3)] == [1.0, 2.0, -0.5, 1.0]


@MESHES
@pytest.mark.parametrize("norm", [20.0, 200.0])
@pytest.mark.parametrize("points", [False, True], ids=["smooth", "points"])
def test_three_heads_of_any_matrices(mesh, norm, points):
    d = mesh.centers.shape[1]
    density = initial_points(mesh, np.eye(d) + 0.3) if points else initial_perturbed(mesh, 0.5, 6, seed=2)
    heads, masses = three_heads(d, norm), density * mesh.volumes
    output = Attention(mesh, 1.0, heads=heads).output(density)
    expected = dense_output(mesh, 1.0, heads, masses, lambda q, k: q @ k.T)
    assert masses @ np.linalg.norm(output - expected, axis=1) <= 1e-10


@MESHES
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
def test_gaussian_kernel(mesh, normalization):
    d, beta = mesh.centers.shape[1], 3.0
    density = initial_perturbed(mesh, 0.5, 6, seed=2)
    masses = density * mesh.volumes

    def kernel(q, k):
        return -beta / 2 * ((q[:, None] - k[None]) ** 2).sum(axis=2)

    heads = three_heads(d, 4.0)
    output = Attention(mesh, beta, normalization, heads=heads, kernel="gaussian").output(density)
    expected = dense_output(mesh, beta, heads, masses, kernel, normalization)
    assert masses @ np.linalg.norm(output - expected, axis=1) <= 1e-10
    heads = [Head(1.5, 0.5, -1.0)]  # |Qx| and |Ky| are constant: the exponential kernel up to a factor
    output = Attention(mesh, beta, normalization, heads=heads, kernel="gaussian", include_radial=True).output(density)
    expected = Attention(mesh, beta, normalization, heads=heads, include_radial=True).output(density)
    factor = np.exp(-beta * (1.5**2 + 0.5**2) / 2) if normalization == "unnormalized" else 1.0
    np.testing.assert_allclose(output, factor * expected, atol=1e-13 * factor)


@MESHES
def test_windowed_kernel_leaves_out_what_is_far(mesh):
    d, window = mesh.centers.shape[1], 0.8
    first, second = np.eye(d)[0], np.eye(d)[1]
    near = np.cos(0.3) * first + np.sin(0.3) * second
    density = initial_points(mesh, [first, near, -first])
    attention = Attention(mesh, 4.0, kernel="windowed", window=window, include_radial=True)
    output = attention.output(density)
    masses = density * mesh.volumes
    here = int(np.argmax(mesh.centers @ -first))
    np.testing.assert_allclose(output[here] / np.linalg.norm(output[here]), -first, atol=0.1)  # attends only to itself
    edge = np.cos(window)
    from scipy.special import erfc

    z = np.clip(mesh.centers @ mesh.centers[masses > 0].T, -1, 1)
    weights = np.exp(4 * z) * erfc((edge - z) / ((1 - edge) / 4)) / 2 * masses[masses > 0]
    expected = weights @ mesh.centers[masses > 0] / weights.sum(axis=1)[:, None]
    # The uniform density's part is exact in one and the midpoint rule in the other.
    off = masses @ np.linalg.norm(output - expected, axis=1)
    assert off <= {"circle": 1e-10, "sphere": 1e-3}[mesh.manifold]


@pytest.mark.parametrize("mesh", [sphere(16), circle(120)], ids=["sphere", "circle"])
def test_doubly_stochastic_attention(mesh):
    beta = 4.0
    density = initial_perturbed(mesh, 0.8, 4, seed=1)
    masses = density * mesh.volumes
    kernel = np.exp(beta * (mesh.centers @ mesh.centers.T - 1))
    scaling = np.ones(mesh.cells)
    for _ in range(200):
        scaling = np.sqrt(scaling / (kernel @ (scaling * masses)))
    plan = scaling[:, None] * kernel * scaling
    np.testing.assert_allclose(plan @ masses, 1.0, rtol=1e-12)
    output = Attention(mesh, beta, "sinkhorn", include_radial=True).output(density)
    off = masses @ np.linalg.norm(output - plan @ (masses[:, None] * mesh.centers), axis=1)
    assert off <= {"circle": 1e-12, "sphere": 1e-3}[mesh.manifold]  # as above
    assert np.abs(Velocity(Attention(mesh, 9.0, "sinkhorn"))(0.0, initial_uniform(mesh))).max() <= 1e-16


def test_unnormalized_heads_keep_their_size():
    density = initial_perturbed(SPHERE, 0.5, 6, seed=2)
    heads = three_heads(3, 6.0)
    output = Attention(SPHERE, 1.0, "unnormalized", heads=heads).output(density)
    expected = dense_output(SPHERE, 1.0, heads, density * SPHERE.volumes, lambda q, k: q @ k.T, "unnormalized")
    np.testing.assert_allclose(output, expected, atol=1e-11 * np.abs(expected).max())


def test_a_matrix_that_is_a_multiple_of_the_identity_is_one():
    density = initial_perturbed(SPHERE, 0.5, 6, seed=2)
    by_numbers = Attention(SPHERE, 2.0, heads=[Head(2.0, 1.5, -1.0)]).output(density)
    by_matrices = Attention(SPHERE, 2.0, heads=[Head(2 * np.eye(3), 1.5 * np.eye(3), -np.eye(3))]).output(density)
    assert np.array_equal(by_numbers, by_matrices)


@pytest.mark.parametrize("ensemble", ENSEMBLES)
def test_random_matrices(ensemble):
    d = 200
    matrix = random_matrix(ensemble, d, seed=3)
    assert np.array_equal(matrix, random_matrix(ensemble, d, seed=3))
    assert not np.array_equal(matrix, random_matrix(ensemble, d, seed=4))
    norm = np.linalg.norm(matrix, 2)
    limit = {"orthogonal": 1.0, "positive": 4.0, "negative": 4.0}.get(ensemble, 2.0)  # limit d → ∞
    assert norm == pytest.approx(limit, rel=1e-12 if ensemble == "orthogonal" else 0.1)
    if ensemble in ("goe", "wigner", "positive", "negative"):
        assert np.array_equal(matrix, matrix.T)
    if ensemble in ("positive", "negative"):
        sign = 1 if ensemble == "positive" else -1
        assert (sign * np.linalg.eigvalsh(matrix)).min() >= -1e-12


@pytest.mark.parametrize(
    "value",
    [
        [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]],
        [[1.0, 0.5, 0.0], [0.0, -0.5, 0.3], [0.2, 0.0, 0.4]],
    ],
    ids=["skew", "any"],
)
def test_one_dirac_follows_the_exponential_of_v(value):
    """x(t) = e^{tV}x₀/|e^{tV}x₀|, within 1 % of the path."""
    mesh, value, start, end = sphere(128), np.array(value), np.array([0.6, 0.0, 0.8]), 1.0
    velocity = Velocity(Attention(mesh, 2.0, heads=[Head(value=value)]))
    state = State(0.0, initial_points(mesh, [start]))
    evolve(state, mean_field_equation(mesh, velocity), STEPPERS["ssprk3"], end, rtol=None)
    found = (state.values * mesh.volumes) @ mesh.centers
    path = [expm(t * value) @ start for t in np.linspace(0, end, 200)]
    path = np.array([x / np.linalg.norm(x) for x in path])
    length = np.linalg.norm(np.diff(path, axis=0), axis=1).sum()
    assert np.linalg.norm(found / np.linalg.norm(found) - path[-1]) <= 0.01 * length


@pytest.mark.parametrize("build", [(circle, 64), (sphere, 24)], ids=["circle", "sphere"])
def test_skew_v_turns_a_smooth_density_to_second_order(build):
    """P_x V m with β = 0 and V skew rotates only objects that rotate with it: |m| is constant, and m rotates."""
    make, coarse = build
    errors = []
    for cells in (coarse, 2 * coarse):
        mesh = make(cells)
        d = mesh.centers.shape[1]
        value = np.zeros((d, d))
        value[1, 0], value[0, 1] = 1.0, -1.0
        # F(x) = Ωx is the rigid rotation itself, whatever the density
        rotation = Velocity(Attention(mesh, 0.0, heads=[Head(value=0.0)]), feed_forward=lambda x, v=value: x @ v.T)
        axis = np.eye(d)[0] + 0.5 * np.eye(d)[-1]
        state = State(0.0, initial_moebius(mesh, axis, 0.5))
        evolve(state, mean_field_equation(mesh, rotation), STEPPERS["ssprk3"], 1.0, rtol=None)
        exact = initial_moebius(mesh, expm(value) @ axis, 0.5)
        errors.append(np.abs(state.values - exact) @ mesh.volumes)
    assert np.log2(errors[0] / errors[1]) >= 1.8, errors


def test_a_kernel_beyond_all_numbers_is_refused():
    heads = [Head(query=3.0 * np.diag([1.0, 2.0, 3.0]))]
    with pytest.raises(ValueError, match=r"beta = 100.0: .* it reaches e\^900 "):
        Attention(SPHERE, 100.0, "unnormalized", heads=heads)
    assert np.isfinite(Attention(SPHERE, 100.0, "unnormalized", heads=heads, rescaled=True).output(
        initial_perturbed(SPHERE, 0.5, 6)
    )).all()  # fmt: skip


@MESHES
def test_rescaling_several_heads_is_one_clock(mesh):
    """Heads of different ‖QᵀK‖ are divided by the same number, in densities, particles and atoms."""
    d = mesh.centers.shape[1]
    heads = tuple(replace(head, query=(k + 1) * head.query) for k, head in enumerate(three_heads(d, 3.0)))
    density = initial_perturbed(mesh, 0.5, 6, seed=2)
    slow = Attention(mesh, 1.0, UNNORMALIZED, heads=heads, rescaled=True)
    plain = np.exp(-slow.log_bound) * Attention(mesh, 1.0, UNNORMALIZED, heads=heads).output(density)
    np.testing.assert_allclose(slow.output(density), plain, atol=1e-13 * np.abs(plain).max())
    tokens, masses = mesh.centers[::40], np.full(len(mesh.centers[::40]), 1 / len(mesh.centers[::40]))
    laws = [ParticleVelocity(1.0, UNNORMALIZED, heads, masses, rescaled=rescaled) for rescaled in (False, True)]
    radii, clock = np.ones(len(tokens)), np.exp(-laws[1].log_bound)
    for rates in (
        lambda law: law.rates(0.0, tokens, radii)[0],
        lambda law: AtomVelocity(law).velocities(0.0, tokens, masses),
    ):
        plain, slow_rates = map(rates, laws)
        np.testing.assert_allclose(slow_rates, clock * plain, atol=1e-13 * clock * np.abs(plain).max())


@MESHES
@pytest.mark.parametrize(("beta", "window"), [(5.0, 0.2), (40.0, 0.5), (-4.0, 1.0)])
def test_a_sharp_window_is_the_dense_sum(mesh, beta, window):
    """Cells that do not resolve waves of the window's edge show no ripples; errors are the rounding of 1000 degrees."""
    density = np.random.default_rng(3).random(mesh.cells) ** 20  # far from uniform
    density /= density @ mesh.volumes
    output = Attention(mesh, beta, kernel="windowed", window=window, include_radial=True).output(density)
    weights = windowed_kernel(np.clip(mesh.centers @ mesh.centers.T, -1, 1), beta, window) * (density * mesh.volumes)
    off = np.linalg.norm(output - weights @ mesh.centers / weights.sum(axis=1)[:, None], axis=1)
    assert off[density > 1e-3 * density.max()].max() <= 1e-11


def test_windows_that_harmonics_do_not_carry_are_refused():
    with pytest.raises(ValueError, match=r"^window = 0.03: expected at least 0.06 on the sphere"):
        Attention(SPHERE, 1.0, kernel="windowed", window=0.03)
    assert Attention(CIRCLE, 1.0, kernel="windowed", window=1e-6).output(initial_uniform(CIRCLE)).shape == (300, 2)
    with pytest.raises(ValueError, match=r"^window = 2.0: expected beta times the scales of Q and K >= -5.649"):
        Attention(CIRCLE, 9.0, heads=[Head(query=-1.0)], kernel="windowed", window=2.0)


def test_gaussian_weights_beyond_all_numbers_are_refused():
    """e^{−β|Ky|²/2} would be zero for tokens that still attend to each other."""
    with pytest.raises(ValueError, match=r"^beta = 100.0: expected a range of log f\(Ky\) up to 600"):
        Attention(CIRCLE, 100.0, heads=[Head(key=np.diag([1.0, 4.0]))], kernel="gaussian")


@pytest.mark.parametrize(("query", "key"), [(2.0, 1.0), (-1.0, 1.0), (0.5, 2.0)])
def test_gaussian_scales_of_a_case_are_more_than_their_product(query, key):
    """Unnormalized, e^{−β|qx − ky|²/2} is e^{−β(q² + k²)/2} of the exponential kernel, for cells and for tokens."""
    scales = [f"attention.{name}=[[{s}, 0], [0, {s}]]" for name, s in (("query", query), ("key", key))]
    found = {}
    for kernel in ("exponential", "gaussian"):
        for domain in ('{manifold = "circle", resolution = 64}', '{manifold = "particles", count = 9, dimension = 2}'):
            case = parse(GAUSSIAN, [f"domain={domain}", f"attention.kernel={kernel}", *scales])
            problem = set_up(case)
            values = problem.diagnostics(["speed"], None)(0.0, problem.initial())
            found[kernel, case.domain.manifold] = values["speed"]
    factor = np.exp(-2.0 * (query**2 + key**2) / 2)
    for domain in ("circle", "particles"):
        assert found["gaussian", domain] == pytest.approx(factor * found["exponential", domain], rel=1e-12)


def test_the_steepness_of_a_head_with_rows_of_zeros():
    """A trained head has d_head rows; rows of zeros are dropped, which changes the norm by rounding."""
    random = np.random.default_rng(5)
    for rows_query, rows_key in ((8, 8), (3, 3), (2, 5), (0, 4)):
        query, key = random.standard_normal((2, 8, 8))
        query[rows_query:], key[rows_key:] = 0.0, 0.0
        expected = 1.5 * np.linalg.norm(query.T @ key, 2)
        assert steepness(-1.5, Head(query, key)) == pytest.approx(expected, rel=1e-13, abs=0)
    assert steepness(2.0, Head(query=np.diag([3.0, 1.0]), key=2.0)) == pytest.approx(12.0, rel=1e-14)
