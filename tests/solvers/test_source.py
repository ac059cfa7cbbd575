"""Step limit of a source of unknown rate, by power iterations on differences."""

import numpy as np
import pytest

from solvers import Equation, solve
from solvers.terms.source import Source


@pytest.mark.parametrize("largest", [-100.0, 100.0, -1e6])
@pytest.mark.parametrize("slower", [0.0, 0.5])
def test_the_longest_step_is_found_from_one_of_a_thousand_cells(largest, slower):
    """The step is 1/|λ| with one fast cell and others half as fast or at rest, and at least 1/(1.3 |λ|)."""
    rates = np.full(1000, slower * largest)
    rates[500] = largest
    step = Source(lambda t, u: rates * u).prepare(0.0, np.ones(1000))
    if slower == 0.0:
        assert 1 / (1.31 * abs(largest)) < step <= 1 / abs(largest)
    else:
        assert 1 / (1.31 * abs(largest)) < step <= 1 / (1.3 * slower * abs(largest))


def test_fields_that_excite_each_other_are_faster_than_each():
    """The matrix has eigenvalues ±100 and entries 1 and 10⁴."""
    step = Source(lambda t, u: np.stack([1e4 * u[1], u[0]])).prepare(0.0, np.ones((2, 64)))
    assert step <= 1 / 100


def test_a_rate_that_is_known_bounds_the_step():
    assert Source(lambda t, u: -3 * u, fastest=3.0).prepare(0.0, np.ones(4)) == 1 / 3
    assert Source(lambda t, u: 5.0).prepare(0.0, np.ones(4)) == np.inf


@pytest.mark.parametrize("fastest", ["a", 0.0, -1.0, np.inf, np.nan, 1j, np.ones(4)])
def test_a_rate_that_bounds_no_step_is_refused(fastest):
    with pytest.raises((TypeError, ValueError), match=r"^fastest = .*: expected a number > 0"):
        Source(lambda t, u: -u, fastest=fastest)


def test_derivatives_are_diagonal_where_cells_are_independent():
    u = np.random.default_rng(0).uniform(1, 2, (2, 5))
    source = Source(lambda t, u: np.stack([t * u[0] * u[1] ** 2, np.sin(u[1])]))
    source.prepare(3.0, u)
    found = np.stack([matrix.diagonal() for matrix in source.jacobian(2)])
    np.testing.assert_allclose(found, [3 * u[1] ** 2, np.cos(u[1])], atol=1e-6)
    for nonlocal_rate in (lambda t, u: u - u.mean(), lambda t, u: np.roll(u, 1, axis=-1)):
        source = Source(nonlocal_rate)
        source.prepare(0.0, u)
        assert source.jacobian(2) == []


def test_random_numbers_are_refused():
    noise = np.random.default_rng(0)
    equation = Equation(None, [lambda t, u: noise.standard_normal(u.shape) - u])
    with pytest.raises(ValueError, match=r"<lambda> returns other values at the same time and u: expected a function"):
        solve(equation, np.ones(3), (0, 1))
