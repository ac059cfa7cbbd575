"""The device of the tests: a GPU where there is one with CuPy, else, or if asked for, Numba's simulator of one."""

import os
from importlib import import_module

import numba


def is_there():
    """Whether CuPy finds a GPU; it may not be installed, or find no driver."""
    try:
        return import_module("cupy").cuda.runtime.getDeviceCount() > 0
    except Exception:  # CuPy's own kinds of errors
        return False


SIMULATED = bool(os.environ.get("NUMBA_ENABLE_CUDASIM")) or not is_there()
if SIMULATED:
    numba.config.ENABLE_CUDASIM = 1  # read when numba.cuda is imported, by the device's kernels only

gpu = import_module("solvers.backends.gpu")
