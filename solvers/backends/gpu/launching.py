"""Compilation and launch of GPU kernels.

A kernel for the CPU, ``(worker, workers, ...)``, is one for the device as it is: each thread is a worker, and with as
many threads as items, or more, neighboring threads visit neighboring items. Its compiled code is another, its source
the same.
Kernels gather, without atomics, so results do not depend on the number of threads nor on which comes first.

Arrays are the caller's and stay on the device: a kernel given an array of the host refuses it.
The tests run these kernels in Numba's simulator of a device where there is none.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from importlib import import_module
from inspect import signature
from types import FunctionType
from typing import Any

import numpy as np
from numba import cuda, float64

from ..cpu.launching import put, rows_of_run, scratch, share
from .arrays import SIMULATED, empty

WORKERS = 1  # host threads for what runs beside the kernels
THREADS = 16 if SIMULATED else 128  # of a block; each is a thread of Python in the simulator

# Kernels and array code run on one stream, in order: no need to wait for an array before it is passed on.
# Small meshes leave most of a device idle: nothing to warn of.
vars(cuda.config).update(CUDA_ARRAY_INTERFACE_SYNC=0, CUDA_LOW_OCCUPANCY_WARNINGS=0)


def device_function(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function that kernels call; the simulator takes it as it is."""
    return function if SIMULATED else cuda.jit(function, device=True)


@cache
def translated(function: Any) -> Callable[..., Any]:
    """A compiled function of the CPU, and all that it calls, from the same source for the device."""
    source = function.py_func
    named = {name: source.__globals__[name] for name in source.__code__.co_names if name in source.__globals__}
    on_device = {name: _on_device(value) for name, value in named.items()}
    return device_function(FunctionType(source.__code__, on_device, source.__name__, source.__defaults__))


def _on_device(value: Any) -> Any:
    """What a name of the CPU's source stands for on the device."""
    if value is put:
        return _put
    if value is share:
        return _share
    if not SIMULATED and value is np:
        return import_module(".scalars", __package__)
    if not SIMULATED and value is scratch:
        return _own_memory()
    if not SIMULATED and value is rows_of_run:
        return _own_rows()
    return translated(value) if hasattr(value, "py_func") else value


@device_function
def _put(scattered, place, amount):
    """:func:`solvers.backends.cpu.launching.put` on the device: a list (places, amounts, next index (1), write)."""
    places, amounts, at, write = scattered
    if write:
        places[at[0]] = place
        amounts[at[0]] = amount
    at[0] += 1


@device_function
def _share(worker, workers, items):
    """:func:`solvers.backends.cpu.launching.share` on the device: threads beyond the items are the last ones.

    Were they spread among the others, those that work side by side would wait for as many that do nothing.
    """
    if workers >= items:
        return min(worker, items), min(worker + 1, items)
    return items * worker // workers, items * (worker + 1) // workers


@cache
def _own_memory() -> Callable[..., Any]:
    """:func:`solvers.backends.cpu.launching.scratch` on the device: memory of the thread that calls."""
    memory: Callable[..., Any] = cuda.jit(lambda shape: cuda.local.array(shape, float64), device=True, inline="always")
    return memory


@cache
def _own_rows() -> Callable[..., Any]:
    """:func:`solvers.backends.cpu.launching.rows_of_run` on the device, where a thread visits a cell."""
    memory: Callable[..., Any] = cuda.jit(lambda: cuda.local.array((27, 1), float64), device=True, inline="always")
    return memory


def on_grid(function: Any) -> Callable[..., None]:
    """A device kernel, (worker, workers, ...), from the CPU's: one call does the shares of all workers."""
    entry = _entry(function, "{share}")

    @wraps(function.py_func)
    def shares(worker: int, workers: int, *arguments: Any) -> None:
        run(entry(), shape_of(workers), *arguments)

    return shares


def returning_on_grid(function: Any) -> Callable[..., Any]:
    """The same for a kernel that returns a number: the call returns that of each thread, on the device."""
    entry = _entry(function, "{last}[cuda.grid(1)] = {share}", "returned")

    @wraps(function.py_func)
    def shares(worker: int, workers: int, *arguments: Any) -> Any:
        blocks, threads = shape_of(workers)
        returned = empty(blocks * threads)
        run(entry(), (blocks, threads), *arguments, returned)
        return returned

    return shares


def _entry(function: Any, body: str, *more: str) -> Callable[[], Any]:
    """The kernel proper, made when first asked for: kernels cannot take *arguments, so the names are written out."""
    names = list(signature(function.py_func).parameters)[2:]
    share = f"share_of(cuda.grid(1), cuda.gridsize(1), {', '.join(names)})"
    source = f"def entry({', '.join([*names, *more])}):\n    " + body.format(share=share, last="".join(more))

    @cache
    def made() -> Any:
        named = {"cuda": cuda, "share_of": translated(function)}
        exec(source, named)
        return cuda.jit(named["entry"])

    return made


def shape_of(items: int) -> tuple[int, int]:
    """Blocks, and threads of each, for a thread an item."""
    return max(-(-items // THREADS), 1), THREADS


def launch(kernel: Callable[..., Any], work: int, *arguments: Any) -> list[Any]:
    """Run ``kernel`` with a thread for each of ``work`` items; returns what it returned, as a list of one.

    Raises TypeError for an array of the host.
    """
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            raise TypeError(f"{kernel.__name__}: an array {argument.shape} is on the host, expected all on the device")
    return [kernel(0, work, *arguments)]


def run(kernel: Any, shape: tuple[int, int], *arguments: Any) -> None:
    """Launch a kernel on a grid of (blocks, threads of each)."""
    kernel[shape](*arguments)
