"""A simulated GPU: Numba's simulator runs the kernels, and modules in CuPy's place make arrays of :mod:`stand_in`.

In Numba's simulator each thread is a thread of Python; here only where a kernel has threads wait for each other. Others
are run one after the other, the last of a block first: what depends on their order shows, and starting a thread takes
longer than most of them have to do.
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
    """Have the backend for GPUs run without one, in this process. Called before that backend is imported."""
    numba.config.ENABLE_CUDASIM = 1  # read when numba.cuda is imported
    plans = SimpleNamespace(set_size=lambda size: None)
    fft, linalg = ModuleType("fft"), ModuleType("linalg")
    vars(fft).update(config=SimpleNamespace(get_plan_cache=lambda: plans), __getattr__=partial(on_device, np.fft))
    vars(linalg).update(__getattr__=partial(on_device, np.linalg))
    functions = partial(on_device, np)
    _install("cupy", empty=_empty, zeros=_zeros, asarray=_asarray, fft=fft, linalg=linalg, __getattr__=functions)
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
    """An array that is not filled: NaN, so that what reads it shows."""
    return StandIn(np.full(shape, np.nan if np.dtype(dtype).kind in "fc" else -1, dtype))


def _zeros(shape, dtype=np.float64):
    return StandIn(np.zeros(shape, dtype))


def _asarray(array):
    return StandIn(np.array(array))


def _irfft(spectrum, count, norm, overwrite_x):
    """The inverse transform; the spectrum is spent where it may be."""
    values = on_device(np.fft, "irfft")(spectrum, count, norm=norm)
    if overwrite_x:
        spectrum[...] = np.nan
    return values


def _on_arrays_of_numba(configure):
    """A kernel's ``kernel[grid]``, such that stand-ins among the arguments are the simulator's own arrays in it."""

    def configured(kernel, shape):
        launch = configure(kernel, shape)
        return lambda *arguments: launch(*map(_seen, arguments))

    return configured


def _one_after_the_other(threaded, indices):
    """A block's run of its threads: in this thread, the last of them first, unless they wait for each other."""

    def run(block, number, *arguments):
        if _waits(block._f):
            threaded(block, number, *arguments)
            return
        this = threading.current_thread()  # which the simulator asks for indices
        this.blockIdx = indices(*number)
        for thread in reversed(list(np.ndindex(*block._block_dim))):
            this.threadIdx = indices(*thread)
            block._f(*arguments)

    return run


@cache
def _waits(function):
    """Whether a function, or one that it calls by a global name, has threads wait for each other."""
    called = [function.__globals__.get(name) for name in function.__code__.co_names]
    return "syncthreads" in function.__code__.co_names or any(
        _waits(other) for other in called if isinstance(other, FunctionType) and other is not function
    )


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
