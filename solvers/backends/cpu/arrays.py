"""Arrays where these kernels run, and the transforms of regular arrays: here NumPy's and SciPy's."""

import numpy as np
from scipy import fft

from solvers.backends.cpu.launching import WORKERS


def empty(shape, dtype=np.float64):
    """An array that is not filled."""
    return np.empty(shape, dtype)


def zeros(shape, dtype=np.float64):
    """An array of zeros."""
    return np.zeros(shape, dtype)


def place(array):
    """An array of the host where these kernels run; one that is there is returned as it is."""
    return array


def bring(array):
    """An array on the host from one where these kernels run; one of the host is returned as it is."""
    return array


def rfft(values):
    """Σ_j values[..., j] e^{−2πijk/n} for k = 0 … n/2, along the last axis."""
    return fft.rfft(values, workers=WORKERS)


def irfft(spectrum, count, norm="backward"):
    """The inverse of :func:`rfft` for ``count`` values, without the 1/n if norm is "forward"; spends the spectrum."""
    return fft.irfft(spectrum, count, norm=norm, overwrite_x=True, workers=WORKERS)
