"""Wasserstein distances from tokens to a density at several times.

On the circle, and between axisymmetric distributions, W_p is exact. On the sphere S² the distance is sliced: the mean
over DIRECTIONS of W_p between the distributions of the polar angle from each direction (Quellmalz, Beinert, Steidl
2023). A slice never exceeds W_p, since polar angles differ by at most the distance of two points. For n independent
tokens each slice decays as n^{−1/2}, whereas W₁ on S² decays as √(log n/n) (Ajtai, Komlós, Tusnády 1984).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meanfield.analysis.measure import measure_of
from meanfield.analysis.wasserstein_1d import Curve, cumulative_curve, wasserstein_circle, wasserstein_line
from solvers.io.run_file import Run
from solvers.mesh.mesh import Floats

DIRECTIONS = 16  # of a hemisphere: the rest have the same slices
GOLDEN_ANGLE = np.pi * (3 - np.sqrt(5.0))
Angles = Callable[[Floats], Floats]  # points (n, d) → angles (n,)


class Distances:
    """Wasserstein distances W_p of order p from tokens to the densities of a run.

    ``distances(positions)`` are those (times,) of tokens at positions (times, n, d), each to the snapshot of its time.
    """

    def __init__(self, run: Run, order: int) -> None:
        self._order, snapshots = order, range(run.snapshots)
        measures = [measure_of(run, k) for k in snapshots]
        space = measures[0].space
        self._between = wasserstein_circle if space == "S1" else wasserstein_line
        self._angles: list[Angles]
        if space == "S2":
            self._angles = [_polar_angle_from(axis) for axis in spread_directions(DIRECTIONS)]
            curves = [[_curve(angles(one.points), one.masses) for angles in self._angles] for one in measures]
        else:
            self._angles = [_azimuth if space == "S1" else _polar_angle]
            places = _azimuth(measures[0].points) if space == "S1" else measures[0].points[:, 0]
            curves = [[cumulative_curve(places, one.extents, one.masses)] for one in measures]
        self._densities: list[list[Curve]] = curves

    def __call__(self, positions: Floats) -> Floats:
        return np.array([self._mean(*each) for each in zip(positions, self._densities, strict=True)])

    def _mean(self, points: Floats, density: list[Curve]) -> float:
        """Return the distance of points (n, d) of equal mass from a density, as a mean over the slices."""
        masses = np.full(len(points), 1 / len(points))
        curves = (_curve(angles(points), masses) for angles in self._angles)
        return float(np.mean([self._between(*pair, self._order) for pair in zip(curves, density, strict=True)]))


def spread_directions(count: int) -> Floats:
    """Return evenly spread unit vectors (count, 3) of the northern hemisphere, on a spiral of golden angles."""
    z = (np.arange(count) + 0.5) / count
    angle, sine = GOLDEN_ANGLE * np.arange(count), np.sqrt(1 - z * z)
    return np.stack([sine * np.cos(angle), sine * np.sin(angle), z], axis=1)


def _curve(places: Floats, masses: Floats) -> Curve:
    """Return the cumulative distribution of point masses on a line or a circle."""
    return cumulative_curve(places, np.zeros(len(places)), masses)


def _azimuth(points: Floats) -> Floats:
    """Return the azimuths (n,) of points (n, d) in [0, 2π)."""
    return np.asarray(np.mod(np.arctan2(points[:, 1], points[:, 0]), 2 * np.pi))


def _polar_angle(points: Floats) -> Floats:
    """Return the polar angles (n,) of unit vectors (n, d) from the last axis."""
    return np.asarray(np.arctan2(np.linalg.norm(points[:, :-1], axis=1), points[:, -1]))


def _polar_angle_from(axis: Floats) -> Angles:
    """Return the function of points (n, d) to their angles (n,) from an axis."""
    return lambda points: np.arccos(np.clip(points @ axis, -1, 1))
