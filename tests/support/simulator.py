"""A simulated GPU: Numba's simulator runs the kernels, and replacements of CuPy make arrays of :mod:`stand_in`.

In Numba's simulator each GPU thread is a Python thread, and the main thread polls all of them for barriers, which takes
nearly all of the time. Here the threads of a block run one after the other, so that results that depend on their order
differ: from the last to the first, or, in kernels with barriers, in random order from one barrier to the next. Only
kernels with barriers need Python threads.
"""

import random
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
    blocks.run = _one_after_the_other(simulator.Dim3)


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


def _one_after_the_other(indices):
    """Return the loop of a block over its threads. ``indices`` is the simulator's type of three indices."""

    def run(block, number, *arguments):
        points = list(np.ndindex(*block._block_dim))
        if _waits(block._f):
            _run_between_barriers([_Thread(block._f, arguments, indices(*number), indices(*at)) for at in points])
            return
        this = threading.current_thread()  # the simulator asks this object for indices
        this.blockIdx = indices(*number)
        for at in reversed(points):
            this.threadIdx = indices(*at)
            block._f(*arguments)

    return run


class _Thread(threading.Thread):
    """A GPU thread in a kernel with barriers: after each call of ``advance`` it runs up to its next barrier."""

    def __init__(self, function, arguments, block, at):
        super().__init__(daemon=True)
        self.blockIdx, self.threadIdx, self.error = block, at, None
        self._call, self._turn, self._done = partial(function, *arguments), Lock(), Lock()
        self._turn.acquire()
        self._done.acquire()
        self.start()

    def run(self):
        self._turn.acquire()
        try:
            self._call()
        except BaseException as error:
            self.error = error
        self.is_running = False
        self._done.release()

    def advance(self):
        """Run up to the next barrier or to the end; return whether the thread is at a barrier."""
        self.is_running = True
        self._turn.release()
        self._done.acquire()
        if self.error is not None:
            raise self.error
        return self.is_running

    def syncthreads(self):
        """Wait at a barrier, by the name that the simulator calls."""
        self._done.release()
        self._turn.acquire()


def _run_between_barriers(threads):
    """Run the threads of a block to their ends, in a new random order after each barrier."""
    order = random.Random(0)
    while threads:
        threads = [thread for thread in order.sample(threads, len(threads)) if thread.advance()]


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
