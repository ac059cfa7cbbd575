"""Arrays on the device, by CuPy."""

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import DTypeLike

from ..protocol import Array

SIMULATED = bool(vars(cuda.config)["ENABLE_CUDASIM"])  # by Numba, with a Python thread for each thread, so few are used
TRANSFORM_CELLS = 1 << 22  # cells of rings that are transformed together: few launches and little temporary memory
PLANS = 256  # cached plans of transforms
PAIRS_ONLY = True  # a device sums pairs fast and has no transform for arbitrary points


class _CuPy:
    """Namespace of CuPy, imported on first use, so that this package can be imported without CuPy."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("cupy"), name)


xp: Any = _CuPy()


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> Array:
    """Return an uninitialized array."""
    array: Array = xp.empty(shape, dtype)
    return array


def work_array(count, dtype):
    """Return a function that returns a scratch array (count,): new each time, from CuPy's memory pool."""
    return lambda: empty(count, dtype)


def cached(make):
    """Return a function that returns an array like make()'s to be overwritten: recomputed, to save memory."""
    return make


def zeros(shape, dtype=np.float64):
    """Return an array of zeros."""
    return xp.zeros(shape, dtype)


def to_device(array):
    """Return an array of the host on the backend's device; an array of the device is returned unchanged."""
    return xp.asarray(array) if isinstance(array, np.ndarray) else array


def to_host(array):
    """Return an array of the backend's device on the host; an array of the host is returned unchanged."""
    return array if isinstance(array, np.ndarray) else array.get()


def rfft(values):
    """Return Σ_j values[..., j] e^{−2πijk/n} for k = 0 … n/2, along the last axis."""
    _keep_plans()
    return xp.fft.rfft(values)


def irfft(spectrum, count, norm="backward"):
    """Return the inverse of :func:`rfft` for ``count`` values, without 1/n for "forward"; overwrite the spectrum."""
    _keep_plans()
    # xp.fft.irfft would copy the spectrum, which cuFFT overwrites.
    return import_module("cupyx.scipy.fft").irfft(spectrum, count, norm=norm, overwrite_x=True)


def dot(one, other):
    """Return Σ_i one[i] other[i], (), of arrays (n,)."""
    return xp.dot(one, other)  # CuPy's einsum would use a matrix product with one entry, summed by few threads


def distance(values, level, weights):
    """Return Σ_i |values[i] − level| weights[i], (), of arrays (n,); level (1,)."""
    return xp.dot(xp.abs(values - level), weights)


def erf(values):
    """Return 2/√π ∫₀ˣ e^{−t²} dt of each value."""
    return _special().erf(values)


def erfc(values):
    """Return 1 − erf of each value."""
    return _special().erfc(values)


def _special():
    """Return the module of special functions for CuPy's arrays."""
    return import_module("cupyx.scipy.special")


@cache
def _keep_plans():
    """Reserve a cache for the plans of all rings of a mesh: CuPy keeps 16, and a new plan takes long."""
    xp.fft.config.get_plan_cache().set_size(PLANS)
