"""Arrays on the device: CuPy's, or the stand-ins of the simulator. NumPy's functions follow either."""

from importlib import import_module

import numpy as np
from numba import cuda

from solvers.backends.gpu.stand_in import StandIn

SIMULATED = bool(vars(cuda.config)["ENABLE_CUDASIM"])


def empty(shape, dtype=np.float64):
    """An array that is not filled; NaN in the simulator, so that what reads it shows."""
    if SIMULATED:
        return place(np.full(shape, np.nan if np.dtype(dtype).kind in "fc" else -1, dtype))
    return _cupy().empty(shape, dtype)


def zeros(shape, dtype=np.float64):
    """An array of zeros."""
    return place(np.zeros(shape, dtype)) if SIMULATED else _cupy().zeros(shape, dtype)


def place(array):
    """An array of the host where these kernels run; one that is there is returned as it is."""
    if not isinstance(array, np.ndarray):
        return array
    return StandIn(np.array(array)) if SIMULATED else _cupy().asarray(array)


def bring(array):
    """An array on the host from one where these kernels run; one of the host is returned as it is."""
    return array if isinstance(array, np.ndarray) else array.get()


def rfft(values):
    """Σ_j values[..., j] e^{−2πijk/n} for k = 0 … n/2, along the last axis."""
    return np.fft.rfft(values)


def irfft(spectrum, count, norm="backward"):
    """The inverse of :func:`rfft` for ``count`` values, without the 1/n if norm is "forward"; spends the spectrum."""
    return np.fft.irfft(spectrum, count, norm=norm)


def _cupy():
    """CuPy, where arrays are made: not before, so that this package can be looked at without it."""
    return import_module("cupy")
