"""Tokens as particles: exact solutions for pairs, equiangular tokens under every layer norm, masks, gates, layers."""

import numpy as np
import pytest
from scipy import integrate, linalg
from support import exact, exact_particles
from support.exact_flow import flow

from meanfield.domains.particles.initial import tokens_equiangular, tokens_uniform
from meanfield.domains.particles.velocity import ParticleVelocity, layer_map
from meanfield.domains.sphere.initial import initial_perturbed
from meanfield.model.attention import Attention
from meanfield.model.feed_forward import feed_forward_random
from meanfield.model.heads import Head
from meanfield.model.kernel import windowed_kernel
from meanfield.model.layer_norm import LAYER_NORMS, LayerNorm
from solvers.mesh.mesh import circle, sphere

COUNT, BETA = 8, 2.0  # number of tokens and β in the table of layer norms


def gap(directions):
    """Return 1 − cosine of the first two tokens, from their distance, without cancellation when they are close."""
    return ((directions[..., 0, :] - directions[..., 1, :]) ** 2).sum(axis=-1) / 2


def slope(values, clock):
    """Return the mean slope of log values."""
    return np.diff(np.log(values))[-1] / np.diff(clock)[-1]


def flow_from(law, directions, times):
    return flow(law, directions, np.ones(len(directions)), np.asarray(times, dtype=float))


def pair(angle, d=2):
    return np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]]) @ np.eye(2, d)


def matrices(d, seed):
    return np.random.default_rng(seed).standard_normal((4, d, d)) / np.sqrt(d)


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
def test_two_tokens_reach_half_when_they_should(normalization, d):
    closed = {"softmax": exact.pair_time_equal, "unnormalized": exact_particles.pair_time_unnormalized}
    time = closed[normalization](4.0)
    directions, _ = flow_from(ParticleVelocity(4.0, normalization), pair(2.0, d), [0.0, time])
    assert directions[-1, 0] @ directions[-1, 1] == pytest.approx(0.5, abs=1e-8)  # 100 times the tolerance of a step


@pytest.mark.parametrize("masses", [(0.5, 0.5), (0.9, 0.1)])
def test_two_tokens_with_masses(masses):
    law = ParticleVelocity(4.0, masses=np.array(masses))
    directions, _ = flow_from(law, pair(2.0), [0.0, exact.pair_time(4.0, masses)])
    assert directions[-1, 0] @ directions[-1, 1] == pytest.approx(0.5, abs=1e-8)


@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
@pytest.mark.parametrize("cosine", [-0.1, 0.0, 0.5])
def test_equiangular_tokens(cosine, normalization):
    start = tokens_equiangular(COUNT, 9, cosine)
    times = np.linspace(0.0, 1.5, 4)
    directions, _ = flow_from(ParticleVelocity(BETA, normalization), start, times)
    expected = integrate.solve_ivp(
        lambda _, g: exact_particles.equiangular_rate(COUNT, BETA, g, normalization),
        (0.0, times[-1]), [cosine], t_eval=times, rtol=1e-10, atol=1e-12,
    )  # fmt: skip
    gram = directions @ directions.transpose(0, 2, 1)
    wanted = expected.y[0][:, None, None] * (1 - np.eye(COUNT)) + np.eye(COUNT)
    assert np.abs(gram - wanted).max() < 1e-8


@pytest.mark.parametrize("scheme", ["post", "pre", "peri", "ngpt", "cod", "mix"])
def test_first_rate_of_each_layer_norm(scheme):
    """ġ(0) of orthonormal tokens is that of post, over |A| for peri and nGPT."""
    start = tokens_equiangular(COUNT, COUNT)
    turn, _ = ParticleVelocity(BETA, norm=LayerNorm(scheme)).rates(0.0, start, np.ones(COUNT))
    expected = exact_particles.equiangular_rate(COUNT, BETA, 0.0)
    if scheme in ("peri", "ngpt"):
        expected /= exact_particles.equiangular_output(COUNT, BETA, 0.0)[1]
    assert turn[0] @ start[1] + start[0] @ turn[1] == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("scheme", ["post", "pre", "peri", "ngpt", "cod", "mix"])
def test_gap_under_each_layer_norm(scheme):
    times = np.array([0.0, 3.0, 10.0])
    law = ParticleVelocity(BETA, norm=LayerNorm(scheme))
    directions, _ = flow_from(law, tokens_equiangular(COUNT, COUNT), times)
    expected = exact_particles.equiangular_gap(scheme, COUNT, BETA, times)
    # 1 − g of 1e-8 is a distance of 1e-4, accurate to 1e-9
    assert gap(directions)[1:] == pytest.approx(expected[1:], rel=1e-5)


@pytest.mark.parametrize(
    ("scheme", "times", "clock", "expected"),
    [
        ("post", (8.0, 10.0), lambda t: t, -2.0),
        ("pre", (1000.0, 4000.0), np.log, -2.0),
        ("peri", (1000.0, 4000.0), np.log, -2.0),
        ("ngpt", (4.0, 5.0), lambda t: 2 * t, -2.0),  # α = 2: e^{−2∫α}
        ("cod", (20.0, 30.0), lambda t: np.sqrt(t + 1), -4.0),
    ],
)
def test_late_rate_of_each_layer_norm(scheme, times, clock, expected):
    law = ParticleVelocity(BETA, norm=LayerNorm(scheme, alpha=2.0))
    directions, _ = flow_from(law, tokens_equiangular(COUNT, COUNT), (0.0, *times))
    assert slope(gap(directions), clock(np.array((0.0, *times))[1:])) == pytest.approx(expected, rel=0.01)


def test_cod_is_post_by_another_clock():
    start, times = tokens_uniform(12, 3, seed=4), np.linspace(0.0, 8.0, 5)
    slow, _ = flow_from(ParticleVelocity(4.0, norm=LayerNorm("cod")), start, times)
    quick, _ = flow_from(ParticleVelocity(4.0), start, 2 * (np.sqrt(times + 1) - 1))
    assert np.abs(slow - quick).max() < 1e-8
    assert np.abs(slow[-1] - start).max() > 0.1


def test_lengths_of_directions_are_without_effect():
    start, times = tokens_uniform(12, 3, seed=4), [0.0, 2.0]
    expected, _ = flow_from(ParticleVelocity(4.0), start, times)
    directions, _ = flow_from(ParticleVelocity(4.0), np.linspace(0.5, 3.0, 12)[:, None] * start, times)
    assert np.abs(directions - expected).max() < 1e-8


@pytest.mark.parametrize("scheme", ["pre", "peri", "mix"])
def test_radius_grows_at_most_by_one(scheme):
    """ṙ = ⟨θ,A⟩ or its cosine; coincident tokens have A = θ, so that r = r₀ + t, for mix from the switch on."""
    law = ParticleVelocity(BETA, norm=LayerNorm(scheme, switch=0.5))
    start = np.tile(tokens_uniform(1, 3, seed=1), (4, 1))
    directions, radii = flow(law, start, np.array([1.0, 2.0, 3.0, 0.5]), np.array([0.0, 0.5, 2.0]))
    assert np.abs(directions - start).max() < 1e-12
    assert radii[-1] == pytest.approx(np.array([1.0, 2.0, 3.0, 0.5]) + (1.5 if scheme == "mix" else 2.0), abs=1e-8)


def test_causal_tokens_follow_the_first():
    """The first token is fixed; token k alone contracts at 1 − 1/k, so that the second is the slowest: e^{−t/2}."""
    times = np.array([0.0, 30.0, 40.0])
    start = tokens_uniform(6, 3, seed=2)
    directions, _ = flow(ParticleVelocity(1.0, causal=True), start, np.ones(6), times, tolerance=1e-13)
    assert np.abs(directions[:, 0] - start[0]).max() < 1e-14
    distances = np.linalg.norm(directions - directions[:, :1], axis=2).max(axis=1)
    assert slope(distances, times) == pytest.approx(-0.5, rel=0.01)


def test_one_token_turns_as_its_value_matrix_says():
    """x(t) = e^{tV}x₀/|e^{tV}x₀| for any Q and K, since one token attends only to itself."""
    query, key, value, _ = matrices(5, seed=3)
    start, times = tokens_uniform(1, 5), np.array([0.0, 0.7, 2.0])
    directions, _ = flow_from(ParticleVelocity(3.0, heads=(Head(query, key, value),)), start, times)
    for time, direction in zip(times, directions[:, 0], strict=True):
        there = linalg.expm(time * value) @ start[0]
        assert np.abs(direction - there / np.linalg.norm(there)).max() < 1e-9


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("normalization", ["softmax", "unnormalized"])
def test_output_is_the_sum_over_heads_and_tokens(normalization, causal):
    n, d = 7, 4
    first, second = matrices(d, seed=5), matrices(d, seed=6)
    heads = (Head(*first[:3], weight=0.3), Head(*second[:3], weight=-1.2))
    points, masses = tokens_uniform(n, d, seed=7), np.linspace(1, 2, n) / 10.5
    network = feed_forward_random(d, 5, "tanh", seed=8)
    law = ParticleVelocity(1.5, normalization, heads, masses, feed_forward=network, causal=causal)
    expected = network(points)
    for i in range(n):
        for head in heads:
            seen = range(i + 1 if causal else n)
            terms = [masses[j] * np.exp(1.5 * (head.query @ points[i]) @ (head.key @ points[j])) for j in seen]
            total = sum(term * points[j] for term, j in zip(terms, seen, strict=True))
            expected[i] += head.weight * head.value @ total / (sum(terms) if normalization == "softmax" else 1.0)
    assert np.abs(law.output(0.0, points, np.ones(n)) - expected).max() < 1e-14


def test_unnormalized_attention_does_not_turn_the_whole():
    """Σ m x∧X = 0, since the attraction of i by j is that of j by i, for any masses."""
    directions, masses = tokens_uniform(20, 3, seed=1), np.linspace(1, 2, 20)
    turn, _ = ParticleVelocity(3.0, "unnormalized", masses=masses).rates(0.0, directions, np.ones(20))
    moments = masses[:, None] * np.cross(directions, turn)
    assert np.abs(moments.sum(axis=0)).max() < 1e-15 * np.abs(moments).sum()  # rounding
    turn, _ = ParticleVelocity(3.0, masses=masses).rates(0.0, directions, np.ones(20))
    assert np.abs((masses[:, None] * np.cross(directions, turn)).sum(axis=0)).max() > 0.01  # not zero for softmax


@pytest.mark.parametrize(("scheme", "radius"), [
    ("none", lambda t, gate: np.exp((1 - gate) * t)),
    ("pre", lambda t, gate: 1 / gate + (1 - 1 / gate) * np.exp(-gate * t)),
])  # fmt: skip
def test_gate(scheme, radius):
    """ẋ = (1 − γ)x for one token with V = I and without layer norm; with pre, ṙ = 1 − γr."""
    law = ParticleVelocity(BETA, norm=LayerNorm(scheme), gate=0.3)
    _, radii = flow_from(law, tokens_uniform(1, 3), [0.0, 1.0, 2.0])
    assert radii[:, 0] == pytest.approx(radius(np.array([0.0, 1.0, 2.0]), 0.3), rel=1e-9)


TWO_HEADS = (Head(1.0, 0.8, np.diag([1.0, -0.5]), 0.7), Head(-0.5, 1.0, 1.0, -0.4))
ANY = np.random.default_rng(2).standard_normal((6, 3, 3)) / np.sqrt(3)
ANY_HEADS = (Head(*ANY[:3], weight=0.7), Head(*ANY[3:], weight=-0.4))


@pytest.mark.sampled
@pytest.mark.parametrize("mesh", [circle(300), circle(2000)], ids=["pairs", "transform"])
@pytest.mark.parametrize(("heads", "options"), [
    ((Head(),), {}),
    (TWO_HEADS, {}),
    ((Head(),), {"normalization": "unnormalized"}),
    (TWO_HEADS, {"normalization": "unnormalized", "rescaled": True}),
    ((Head(2.0, 1.0),), {"kernel": "gaussian"}),
    (TWO_HEADS, {"kernel": "gaussian", "normalization": "unnormalized", "rescaled": True}),
    (TWO_HEADS[:1], {"kernel": "windowed", "window": 1.2}),
    ((Head(),), {"normalization": "sinkhorn"}),
    (TWO_HEADS, {"normalization": "sinkhorn", "kernel": "gaussian"}),
    ((Head(),), {"normalization": "sinkhorn", "kernel": "windowed", "window": 1.5}),
])  # fmt: skip
def test_tokens_at_the_cells_of_a_circle_attend_as_the_density_does(mesh, heads, options):
    """Cells integrate the uniform part, which the density adds in closed form, to rounding."""
    assert_same_attention(mesh, heads, heads, options)


@pytest.mark.sampled
@pytest.mark.parametrize("mesh", [sphere(16), sphere(40)], ids=["pairs", "transform"])
@pytest.mark.parametrize("options", [
    {}, {"kernel": "gaussian"}, {"normalization": "unnormalized"}, {"normalization": "unnormalized", "rescaled": True},
    {"normalization": "sinkhorn"}, {"normalization": "sinkhorn", "kernel": "gaussian"},
])  # fmt: skip
def test_tokens_at_the_cells_of_a_sphere_attend_as_the_density_does(mesh, options):
    """The density adds no closed form where Q and K are matrices; two equal rotations cancel."""
    assert_same_attention(mesh, ANY_HEADS, ANY_HEADS, options)
    rotation, value = np.linalg.qr(ANY[0])[0], np.diag([1.0, -0.5, 2.0])
    assert_same_attention(mesh, (Head(rotation, rotation, value),), (Head(1.0, 1.0, value),), options)


def assert_same_attention(mesh, heads, heads_of_tokens, options):
    density = initial_perturbed(mesh, 0.5, 4, seed=1)
    attention = Attention(mesh, 4.0, heads=heads, include_radial=True, **options)
    normalizer, output = attention.normalizer_and_output(density)
    law = ParticleVelocity(4.0, heads=heads_of_tokens, masses=density * mesh.volumes, **options)
    assert law.log_bound == pytest.approx(attention.log_bound, rel=1e-14, abs=1e-14)
    found, outputs = law.normalizer_and_output(mesh.centers)
    # transforms are accurate to 1e-10 where Sinkhorn's scaling converges, better elsewhere
    assert np.abs(outputs - output).max() < 1e-10 * np.abs(output).max()
    assert np.abs(found - normalizer).max() < 1e-10 * np.abs(normalizer).max()
    assert np.array_equal(law.output(0.0, mesh.centers, np.ones(mesh.cells)), outputs)


@pytest.mark.sampled
@pytest.mark.parametrize("kernel", ["exponential", "gaussian", "windowed"])
@pytest.mark.parametrize(("d", "count"), [(2, 40), (5, 40), (3, 1500)])
def test_sinkhorn_is_doubly_stochastic(d, count, kernel):
    """A = Σ_j P_ij m_j y_j, where P is the kernel scaled until its marginals are 1."""
    points, masses = tokens_uniform(count, d, seed=3), np.linspace(1.0, 2.0, count)
    masses /= masses.sum()
    law = ParticleVelocity(3.0, "sinkhorn", masses=masses, kernel=kernel, window=1.5 if kernel == "windowed" else None)
    cosines = points @ points.T
    matrix = windowed_kernel(cosines, 3.0, 1.5) if kernel == "windowed" else np.exp(3.0 * cosines)
    scaling = np.ones(count)
    for _ in range(100):
        scaling = np.sqrt(scaling / (matrix @ (scaling * masses)))
    plan = scaling[:, None] * matrix * scaling
    assert np.abs(plan @ masses - 1).max() < 1e-13
    assert np.abs(law.output_at(points) - plan @ (masses[:, None] * points)).max() < (1e-9 if count > 1000 else 1e-12)


def test_sinkhorn_that_is_not_reached_is_reported():
    with pytest.raises(ArithmeticError, match="sinkhorn attention: marginals are off by"):
        ParticleVelocity(3.0, "sinkhorn", rounds=3).output_at(tokens_uniform(10, 3))


@pytest.mark.parametrize("options", [
    {}, {"normalization": "unnormalized"}, {"normalization": "sinkhorn"}, {"kernel": "gaussian"},
    {"kernel": "windowed", "window": 2.0}, {"causal": True}, {"heads": ANY_HEADS},
], ids=str)  # fmt: skip
def test_single_precision(options):
    points = tokens_uniform(300, 3, seed=3)
    expected = ParticleVelocity(2.0, **options).output_at(points)
    found = ParticleVelocity(2.0, **options).output_at(points.astype(np.float32))
    assert found.dtype == np.float32
    error = np.abs(found - expected).max() / np.abs(expected).max()
    assert 1e-9 < error < 1e-5  # 100 units in the last place; a smaller error would not be single precision


def test_windowed_attention_in_five_dimensions():
    points, masses = tokens_uniform(30, 5, seed=3), np.linspace(1, 2, 30) / 45
    law = ParticleVelocity(2.0, heads=(Head(1.5, 1.0, -1.0),), masses=masses, kernel="windowed", window=1.0)
    kernel = windowed_kernel(points @ points.T, 3.0, 1.0) * masses
    expected = -kernel @ points / kernel.sum(axis=1)[:, None]
    assert np.abs(law.output_at(points) - expected).max() < 1e-14


def test_massless_tokens_are_moved_and_move_none():
    """Tracers without mass are moved and move no token, among many and among few."""
    for count in (400, 3000):
        points, masses = tokens_uniform(count, 3, seed=3), np.ones(count)
        masses[::2] = 0.0
        output = ParticleVelocity(4.0, masses=masses / masses.sum()).output_at(points)
        alone = ParticleVelocity(4.0).output_at(points[1::2])
        assert np.abs(output[1::2] - alone).max() < 1e-12
        kernel = np.exp(4.0 * points[::2] @ points[1::2].T)
        assert np.abs(output[::2] - kernel @ points[1::2] / kernel.sum(axis=1)[:, None]).max() < 1e-12


@pytest.mark.parametrize(("options", "message"), [
    ({"normalization": "sofmax"}, "normalization = 'sofmax': expected one of softmax, unnormalized, sinkhorn"),
    ({"kernel": "gausian"}, "kernel = 'gausian': expected one of exponential, gaussian, windowed"),
    ({"kernel": "windowed"}, "window = None: expected an angle with kernel = 'windowed'"),
    ({"window": 1.0}, r"window = 1\.0: expected an angle with kernel = 'windowed', else None"),
    ({"normalization": "unnormalized", "beta": 800.0}, r"^beta = 800.0: expected a kernel up to e\^700"),
])  # fmt: skip
def test_impossible_laws_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ParticleVelocity(**{"beta": BETA, **options})


def test_two_tokens_on_the_line():
    """The tokens ±a without layer norm, u = βa², satisfy u̇ = 2u tanh u."""
    law = ParticleVelocity(BETA, norm=LayerNorm("none"))
    directions, radii = flow(law, np.array([[1.0], [-1.0]]), np.full(2, 0.4), np.array([0.0, 1.0, 3.0]))
    expected = integrate.solve_ivp(
        lambda _, u: 2 * u * np.tanh(u), (0.0, 3.0), [BETA * 0.16], t_eval=[0.0, 1.0, 3.0], rtol=1e-12, atol=1e-12
    ).y[0]
    assert BETA * radii[:, 0] ** 2 == pytest.approx(expected, rel=1e-8)
    assert np.array_equal(directions, np.tile([[1.0], [-1.0]], (3, 1, 1)))
    assert np.abs(radii[:, 0] - radii[:, 1]).max() < 1e-12


def test_a_token_may_pass_the_origin():
    """A single token with F = −1 on the line, V = 0, follows x = x₀ − t."""
    law = ParticleVelocity(
        0.0, heads=(Head(value=0.0),), norm=LayerNorm("none"), feed_forward=lambda points: np.full_like(points, -1.0)
    )
    directions, radii = flow(law, np.ones((1, 1)), np.ones(1), np.array([0.0, 0.25, 3.0]))
    assert (radii * directions[..., 0])[:, 0] == pytest.approx([1.0, 0.75, -2.0], abs=1e-12)


def test_blow_up_is_reported():
    """ẋ = x³ from F, x₀ = 1: 1/√(1 − 2t) ends at t = ½."""
    law = ParticleVelocity(0.0, heads=(Head(value=0.0),), norm=LayerNorm("none"), feed_forward=lambda points: points**3)
    with pytest.raises(ArithmeticError, match=r"particles stopped after time 0\.4: "):
        flow(law, np.ones((1, 1)), np.ones(1), np.array([0.0, 0.4, 1.0]))


@pytest.mark.parametrize("scheme", [name for name in LAYER_NORMS if name != "mix"])
def test_layers_are_the_flow_to_first_order(scheme):
    law = ParticleVelocity(BETA, heads=(Head(value=matrices(3, 9)[0]),), norm=LayerNorm(scheme))
    start = tokens_uniform(6, 3, seed=5)
    directions, radii = flow_from(law, start, [0.0, 1.0])
    expected = radii[-1][:, None] * directions[-1]
    errors, counts = [], np.array([50, 100, 200])
    for count in counts:
        positions = start
        for layer in range(count):
            positions = layer_map(law, positions, 1 / count, time=layer / count)
        errors.append(np.abs(positions - expected).max())
    orders = exact.orders(errors, counts)
    assert np.abs(orders - 1).max() < 0.1, f"{scheme}: orders {orders}, errors {errors}"


def test_layers_of_mix_are_the_flow_before_its_switch():
    """θ turns as with post and r is constant, whatever the radius and the gate, which layer norm removes."""
    law, start = ParticleVelocity(BETA, norm=LayerNorm("mix", switch=2.0), gate=0.5), 3 * tokens_uniform(6, 3, seed=5)
    post = flow_from(ParticleVelocity(BETA), start / 3, [0.0, 1.0])[0][-1]
    directions, radii = flow(law, start / 3, np.full(6, 3.0), np.array([0.0, 1.0]))
    assert np.abs(radii[-1] - 3).max() <= 1e-12
    assert np.abs(directions[-1] - post).max() <= 1e-8  # the tolerance of both flows
    errors, counts = [], np.array([50, 100, 200])
    for count in counts:
        positions = start
        for layer in range(count):
            positions = layer_map(law, positions, 1 / count, time=layer / count)
        errors.append(np.abs(positions - 3 * post).max())
    orders = exact.orders(errors, counts)
    assert np.abs(orders - 1).max() < 0.1, f"orders {orders}, errors {errors}"


def test_mix_keeps_the_length_until_its_switch():
    law, start = ParticleVelocity(BETA, norm=LayerNorm("mix", switch=1.0)), 2 * tokens_uniform(6, 3, seed=5)
    before, after = (np.linalg.norm(layer_map(law, start, 0.1, time=time), axis=1) for time in (0.99, 1.0))
    assert before == pytest.approx(2.0, rel=1e-15)
    assert np.abs(after - 2.0).min() > 1e-3


def test_a_layer_without_residual_is_attention():
    start = tokens_uniform(6, 3, seed=5)
    free = ParticleVelocity(BETA, norm=LayerNorm("none"), gate=0.7)
    output = free.output(0.0, start, np.ones(6))
    assert np.allclose(layer_map(free, start, 1.0, residual=False), output, rtol=1e-15, atol=0)
    assert np.allclose(layer_map(free, start, 0.5), 0.5 * output + 0.65 * start, rtol=1e-14, atol=1e-15)
    post = layer_map(ParticleVelocity(BETA), start, 1.0, residual=False)
    assert np.allclose(post, output / np.linalg.norm(output, axis=1)[:, None], rtol=1e-14, atol=0)


@pytest.mark.parametrize("residual", [True, False])
def test_a_token_that_a_layer_leaves_without_a_direction_stays(residual):
    """Examples are two opposite tokens that attend to both alike, and one token whose value is its opposite."""
    start = np.array([[1.0, 0.0], [-1.0, 0.0]] if not residual else [[1.0, 0.0]])
    law = ParticleVelocity(0.0, heads=(Head(value=-1.0 if residual else 1.0),))
    assert np.array_equal(layer_map(law, start, 1.0, residual=residual), start)


@pytest.mark.parametrize("cosine", [-1 / 7, 0.0, 0.3, 1.0])
def test_equiangular_start(cosine):
    tokens = tokens_equiangular(8, 10, cosine)
    assert tokens.shape == (8, 10)
    assert np.abs(tokens @ tokens.T - (cosine + (1 - cosine) * np.eye(8))).max() < 1e-15


def test_uniform_start():
    tokens = tokens_uniform(20_000, 3, seed=1)
    assert np.abs(np.linalg.norm(tokens, axis=1) - 1).max() < 1e-15
    second = tokens.T @ tokens / 20_000
    assert np.abs(second - np.eye(3) / 3).max() < 0.01  # four standard deviations
    assert np.array_equal(tokens, tokens_uniform(20_000, 3, seed=1))
    assert not np.array_equal(tokens, tokens_uniform(20_000, 3, seed=2))
