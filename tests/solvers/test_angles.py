"""Angles of points by vector instructions: agreement with NumPy's functions and exact positions."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.backends.cpu.points import angles


def measured(points, shift=0.0):
    found = np.full((points.shape[1] - 1, len(points)), np.nan)
    for worker in range(3):
        angles.angles_of_points(worker, 3, points, angles.arctan_series(), shift, found)
    return found


def expected(points):
    azimuth = np.arctan2(points[:, 1], points[:, 0])
    if points.shape[1] == 2:
        return azimuth[None]
    return np.stack([np.arctan2(np.hypot(points[:, 0], points[:, 1]), points[:, 2]), azimuth])


@pytest.mark.parametrize("d", [2, 3])
@pytest.mark.parametrize("length", [1.0, 1e-290, 1e290])
def test_angles_are_those_of_numpy_to_rounding(d, length):
    points = np.random.default_rng(0).standard_normal((100_003, d))
    points[::3] = np.round(points[::3]) + 0.0  # also on axes and diagonals; without −0, where arctan2 is −π
    points[::5, 0] *= 1e-12  # close to a pole or an axis
    points = points[np.abs(points).max(axis=1) > 0]
    near = expected(points)
    assert np.abs(measured(length * points) - near).max() <= np.spacing(np.pi)
    small = np.abs(near) < 0.1
    assert (np.abs(measured(points) - near)[small] <= 4 * np.spacing(np.abs(near))[small]).all()


def test_angles_at_the_axes():
    points = np.array([
        [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, -1.0],
        [-0.0, -0.0, 2.0],
    ])  # fmt: skip
    half = 0.5 * np.pi
    assert measured(points)[0].tolist() == [half, half, half, half, 0.0, np.pi, 0.0]
    assert measured(points)[1].tolist() == [0.0, half, np.pi, -half, 0.0, 0.0, 0.0]
    assert measured(points, 0.25)[1].tolist() == [0.25, half + 0.25, np.pi + 0.25, 0.25 - half, 0.25, 0.25, 0.25]


def test_how_far_from_unit_length():
    points = np.eye(3)[[0, 1, 2, 0]]
    assert angles.farthest_from_unit(0, 1, points) == 0.0
    points[2] *= 2.0
    assert angles.farthest_from_unit(0, 1, points) == 3.0
    assert angles.farthest_from_unit(0, 2, points) == 0.0
    points[1, 0] = np.nan
    assert np.isnan(angles.farthest_from_unit(0, 1, points))
    assert angles.farthest_from_unit(0, 1, np.empty((0, 3))) == 0.0
