"""Sparse patterns of attention: visible tokens, sums equal to dense ones with the same mask, and memory linear in n."""

import tracemalloc

import numpy as np
import pytest

import meanfield as mf
from meanfield.case.errors import CaseError
from meanfield.case.load import parse
from meanfield.domains.particles.sparse_sums import SparseSums
from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.model.heads import Head
from meanfield.model.kernel import KERNELS
from meanfield.model.pattern import TokenPattern

PATTERNS = [
    TokenPattern(local=2),
    TokenPattern(local=1, global_tokens=2, random_tokens=3),
    TokenPattern(local=3, global_tokens=1, random_tokens=2, periodic=True, seed=5),
    TokenPattern(local=2, global_tokens=2, random_tokens=4, causal=True),
    TokenPattern(global_tokens=40),
    TokenPattern(local=100, periodic=True),
]


def seen_one_by_one(pattern, n):
    """Return the mask (n, n) by the definition, a pair at a time."""
    drawn = np.random.default_rng(pattern.seed).integers(0, n, (n, pattern.random_tokens), dtype=np.int32)
    seen = np.zeros((n, n), bool)
    for i in range(n):
        for j in range(n):
            apart = min(abs(i - j), n - abs(i - j)) if pattern.periodic else abs(i - j)
            either = min(i, j) < pattern.global_tokens
            seen[i, j] = (apart <= pattern.local or either or j in drawn[i]) and (j <= i or not pattern.causal)
    return seen


@pytest.mark.parametrize("pattern", PATTERNS)
def test_whom_tokens_see(pattern):
    np.testing.assert_array_equal(pattern.mask(23), seen_one_by_one(pattern, 23))
    lists = pattern.lists(23)
    assert all(len(set(row[row >= 0])) == (row >= 0).sum() for row in lists)  # no token is counted twice


@pytest.mark.parametrize("kernel", ["exponential", "gaussian"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_sums_are_the_dense_ones_with_the_same_mask(pattern, kernel):
    random, n, d, beta = np.random.default_rng(0), 23, 3, 2.5
    points, masses = random.standard_normal((n, d)), random.random(n)
    masses[4] = 0.0
    head = Head(*random.standard_normal((2, d, d)))
    query, key = points @ head.query.T, points @ head.key.T
    logits = beta * query @ key.T
    if kernel == "gaussian":
        logits = -beta / 2 * ((query[:, None] - key) ** 2).sum(axis=2)
    weights = np.where(pattern.mask(n), masses * np.exp(logits), 0.0)
    scale, normalizer, numerator = SparseSums(points, beta, head, pattern, KERNELS[kernel]).apply(masses)
    total = weights.sum(axis=1)
    some = total > 0  # a token of mass 0 that attends only to itself has no mass in view
    np.testing.assert_allclose((scale + np.log(normalizer))[some], np.log(total[some]), rtol=0, atol=1e-12)
    expected = (weights @ points)[some] / total[some, None]
    np.testing.assert_allclose((numerator / normalizer[:, None])[some], expected, rtol=0, atol=1e-12)
    assert not normalizer[~some].any()


def test_a_token_that_sees_no_mass_has_sums_of_zero():
    scale, normalizer, numerator = SparseSums(np.eye(3), 1.0, Head(), TokenPattern()).apply(np.array([1.0, 0.0, 1.0]))
    np.testing.assert_array_equal(normalizer, [1, 0, 1])
    assert scale[1] == -np.inf
    np.testing.assert_array_equal(numerator[1], 0)


def test_float32_stays_float32():
    points = np.random.default_rng(0).standard_normal((9, 3)).astype(np.float32)
    output = ParticleVelocity(2.0, pattern=PATTERNS[1]).output_at(points)
    assert output.dtype == np.float32
    wide = ParticleVelocity(2.0, pattern=PATTERNS[1]).output_at(points.astype(float))
    np.testing.assert_allclose(output, wide, rtol=0, atol=1e-5)


def test_memory_and_pairs_are_linear_in_the_tokens():
    """A matrix of 30 000 × 30 000 weights would take 7.2 GB."""
    pattern, n = TokenPattern(local=4, global_tokens=2, random_tokens=2), 30_000
    assert pattern.lists(n).shape == (n - 2, 13)
    assert pattern.lists(2 * n).size == pytest.approx(2 * pattern.lists(n).size, rel=1e-3)
    points, masses = np.random.default_rng(0).standard_normal((n, 4)), np.full(n, 1 / n)
    tracemalloc.start()
    try:
        SparseSums(points, 1.0, Head(), pattern).apply(masses)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * n * 13 * 16  # numbers of eight bytes: a few for each pair


CASE = """
[domain]
manifold = "particles"
count = 30
dimension = 3
[sequence]
diffusion = 1e-3
ends = "periodic"
[attention]
beta = 3.0
[attention.pattern]
local = 2
global_tokens = 1
random_tokens = 2
[initial]
kind = "uniform"
[time]
end = 1.0
"""


def test_a_window_over_all_tokens_is_dense_attention_of_the_field():
    dense = mf.simulate(parse(CASE.replace("[attention.pattern]\nlocal = 2\nglobal_tokens = 1\nrandom_tokens = 2", "")))
    wide = mf.simulate(parse(CASE, ["attention.pattern.local=30"]))
    np.testing.assert_allclose(wide.position[-1], dense.position[-1], rtol=0, atol=1e-12)
    narrow = mf.simulate(parse(CASE))
    assert np.abs(narrow.position[-1] - dense.position[-1]).max() > 0.1


def test_nothing_reaches_beyond_the_window_in_a_layer():
    points, others = np.random.default_rng(0).standard_normal((2, 30, 3))
    law = ParticleVelocity(3.0, pattern=TokenPattern(local=2, periodic=True))
    mixed = np.concatenate([points[:10], others[10:]])
    same = np.all(law.output_at(mixed) == law.output_at(points), axis=1)
    np.testing.assert_array_equal(np.flatnonzero(same), np.arange(2, 8))


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("attention.normalization=sinkhorn", "attention.pattern.local = 2: expected none with sinkhorn"),
        ("attention.kernel=windowed attention.window=0.5", "pattern.local = 2: expected none with a windowed"),
        ("attention.pattern.local=-1", "attention.pattern.local = -1: expected an integer >= 0"),
    ],
)
def test_what_no_pattern_goes_with_is_refused(override, expected):
    with pytest.raises(CaseError) as error:
        parse(CASE, override.split())
    assert expected in str(error.value)
