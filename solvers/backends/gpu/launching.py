"""Compilation and launch of GPU kernels.

The source of a CPU kernel, ``(worker, workers, ...)``, is also the source of the device kernel: each thread is a
worker. With at least as many threads as items, neighboring threads visit neighboring items. Kernels gather, without
atomic sums, so results do not depend on the order of threads.

Arrays belong to the caller and stay on the device: a kernel rejects an array of the host.
The tests run these kernels in Numba's simulator on machines without a device.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from inspect import signature
from types import FunctionType
from typing import Any

import numpy as np
from numba import cuda, float64

from ..cpu.launching import put, scratch, share
from .arrays import SIMULATED
from .compiling import launch_compiled

WORKERS = 1  # host threads beside the kernels
launched: Counter[str] = Counter()  # kernels launched by this process, by name, for benchmarks and tests
THREADS = 16 if SIMULATED else 128  # of a block; each is a thread of Python in the simulator

# Kernels and array code run on one stream, in order, so that no synchronization of arrays is needed.
# Small meshes leave most of a device idle without need for a warning.
vars(cuda.config).update(CUDA_ARRAY_INTERFACE_SYNC=0, CUDA_LOW_OCCUPANCY_WARNINGS=0)


def device_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that GPU kernels call; in Numba's simulator return the function itself."""
    return function if SIMULATED else cuda.jit(function, device=True)


@cache
def translated(function: Any) -> Callable[..., Any]:
    """Compile a CPU function for the GPU from the same source, with all functions that it calls."""
    source = function.py_func
    named = {name: source.__globals__[name] for name in source.__code__.co_names if name in source.__globals__}
    on_device = {name: _on_device(value) for name, value in named.items()}
    return device_function(FunctionType(source.__code__, on_device, source.__name__, source.__defaults__))


def _on_device(value: Any) -> Any:
    """Return the GPU's counterpart of ``value``, the value of a global name in the source of a CPU kernel."""
    if value is put:
        return _put
    if value is share:
        return _share
    if not SIMULATED and value is np:
        return import_module(".scalars", __package__)
    if not SIMULATED and value is scratch:
        return _own_memory()
    return translated(value) if hasattr(value, "py_func") else value


@device_function
def _put(scattered, place, amount):
    """Append a place and an amount to lists, the GPU's counterpart of adding the amount to an array at the place.

    ``scattered`` consists of the lists (places, amounts), the next index (1,), and whether to write or only to count.
    """
    places, amounts, at, write = scattered
    if write:
        places[at[0]] = place
        amounts[at[0]] = amount
    at[0] += 1


@device_function
def _share(worker, workers, items):
    """Return the first and last + 1 of the items of one worker, a GPU thread: at most one item if threads suffice.

    Idle threads are the last ones, since idle threads among the others would slow down those of the same warp.
    """
    if workers >= items:
        return min(worker, items), min(worker + 1, items)
    return items * worker // workers, items * (worker + 1) // workers


@cache
def _own_memory() -> Callable[..., Any]:
    """Return a device function that allocates local memory of the calling thread, the counterpart of ``scratch``."""
    memory: Callable[..., Any] = cuda.jit(lambda shape: cuda.local.array(shape, float64), device=True, inline="always")
    return memory


def on_grid(function: Any) -> Callable[..., None]:
    """Return a function (worker, workers, ...) that runs a CPU kernel on the GPU for all workers, one a thread."""
    entry = _entry(function)

    @wraps(function.py_func)
    def shares(worker: int, workers: int, *arguments: Any) -> None:
        run(entry(), shape_of(workers), *arguments)

    return shares


def _entry(function: Any) -> Callable[[], Any]:
    """Return a function that compiles the GPU kernel around a CPU function at the first call.

    The kernel is made from source text, with explicit parameter names, since GPU kernels have no *arguments.
    """
    names = ", ".join(list(signature(function.py_func).parameters)[2:])
    name = function.py_func.__name__
    source = f"def {name}({names}):\n    share_of(cuda.grid(1), cuda.gridsize(1), {names})"

    @cache
    def made() -> Any:
        named = {"cuda": cuda, "share_of": translated(function), "__name__": __name__}
        exec(source, named)
        return cuda.jit(named[name])

    return made


def shape_of(items: int) -> tuple[int, int]:
    """Return the numbers of blocks and of threads in a block with which a GPU kernel has a thread for each item."""
    return max(-(-items // THREADS), 1), THREADS


def launch(kernel: Callable[..., Any], work: int, *arguments: Any) -> list[Any]:
    """Run a GPU kernel with a thread for each of ``work`` items; return its result in a list of one.

    The CPU's function returns a list too, with a result for each worker. Raises TypeError for an array of the host.
    """
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            raise TypeError(f"{kernel.__name__}: an array {argument.shape} is on the host, expected all on the device")
    return [kernel(0, work, *arguments)]


def run(kernel: Any, shape: tuple[int, int], *arguments: Any) -> None:
    """Launch a GPU kernel on a grid of ``shape`` = (blocks, threads of each)."""
    launched[kernel.__name__] += 1
    if SIMULATED:
        kernel[shape](*arguments)
    else:
        launch_compiled(kernel, shape, arguments)
