"""A simulated GPU: Numba's simulator runs the kernels, and replacements of CuPy make arrays of :mod:`stand_in`.

In Numba's simulator each GPU thread is a Python thread; here only in kernels with barriers. In all other kernels the
threads run one after the other, the last of a block first: results that depend on the order differ, and starting a
Python thread takes longer than the work of most threads.
"""

import sys
import threading
from functools import cache, partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from threading import Lock
from types import FunctionType, ModuleType, SimpleNamespace

import numba
import numpy as np
from scipy import special
from support.stand_in import StandIn, on_device

_one_by_one = Lock()


def simulate():
    """Make the GPU backend run without a GPU in this process. Must precede the import of that backend."""
    numba.config.ENABLE_CUDASIM = 1  # read when numba.cuda is imported
    plans = SimpleNamespace(set_size=lambda size: None)
    fft, linalg = ModuleType("fft"), ModuleType("linalg")
    vars(fft).update(config=SimpleNamespace(get_plan_cache=lambda: plans), __getattr__=partial(on_device, np.fft))
    vars(linalg).update(__getattr__=partial(on_device, np.linalg))
    functions = partial(on_device, np)
    _install(
        "cupy",
        ndarray=StandIn,
        empty=_empty,
        zeros=_zeros,
        asarray=_asarray,
        fft=fft,
        linalg=linalg,
        __getattr__=functions,
    )
    _install("cupyx.scipy.fft", irfft=_irfft)
    _install("cupyx.scipy.special", erf=special.erf, erfc=special.erfc)
    simulator = import_module("numba.cuda.simulator.kernel")
    simulated, blocks = simulator.FakeCUDAKernel, simulator.BlockManager
    simulated.__getitem__ = _on_arrays_of_numba(simulated.__getitem__)
    blocks.run = _one_after_the_other(blocks.run, simulator.Dim3)
    import_module("numba.cuda.simulator.kernelapi").FakeCUDAShared.array = _shared_array


def _install(name, **members):
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)
    vars(module).update(members)
    sys.modules[name] = module


def _empty(shape, dtype=np.float64):
    """Return an array filled with NaN, so that a read of unset values shows."""
    return StandIn(np.full(shape, np.nan if np.dtype(dtype).kind in "fc" else -1, dtype))


def _zeros(shape, dtype=np.float64):
    return StandIn(np.zeros(shape, dtype))


def _asarray(array):
    """Return an array on the device: an array there unchanged, one on the host copied."""
    return array if isinstance(array, StandIn) else StandIn(np.array(array))


def _irfft(spectrum, count, norm, overwrite_x):
    """Return the inverse transform; with ``overwrite_x`` the spectrum is set to NaN."""
    values = on_device(np.fft, "irfft")(spectrum, count, norm=norm)
    if overwrite_x:
        spectrum[...] = np.nan
    return values


def _on_arrays_of_numba(configure):
    """Wrap a kernel's ``kernel[grid]``, so that stand-ins among the arguments become the simulator's own arrays."""

    def configured(kernel, shape):
        launch = configure(kernel, shape)
        return lambda *arguments: launch(*map(_seen, arguments))

    return configured


def _one_after_the_other(threaded, indices):
    """Return a block's loop over its threads: in this Python thread, from the last to the first, unless there are
    barriers."""

    def run(block, number, *arguments):
        if _waits(block._f):
            threaded(block, number, *arguments)
            return
        this = threading.current_thread()  # the simulator asks this object for indices
        this.blockIdx = indices(*number)
        for thread in reversed(list(np.ndindex(*block._block_dim))):
            this.threadIdx = indices(*thread)
            block._f(*arguments)

    return run


@cache
def _waits(function):
    """Return whether a function, or one that it calls by a global name, has a thread barrier."""
    called = [function.__globals__.get(name) for name in function.__code__.co_names]
    return "syncthreads" in function.__code__.co_names or any(
        _waits(other) for other in called if isinstance(other, FunctionType) and other is not function
    )


def _seen(argument):
    """Return the simulator's array on the same memory."""
    array = import_module("numba.cuda.simulator.cudadrv.devicearray").FakeCUDAArray
    return array(argument.held) if isinstance(argument, StandIn) else argument


def _shared_array(shared, shape, dtype):
    """Return memory shared by a block's threads: one array for each line of a kernel that asks for one.

    The simulator itself makes the array for the first thread that asks, in two steps, a look-up and an allocation:
    with another thread between the two steps, two threads hold two arrays, and neither sees what the other writes.
    """
    asked = sys._getframe(1)
    line = asked.f_code.co_filename, asked.f_lineno
    with _one_by_one:
        if line not in shared._allocations:
            shared._allocations[line] = np.empty(shape, dtype)
        return shared._allocations[line]
