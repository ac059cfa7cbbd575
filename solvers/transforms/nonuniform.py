"""Fourier transforms between points at any angles and modes of real functions of one or two periodic variables.

    type 1    f_k = Σ_j w_j e^{−i⟨k,α_j⟩} ,    |k| ≤ K along each axis
    type 2    f(α_j) = Σ_k c_k e^{i⟨k,α_j⟩}

Convolution with a window φ spreads the points to a grid of N ≥ 2(2K + 1) nodes along each axis. The Fourier transform
of the grid is divided by that of φ (Dutt and Rokhlin 1993; Potts, Steidl and Tasche 2001). φ is the Kaiser–Bessel
window

    φ(z) = I₀(b √(1 − (2z/w)²)) , |z| ≤ w/2 nodes;    φ̂(k) = w sinh(s)/s ,  s = √(b² − (πwk/N)²)

for 2|k| ≤ N/2. On the grid the modes N − k, … alias to k, where s = iy and φ̂ = w sin(y)/y. The first zero, y = π, is
placed at the lowest alias, 3N/4: b = π √((3w/4)² − 1). Beyond this mode |sin(y)/y| < 0.22, and s ≥ π √(w²/2 − 1) below
N/4, so that the error of a mode is below 0.22 s/sinh(s) < ½ s e^{−s} of Σ |w| (Beatty, Nishimura and Pauly 2005).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import scipy
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from ..backends import host_backend
from ..backends.sizes import WINDOW_NODES
from ..mesh.mesh import Floats

Complexes = NDArray[np.complex128]
Integers = NDArray[np.int64]

_PART = 1 << 13  # points spread by one worker, a multiple of a batch
_OVERSAMPLING = 2.0
_CHEBYSHEV = 32  # interpolation points of a window
_ROUNDING = 1e-16  # relative to the window's largest value: smaller coefficients are rounding
MIN_TOLERANCE = 1e-14


class NonuniformTransform:
    """Transforms of type 1 and 2 of real functions between n points and the modes up to a degree.

    angles      (1, n) or (2, n), radians, any period
    degree      K ≥ 1, the highest mode along each axis
    tolerance   error of a mode over Σ|w|, and of a value over Σ|c|: 1e-14 … 0.1

    Modes are (sets, K + 1) k = 0 … K, or (sets, 2K + 1, K + 1) k = 0 … K, −K … −1 and 0 … K; other modes are complex
    conjugates. Type 2 projects modes with k = 0 along the last axis on real functions. Results are bitwise equal for
    any number of cores. Raises ValueError for other shapes, angles that are not finite, and a degree or tolerance out
    of range.
    """

    def __init__(self, angles: Floats, degree: int, tolerance: float = 1e-13) -> None:
        if angles.ndim != 2 or len(angles) not in (1, 2):
            raise ValueError(f"angles {angles.shape}: expected (1, n) or (2, n)")
        if degree < 1:
            raise ValueError(f"degree = {degree}: expected 1 or more")
        if not MIN_TOLERANCE <= tolerance <= 0.1:
            raise ValueError(f"tolerance = {tolerance}: expected {MIN_TOLERANCE} to 0.1")
        self.degree, self.axes, self.count = degree, len(angles), angles.shape[1]
        width = window_width(tolerance)
        nodes = scipy.fft.next_fast_len(max(int(_OVERSAMPLING * (2 * degree + 1)), 2 * WINDOW_NODES), real=True)
        self._shape = (nodes if self.axes == 2 else 1, nodes)
        self._polynomials, self._factors = window_polynomials(width), _factors(width, degree, nodes)
        self._sort(np.ascontiguousarray(angles, dtype=float))

    def _sort(self, angles: Floats) -> None:
        """Sort the points by the grid cell at the start of their window, and compute their offsets in these cells.

        Consecutive points form parts, which workers spread to the grid independently.
        """
        host = host_backend()
        few = max(self.count, self._shape[0] * self._shape[1]) < 2**31
        cells = np.empty(self.count, np.int32 if few else np.int64)
        self._order, self._cells, self._offsets = np.empty_like(cells), np.empty_like(cells), np.empty_like(angles)
        counts = np.stack(host.launch(host.count_points, self.count, angles, self._shape, cells), axis=1)
        if counts[-1].any():
            raise ValueError("angles: expected finite numbers")
        counts = counts[:-1]
        starts = np.cumsum(counts.ravel()).reshape(counts.shape) - counts
        host.launch(
            host.sort_points, self.count, angles, self._shape, cells, np.ascontiguousarray(starts.T),
            self._order, self._cells, self._offsets,
        )  # fmt: skip
        self._bands = self._extents()

    def _extents(self) -> Integers:
        """Return the rectangle of grid nodes that each part of the sorted points covers, (parts, 5) integers.

        The integers are the first row and column, the numbers of rows and columns, and the rectangle's offset in a
        buffer.
        """
        first = self._cells[::_PART]
        last = self._cells[np.minimum(np.arange(1, len(first) + 1) * _PART, self.count) - 1]
        (rows, columns), (last_rows, last_columns) = (np.divmod(cells, self._shape[1]) for cells in (first, last))
        one = rows == last_rows
        columns, last_columns = np.where(one, columns, 0), np.where(one, last_columns, self._shape[1] - 1)
        heights, widths = last_rows - rows + WINDOW_NODES, last_columns - columns + WINDOW_NODES
        starts = np.cumsum(heights * widths) - heights * widths
        return np.column_stack([rows, columns, heights, widths, starts])

    def analysis(self, weights: Floats) -> Complexes:
        """Return the Fourier modes f_k = Σ_j w_j e^{−i⟨k,α_j⟩} of weights w (sets, n) at the points α_j (type 1)."""
        host = host_backend()
        grids, buffer = np.empty((len(weights), *self._shape)), np.empty(int((self._bands[:, 2:4].prod(axis=1)).sum()))
        for row, grid in zip(np.ascontiguousarray(weights, dtype=float), grids, strict=True):
            host.launch(
                host.spread, self.count * WINDOW_NODES, self._polynomials, _PART, self._shape[1],
                self._order, self._cells, self._offsets, row, self._bands, buffer,
            )  # fmt: skip
            host.launch(host.add_bands, buffer.size, self._bands, buffer, grid)
        modes: Complexes = scipy.fft.rfft(grids, axis=2, workers=host.WORKERS)[..., : self.degree + 1]
        modes *= self._factors[: self.degree + 1]
        if self.axes == 1:
            return modes[:, 0]
        modes = scipy.fft.fft(modes, axis=1, overwrite_x=True, workers=host.WORKERS)
        modes = np.concatenate([modes[:, : self.degree + 1], modes[:, -self.degree :]], axis=1)
        modes *= self._factors[:, None]
        return modes

    def synthesis(self, modes: Complexes) -> Floats:
        """Return the values Σ_k c_k e^{i⟨k,α_j⟩} (sets, n) at the points α_j of functions with Fourier modes c.

        This synthesis is the transform of type 2.
        """
        host = host_backend()
        workers = host.WORKERS
        spectrum = np.zeros((len(modes), self._shape[0], self._shape[1] // 2 + 1), dtype=complex)
        used = spectrum[..., : self.degree + 1]
        if self.axes == 1:
            used[:, 0] = modes
        else:
            scaled = modes * self._factors[:, None]
            used[:, : self.degree + 1], used[:, -self.degree :] = np.split(scaled, [self.degree + 1], axis=1)
            used[:] = scipy.fft.ifft(used, axis=1, norm="forward", workers=workers)
        used *= self._factors[: self.degree + 1]
        grids = scipy.fft.irfft(spectrum, self._shape[1], axis=2, norm="forward", overwrite_x=True, workers=workers)
        beyond = ((0, 0), (0, WINDOW_NODES if self.axes == 2 else 0), (0, WINDOW_NODES))
        values = np.empty((self.count, len(modes)))
        host.launch(
            host.interpolate, self.count * WINDOW_NODES, self._polynomials,
            self._order, self._cells, self._offsets, np.pad(grids, beyond, mode="wrap"), values,
        )  # fmt: skip
        return values.T


def window_width(tolerance: float) -> int:
    """Return the least even width w of a window, in grid nodes, whose error bound ½ s e^{−s} is below the tolerance.

    Here s = π √(w²/2 − 1). The width is at most WINDOW_NODES.
    """
    for width in range(2, WINDOW_NODES, 2):
        s = np.pi * np.sqrt(width**2 / 2 - 1)
        if s * np.exp(-s) / 2 < tolerance:
            return width
    return WINDOW_NODES


def _shape_of(width: int) -> float:
    """Return the shape parameter b of the Kaiser–Bessel window I₀(b √(1 − (2z/w)²)) of width w nodes."""
    return float(np.pi * np.sqrt((0.75 * width) ** 2 - 1))


@cache
def window_polynomials(width: int) -> Floats:
    """Return the polynomials E_j and O_j in t² of a window φ of ``width`` nodes: e^{−b} φ = E_j + t O_j at node j.

    The coefficients are (degrees, W), W = WINDOW_NODES, with columns E_j, then O_j, j = 0 … W/2 − 1. The node j has the
    distance z = j + (t + 1 − W)/2 from the point, −1 ≤ t ≤ 1. φ is an entire function of z inside the window, and is
    interpolated at Chebyshev points to rounding.
    """
    b, half = _shape_of(width), WINDOW_NODES // 2
    nodes = np.arange(half - width // 2, half)  # earlier nodes are outside the window
    t = np.cos(np.pi / _CHEBYSHEV * (np.arange(_CHEBYSHEV) + 0.5))
    u = (2 * nodes + t[:, None] + 1 - WINDOW_NODES) / width
    root = np.sqrt(1 - u**2)
    log_decay = -b * u**2 / (1 + root)  # b (root − 1), without the rounding of b
    series = scipy.fft.dct(scipy.special.i0e(b * root) * np.exp(log_decay), axis=0) / _CHEBYSHEV
    series[0] /= 2
    degrees = int(np.flatnonzero(np.abs(series).max(axis=1) < _ROUNDING)[0])
    polynomials = np.zeros((degrees + degrees % 2, half))
    for node, column in zip(nodes, series.T, strict=True):
        powers = chebyshev.cheb2poly(column[:degrees])
        polynomials[: len(powers), node] = powers
    return np.hstack([polynomials[0::2], polynomials[1::2]])


@cache
def _factors(width: int, degree: int, nodes: int) -> Floats:
    """Return 1/φ̂(k), k = 0 … degree, −degree … −1, with the Fourier transform φ̂ of a window of ``width`` nodes.

    The window is scaled by e^{−b}, with its shape parameter b. The grid has ``nodes`` nodes.
    """
    b, k = _shape_of(width), np.concatenate([np.arange(degree + 1), np.arange(-degree, 0)])
    wave = np.pi * width * k / nodes
    s = np.sqrt(b**2 - wave**2)
    return np.asarray(2 * s / (width * (np.exp(-(wave**2) / (s + b)) - np.exp(-s - b))))
