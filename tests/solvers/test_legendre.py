"""Sums of associated Legendre functions over rings, against SciPy's functions, to the rounding of so many terms."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import assoc_legendre_p_all

from solvers.backends.cpu.rings.legendre import LANES, legendre_analysis, legendre_squares, legendre_synthesis
from solvers.mesh.mesh import Floats

RINGS = [1, 2, 7, 2 * LANES - 1, 2 * LANES, 2 * LANES + 1, 5 * LANES]
DEGREES = [0, 1, 2, 5, 36, 61]


def northern(rings: int) -> Floats:
    """Polar angles of the rings from the pole to the equator."""
    return (np.arange((rings + 1) // 2) + 0.5) * np.pi / rings


def functions(degree: int, theta: Floats) -> Floats:
    """P̄_lm (l, m, rings) with ∫|P̄_lm e^{imφ}|² = 1 over the sphere, without Condon and Shortley's sign."""
    found = assoc_legendre_p_all(degree, degree, np.cos(theta), norm=True)[0, :, : degree + 1]
    return np.asarray(found * (-1.0) ** np.arange(degree + 1)[:, None] / np.sqrt(2 * np.pi))


@pytest.mark.parametrize("degree", DEGREES)
@pytest.mark.parametrize("rings", RINGS)
def test_analysis(rings: int, degree: int) -> None:
    theta = northern(rings)
    modes = np.random.default_rng(rings).standard_normal((2, 2, degree + 1, len(theta)))  # even, odd; re, im
    found = np.zeros((3, degree + 1, degree + 1), complex)
    legendre_analysis(0, 1, np.cos(theta), np.sin(theta), *modes[0], *modes[1], found[0])
    for worker in range(3):
        legendre_analysis(worker, 3, np.cos(theta), np.sin(theta), *modes[0], *modes[1], found[1])
    legendre = functions(degree, theta)
    for l in range(degree + 1):
        for m in range(l + 1):
            re, im = modes[(l - m) % 2, :, m]
            found[2, l, m] = (re + 1j * im) @ legendre[l, m]
    assert np.array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], found[2], rtol=0, atol=1e-14 * len(theta) * (degree + 1))
    rows = np.stack([modes.reshape(4, degree + 1, -1) * factor for factor in (1.0, -2.0, 3.0)])
    squares = np.full((2, 3, degree + 1, degree + 1), np.nan)
    legendre_squares(0, 1, np.cos(theta), np.sin(theta), rows, squares[0])
    for worker in range(3):
        legendre_squares(worker, 3, np.cos(theta), np.sin(theta), rows, squares[1])
    expected = np.abs(found[0].T) ** 2 * np.where(np.arange(degree + 1) > 0, 2.0, 1.0)[:, None]
    assert np.array_equal(squares[0], squares[1])
    for row, factor in enumerate((1.0, -2.0, 3.0)):
        np.testing.assert_allclose(squares[0, row], factor**2 * expected, rtol=0, atol=1e-12 * expected.max())


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
