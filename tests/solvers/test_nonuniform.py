"""Transforms between nonuniform points and modes, compared with their defining sums."""

import numpy as np
import pytest
from scipy import special

from solvers.transforms.nonuniform import NonuniformTransform, _shape_of, window_polynomials, window_width

TOLERANCES = (1e-2, 1e-4, 1e-7, 1e-10, 1e-13, 1e-14)
# Relative to Σ|w| or Σ|c|, with angles of a few radians and modes up to 30; grows with K as the rounding of α does.
ROUNDING = 2e-15


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


def angles(axes, count, seed=1):
    """Return uniform angles over several periods, with a cluster, copies of one point, and the ends of the period."""
    found = np.random.default_rng(seed).uniform(-9, 9, (axes, count))
    found[:, : count // 3] = 0.3 + 1e-3 * found[:, : count // 3]
    found[:, :6] = np.array([0.0, np.pi, -np.pi, 2 * np.pi, -1e-18, 0.0])[:count]
    return found


def waves(axis_angles, degree, both):
    k = np.arange(degree + 1)
    return np.exp(1j * np.outer(axis_angles, np.concatenate([k, k[:0:-1] * -1]) if both else k))


def type_1(places, weights, degree):
    along = np.conj(waves(places[-1], degree, both=False))
    if len(places) == 1:
        return weights @ along
    return np.einsum("sn,nk,nl->skl", weights, np.conj(waves(places[0], degree, both=True)), along, optimize=True)


def twice(degree):
    """Return the multiplicity of each mode k ≥ 0 of the last axis for a real function."""
    return np.where(np.arange(degree + 1) > 0, 2.0, 1.0)


def type_2(places, modes, degree):
    along = waves(places[-1], degree, both=False)
    if len(places) == 1:
        return ((modes * twice(degree)) @ along.T).real
    down = waves(places[0], degree, both=True)
    return np.einsum("skl,nk,nl->sn", modes * twice(degree), down, along, optimize=True).real


def modes_of(axes, degree, sets=2):
    """Return random modes of real functions."""
    shape = (sets, *(2 * degree + 1,) * (axes - 1), degree + 1)
    modes = random(*shape, seed=3) + 1j * random(*shape, seed=4)
    if axes == 1:
        modes[:, 0].imag = 0.0
    else:
        opposite = -np.arange(2 * degree + 1)
        modes[:, :, 0] = (modes[:, :, 0] + np.conj(modes[:, opposite, 0])) / 2
    return modes


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize(("axes", "degree"), [(1, 1), (1, 30), (2, 1), (2, 30)])
def test_transforms_are_the_sums_to_the_tolerance(axes, degree, tolerance):
    places, weights, modes = angles(axes, 200), random(2, 200), modes_of(axes, degree)
    transform, size = NonuniformTransform(places, degree, tolerance), np.abs(weights).sum(axis=1).max()
    error = np.abs(transform.analysis(weights) - type_1(places, weights, degree)).max() / size
    assert error < axes * tolerance + ROUNDING, f"type 1: {error:.1e}"
    size = np.abs(modes * twice(degree)).sum(axis=tuple(range(1, modes.ndim))).max()
    error = np.abs(transform.synthesis(modes) - type_2(places, modes, degree)).max() / size
    assert error < axes * tolerance + ROUNDING, f"type 2: {error:.1e}"


@pytest.mark.parametrize(("axes", "degree", "count"), [(1, 5000, 50), (1, 7, 30_000), (2, 97, 50), (2, 5, 30_000)])
def test_few_points_of_many_modes_and_many_points_of_few(axes, degree, count):
    places, weights = np.random.default_rng(5).uniform(0, 2 * np.pi, (axes, count)), random(1, count)
    transform, size = NonuniformTransform(places, degree), np.abs(weights).sum()
    of_angles = degree * 2 * np.pi * np.finfo(float).eps  # error of the phase kα by rounding
    expected = type_1(places, weights, degree)
    assert np.abs(transform.analysis(weights) - expected).max() < (1e-13 + of_angles) * size
    values = type_2(places, expected / size, degree)
    found = transform.synthesis(expected / size)
    assert np.abs(found - values).max() < (1e-13 + of_angles) * np.abs(expected / size).sum()


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("tolerance", [1e-3, 1e-13])
def test_type_2_is_the_adjoint_of_type_1(axes, tolerance):
    """Σ_j w_j f(α_j) = Σ_k conj(f̂_k) c_k to rounding at any tolerance: both use the same window."""
    degree, places, weights = 12, angles(axes, 300), random(2, 300)
    transform, modes = NonuniformTransform(places, degree, tolerance), modes_of(axes, degree)
    left = np.sum(weights * transform.synthesis(modes))
    right = np.sum((np.conj(transform.analysis(weights)) * modes).real * twice(degree))
    assert abs(left - right) < ROUNDING * np.abs(weights).sum() * np.abs(modes * twice(degree)).sum()


@pytest.mark.parametrize("axes", [1, 2])
def test_mass_and_constants_are_kept_to_rounding(axes):
    degree, places, weights = 9, angles(axes, 20_000), np.random.default_rng(0).random((1, 20_000))
    transform, constant = NonuniformTransform(places, degree), np.zeros_like(modes_of(axes, degree, 1))
    # The order of sums of 20,000 numbers depends on the processor's vectors: 2.1e-15 is the largest error seen.
    assert abs(transform.analysis(weights).flat[0] / weights.sum() - 1) < 4e-15
    constant.flat[0] = 1.0
    assert np.abs(transform.synthesis(constant) - 1).max() < 4e-15 * axes  # the tail of a window at 1e-13, 3e-15


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("clustered", [False, True])
def test_the_same_bits_for_any_number_of_workers(axes, clustered, monkeypatch):
    places, weights, degree = angles(axes, 50_000), random(2, 50_000), 8
    places = 0.5 + 1e-4 * places if clustered else places
    found = []
    for workers in (1, 2, 3, 7):
        monkeypatch.setattr("solvers.backends.cpu.launching.WORKERS", workers)
        transform = NonuniformTransform(places, degree)
        modes = transform.analysis(weights)
        found.append((modes, transform.synthesis(modes), transform.analysis(weights)))
    for other in found:
        assert all(np.array_equal(one, same) for one, same in zip(found[0], other, strict=True))
        assert np.array_equal(other[0], other[2])


def test_windows_are_entire_functions_of_the_offset():
    """The polynomials are continuous where one node's interval ends and the next begins."""
    for tolerance in TOLERANCES:
        width = window_width(tolerance)
        even, odd = np.hsplit(window_polynomials(width), 2)
        ends, starts = (np.sum(even + t * odd, axis=0) for t in (1.0, -1.0))
        beyond = len(ends) - width // 2
        assert np.abs(ends[beyond:-1] - starts[beyond + 1 :]).max(initial=0.0) < 2e-15
        assert not even[:, :beyond].any()
        assert not odd[:, :beyond].any()
        assert ends[beyond:].all()
        assert ends[-1] == pytest.approx(special.i0e(_shape_of(width)), abs=2e-15)  # φ(0)


def test_no_points_and_no_sets():
    transform = NonuniformTransform(np.empty((2, 0)), 3)
    assert not transform.analysis(np.empty((1, 0))).any()
    assert transform.synthesis(modes_of(2, 3)).shape == (2, 0)


@pytest.mark.parametrize(("places", "degree", "tolerance", "message"), [
    (np.ones(4), 3, 1e-13, r"angles \(4,\): expected \(1, n\) or \(2, n\)"),
    (np.ones((3, 4)), 3, 1e-13, r"angles \(3, 4\): expected \(1, n\) or \(2, n\)"),
    (np.full((1, 3), np.inf), 3, 1e-13, "angles: expected finite numbers"),
    (np.ones((1, 3)), 0, 1e-13, "degree = 0: expected 1 or more"),
    (np.ones((1, 3)), 3, 1e-15, "tolerance = 1e-15: expected 1e-14 to 0.1"),
])  # fmt: skip
def test_impossible_transforms_are_refused(places, degree, tolerance, message):
    with pytest.raises(ValueError, match=message):
        NonuniformTransform(places, degree, tolerance)
