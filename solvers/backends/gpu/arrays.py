"""Arrays on the device: CuPy's, which NumPy's functions follow."""

from functools import cache
from importlib import import_module

import numpy as np
from numba import cuda
from numpy.typing import DTypeLike

from ..protocol import Array

SIMULATED = bool(vars(cuda.config)["ENABLE_CUDASIM"])  # by Numba: each thread is a thread of Python, so few are used
TRANSFORM_CELLS = 1 << 22  # of rings that are transformed together: few launches, and little memory between them
PLANS = 256  # of transforms that are kept
PAIRS_ONLY = True  # pairs are what a device is good at; for points anywhere it has no transform


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> Array:
    """An array that is not filled."""
    array: Array = _cupy().empty(shape, dtype)
    return array


def work_array(count, dtype):
    """A function that returns a scratch array (count,): new each time, from CuPy's memory pool."""
    return lambda: empty(count, dtype)


def cached(make):
    """A function that returns an array like make()'s to be overwritten: computed anew, to save memory."""
    return make


def zeros(shape, dtype=np.float64):
    """An array of zeros."""
    return _cupy().zeros(shape, dtype)


def to_device(array):
    """An array of the host on the backend's device; one that is on it already is returned as it is."""
    return _cupy().asarray(array) if isinstance(array, np.ndarray) else array


def to_host(array):
    """An array of the backend's device on the host; one of the host is returned as it is."""
    return array if isinstance(array, np.ndarray) else array.get()


def rfft(values):
    """Σ_j values[..., j] e^{−2πijk/n} for k = 0 … n/2, along the last axis."""
    _keep_plans()
    return np.fft.rfft(values)


def irfft(spectrum, count, norm="backward"):
    """The inverse of :func:`rfft` for ``count`` values, without the 1/n if norm is "forward"; spends the spectrum."""
    _keep_plans()
    # CuPy's function of NumPy's name would copy the spectrum, which cuFFT spends.
    return import_module("cupyx.scipy.fft").irfft(spectrum, count, norm=norm, overwrite_x=True)


def dot(one, other):
    """Σ_i one[i] other[i], (), of arrays (n,)."""
    return np.dot(one, other)  # CuPy's einsum takes it for a product of matrices, whose one entry few threads add up


def distance(values, level, weights):
    """Σ_i |values[i] − level| weights[i], (), of arrays (n,); level (1,)."""
    return np.dot(np.abs(values - level), weights)


def erf(values):
    """2/√π ∫₀ˣ e^{−t²} dt of each value."""
    return _special().erf(values)


def erfc(values):
    """1 − erf of each value."""
    return _special().erfc(values)


def _special():
    """Special functions: SciPy's do not follow CuPy's arrays."""
    return import_module("cupyx.scipy.special")


@cache
def _keep_plans():
    """Make room for the plans of all rings of a mesh, there and back: CuPy keeps 16, and making one takes long."""
    _cupy().fft.config.get_plan_cache().set_size(PLANS)


def _cupy():
    """CuPy, where arrays are made: not before, so that this package can be looked at without it."""
    return import_module("cupy")
