"""The device of the tests: a GPU if CuPy finds one, otherwise, or on request, Numba's simulator."""

import os
from importlib import import_module

from support.simulator import simulate


def _installed_cupy():
    """Return the module CuPy, or None if CuPy is not installed or cannot be imported."""
    try:
        return import_module("cupy")
    except Exception:  # CuPy raises error classes of its own
        return None


def _is_there():
    """Return whether CuPy finds a GPU; a missing driver counts as no GPU."""
    try:
        return CUPY is not None and CUPY.cuda.runtime.getDeviceCount() > 0
    except Exception:  # CuPy raises error classes of its own
        return False


CUPY = _installed_cupy()
SIMULATED = bool(os.environ.get("NUMBA_ENABLE_CUDASIM")) or not _is_there()
if SIMULATED:
    simulate()

gpu = import_module("solvers.backends.gpu")
