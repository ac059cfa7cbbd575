"""A simulated GPU: Numba's simulator runs the kernels, and modules in CuPy's place make arrays of :mod:`stand_in`.

In Numba's simulator each thread is a thread of Python.
"""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec
from threading import Lock
from types import ModuleType, SimpleNamespace

import numba
import numpy as np
from scipy import special
from support.stand_in import StandIn

_one_by_one = Lock()


def simulate():
    """Have the backend for GPUs run without one, in this process. Called before that backend is imported."""
    numba.config.ENABLE_CUDASIM = 1  # read when numba.cuda is imported
    plans = SimpleNamespace(set_size=lambda size: None)
    config = SimpleNamespace(get_plan_cache=lambda: plans)
    _install("cupy", empty=_empty, zeros=_zeros, asarray=_asarray, fft=SimpleNamespace(config=config))
    _install("cupyx.scipy.fft", irfft=_irfft)
    _install("cupyx.scipy.special", erf=special.erf, erfc=special.erfc)
    simulated = import_module("numba.cuda.simulator.kernel").FakeCUDAKernel
    simulated.__getitem__ = _on_arrays_of_numba(simulated.__getitem__)
    import_module("numba.cuda.simulator.kernelapi").FakeCUDAShared.array = _shared_array


def _install(name, **members):
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    vars(module).update(members)
    sys.modules[name] = module


def _empty(shape, dtype=np.float64):
    """An array that is not filled: NaN, so that what reads it shows."""
    return StandIn(np.full(shape, np.nan if np.dtype(dtype).kind in "fc" else -1, dtype))


def _zeros(shape, dtype=np.float64):
    return StandIn(np.zeros(shape, dtype))


def _asarray(array):
    return StandIn(np.array(array))


def _irfft(spectrum, count, norm, overwrite_x):
    """The inverse transform; the spectrum is spent where it may be."""
    values = np.fft.irfft(spectrum, count, norm=norm)
    if overwrite_x:
        spectrum[...] = np.nan
    return values


def _on_arrays_of_numba(configure):
    """A kernel's ``kernel[grid]``, such that stand-ins among the arguments are the simulator's own arrays in it."""

    def configured(kernel, shape):
        launch = configure(kernel, shape)
        return lambda *arguments: launch(*map(_seen, arguments))

    return configured


def _seen(argument):
    """The simulator's array on the same memory."""
    array = import_module("numba.cuda.simulator.cudadrv.devicearray").FakeCUDAArray
    return array(argument.held) if isinstance(argument, StandIn) else argument


def _shared_array(shared, shape, dtype):
    """Memory that a block's threads share: one array for each line of a kernel that asks for one.

    The simulator itself makes the array for the first thread that asks for it, and looks and makes in two steps: where
    another thread comes between, two threads hold two arrays, and what one writes the other does not see.
    """
    asked = sys._getframe(1)
    line = asked.f_code.co_filename, asked.f_lineno
    with _one_by_one:
        if line not in shared._allocations:
            shared._allocations[line] = np.empty(shape, dtype)
        return shared._allocations[line]
