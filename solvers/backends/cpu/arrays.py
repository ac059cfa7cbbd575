"""Arrays on the backend's device, and the transforms of regular arrays, by NumPy and SciPy."""

import os
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..protocol import Array
from .caching import compiled
from .launching import index, launch, share, workers_for

TRANSFORM_CELLS = 1 << 17  # cells of rings that are transformed together, which fit into a core's cache
FFT_LIGHT = 2  # numbers of a transform that take as long as an item of most kernels; SciPy starts its own threads
DOT_PARTS = 64  # parts of a sum over all cells
PARTS_WORK = 20_000  # number of products from which a sum is computed in parts
BLAS_WORK = 10_000  # number of products up to which BLAS uses one thread, in a third of the time of einsum
PAIRS_ONLY = False  # whether sums over arbitrary points use all pairs: here transforms and patches are faster


xp: Any = np  # the namespace of array functions
NAN_MEMORY = bool(os.environ.get("SOLVERS_NAN_MEMORY"))  # a test mode that reveals reads of uninitialized memory


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> Array:
    """Return an uninitialized array, filled with NaN, or −1 of integers, if SOLVERS_NAN_MEMORY is set."""
    return nan_memory(shape, dtype) if NAN_MEMORY else np.empty(shape, dtype)


def nan_memory(shape: int | tuple[int, ...], dtype: DTypeLike) -> Array:
    """Return an array on the host filled with NaN, or −1 of integers."""
    return np.full(shape, np.nan if np.dtype(dtype).kind in "fc" else -1, dtype)


def work_array(count, dtype):
    """Return a function that returns a scratch array (count,): the same each time, to avoid allocations."""
    cached = np.zeros(count, dtype)
    return (lambda: nan_memory(count, dtype)) if NAN_MEMORY else (lambda: cached)


def cached(make):
    """Return a function that returns an array like make()'s to be overwritten: a copy of a cached one."""
    return make().copy


def zeros(shape, dtype=np.float64):
    """Return an array of zeros."""
    return np.zeros(shape, dtype)


def to_device(array):
    """Return an array of the host on the backend's device; an array of the device is returned unchanged."""
    return array


def to_host(array):
    """Return an array of the backend's device on the host; an array of the host is returned unchanged."""
    return array


def rfft(values):
    """Return Σ_j values[..., j] e^{−2πijk/n} for k = 0 … n/2, along the last axis."""
    workers = workers_for(values.size, FFT_LIGHT)
    if workers == 1:
        return np.fft.rfft(values)  # equal result and time without the import of SciPy
    from scipy import fft

    return fft.rfft(values, workers=workers)


def irfft(spectrum, count, norm="backward"):
    """Return the inverse of :func:`rfft` for ``count`` values, without 1/n for "forward"; overwrite the spectrum."""
    workers = workers_for(spectrum.size, FFT_LIGHT)
    if workers == 1:
        return np.fft.irfft(spectrum, count, norm=norm)
    from scipy import fft

    return fft.irfft(spectrum, count, norm=norm, overwrite_x=True, workers=workers)


def sums_at(places, amounts, count):
    """Return (count,) sums of the amounts (n,) at each place; ``places`` (n,) are integers below ``count``."""
    return np.bincount(places, amounts, count)


def dot(one, other):
    """Return Σ_i one[i] other[i], (), of arrays (n,)."""
    if len(one) <= BLAS_WORK and one.dtype == other.dtype == np.float64:
        return np.dot(one, other)
    if len(one) < PARTS_WORK:
        return np.einsum("i,i", one, other, dtype=np.float64, casting="same_kind")  # BLAS would start its threads
    sums = np.empty(DOT_PARTS)
    launch(_dot_of_parts, len(one), np.ascontiguousarray(one), np.ascontiguousarray(other), sums)
    return sums.sum()


@compiled(fastmath={"reassoc", "contract"}, light=32)
def _dot_of_parts(worker, workers, one, other, sums):
    """Compute Σ one[i] other[i] of each part; the number of parts, and so the sum, is independent of the workers."""
    begin, end = share(worker, workers, len(sums))
    for part in range(begin, end):
        first, last = share(part, len(sums), len(one))
        total = 0.0
        for i in range(first, last):
            total += one[index(i)] * other[index(i)]
        sums[part] = total


def distance(values, level, weights):
    """Return Σ_i |values[i] − level| weights[i], (), of arrays (n,); level (1,)."""
    sums = np.empty(DOT_PARTS)
    launch(_distance_of_parts, len(values), values, level, weights, sums)
    return sums.sum()


@compiled(fastmath={"reassoc", "contract"}, light=32)
def _distance_of_parts(worker, workers, values, level, weights, sums):
    """Compute Σ |values[i] − level| weights[i] of each part."""
    begin, end = share(worker, workers, len(sums))
    for part in range(begin, end):
        first, last = share(part, len(sums), len(values))
        total = 0.0
        for i in range(first, last):
            total += abs(values[index(i)] - level[0]) * weights[index(i)]
        sums[part] = total


def erf(values):
    """Return 2/√π ∫₀ˣ e^{−t²} dt of each value."""
    from scipy.special import erf

    return erf(values)


def erfc(values):
    """Return 1 − erf of each value."""
    from scipy.special import erfc

    return erfc(values)
