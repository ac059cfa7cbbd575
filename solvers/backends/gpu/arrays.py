"""Arrays on the device, by CuPy."""

from importlib import import_module
from typing import Any

import numpy as np
from numba import cuda
from numpy.typing import DTypeLike

from ..protocol import Array

SIMULATED = bool(vars(cuda.config)["ENABLE_CUDASIM"])  # by Numba, with a Python thread for each thread, so few are used
PAIRS_ONLY = True  # a device sums pairs fast and has no transform for arbitrary points


class _CuPy:
    """Namespace of CuPy, imported on first use, so that this package can be imported without CuPy."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module("cupy"), name)


xp: Any = _CuPy()


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> Array:
    """Return an uninitialized array on the GPU."""
    array: Array = xp.empty(shape, dtype)
    return array


def cached(make):
    """Return a function that returns arrays equal to make(), which may be overwritten: make itself, to save memory."""
    return make


def zeros(shape, dtype=np.float64):
    """Return an array of zeros on the GPU."""
    return xp.zeros(shape, dtype)


def to_device(array):
    """Return a copy on the GPU of an array of the host; return an array on the GPU unchanged."""
    return xp.asarray(array) if isinstance(array, np.ndarray) else array


def to_host(array):
    """Return a copy on the host of an array on the GPU; return an array of the host unchanged."""
    return array if isinstance(array, np.ndarray) else array.get()


def rfft(values):
    """Return the Fourier sums Σ_j values[..., j] e^{−2πijk/n} for k = 0 … n/2, along the last axis of n values."""
    return xp.fft.rfft(values)


def irfft(spectrum, count, norm="backward"):
    """Return the ``count`` real values of a spectrum of :func:`rfft`, along the last axis.

    The spectrum may be overwritten. With norm="forward" the values are not divided by ``count``.
    """
    # xp.fft.irfft would copy the spectrum, which cuFFT overwrites.
    return import_module("cupyx.scipy.fft").irfft(spectrum, count, norm=norm, overwrite_x=True)


def erf(values):
    """Return the error function 2/√π ∫₀ˣ e^{−t²} dt of each value x."""
    return _special().erf(values)


def erfc(values):
    """Return the complementary error function 1 − 2/√π ∫₀ˣ e^{−t²} dt of each value x."""
    return _special().erfc(values)


def _special():
    """Return CuPy's counterpart of the module scipy.special, for arrays on the GPU."""
    return import_module("cupyx.scipy.special")
