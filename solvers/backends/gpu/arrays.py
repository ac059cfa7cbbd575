"""Arrays on the device: CuPy's."""

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import DTypeLike

from ..protocol import Array

SIMULATED = bool(vars(cuda.config)["ENABLE_CUDASIM"])  # by Numba: each thread is a thread of Python, so few are used
TRANSFORM_CELLS = 1 << 22  # of rings that are transformed together: few launches, and little memory between them
PLANS = 256  # of transforms that are kept
PAIRS_ONLY = True  # pairs are what a device is good at; for points anywhere it has no transform


class _CuPy:
    """CuPy, imported when its first function is used: this package can be imported without CuPy."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("cupy"), name)


xp: Any = _CuPy()


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> Array:
    """An array that is not filled."""
    array: Array = xp.empty(shape, dtype)
    return array


def work_array(count, dtype):
    """A function that returns a scratch array (count,): new each time, from CuPy's memory pool."""
    return lambda: empty(count, dtype)


def cached(make):
    """A function that returns an array like make()'s to be overwritten: computed anew, to save memory."""
    return make


def zeros(shape, dtype=np.float64):
    """An array of zeros."""
    return xp.zeros(shape, dtype)


def to_device(array):
    """An array of the host on the backend's device; one that is on it already is returned as it is."""
    return xp.asarray(array) if isinstance(array, np.ndarray) else array


def to_host(array):
    """An array of the backend's device on the host; one of the host is returned as it is."""
    return array if isinstance(array, np.ndarray) else array.get()


def rfft(values):
    """Σ_j values[..., j] e^{−2πijk/n} for k = 0 … n/2, along the last axis."""
    _keep_plans()
    return xp.fft.rfft(values)


def irfft(spectrum, count, norm="backward"):
    """The inverse of :func:`rfft` for ``count`` values, without the 1/n if norm is "forward"; spends the spectrum."""
    _keep_plans()
    # xp.fft.irfft would copy the spectrum, which cuFFT spends.
    return import_module("cupyx.scipy.fft").irfft(spectrum, count, norm=norm, overwrite_x=True)


def dot(one, other):
    """Σ_i one[i] other[i], (), of arrays (n,)."""
    return xp.dot(one, other)  # CuPy's einsum takes it for a product of matrices, whose one entry few threads add up


def distance(values, level, weights):
    """Σ_i |values[i] − level| weights[i], (), of arrays (n,); level (1,)."""
    return xp.dot(xp.abs(values - level), weights)


def erf(values):
    """2/√π ∫₀ˣ e^{−t²} dt of each value."""
    return _special().erf(values)


def erfc(values):
    """1 − erf of each value."""
    return _special().erfc(values)


def _special():
    """Special functions of CuPy's arrays."""
    return import_module("cupyx.scipy.special")


@cache
def _keep_plans():
    """Make room for the plans of all rings of a mesh, there and back: CuPy keeps 16, and making one takes long."""
    xp.fft.config.get_plan_cache().set_size(PLANS)
