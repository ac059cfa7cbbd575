"""Anderson-mixed iterations: fixed points of linear maps, and the behavior far from a fixed point."""

import numpy as np
import pytest

from solvers.analysis.anderson import Mixing


def rounds(matrix, shift, tolerance, near=np.inf, reach=1e100):
    """Return the number of rounds until x ← Ax + b from 0 reaches (1 − A)⁻¹ b, and the last x."""
    weights, place = np.full(len(shift), 1 / len(shift)), np.zeros(len(shift))
    mixing = Mixing(weights, near, reach)
    for count in range(1000):
        step = matrix @ place + shift - place
        if np.abs(step).max() <= tolerance:
            return count, place
        place = mixing.next(place, step)
    return 1000, place


def test_a_linear_map_of_few_dimensions_is_solved_at_once():
    """Mixing is GMRES: five dimensions take five rounds, and one more to detect convergence; the map alone takes
    10⁵."""
    random = np.random.default_rng(0)
    basis = np.linalg.qr(random.standard_normal((5, 5)))[0]
    matrix = basis @ np.diag([0.9999, 0.9, 0.5, -0.3, 0.0]) @ basis.T
    shift = random.standard_normal(5)
    count, found = rounds(matrix, shift, 1e-9)
    assert count <= 8
    assert found == pytest.approx(np.linalg.solve(np.eye(5) - matrix, shift), rel=1e-4)  # 1e-9/(1 − 0.9999)


def test_a_map_of_many_dimensions_takes_a_fraction_of_its_rounds():
    matrix, shift = np.diag(np.linspace(0, 0.98, 200)), np.ones(200)
    plain = np.log(1e-10) / np.log(0.98)
    count, found = rounds(matrix, shift, 1e-10)
    assert count < plain / 4, count  # the square root with all iterates; a fifth is measured with six
    assert found == pytest.approx(1 / (1 - np.diag(matrix)), abs=1e-8)


def test_far_from_the_fixed_point_the_map_alone_counts():
    mixing = Mixing(np.full(2, 0.5), near=0.5, reach=1e100)
    step = np.array([1.0, -1.0])
    place = mixing.next(np.zeros(2), step)
    for factor in (0.9, 0.7):
        assert np.array_equal(mixing.next(place, factor * step), place + factor * step)
    # Extrapolation from the last two.
    assert np.abs(mixing.next(place + 0.7 * step, 0.35 * step) - (place + 1.4 * step)).max() <= 1e-12


def test_no_place_farther_than_the_reach_is_tried():
    """T(x) = x + s, s shrinking by 1e-6 a round: the line through two iterates meets zero a million steps away."""
    weights, step = np.array([0.25, 0.75]), np.array([0.1, -0.1])

    def shift(reach, growth):
        mixing = Mixing(weights, np.inf, reach)
        place = mixing.next(np.zeros(2), step)
        return mixing.next(place, growth * step) - place - growth * step

    for reach, expected in ((2.0, 2.0), (1e100, 1e5)):
        found = shift(reach, 1 - 1e-6)
        assert np.sqrt(weights @ found**2) == pytest.approx(expected, rel=1e-3)
        assert found @ step > 0
    assert np.abs(shift(2.0, 1 + 1e-6)).max() <= 1e-16  # the line leads back, farther than the reach
    assert shift(2.0, 1.5) @ step < 0  # the line leads back by two steps


def test_two_equal_steps_are_no_division_by_zero():
    mixing, step = Mixing(np.full(2, 0.5), np.inf, 1.0), np.array([0.1, -0.1])
    mixing.next(np.zeros(2), step)
    assert np.isfinite(mixing.next(step, step)).all()
