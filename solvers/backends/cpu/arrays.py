"""Arrays on the backend's device, and the transforms of regular arrays: here NumPy's and SciPy's."""

import os
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..protocol import Array
from .caching import compiled
from .launching import index, launch, share, workers_for

TRANSFORM_CELLS = 1 << 17  # of rings that are transformed together: so many stay in a core's cache
FFT_LIGHT = 2  # numbers of a transform that take as long as an item of most kernels; SciPy wakes threads of its own
DOT_PARTS = 64  # of a sum over all cells
PARTS_WORK = 20_000  # products from which on the sum is one of parts
BLAS_WORK = 10_000  # products up to which BLAS does a sum in one thread, in a third of the time that einsum takes
PAIRS_ONLY = False  # whether sums over points anywhere go by pairs: here transforms and patches save most of them


xp: Any = np  # the namespace of array functions
NAN_MEMORY = bool(os.environ.get("SOLVERS_NAN_MEMORY"))  # a test mode: what reads fresh memory shows


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> Array:
    """An array that is not filled; filled with NaN, or −1 of integers, where SOLVERS_NAN_MEMORY is set."""
    return nan_memory(shape, dtype) if NAN_MEMORY else np.empty(shape, dtype)


def nan_memory(shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
    """An array on the host filled with NaN, or −1 of integers."""
    return np.full(shape, np.nan if np.dtype(dtype).kind in "fc" else -1, dtype)


def work_array(count, dtype):
    """A function that returns a scratch array (count,): the same each time, as new memory costs time here."""
    cached = np.zeros(count, dtype)
    return (lambda: nan_memory(count, dtype)) if NAN_MEMORY else (lambda: cached)


def cached(make):
    """A function that returns an array like make()'s to be overwritten: a copy of a cached one."""
    return make().copy


def zeros(shape, dtype=np.float64):
    """An array of zeros."""
    return np.zeros(shape, dtype)


def to_device(array):
    """An array of the host on the backend's device; one that is on it already is returned as it is."""
    return array


def to_host(array):
    """An array of the backend's device on the host; one of the host is returned as it is."""
    return array


def rfft(values):
    """Σ_j values[..., j] e^{−2πijk/n} for k = 0 … n/2, along the last axis."""
    workers = workers_for(values.size, FFT_LIGHT)
    if workers == 1:
        return np.fft.rfft(values)  # the same in as little time, without importing SciPy
    from scipy import fft

    return fft.rfft(values, workers=workers)


def irfft(spectrum, count, norm="backward"):
    """The inverse of :func:`rfft` for ``count`` values, without the 1/n if norm is "forward"; spends the spectrum."""
    workers = workers_for(spectrum.size, FFT_LIGHT)
    if workers == 1:
        return np.fft.irfft(spectrum, count, norm=norm)
    from scipy import fft

    return fft.irfft(spectrum, count, norm=norm, overwrite_x=True, workers=workers)


def sums_at(places, amounts, count):
    """(count,) sums of the amounts (n,) at each place; ``places`` (n,) are integers below ``count``."""
    return np.bincount(places, amounts, count)


def dot(one, other):
    """Σ_i one[i] other[i], (), of arrays (n,)."""
    if len(one) <= BLAS_WORK and one.dtype == other.dtype == np.float64:
        return np.dot(one, other)
    if len(one) < PARTS_WORK:
        return np.einsum("i,i", one, other, dtype=np.float64, casting="same_kind")  # BLAS would wake its threads
    sums = np.empty(DOT_PARTS)
    launch(_dot_of_parts, len(one), np.ascontiguousarray(one), np.ascontiguousarray(other), sums)
    return sums.sum()


@compiled(fastmath={"reassoc", "contract"}, light=32)
def _dot_of_parts(worker, workers, one, other, sums):
    """Σ one[i] other[i] of each part: as many parts for any number of workers, so that the sum is the same."""
    begin, end = share(worker, workers, len(sums))
    for part in range(begin, end):
        first, last = share(part, len(sums), len(one))
        total = 0.0
        for i in range(first, last):
            total += one[index(i)] * other[index(i)]
        sums[part] = total


def distance(values, level, weights):
    """Σ_i |values[i] − level| weights[i], (), of arrays (n,); level (1,)."""
    sums = np.empty(DOT_PARTS)
    launch(_distance_of_parts, len(values), values, level, weights, sums)
    return sums.sum()


@compiled(fastmath={"reassoc", "contract"}, light=32)
def _distance_of_parts(worker, workers, values, level, weights, sums):
    """Σ |values[i] − level| weights[i] of each part."""
    begin, end = share(worker, workers, len(sums))
    for part in range(begin, end):
        first, last = share(part, len(sums), len(values))
        total = 0.0
        for i in range(first, last):
            total += abs(values[index(i)] - level[0]) * weights[index(i)]
        sums[part] = total


def erf(values):
    """2/√π ∫₀ˣ e^{−t²} dt of each value."""
    from scipy.special import erf

    return erf(values)


def erfc(values):
    """1 − erf of each value."""
    from scipy.special import erfc

    return erfc(values)
