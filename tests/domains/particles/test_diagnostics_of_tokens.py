"""Diagnostics of tokens as particles, compared with their formulas."""

import numpy as np
import pytest

import meanfield as mf
from meanfield.clusters.pairs import EDGES
from meanfield.domains.particles import diagnostics
from meanfield.domains.particles.diagnostics import DIAGNOSTICS, ParticleSample, diagnostics_particles
from meanfield.domains.particles.initial import tokens_equiangular, tokens_uniform
from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.model.heads import Head
from meanfield.model.layer_norm import LayerNorm
from meanfield.simulation import set_up

NAMES = tuple(name for name in DIAGNOSTICS if name not in ("drift", "roughness"))  # available only for a sequence


def unit(points):
    return points / np.linalg.norm(points, axis=-1, keepdims=True)


def tokens(count, dimension, seed=0):
    random = np.random.default_rng(seed)
    masses = random.random(count)
    return unit(random.standard_normal((count, dimension))), masses / masses.sum()


def measure(law, positions, masses, time=0.0):
    return diagnostics_particles(NAMES, law, masses, positions.shape[1])(time, positions)


@pytest.mark.parametrize("dimension", [2, 3, 17])
@pytest.mark.parametrize("beta", [0.0, 1.0, 20.0, -3.0])
def test_energy_and_moments_against_sums(dimension, beta):
    points, masses = tokens(40, dimension)
    values = measure(ParticleVelocity(beta, masses=masses), points, masses)
    gram = points @ points.T
    energy = masses @ np.exp(beta * gram) @ masses / (2 * beta) if beta else masses @ gram @ masses / 2
    assert values["energy"] == pytest.approx(energy, rel=1e-13)
    assert values["mass"] == pytest.approx(1.0, abs=1e-14)
    np.testing.assert_allclose(values["centroid"], masses @ points, rtol=1e-13)
    assert values["radius"] == pytest.approx(1.0, abs=1e-14)
    assert values["variance"] == pytest.approx(1 - masses @ gram @ masses, rel=1e-12)


@pytest.mark.parametrize("layer_norm", ["post", "pre", "none"])
def test_energy_sees_directions_or_positions_and_heads(layer_norm):
    """The energy is Σ_h w_h e^{β⟨Q_h y_i, K_h y_j⟩} with y = x without layer norm, otherwise y = θ."""
    directions, masses = tokens(30, 3)
    random = np.random.default_rng(1)
    heads = tuple(Head(*random.standard_normal((3, 3, 3)), weight=weight) for weight in (0.3, 0.7))
    radii = random.uniform(0.5, 2, (30, 1))
    law = ParticleVelocity(2.0, heads=heads, masses=masses, norm=LayerNorm(layer_norm))
    seen = directions * radii if layer_norm == "none" else directions
    energy = sum(
        head.weight * masses @ np.exp(2 * (seen @ head.query.T) @ (seen @ head.key.T).T) @ masses for head in heads
    )
    assert measure(law, directions * radii, masses)["energy"] == pytest.approx(energy / 4, rel=1e-12)


def test_energy_under_a_causal_mask():
    """Every token attends to itself and to the tokens before it."""
    points, masses = tokens(12, 3)
    values = measure(ParticleVelocity(2.0, masses=masses, causal=True), points, masses)
    energy = masses @ np.tril(np.exp(2 * points @ points.T)) @ masses / 4
    assert values["energy"] == pytest.approx(energy, rel=1e-13)


def test_energy_beyond_the_range_of_floats_is_in_units_of_its_exponential():
    """The energy of distant tokens is E e^{−β} = (1/2β) Σ m², as on meshes."""
    points, masses = np.eye(4), np.array([0.4, 0.3, 0.2, 0.1])
    diagnostics = diagnostics_particles(("energy",), ParticleVelocity(1000.0, masses=masses), masses, 4)
    assert diagnostics(0.0, points)["energy"] == pytest.approx(0.3 / 2000, rel=1e-14)
    assert dict(diagnostics.columns[0].attributes)["log_unit"] == 1000.0


@pytest.mark.parametrize(("layer_norm", "gate"), [("post", 0.0), ("cod", 0.0), ("pre", 0.3), ("none", 0.3)])
def test_speed_is_that_of_positions(layer_norm, gate):
    """√Σ m|ẋ|² is compared with a central difference of x = rθ along the flow, with a time step of 1e-6."""
    directions, masses = tokens(20, 4)
    norm = LayerNorm(layer_norm)
    radii = np.random.default_rng(2).uniform(0.5, 2, 20) if norm.carries_radius else np.ones(20)
    law = ParticleVelocity(3.0, masses=masses, norm=norm, gate=gate)
    turn, growth = law.rates(0.5, directions, radii)
    step = 1e-6
    ahead, behind = (
        (radii + sign * step * growth)[:, None] * (directions + sign * step * turn) for sign in (1.0, -1.0)
    )
    square = (((ahead - behind) / (2 * step)) ** 2).sum(axis=1)
    values = measure(law, radii[:, None] * directions, masses, time=0.5)
    assert values["speed"] == pytest.approx(np.sqrt(masses @ square), rel=1e-8)  # rounding of the difference
    network = ParticleVelocity(3.0, masses=masses, norm=norm, gate=gate, feed_forward=lambda points: points[:, ::-1])
    turn, growth = network.rates(0.5, directions, radii)
    square = (radii * np.linalg.norm(turn, axis=1)) ** 2 + growth**2
    positions = radii[:, None] * directions
    assert measure(network, positions, masses, time=0.5)["speed"] == pytest.approx(np.sqrt(masses @ square), rel=1e-12)
    if layer_norm == "post":
        attended = law.output_at(directions)
        tangent = attended - (attended * directions).sum(axis=1)[:, None] * directions
        assert values["speed"] == pytest.approx(np.sqrt(masses @ (tangent**2).sum(axis=1)), rel=1e-12)


def test_clusters_their_masses_and_centers():
    points, random = np.eye(5)[:3], np.random.default_rng(3)
    home = np.repeat(np.arange(3), [20, 50, 30])
    masses = np.full(100, 0.01)
    values = measure(ParticleVelocity(4.0), points[home] * random.uniform(1, 2, (100, 1)), masses)
    assert values["clusters"] == 3
    np.testing.assert_allclose(values["cluster_mass"][:3], [0.5, 0.3, 0.2], rtol=1e-13)
    np.testing.assert_allclose(values["cluster_center"][:3], points[[1, 2, 0]], atol=1e-14)
    assert np.isnan(values["cluster_mass"][3:]).all()
    assert np.isnan(values["cluster_center"][3:]).all()
    assert values["pairs_close"] == pytest.approx((20 * 19 + 50 * 49 + 30 * 29) / (100 * 99), rel=1e-12)


def test_more_clusters_than_are_kept():
    count = 40
    values = measure(ParticleVelocity(9.0), tokens_equiangular(count, 64), np.full(count, 1 / count))
    assert values["clusters"] == count
    np.testing.assert_allclose(values["cluster_mass"], 1 / count, rtol=1e-13)
    there = np.searchsorted(EDGES, 0.0)
    assert values["pairs"][there - 2 : there + 2].sum() == pytest.approx(1.0, abs=1e-13)


def test_attention_that_sees_sharper_tells_nearer_clusters_apart():
    """Two tokens 0.2 rad apart are one cluster at the scale 1/4, two at 1/√400 = 0.05."""
    points, masses = np.eye(6)[:2], np.array([0.5, 0.5])
    points = np.stack([points[0], np.cos(0.2) * points[0] + np.sin(0.2) * points[1]])
    counts = [measure(ParticleVelocity(beta), points, masses)["clusters"] for beta in (4.0, 400.0)]
    assert counts == [1, 2]
    sharp = ParticleVelocity(4.0, heads=(Head(query=10.0 * np.eye(6), key=10.0),))
    assert measure(sharp, points, masses)["clusters"] == 2


def test_the_law_that_holds_at_a_time_counts():
    points, masses = tokens(10, 3)
    diagnostics = diagnostics_particles(
        ("energy",), lambda time: ParticleVelocity(1.0 + time, masses=masses), masses, 3
    )
    gram = points @ points.T
    for time in (0.0, 2.0):
        energy = masses @ np.exp((1 + time) * gram) @ masses / (2 + 2 * time)
        assert diagnostics(time, points)["energy"] == pytest.approx(energy, rel=1e-13)


def test_columns_tell_their_shape():
    points, masses = tokens(10, 5)
    diagnostics = diagnostics_particles(NAMES, ParticleVelocity(2.0), masses, 5)
    shapes = {column.name: column.shape for column in diagnostics.columns}
    assert shapes == {name: np.shape(value) for name, value in diagnostics(0.0, points).items()}


def test_leaders_of_few_tokens_in_many_dimensions_multiply_no_matrices(monkeypatch):
    """The case Q = K = I in 4096 dimensions: a matrix would take 128 MB, and its product seconds."""
    points = np.random.default_rng(0).standard_normal((2, 4096))
    law, masses = ParticleVelocity(4.0), np.full(2, 0.5)
    monkeypatch.setattr(np, "eye", None)
    assert DIAGNOSTICS["leaders"][0](ParticleSample(law, 0.0, points, masses)) == 2


@pytest.mark.parametrize("pairs", [diagnostics.BLOCK, 100])  # with 100, three rows form a block
def test_leaders_are_the_nonzero_columns_of_the_hardmax_attention_matrix(pairs, monkeypatch):
    """The reference is a loop over rows, with a rotating query, a mask, and tokens that have merged."""
    monkeypatch.setattr(diagnostics, "BLOCK", pairs)
    points, masses = tokens_uniform(30, 3, 1), np.full(30, 1 / 30)
    turn = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    for causal, query in ((False, turn), (True, turn), (False, 1.0)):
        law = ParticleVelocity(4.0, heads=(Head(query=query),), causal=causal)
        towards = points @ (np.eye(3) if np.ndim(query) == 0 else turn).T
        rows = [
            max(range(i + 1 if causal else 30), key=lambda j, row=row: row[j])
            for i, row in enumerate(towards @ points.T)
        ]
        assert DIAGNOSTICS["leaders"][0](ParticleSample(law, 0.0, points, masses)) == len(set(rows))
    assert len(set(rows)) == 30
    merged = np.repeat(points[:3], 10, axis=0)
    assert DIAGNOSTICS["leaders"][0](ParticleSample(ParticleVelocity(4.0), 0.0, merged, masses)) == 3


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"beta": 0},
        {"query": (-np.eye(3)).tolist()},
        {"key": np.diag([1.0, 2, 4]).tolist()},
        {"layer_norm": "none"},
        {"layer_norm": "pre"},
    ],
    ids=str,
)
def test_leaders_are_a_default_where_tokens_may_attend_most_to_others(changes):
    """Otherwise there are as many leaders as tokens, whatever their directions."""
    case = mf.load_case("tokens_pair", {"initial": "uniform", "dimension": 3, "count": 30, **changes})
    points = tokens_uniform(30, 3, 1) * np.linspace(1, 2, 30)[:, None]
    count = set_up(case).diagnostics(["leaders"], None)(0.0, points)["leaders"]
    assert (count < 30) == ("leaders" in case.output.diagnostics)


TURN = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"causal": True},
        {"normalization": "unnormalized", "beta": -3.0},
        {"heads": (Head(query=TURN, weight=0.25), Head(value=TURN, key=2.0, weight=0.75))},
        {"normalization": "sinkhorn"},
        {"kernel": "gaussian"},
        {"beta": 0.0},
    ],
    ids=str,
)
def test_samples_of_tokens_together(options):
    """Attention of many samples at once equals that of each sample to the last bit, and that of the velocity."""
    masses = np.random.default_rng(0).random(20)
    masses /= masses.sum()
    velocity = ParticleVelocity(**{"beta": 4.0, "masses": masses, **options})
    made = diagnostics_particles(("energy", "speed", "clusters", "pairs"), velocity, masses, 3)
    states = [tokens_uniform(20, 3, seed) for seed in range(5)]
    rows = made.of_states(list(range(5)), states)
    for k, points in enumerate(states):
        alone = made(float(k), points)
        assert all(rows[name][k].tobytes() == np.asarray(alone[name], dtype=float).tobytes() for name in rows)
        sample = made.sample_of(float(k), points)
        for found, expected in zip(sample.normalizer_and_output, velocity.normalizer_and_output(points), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)  # sums of 20 terms in another order
