"""Harmonic transforms of point masses anywhere on the circle or the sphere, in n + degree³ operations.

`nonuniform` spreads masses to a grid of equal angles and interpolates functions from the grid, to rounding for
harmonics up to the degree. The transforms of :mod:`solvers.transforms.harmonics` and the operators of `zonal` apply on
the grid. On the sphere the grid is continued beyond the poles, f(−θ, φ) = f(θ, φ + π), to a torus, where a function of
degree L is a sum of waves e^{i(kθ + mφ)} with |k|, |m| ≤ L (Merilees 1973; Townsend, Wilber and Wright
2016); (L + 1) rings of 2L + 2 cells represent such a function without error.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import scipy

from ..backends import host_backend
from ..backends.protocol import Array
from ..mesh.arguments import check_count
from ..mesh.checks import as_floats, check_finite, check_unmasked
from ..mesh.mesh import Floats, Mesh, circle
from .harmonics import Complexes, Harmonics, harmonic_transform
from .nonuniform import NonuniformTransform

_TOLERANCE = 1e-14  # relative to the sum of masses, of which a used Z is at least 1e-5

MANIFOLDS = {2: "circle", 3: "sphere"}  # by d


class PointHarmonics:
    """Harmonic transform between points anywhere on the circle or the sphere and the harmonics up to a degree.

    Coefficients are those of :func:`~solvers.harmonic_transform`. A transform takes n + degree³ operations on the
    sphere.

    Parameters
    ----------
    points : (n, d) array
        Nonzero vectors, used by their directions; d = 2 or 3.
    degree : int
        Highest degree, at least 1.

    Attributes
    ----------
    degree : int
        Highest degree.
    count : int
        Number n of points.
    grid : Mesh
        Cells of equal angles, whose masses can stand for those of the points: 2L + 2 cells on the circle, L + 1 rings
        of 2L + 2 cells on the sphere, where L is the degree, rounded up to an odd number. On the sphere the grid has no
        faces.

    Raises
    ------
    TypeError
        If ``degree`` is not a whole number, and for points that are not real numbers.
    ValueError
        For another d, for points that are masked or not finite, and for a degree below 1.

    Notes
    -----
    Errors are about 1e-14 of ``Σ|w|`` for an analysis and of the largest value for a synthesis. Results are bitwise
    equal for any number of cores.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import PointHarmonics
    >>> points = np.random.default_rng(0).normal(size=(50, 3))
    >>> transform = PointHarmonics(points, 4)
    >>> coefficients = np.zeros((5, 5), complex)
    >>> coefficients[1, 0] = np.sqrt(4 * np.pi / 3)  # z = √(4π/3) Y₁₀
    >>> z = points[:, 2] / np.linalg.norm(points, axis=1)
    >>> bool(np.allclose(transform.synthesis(coefficients), z))
    True
    """

    def __init__(self, points: Floats, degree: int) -> None:
        points = as_floats("points", points)
        if points.ndim != 2 or points.shape[1] not in MANIFOLDS:
            raise ValueError(f"points {points.shape}: expected (n, 2) or (n, 3)")
        check_finite("points", points)
        check_count("degree", degree, 1)
        self.degree, self.count = degree, len(points)
        self._grid_degree = L = degree | 1  # odd: sums over rings of a multiple of 4 cells take a quarter of the time
        self.grid = circle(2 * L + 2) if points.shape[1] == 2 else grid_equiangular(L)
        self._harmonics: Harmonics = harmonic_transform(self.grid, degree)
        self._ndim = points.shape[1] - 1
        self._nonuniform = NonuniformTransform(polar_angles(points) - 0.5 * np.pi / (L + 1), L, _TOLERANCE)

    def analysis(self, weights: Floats) -> Complexes:
        """Return the harmonic coefficients Σ_j conj(Y(x_j)) w_j of weights w at the points x.

        Parameters
        ----------
        weights : (n,) or (sets, n) array
            Weights of any sign.

        Returns
        -------
        (degree + 1,) or (degree + 1, degree + 1) complex array
            Coefficients, with a first axis of sets if the weights have one.

        Raises
        ------
        ValueError
            For masked weights.
        """
        masses = self.equivalent_weights(weights)
        coefficients = np.stack([self._harmonics.analysis(row) for row in np.atleast_2d(masses)])
        return _match_axes(coefficients, weights, 1)

    def synthesis(self, coefficients: Complexes) -> Floats:
        """Return the values at the points of the real function with given harmonic coefficients.

        Parameters
        ----------
        coefficients : (degree + 1,) or (degree + 1, degree + 1) complex array
            Coefficients on the circle or the sphere, or several sets with a first axis.

        Returns
        -------
        (n,) or (sets, n) array
            Values of the function.
        """
        sets = coefficients.reshape(-1, *coefficients.shape[-self._ndim :])
        values = np.stack([self._harmonics.synthesis(row) for row in sets])
        return _match_axes(self.interpolate(values), coefficients, self._ndim)

    def equivalent_weights(self, weights: Floats) -> Floats:
        """Return masses on the grid that have the same harmonic coefficients as weights at the points.

        Parameters
        ----------
        weights : (n,) or (sets, n) array
            Weights of any sign.

        Returns
        -------
        (cells,) or (sets, cells) array
            Masses of the cells of ``grid``.

        Raises
        ------
        ValueError
            For masked weights.
        """
        check_unmasked("weights", weights)
        grids = _to_grid(self._nonuniform.analysis(np.atleast_2d(weights)), self._grid_degree)
        masses = grids if grids.ndim == 2 else fold_to_sphere(grids)
        return _match_axes(masses.reshape(len(masses), -1), weights, 1)

    def interpolate(self, values: Floats) -> Floats:
        """Interpolate a function from the centers of the cells of ``grid`` to the points.

        The result is exact to rounding for functions without harmonics above the highest degree.

        Parameters
        ----------
        values : (cells,) or (sets, cells) array
            Values of the function at the cell centers of ``grid``.

        Returns
        -------
        (n,) or (sets, n) array
            Values at the points.
        """
        grids = np.atleast_2d(values)
        if self._ndim == 2:
            grids = unfold_to_torus(grids.reshape(len(grids), self._grid_degree + 1, -1))
        return _match_axes(self._nonuniform.synthesis(_to_modes(grids, self._grid_degree)), values, 1)


def polar_angles(points: Floats) -> Floats:
    """Return the azimuth (1, n) of points (n, 2), or polar angle and azimuth (2, n) of points (n, 3)."""
    azimuth = np.arctan2(points[:, 1], points[:, 0])
    if points.shape[1] == 2:
        return azimuth[None]
    return np.stack([np.arctan2(np.hypot(points[:, 0], points[:, 1]), points[:, 2]), azimuth])


def _to_grid(modes: Complexes, degree: int) -> Floats:
    """Return the values of real functions on a grid of 2 degree + 2 equal angles along each axis, from Fourier modes.

    Modes (sets, degree + 1) or (sets, 2 degree + 1, degree + 1) belong to functions of one or two angles. The Nyquist
    mode is omitted.
    """
    count, workers = 2 * degree + 2, host_backend().WORKERS
    if modes.ndim == 2:
        return np.asarray(scipy.fft.irfft(modes, count, workers=workers))
    spectrum = np.zeros((len(modes), count, degree + 1), dtype=complex)
    spectrum[:, : degree + 1], spectrum[:, -degree:] = np.split(modes, [degree + 1], axis=1)
    rows = scipy.fft.ifft(spectrum, axis=1, overwrite_x=True, workers=workers)
    return np.asarray(scipy.fft.irfft(rows, count, workers=workers))


def _to_modes(values: Floats, degree: int) -> Complexes:
    """Return the Fourier modes up to ``degree`` of functions of one or two angles, from values on an equispaced grid.

    Values are (sets, count) or (sets, rows, count), modes (sets, degree + 1) or (sets, 2 degree + 1, degree + 1).
    """
    workers = host_backend().WORKERS
    rows: Complexes = scipy.fft.rfft(values, norm="forward", workers=workers)[..., : degree + 1]
    if values.ndim == 2:
        return rows
    modes = scipy.fft.fft(rows, axis=1, norm="forward", overwrite_x=True, workers=workers)
    return np.concatenate([modes[:, : degree + 1], modes[:, -degree:]], axis=1)


def _match_axes(results: Array, array: Array, ndim: int) -> Array:
    """Return ``results`` (sets, ...), without the first axis if ``array`` has ``ndim`` axes, and so no axis of sets."""
    return results[0] if array.ndim == ndim else results


def grid_equiangular(degree: int) -> Mesh:
    """Return a mesh without faces: (degree + 1) rings of (2 degree + 2) cells of equal angles on the sphere."""
    rings, count = degree + 1, 2 * degree + 2
    theta, phi = np.pi / rings * (np.arange(rings) + 0.5)[:, None], np.pi / rings * (np.arange(count) + 0.5)
    parts = np.broadcast_arrays(np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta))
    heights = -np.diff(np.cos(np.pi / rings * np.arange(rings + 1)))
    none, nowhere = np.empty(0), np.empty((0, 3))
    return Mesh(
        manifold="sphere",
        dimension=2,
        centers=np.stack(parts, axis=-1).reshape(-1, 3),
        volumes=np.repeat(heights * (np.pi / rings), count),
        face_cells=np.empty((0, 2), np.int32),
        face_centers=nowhere,
        face_normals=nowhere,
        face_areas=none,
        face_curvatures=none,
        face_conductances=partial(np.asarray, none),
        cell_start=np.zeros(rings * count + 1, np.int32),
        cell_sides=np.empty(0, np.int32),
        ring_cells=np.full(rings, count, np.int32),
    )


def unfold_to_torus(values: Floats) -> Floats:
    """Return the continuation to a torus (sets, 2 rings, count) of functions (sets, rings, count) on the sphere.

    The continuation beyond the poles is f(−θ, φ) = f(θ, φ + π), on a grid of equal angles.
    """
    beyond = np.roll(values[:, ::-1], values.shape[2] // 2, axis=2)
    return np.concatenate([values, beyond], axis=1)


def fold_to_sphere(torus: Floats) -> Floats:
    """Return masses (sets, rings, count) on the grid of the sphere for masses (sets, 2 rings, count) on the torus.

    A mass beyond a pole, at (−θ, φ), is added at (θ, φ + π): the transpose of :func:`unfold_to_torus`.
    """
    rings = torus.shape[1] // 2
    return torus[:, :rings] + np.roll(torus[:, rings:][:, ::-1], torus.shape[2] // 2, axis=2)
