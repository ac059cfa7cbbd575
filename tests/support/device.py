"""The device of the tests: a GPU where there is one with CuPy, else, or if asked for, Numba's simulator of one."""

import os
from importlib import import_module

from support.simulator import simulate


def _installed_cupy():
    """CuPy itself, None where it is not installed or cannot be imported."""
    try:
        return import_module("cupy")
    except Exception:  # CuPy's own kinds of errors
        return None


def _is_there():
    """Whether CuPy finds a GPU; there may be no driver."""
    try:
        return CUPY is not None and CUPY.cuda.runtime.getDeviceCount() > 0
    except Exception:  # CuPy's own kinds of errors
        return False


CUPY = _installed_cupy()
SIMULATED = bool(os.environ.get("NUMBA_ENABLE_CUDASIM")) or not _is_there()
if SIMULATED:
    simulate()

gpu = import_module("solvers.backends.gpu")
