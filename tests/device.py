"""The device of the tests: a GPU where there is one with CuPy, else, or if asked for, Numba's simulator of one."""

import os
from importlib import import_module
from importlib.util import find_spec

import numba

SIMULATED = bool(os.environ.get("NUMBA_ENABLE_CUDASIM")) or find_spec("cupy") is None
if SIMULATED:
    numba.config.ENABLE_CUDASIM = 1  # read when numba.cuda is imported, by the device's kernels only

gpu = import_module("solvers.backends.gpu")
