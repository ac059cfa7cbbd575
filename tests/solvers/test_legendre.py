"""Sums of associated Legendre functions over rings, compared with SciPy's functions, to rounding of the sums."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import assoc_legendre_p_all

from solvers.backends.cpu.rings.legendre import RINGS as TOGETHER
from solvers.backends.cpu.rings.legendre import legendre_analysis, legendre_synthesis, zonal_modes
from solvers.mesh.mesh import Floats

RINGS = [1, 2, 7, 2 * TOGETHER - 1, 2 * TOGETHER, 2 * TOGETHER + 1, 5 * TOGETHER]
NO_SQUARES, NO_COEFFICIENTS = np.empty((0, 0, 0)), np.empty((0, 0, 0), complex)
FACTORS = 1.0, -2.0, 3.0  # factors of rows of modes
DEGREES = [0, 1, 2, 5, 36, 61]


def northern(rings: int) -> Floats:
    """Return polar angles of the rings from the pole to the equator."""
    return (np.arange((rings + 1) // 2) + 0.5) * np.pi / rings


def functions(degree: int, theta: Floats) -> Floats:
    """Return P̄_lm (l, m, rings) with ∫|P̄_lm e^{imφ}|² = 1 over the sphere, without Condon and Shortley's sign."""
    found = assoc_legendre_p_all(degree, degree, np.cos(theta), norm=True)[0, :, : degree + 1]
    return np.asarray(found * (-1.0) ** np.arange(degree + 1)[:, None] / np.sqrt(2 * np.pi))


@pytest.mark.sampled
@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("rings", RINGS)
def test_analysis(rings: int, degree: int) -> None:
    theta = northern(rings)
    modes = np.random.default_rng(rings).standard_normal((2, 2, degree + 1, len(theta)))  # even, odd; re, im
    rows = np.stack([factor * modes.reshape(4, degree + 1, -1) for factor in FACTORS])
    expected = np.zeros((degree + 1, degree + 1), complex)
    legendre = functions(degree, theta)
    for l in range(degree + 1):
        for m in range(l + 1):
            re, im = modes[(l - m) % 2, :, m]
            expected[l, m] = (re + 1j * im) @ legendre[l, m]
    squares = np.abs(expected.T) ** 2 * np.where(np.arange(degree + 1) > 0, 2.0, 1.0)[:, None]
    found, of_squares = np.zeros((2, 3, *expected.shape), complex), np.full((2, 3, *expected.shape), np.nan)
    for k, workers in enumerate((1, 3)):
        for worker in range(workers):
            legendre_analysis(worker, workers, np.cos(theta), np.sin(theta), rows, found[k], NO_SQUARES)
            legendre_analysis(worker, workers, np.cos(theta), np.sin(theta), rows, NO_COEFFICIENTS, of_squares[k])
    assert np.array_equal(*found)
    assert np.array_equal(*of_squares)
    rounding = 1e-14 * len(theta) * (degree + 1)
    for k, factor in enumerate(FACTORS):
        np.testing.assert_allclose(found[0, k], factor * expected, rtol=0, atol=3 * rounding)
        np.testing.assert_allclose(of_squares[0, k], factor**2 * squares, rtol=0, atol=9 * rounding * squares.max())
        alone = np.zeros((1, *expected.shape), complex)
        legendre_analysis(0, 1, np.cos(theta), np.sin(theta), rows[k : k + 1], alone, NO_SQUARES)
        assert np.array_equal(alone[0], found[0, k])  # independent of the other rows


@pytest.mark.sampled
@pytest.mark.parametrize("sets", [1, 2, 3, 4])
@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("rings", RINGS)
def test_synthesis(rings: int, degree: int, sets: int) -> None:
    theta, shape = northern(rings), (sets, degree + 1, rings)
    random = np.random.default_rng(degree)
    coefficients = random.standard_normal((2, sets, degree + 1, degree + 1))
    coefficients = np.tril(coefficients[0] + 1j * coefficients[1])
    mirror = np.arange(rings)[::-1][: len(theta)].copy()
    found = np.empty((2, 2, *shape))
    for worker in range(3):
        legendre_synthesis(worker, 3, np.cos(theta), np.sin(theta), coefficients, mirror, *found[1])
    legendre_synthesis(0, 1, np.cos(theta), np.sin(theta), coefficients, mirror, *found[0])
    whole = np.pi * (np.arange(rings) + 0.5) / rings
    expected = np.einsum("slm,lmr->smr", coefficients, functions(degree, whole))
    assert np.array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0, 0] + 1j * found[0, 1], expected, rtol=0, atol=1e-13 * (degree + 1))


@pytest.mark.parametrize("kernels", [2, 3])
def test_orders_of_a_convolution_are_independent(kernels: int) -> None:
    """Three workers with orders of their own find the same bits as one."""
    degrees, random, theta = 12, np.random.default_rng(kernels), northern(9)
    modes, factors = random.standard_normal((2, 4, degrees, len(theta))), random.random((2, degrees - 1, degrees))
    mirror, multipliers = np.arange(9)[::-1][: len(theta)].copy(), random.random((kernels, degrees))
    results = []
    for workers in (1, 3):
        work = (np.full((rows, degrees, degrees), np.nan + 0j) for rows in (2, 2 * kernels + 2))
        found = np.full((2, 2 * kernels + 2, degrees, 9), np.nan)
        arguments = (np.cos(theta), np.sin(theta), modes, np.ones(2), multipliers, *factors, mirror, *work, *found)
        for worker in range(workers):
            zonal_modes(worker, workers, *arguments)
        results.append(found)
    assert np.isfinite(results[0]).all()
    assert np.array_equal(*results)
