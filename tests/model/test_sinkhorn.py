"""Doubly stochastic attention with any matrices: dense matrices, closed forms, and consequences of the marginals."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ive, logsumexp

from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.domains.sphere.initial import initial_perturbed, initial_points, initial_uniform
from meanfield.model.attention import Attention
from meanfield.model.heads import Head, matrix_of
from meanfield.model.kernel import KERNELS
from meanfield.model.sinkhorn import Unbalanced, balance_kernel, transposed
from solvers.mesh.mesh import circle, sphere

SMALL = [circle(48), sphere(8)]
by_manifold = pytest.mark.parametrize("mesh", SMALL, ids=lambda mesh: mesh.manifold)
KINDS = ("any", "rank one", "orthogonal", "skew", "symmetric", "positive", "repulsion")
kinds = pytest.mark.parametrize("kind", KINDS)


def head_of(kind, d, size):
    """Return a head with QᵀK of norm ``size``."""
    query, key = np.random.default_rng(4).standard_normal((2, d, d))
    turn = np.linalg.qr(query)[0]
    if kind == "repulsion":
        return Head(-1.0, size)
    matrix = {
        "any": query.T @ key,
        "rank one": np.outer(query[0], key[0]),
        "orthogonal": turn,
        "skew": query - query.T,
        "symmetric": turn.T @ np.diag([1.0, -1.0, 0.4][:d]) @ turn,
        "positive": turn.T @ np.diag([1.0, 0.3, 0.0][:d]) @ turn,
    }[kind]
    return Head(turn, turn @ matrix * (size / np.linalg.norm(matrix, 2)))


def log_kernel(beta, head, points, kernel="exponential"):
    """Return log k (n, n)."""
    query, key = (points @ matrix_of(matrix, points.shape[1]).T for matrix in (head.query, head.key))
    if kernel == "gaussian":
        return -beta / 2 * ((query[:, None] - key) ** 2).sum(axis=2)
    return beta * query @ key.T


def dense(logs, points, masses):
    """Return A (n, d) by dense alternate scalings until both marginals are 1 to rounding, and the number of rounds."""
    logs, weights = logs[:, masses > 0], np.log(masses[masses > 0])
    held, there = masses > 0, np.zeros(len(weights))
    for count in range(200_000):
        here = -logsumexp(logs + there + weights, axis=1)
        wanted = -logsumexp(logs[held].T + here[held] + weights, axis=1)
        if np.abs(wanted - there).max() <= 3e-14:  # rounding of exponents of up to 30
            return np.exp(here[:, None] + logs + there + weights) @ points[held], count
        there = wanted
    raise AssertionError("the dense iteration does not converge either")


def density_of(mesh, kind):
    d = mesh.centers.shape[1]
    if kind == "points":
        return initial_points(mesh, np.random.default_rng(5).standard_normal((4, d)), [1.0, 2.0, 3.0, 0.1])
    return initial_perturbed(mesh, 0.8, 4, seed=1)


def off(mesh, density, found, expected):
    """Return the mass-weighted difference."""
    return density * mesh.volumes @ np.linalg.norm(found - expected, axis=1)


@kinds
@pytest.mark.parametrize("spread", ["smooth", "points"])
@by_manifold
def test_densities_attend_as_whole_matrices_say(mesh, spread, kind):
    density, head = density_of(mesh, spread), head_of(kind, mesh.centers.shape[1], 4.0)
    found = Attention(mesh, 1.0, "sinkhorn", heads=[head], include_radial=True).output(density)
    expected, _ = dense(log_kernel(1.0, head, mesh.centers), mesh.centers, density * mesh.volumes)
    # Multiples of the identity have the uniform density's part in closed form, cells the midpoint rule.
    reach = 3e-2 if kind == "repulsion" and mesh.manifold == "sphere" else 1e-11
    assert off(mesh, density, found, expected) <= reach


@kinds
@by_manifold
def test_tokens_attend_as_whole_matrices_say(mesh, kind):
    """Pair sums have errors of 1e-13, and so have the marginals; A has little more."""
    random, d = np.random.default_rng(1), mesh.centers.shape[1]
    points = random.standard_normal((60, d))
    points, masses = points / np.linalg.norm(points, axis=1)[:, None], random.random(60) ** 3
    masses[:3] = 0.0
    head = head_of(kind, d, 8.0)
    found = ParticleVelocity(1.0, "sinkhorn", heads=(head,), masses=masses).output_at(points)
    expected, _ = dense(log_kernel(1.0, head, points), points, masses)
    assert np.abs(found - expected).max() <= 1e-10


@pytest.mark.parametrize("kind", ["any", "positive"])
@by_manifold
def test_the_gaussian_kernel_differs_by_factors_that_are_scaled_away(mesh, kind):
    density, head = density_of(mesh, "smooth"), head_of(kind, mesh.centers.shape[1], 2.0)
    found = [Attention(mesh, 1.5, "sinkhorn", heads=[head], kernel=kernel, include_radial=True).output(density)
             for kernel in ("gaussian", "exponential")]  # fmt: skip
    assert off(mesh, density, *found) <= 1e-11
    expected, _ = dense(log_kernel(1.5, head, mesh.centers, "gaussian"), mesh.centers, density * mesh.volumes)
    assert off(mesh, density, found[0], expected) <= 1e-11


@pytest.mark.sampled
@pytest.mark.parametrize("size", [15.0, 60.0])
@pytest.mark.parametrize("kind", ["any", "orthogonal", "positive"])
@pytest.mark.parametrize("mesh", [circle(512), sphere(32)], ids=lambda mesh: mesh.manifold)
def test_scalings_of_many_decades(mesh, kind, size):
    """∫ A ρ dx = ∫ y ρ dy, because columns have mean 1, also where grids replace cells and g extends over e^{±30}."""
    head = head_of(kind, mesh.centers.shape[1], size)
    for density in (density_of(mesh, "smooth"), density_of(mesh, "points")):
        masses = density * mesh.volumes
        found = Attention(mesh, 1.0, "sinkhorn", heads=[head], include_radial=True).output(density)
        assert np.abs(masses @ (found - mesh.centers)).max() <= 1e-11  # defects of 1e-12, sums accurate to 1e-11
        assert np.linalg.norm(found, axis=1).max() <= 1 + 1e-13


def test_scalings_of_many_decades_are_right():
    mesh, head = circle(300), head_of("any", 2, 30.0)
    density = density_of(mesh, "smooth")
    found = Attention(mesh, 1.0, "sinkhorn", heads=[head], include_radial=True).output(density)
    expected, _ = dense(log_kernel(1.0, head, mesh.centers), mesh.centers, density * mesh.volumes)
    assert off(mesh, density, found, expected) <= 1e-10


@pytest.mark.parametrize("normalization", ["softmax", "sinkhorn"])
def test_uniform_density_and_a_rotation_have_constant_scalings(normalization):
    """k(x,y) = e^{β⟨x,Ry⟩} has the same mean for all x and for all y: A = R⁻¹x I₁(β)/I₀(β), and R⁻¹ moves along x."""
    mesh, angle, beta = circle(64), 0.7, 5.0
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    found = Attention(mesh, beta, normalization, heads=[Head(key=turn)]).output(initial_uniform(mesh))
    assert np.abs(found - ive(1, beta) / ive(0, beta) * mesh.centers @ turn).max() <= 1e-13


@pytest.mark.parametrize("size", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("seed", range(4))
def test_two_tokens_in_closed_form(seed, size):
    """The exchange s of two tokens satisfies (m − s)(n − s)/s² = k₁₁k₂₂/(k₁₂k₂₁), a quadratic equation for s."""
    random = np.random.default_rng(seed)
    points = random.standard_normal((2, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    m, n = masses = np.array([0.3, 0.7])
    head = head_of("any", 3, size)
    logs = log_kernel(1.0, head, points)
    odds = np.exp(logs[0, 1] + logs[1, 0] - logs[0, 0] - logs[1, 1])
    sent = 2 * odds * m * n / (odds + np.sqrt(odds**2 + 4 * odds * (1 - odds) * m * n))
    plan = np.array([[m - sent, sent], [sent, n - sent]])
    found = ParticleVelocity(1.0, "sinkhorn", heads=(head,), masses=masses).output_at(points)
    assert np.abs(found - plan @ points / masses[:, None]).max() <= 1e-11


def test_heads_add_up():
    mesh = SMALL[1]
    value = np.diag([1.0, 2.0, -0.5])
    kinds = ("any", 3.0, 0.7), ("positive", 5.0, -0.4)
    heads = [replace(head_of(kind, 3, size), value=value, weight=weight) for kind, size, weight in kinds]
    density = density_of(mesh, "smooth")
    together = Attention(mesh, 1.0, "sinkhorn", heads=heads).output(density)
    alone = [Attention(mesh, 1.0, "sinkhorn", heads=[head]).output(density) for head in heads]
    assert np.abs(together - sum(alone)).max() <= 1e-14


def test_attention_turns_with_the_tokens():
    random = np.random.default_rng(2)
    points = random.standard_normal((40, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    turn = np.linalg.qr(random.standard_normal((3, 3)))[0]
    head = head_of("any", 3, 6.0)
    turned = Head(head.query @ turn.T, head.key @ turn.T)
    found, other = (ParticleVelocity(1.0, "sinkhorn", heads=(one,)) for one in (head, turned))
    assert np.abs(other.output_at(points @ turn.T) - found.output_at(points) @ turn.T).max() <= 1e-10


def test_clusters_that_hardly_see_each_other_take_few_rounds(monkeypatch):
    """Alternate scalings alone need about e^{β‖QᵀK‖} rounds."""
    points = np.repeat(np.eye(3), 20, axis=0) + 0.02 * np.random.default_rng(0).standard_normal((60, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    masses = np.repeat([0.2, 0.35, 0.45], 20) / 20
    head = Head(key=np.eye(3) + 0.05 * np.eye(3, k=1))
    found = ParticleVelocity(12.0, "sinkhorn", heads=(head,), masses=masses, rounds=20).output_at(points)
    assert np.abs(masses @ (found - points)).max() <= 1e-12
    monkeypatch.setattr("meanfield.model.sinkhorn.Mixing.next", lambda self, place, step: place + step)
    with pytest.raises(ArithmeticError, match="sinkhorn attention: marginals are off by"):
        ParticleVelocity(12.0, "sinkhorn", heads=(head,), masses=masses, rounds=300).output_at(points)


@by_manifold
def test_thin_cells_around_clusters_do_not_keep_it_from_an_end(mesh):
    """Harmonics give Z in these cells to some 1e-11 only, and so are their marginals, which have little mass."""
    mesh = circle(301) if mesh.manifold == "circle" else sphere(33)
    centers = np.eye(mesh.centers.shape[1])
    bumps = [np.exp(60 * (mesh.centers @ center - 1)) for center in (centers[0], centers[1], -centers[0])]
    density = sum(share * bump / (bump @ mesh.volumes) for share, bump in zip((0.8, 0.19, 0.01), bumps, strict=True))
    found = Attention(mesh, 50.0, "sinkhorn", include_radial=True).output(density)
    assert np.abs((density * mesh.volumes) @ (found - mesh.centers)).max() <= 1e-12


def test_which_kernels_have_one_scaling():
    eye, lower = np.eye(2), np.array([[1.0, 0.0], [0.5, 1.0]])
    one = [Head(), Head(2.0, 0.5), Head(-1.0, -1.0), Head(lower, lower), Head(eye, lower @ lower.T)]
    two = [Head(-1.0), Head(lower), Head(eye, lower), Head(np.diag([1.0, -1.0]))]
    assert all(transposed(head, KERNELS["exponential"]) is None for head in one)
    assert all(transposed(head, KERNELS["gaussian"]) is None for head in one[:4])
    for head in two:
        other = transposed(head, KERNELS["exponential"])
        assert other.query is head.key
        assert other.key is head.query
    assert transposed(one[4], KERNELS["gaussian"]) is not None  # e^{−β|Qx|²/2} and e^{−β|Ky|²/2} differ


def test_float32_tokens_are_as_right_as_they_can_be():
    points = np.random.default_rng(3).standard_normal((50, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    law = ParticleVelocity(1.0, "sinkhorn", heads=(head_of("any", 3, 5.0),))
    found = law.output_at(points.astype(np.float32))
    assert found.dtype == np.float32
    assert np.abs(found - law.output_at(points)).max() <= 3e-4  # marginals of 500 units in the last place, 6e-5


@pytest.mark.parametrize("beta", [0.2, 1.0, 4.0, 8.0, 20.0])
def test_a_symmetric_kernel_takes_few_rounds(beta):
    """Half of the logarithms' error, mixed, takes from 9 to 18 rounds; the full correction does not converge in
    1000."""
    points, masses = SMALL[0].centers, np.random.default_rng(0).uniform(0.2, 2.0, SMALL[0].cells)
    logs, rounds = beta * points @ points.T + np.log(masses), []

    def forth(log_weights):
        exponents = logs + log_weights
        rounds.append(exponents.max(axis=1))
        shares = np.exp(exponents - rounds[-1][:, None])
        return rounds[-1], shares.sum(axis=1), shares @ points

    balance_kernel(forth, None, masses, 1e-12)
    assert len(rounds) <= 30


@pytest.mark.parametrize("side", ["query", "key"])
def test_scalings_beyond_the_range_of_numbers_are_refused(side):
    """The kernels are e^{β x₀ y₁} and e^{β x₁ y₀}: at (±1, 1)/√2 one scaling ranges over e^β, the other is constant."""
    mesh = circle(512)
    density = np.zeros(mesh.cells)
    density[[np.argmax(mesh.centers @ point) for point in ([1.0, 1.0], [-1.0, 1.0])]] = 1.0
    head = Head(**{side: np.array([[0.0, 0.0], [1.0, 0.0]])})
    Attention(mesh, 600.0, "sinkhorn", heads=[head]).output(density)
    with pytest.raises(Unbalanced, match=r"scalings range over a factor of e\^6"):
        Attention(mesh, 680.0, "sinkhorn", heads=[head]).output(density)
