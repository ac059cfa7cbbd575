"""Sums over pairs by products of matrices on the device, compared with sums in extended precision."""

import numpy as np
import pytest
from support.device import SIMULATED, gpu
from support.pair_sums import assert_same, expected

from solvers.transforms.pairwise import exponential_sums

COUNT = 43 if SIMULATED else 2500  # points in several tiles of sources, the last one not full
RANDOM = np.random.default_rng(0)
LOGS, SCALE, WEIGHTS = 100 * RANDOM.standard_normal(COUNT), np.linspace(-1.0, 2.0, COUNT), RANDOM.random(COUNT) + 0.1
WEIGHTS[3::7] = 0.0
ROUNDING = {np.float64: 1e-12, np.float32: 5e-4}  # ten units of the last place of exponents of 500


def points(d, size=1.0, seed=1):
    return size * np.random.default_rng(seed).standard_normal((COUNT, d)) / np.sqrt(d)


@pytest.fixture(autouse=True)
def _several_tiles_of_targets(monkeypatch):
    monkeypatch.setattr("solvers.backends.gpu.pair_products._TILE_BYTES", 1 << 12 if SIMULATED else 1 << 23)


def sums_on_device(targets, sources, weights, **options):
    """Return s, Z and N on the host, computed on the device in the arrays' format."""
    there = {name: gpu.to_device(option) for name, option in options.items()}
    found = exponential_sums(*map(gpu.to_device, (targets, sources, weights)), **there)
    assert {array.dtype for array in found} == {targets.dtype}
    return tuple(map(gpu.to_host, found))


@pytest.mark.sampled
@pytest.mark.parametrize(("number", "d"), [(np.float64, 16), (np.float32, 37)])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"causal": True},
        {"log_weights": LOGS},
        {"vectors": points(3, seed=3)},
        {"log_scale": SCALE},
        {"log_scale": SCALE, "causal": True},
        {"log_weights": LOGS, "vectors": points(20, seed=3), "causal": True},
    ],
    ids=", ".join,
)
def test_sums_are_those_over_all_pairs(options, d, number):
    """The latest sources are the strongest, and those without weight would be stronger."""
    targets, sources = points(d, 3.0, 1), points(d, 1.0, 2) * np.linspace(1.0, 5.0, COUNT)[:, None]
    sources[WEIGHTS == 0] *= 100.0
    targets, sources, weights = (array.astype(number) for array in (targets, sources, WEIGHTS))
    options = {name: value if value is True else value.astype(number) for name, value in options.items()}
    found = sums_on_device(targets, sources, weights, **options)
    reference = expected(targets, sources, weights, **{"vectors": sources, **options})
    assert_same(found, reference, ROUNDING[number])
    assert np.abs(found[0] - reference[0]).max() < ROUNDING[number]


@pytest.mark.parametrize("number", [np.float64, np.float32])
def test_exponents_of_four_hundred(number):
    targets, sources = points(16, 1.0, 1), points(16, 1.0, 2)
    targets *= 400.0 / np.abs(targets @ sources.T).max()
    arrays = [array.astype(number) for array in (targets, sources, WEIGHTS)]
    assert_same(sums_on_device(*arrays), expected(*arrays, arrays[1]), ROUNDING[number])


def test_weights_of_both_signs():
    targets, sources, weights = points(16, 3.0, 1), points(16, 1.0, 2), RANDOM.standard_normal(COUNT)
    _, normalizer, sums = sums_on_device(targets, sources, weights, log_scale=SCALE)
    reference = expected(targets, sources, weights, sources, SCALE)
    size = expected(targets, sources, np.abs(weights), np.abs(sources), SCALE)
    assert np.abs((normalizer - reference[1]) / size[1]).max() < 1e-13
    assert np.abs((sums - reference[2]) / size[2]).max() < 1e-13


def test_no_source_with_weight():
    scale, normalizer, sums = sums_on_device(points(16), points(16), np.zeros(COUNT))
    assert (scale == -np.inf).all()
    assert not normalizer.any()
    assert not sums.any()


def test_no_sources_and_no_targets():
    scale, normalizer, sums = sums_on_device(points(16), points(16)[:0], WEIGHTS[:0])
    assert (scale == -np.inf).all()
    assert not normalizer.any()
    assert sums.shape == (COUNT, 16)
    nothing = sums_on_device(points(16)[:0], points(16), WEIGHTS)
    assert [array.shape for array in nothing] == [(0,), (0,), (0, 16)]


def test_not_a_number_is_passed_on():
    sources = points(16)
    sources[30, 1] = np.nan
    _, normalizer, sums = sums_on_device(points(16), sources, WEIGHTS)
    assert np.isnan(normalizer).all()
    assert np.isnan(sums).all()


def test_same_bits_again():
    arrays = points(16, 3.0, 1), points(16, 1.0, 2), WEIGHTS
    for one, other in zip(sums_on_device(*arrays), sums_on_device(*arrays), strict=True):
        assert np.array_equal(one, other)
