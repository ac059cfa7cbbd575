"""Sums over pairs, compared with sums in extended precision, at any scale, and the exponential in these sums."""

import tracemalloc

import numpy as np
import pytest
from support.pair_sums import assert_same, expected

from solvers.backends import cpu
from solvers.transforms.pairwise import exponential_sums

FORMATS = [np.float64, np.float32]
ROUNDING = {np.float64: 1e-13, np.float32: 3e-5}  # 300 units in the last place: sums of some hundred terms


def points(n, d, size=1.0, seed=0, number=np.float64):
    return (size * np.random.default_rng(seed).standard_normal((n, d)) / np.sqrt(d)).astype(number)


@pytest.mark.parametrize("number", FORMATS)
@pytest.mark.parametrize(("n", "m", "d"), [(1, 1, 1), (3, 7, 2), (70, 500, 3), (129, 97, 16), (40, 300, 128)])
def test_sums_are_those_over_all_pairs(n, m, d, number):
    targets, sources, vectors = points(n, d, 3, 1, number), points(m, d, 1, 2, number), points(m, 5, 1, 3, number)
    weights = np.random.default_rng(4).random(m).astype(number) + number(0.1)
    found = exponential_sums(targets, sources, weights, vectors=vectors)
    assert {array.dtype for array in found} == {np.dtype(number)}
    assert_same(found, expected(targets, sources, weights, vectors), ROUNDING[number])
    assert_same(exponential_sums(targets, sources, weights), expected(targets, sources, weights, sources), 3e-5)


def test_running_scale_is_the_largest_exponent():
    targets, sources = points(50, 3, 5, 1), points(400, 3, 1, 2)
    weights = np.ones(400)
    scale, normalizer, _ = exponential_sums(targets, sources, weights)
    assert np.allclose(scale, (targets @ sources.T).max(axis=1), rtol=1e-15, atol=1e-15)
    assert normalizer.min() >= 1.0


@pytest.mark.parametrize("d", [1, 3, 64])
def test_exponents_of_ten_thousand(d):
    """No overflow occurs, and no loss beyond the rounding of the exponent: 1e4 times 2e-16, d times."""
    targets, sources = points(60, d, 1.0, 1), points(500, d, 1.0, 2)
    targets *= 1e4 / np.abs(targets @ sources.T).max()
    weights = np.ones(500)
    found, reference = exponential_sums(targets, sources, weights), expected(targets, sources, weights, sources)
    assert np.abs(reference[0]).max() > 5e3
    assert_same(found, reference, 1e-11)


def test_given_scale():
    targets, sources = points(40, 3, 4, 1), points(300, 3, 1, 2)
    weights = np.random.default_rng(3).standard_normal(300)
    scale = np.linspace(-2.0, 5.0, 40)
    found = exponential_sums(targets, sources, weights, log_scale=scale)
    reference = expected(targets, sources, weights, sources, scale)
    size = expected(targets, sources, np.abs(weights), np.abs(sources), scale)
    assert np.array_equal(found[0], scale)
    assert np.abs((found[1] - reference[1]) / size[1]).max() < 1e-14  # weights of both signs cancel
    assert np.abs((found[2] - reference[2]) / size[2]).max() < 1e-14
    assert np.array_equal(scale, np.linspace(-2.0, 5.0, 40))  # the caller's array is unchanged


def test_sources_without_weight_take_no_part():
    """The exponents of sources without weight would otherwise determine the scale, and underflow all others."""
    targets, sources = points(20, 3, 1, 1), points(200, 3, 1, 2)
    weights = np.ones(200)
    weights[::3] = 0.0
    sources[::3] *= 1e5
    assert_same(exponential_sums(targets, sources, weights), expected(targets, sources, weights, sources), 1e-13)


def test_no_source_with_weight():
    scale, normalizer, sums = exponential_sums(points(20, 3), points(7, 3), np.zeros(7))
    assert (scale == -np.inf).all()
    assert not normalizer.any()
    assert not sums.any()


def test_no_sources_and_no_targets():
    scale, normalizer, sums = exponential_sums(points(20, 3), points(0, 3), np.zeros(0))
    assert (scale == -np.inf).all()
    assert not normalizer.any()
    assert sums.shape == (20, 3)
    nothing = exponential_sums(points(0, 3), points(7, 3), np.ones(7), log_scale=np.zeros(0))
    assert [array.shape for array in nothing] == [(0,), (0,), (0, 3)]


def test_all_sources_far_behind_the_given_scale():
    far = exponential_sums(points(20, 3), points(30, 3), np.ones(30), log_scale=np.full(20, 800.0))
    assert not far[1].any()
    assert not far[2].any()


def test_log_weights_beyond_the_range_of_numbers():
    targets, sources = points(30, 2, 2, 1), points(300, 2, 1, 2)
    weights = np.random.default_rng(3).choice([1.0, -0.5], 300, p=[0.9, 0.1])
    logarithms = np.linspace(-2000.0, -1990.0, 300)
    found = exponential_sums(targets, sources, weights, log_weights=logarithms)
    reference = expected(targets, sources, weights, sources, log_weights=logarithms)
    assert_same(found, reference, 1e-12)  # rounding of exponents of 2000


@pytest.mark.parametrize("number", FORMATS)
@pytest.mark.parametrize("n", [1, 31, 97, 300])
def test_causal(n, number):
    """The hidden sources are the strongest, so that a visible one would change the sum."""
    targets = points(n, 3, 1, 1, number)
    sources = points(n, 3, 1, 2, number) * np.linspace(1, 30, n, dtype=number)[:, None]
    weights = np.linspace(1, 2, n, dtype=number)
    found = exponential_sums(targets, sources, weights, causal=True)
    assert_same(found, expected(targets, sources, weights, sources, causal=True), ROUNDING[number])
    assert np.allclose(found[2][0], weights[0] * sources[0], rtol=1e-6)
    assert np.allclose(found[0][0], targets[0] @ sources[0], rtol=1e-5)


def test_same_bits_for_any_number_of_workers(monkeypatch):
    targets, sources = points(1000, 3, 5, 1), points(700, 3, 1, 2)
    found = []
    for workers in (1, 2, 3):
        monkeypatch.setattr("solvers.backends.cpu.launching.WORKERS", workers)
        found.append(np.column_stack(exponential_sums(targets, sources, np.ones(700))))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_memory_is_that_of_the_points():
    """Padded copies of points, vectors and sums take some hundred bytes a point, where pairs would take 24 000."""
    targets, sources = points(3000, 3, 5, 1), points(3000, 3, 1, 2)
    exponential_sums(targets, sources, np.ones(3000))  # compiles the kernels of so many points
    tracemalloc.start()
    exponential_sums(targets, sources, np.ones(3000))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 500 * 3000, f"{peak / 3000:.0f} bytes a point"


def test_a_target_does_not_depend_on_its_neighbors():
    targets, sources = points(200, 3, 5, 1), points(700, 3, 1, 2)
    whole = np.column_stack(exponential_sums(targets, sources, np.ones(700)))
    alone = np.column_stack(exponential_sums(targets[77:78], sources, np.ones(700)))
    assert np.array_equal(whole[77:78], alone)


def test_not_a_number_is_passed_on():
    sources = points(200, 3)
    sources[150, 1] = np.nan
    _, normalizer, sums = exponential_sums(points(10, 3), sources, np.ones(200))
    assert np.isnan(normalizer).all()
    assert np.isnan(sums).all()


@pytest.mark.parametrize(("number", "least"), [(np.float64, -708.39), (np.float32, -87.33)])
def test_exponential_is_within_two_units_in_the_last_place(number, least):
    """The target x and the source 1 give Z = eˣ, from the least normal number to the largest."""
    largest = np.log(np.finfo(number).max)
    random = np.random.default_rng(0)
    x = np.concatenate(
        [
            random.uniform(least, largest, 200_000),
            random.uniform(-1, 1, 100_000),
            [0.0, -0.0, least, 0.999999 * largest],
        ]
    ).astype(number)
    one = np.ones((1, 1), number)
    _, found, _ = exponential_sums(x[:, None], one, one[0], log_scale=np.zeros_like(x))
    reference = np.exp(x.astype(np.longdouble))
    units = np.abs(found - reference) / np.spacing(reference.astype(number))
    assert units.max() < 2.0, f"{units.max():.2f} at {x[units.argmax()]}"
    assert (found[x == 0] == 1).all()


@pytest.mark.parametrize("number", FORMATS)
def test_exponential_beyond_its_range(number):
    one = np.ones((1, 1), number)
    x = np.array([-1e38, -1e30, -800.0, 800.0, 1e30, np.nan], number)
    _, found, _ = exponential_sums(x[:, None], one, one[0], vectors=one[:, :0], log_scale=np.zeros_like(x))
    assert np.array_equal(found, np.array([0, 0, 0, np.inf, np.inf, np.nan]), equal_nan=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sources": np.ones((5, 2))}, "expected \\(n, d\\) and \\(m, d\\)"),
        ({"weights": np.ones(4)}, "weights \\(4,\\): expected \\(5,\\)"),
        ({"vectors": np.ones((4, 1))}, "vectors \\(4, 1\\): expected \\(5, components\\)"),
        ({"log_weights": np.ones(3)}, "log_weights \\(3,\\): expected \\(5,\\)"),
        ({"log_scale": np.ones(5)}, "log_scale \\(5,\\): expected \\(4,\\)"),
        ({"causal": True}, "as many sources as targets, got 5 and 4"),
    ],
)
def test_shapes_that_do_not_fit_are_refused(change, message):
    arguments = {"targets": np.ones((4, 3)), "sources": np.ones((5, 3)), "weights": np.ones(5)} | change
    with pytest.raises(ValueError, match=message):
        exponential_sums(**arguments)


@pytest.mark.parametrize("count", [3, 40])  # by one matrix, and by tiles
def test_integers_are_summed_as_float64(count):
    numbers = np.random.default_rng(0).integers(-2, 3, (count, 2))
    weights, vectors = numbers[:, 0] ** 2 + 1, numbers[:, :1]
    found = exponential_sums(numbers, numbers, weights, vectors=vectors, log_weights=weights)
    wide = [array.astype(np.float64) for array in (numbers, weights, vectors)]
    reference = exponential_sums(wide[0], wide[0], wide[1], vectors=wide[2], log_weights=wide[1])
    for array, exact in zip(found, reference, strict=True):
        assert array.dtype == np.float64
        np.testing.assert_array_equal(array, exact)
    lists = exponential_sums(numbers.tolist(), numbers.tolist(), weights.tolist())
    np.testing.assert_array_equal(lists[2], exponential_sums(wide[0], wide[0], wide[1])[2])


@pytest.mark.parametrize("name", ["targets", "sources", "weights", "log_weights", "vectors", "log_scale"])
@pytest.mark.parametrize(
    ("value", "found"), [(np.ones(4) * 1j, "of dtype complex128"), (np.ones(4) > 0, "of dtype bool"), ("x", "= str")]
)
def test_other_numbers_are_refused(name, value, found):
    arguments = {"targets": np.ones((4, 3)), "sources": np.ones((4, 3)), "weights": np.ones(4)} | {name: value}
    with pytest.raises(TypeError, match=f"^{name} {found}: expected real numbers$"):
        exponential_sums(**arguments)


@pytest.mark.parametrize("lost", [0, 1, 17, 60])
def test_sums_are_redone_where_they_are_lost_and_nowhere_else(lost):
    random = np.random.default_rng(0)
    targets, sources = points(60, 3, 30, 1), points(80, 3, 1, 2)
    mask, weights = np.zeros(60, bool), np.where(random.random(80) < 0.5, random.random(80), 0.0)
    mask[random.permutation(60)[:lost]] = True
    before = random.random(60), random.random(60), random.random((60, 3))
    sums = tuple(array.copy() for array in before)
    cpu.redo_sums(mask, *cpu.true_indices(weights != 0), targets.__getitem__, sources, weights, sums, exponential_sums)
    for old, found in zip(before, sums, strict=True):
        assert np.array_equal(found[~mask], old[~mask])
    if lost:
        reference = expected(targets[mask], sources, weights, sources)
        assert_same([array[mask] for array in sums], reference, 1e-13)
        assert np.abs(sums[0][mask] - reference[0].astype(float)).max() < 1e-13  # a few roundings of exponents of 30


def test_either_computes_what_is_asked_for_only():
    assert cpu.conditional(True, lambda: (1,), lambda: 1 / 0) == (1,)
    assert cpu.conditional(False, lambda: 1 / 0, lambda: (2,)) == (2,)


def test_two_points_of_many_dimensions_need_no_tile():
    """A tile has room for 96 sources: 3 MB for each array in 4096 dimensions, where two points have 64 kB."""
    points = np.random.default_rng(0).standard_normal((2, 4096)) / 64
    exponential_sums(points, points, np.ones(2))
    tracemalloc.start()
    exponential_sums(points, points, np.ones(2))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * points.nbytes
