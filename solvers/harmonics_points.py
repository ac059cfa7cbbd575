"""Harmonic transforms of point masses at any places of the circle or the sphere, n + degree³ operations.

A fast transform with nonuniform points (finufft: Barnett, Magland and af Klinteberg 2019) carries masses to a grid of
equal angles, and functions from there, both without error for harmonics up to the degree; on the grid the transforms
of :mod:`solvers.harmonics` and the operators of :mod:`solvers.zonal` do the rest. On the sphere the grid goes on
beyond the poles, f(−θ, φ) = f(θ, φ + π), and is then a torus (Merilees 1973; Townsend, Wilber and Wright 2016).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
from scipy import fft

from solvers.backends import kernels_for
from solvers.grid_equiangular import folded, grid_equiangular, unfolded
from solvers.harmonics import Complexes, Harmonics, harmonic_transform
from solvers.mesh import Floats, circle

_TOLERANCE = 1e-13  # of the sums' size; a smaller one gives no more digits
_PART = 1 << 15  # points; with at most as many there is one thread

MANIFOLDS = {2: "circle", 3: "sphere"}  # by d


class PointHarmonics:
    """Transform between n points and the harmonics of degree 0 … ``degree``, as :mod:`solvers.harmonics` has them.

    points   (n, d) vectors of any length but 0, whose directions count; d = 2 or 3
    grid     cells of equal angles, which carry what the points do

    Errors are about 1e-13 of Σ |w| for an analysis and of the largest value for a synthesis. The same bits for any
    number of cores. Raises ValueError for another d, for a point that is not finite, and for a degree below 1.
    """

    def __init__(self, points: Floats, degree: int) -> None:
        if points.ndim != 2 or points.shape[1] not in MANIFOLDS:
            raise ValueError(f"points {points.shape}: expected (n, 2) or (n, 3)")
        if not np.isfinite(points).all():
            raise ValueError("points: expected finite numbers")
        if degree < 1:
            raise ValueError(f"degree = {degree}: expected 1 or more")
        self.degree, self.count = degree, len(points)
        self.grid = circle(2 * degree + 2) if points.shape[1] == 2 else grid_equiangular(degree)
        self._harmonics: Harmonics = harmonic_transform(self.grid, degree)
        self._axes = tuple(range(1, points.shape[1]))  # of the torus, behind that of the sets
        size = max(_PART, 4 * (2 * degree + 2) ** len(self._axes))  # a part's own transform costs less than its points
        self._parts = [_Part(points, slice(start, start + size), degree) for start in range(0, self.count, size)]

    def analysis(self, weights: Floats) -> Complexes:
        """Σ_j conj(Y(x_j)) w_j of weights (n,), or of several sets (sets, n) with the sets first."""
        masses = self.stand_in(weights)
        return np.stack([self._harmonics.analysis(row) for row in np.atleast_2d(masses)])[_alike(weights, 1)]

    def synthesis(self, coefficients: Complexes) -> Floats:
        """(n,) the function with these coefficients at the points, or (sets, n) of several, the sets first."""
        ndim = len(self._axes)
        sets = coefficients.reshape(-1, *coefficients.shape[-ndim:])
        values = np.stack([self._harmonics.synthesis(row) for row in sets])
        return self.interpolate(values)[_alike(coefficients, ndim)]

    def stand_in(self, weights: Floats) -> Floats:
        """Masses on the grid, (cells,) or (sets, cells), of the same harmonics as weights (n,) or (sets, n)."""
        pairs = _paired(np.atleast_2d(weights))
        spectrum = np.zeros((len(pairs), *(2 * self.degree + 1 for _ in self._axes)), dtype=complex)
        for part in self._on_all_cores(lambda part: part.analysis(pairs)):
            spectrum += part
        torus = fft.ifftn(_with_nyquist(spectrum, self.degree, self._axes), axes=self._axes)
        masses = _unpaired(torus if len(self._axes) == 1 else folded(torus), np.atleast_2d(weights).shape[0])
        return masses.reshape(len(masses), -1)[_alike(weights, 1)]

    def interpolate(self, values: Floats) -> Floats:
        """(n,) or (sets, n) at the points, of a function of at most the degree that has these values on the grid."""
        sets = np.atleast_2d(values)
        pairs = _paired(sets)
        torus = pairs if len(self._axes) == 1 else unfolded(pairs.reshape(len(pairs), self.degree + 1, -1))
        spectrum = _without_nyquist(fft.fftn(torus, axes=self._axes, norm="forward"), self.degree, self._axes)
        result = np.empty((len(sets), self.count))

        def at_points(part: _Part) -> None:
            found = part.synthesis(spectrum)
            result[::2, part.here] = found.real
            result[1::2, part.here] = found.imag[: len(sets) // 2]

        self._on_all_cores(at_points)
        return result[_alike(values, 1)]

    def _on_all_cores(self, call: Callable[[_Part], Any]) -> Iterable[Any]:
        """What ``call`` returns for each part of the points, in their order."""
        found: list[Any] = [None] * len(self._parts)

        def share(worker: int, workers: int) -> None:
            for index in range(worker, len(found), workers):
                found[index] = call(self._parts[index])

        kernels = kernels_for(self.grid.volumes)
        kernels.launch(share, self.count)
        return found


class _Part:
    """Sums over some of the points, on one core."""

    def __init__(self, points: Floats, here: slice, degree: int) -> None:
        self.here = here
        self._points, self._degree = points[here], degree
        self._plans: dict[tuple[int, int], Any] = {}

    def analysis(self, weights: Complexes) -> Complexes:
        """Σ_j w_j e^{−ikα_j} of sets of weights of all points (sets, n)."""
        own = np.ascontiguousarray(weights[:, self.here])
        return self._plan(1, -1, len(own)).execute(own).reshape(self._shape(len(own)))

    def synthesis(self, spectrum: Complexes) -> Complexes:
        """(sets, own points) Σ_k c_k e^{ikα_j}."""
        return np.asarray(self._plan(2, 1, len(spectrum)).execute(spectrum)).reshape(len(spectrum), -1)

    @cached_property
    def _angles(self) -> list[Floats]:
        """Angles α of the own points from the grid's first node, half a spacing off."""
        return [angle - np.pi / (2 * self._degree + 2) for angle in _angles(self._points)]

    def _shape(self, sets: int) -> tuple[int, ...]:
        return (sets, *(2 * self._degree + 1,) * (self._points.shape[1] - 1))

    def _plan(self, kind: int, sign: int, sets: int) -> Any:
        if (kind, sets) not in self._plans:
            finufft = import_module("finufft")
            plan = finufft.Plan(
                kind, self._shape(sets)[1:], sets, _TOLERANCE, sign, nthreads=1, upsampfac=2.0, modeord=1
            )
            plan.setpts(*self._angles)
            self._plans[kind, sets] = plan
        return self._plans[kind, sets]


def _angles(points: Floats) -> tuple[Floats, ...]:
    """φ on the circle; polar angle θ and azimuth φ on the sphere, φ = 0 at the poles."""
    azimuth = np.arctan2(points[:, 1], points[:, 0])
    if points.shape[1] == 2:
        return (azimuth,)
    return np.arctan2(np.hypot(points[:, 0], points[:, 1]), points[:, 2]), azimuth


def _with_nyquist(spectrum: Complexes, degree: int, axes: tuple[int, ...]) -> Complexes:
    """Zeros put in for the one wave of a grid of 2 degree + 2 that is neither k nor −k."""
    for axis in axes:
        spectrum = np.insert(spectrum, degree + 1, 0.0, axis=axis)
    return spectrum


def _without_nyquist(spectrum: Complexes, degree: int, axes: tuple[int, ...]) -> Complexes:
    for axis in axes:
        spectrum = np.delete(spectrum, degree + 1, axis=axis)
    return np.ascontiguousarray(spectrum)


def _paired(sets: Floats) -> Complexes:
    """Two real sets as one complex one: transforms of both for the price of one."""
    pairs = np.zeros(((len(sets) + 1) // 2, *sets.shape[1:]), dtype=complex)
    pairs.real = sets[::2]
    pairs.imag[: len(sets) // 2] = sets[1::2]
    return pairs


def _unpaired(pairs: Complexes, count: int) -> Floats:
    sets = np.empty((count, *pairs.shape[1:]))
    sets[::2] = pairs.real
    sets[1::2] = pairs.imag[: count // 2]
    return sets


def _alike(array: Any, ndim: int) -> Any:
    """Index that drops the axis of sets where the caller's array has none."""
    return 0 if array.ndim == ndim else slice(None)
