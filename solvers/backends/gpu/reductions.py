"""Sums and largest values over cells in one launch each, and formulas of single numbers.

Each block reduces a part of the cells. The last block to finish reduces the blocks' results in a fixed order, so that
the result is bitwise the same in every run.
"""

from collections.abc import Callable
from functools import cache, wraps
from inspect import signature
from typing import Any

import numpy as np
from numba import cuda

from .. import formulas
from ..protocol import Summary
from .arrays import empty, zeros
from .launching import THREADS, device_function, run, shape_of, translated

BLOCKS = 512  # at most; each thread first reduces its own cells
CELLS = 8  # of a thread, at least

_mean_density = device_function(formulas.mean_density)
_uniform_part = device_function(formulas.uniform_part)
_step_of_rate = device_function(formulas.step_of_rate)


@device_function
def _larger(one, other):
    """Return the larger of two numbers, NaN if one is NaN."""
    return one if one >= other or one != one else other


@device_function
def _reduce_block(value, is_sum):
    """Return to each thread of a block the sum of all threads' values; the largest value if ``is_sum`` is false."""
    lane, half = cuda.threadIdx.x, cuda.blockDim.x // 2
    values = cuda.shared.array(THREADS, np.float64)
    cuda.syncthreads()
    values[lane] = value
    cuda.syncthreads()
    while half > 0:
        if lane < half:
            other = values[lane + half]
            values[lane] = values[lane] + other if is_sum else _larger(values[lane], other)
        cuda.syncthreads()
        half //= 2
    return values[0]


@device_function
def _reduce_grid(value, is_sum, parts, finished):
    """Return whether this block is the last to finish; return to the last block the sum of all threads' values.

    If ``is_sum`` is false, the largest value replaces the sum.

    parts      (blocks,) work space
    finished   (1,) number of blocks that have finished, 0 before and after a launch
    """
    lane = cuda.threadIdx.x
    is_last = cuda.shared.array(1, np.int32)
    total = _reduce_block(value, is_sum)
    if lane == 0:
        parts[cuda.blockIdx.x] = total
        cuda.threadfence()
        is_last[0] = cuda.atomic.add(finished, 0, 1) == cuda.gridDim.x - 1
    cuda.syncthreads()
    if is_last[0] == 0:
        return False, 0.0
    if lane == 0:
        finished[0] = 0
    total = 0.0 if is_sum else total
    for block in range(lane, cuda.gridDim.x, cuda.blockDim.x):
        part = cuda.atomic.add(parts, block, 0.0)  # a read that sees what other blocks have written
        total = total + part if is_sum else _larger(total, part)
    return True, _reduce_block(total, is_sum)


@cuda.jit
def _dot(one, other, parts, finished, result):
    """Compute result[0] = Σ_i one[i] other[i]; see :func:`_reduce_grid`."""
    total = 0.0
    for i in range(cuda.grid(1), len(one), cuda.gridsize(1)):
        total += one[i] * other[i]
    is_last, total = _reduce_grid(total, True, parts, finished)
    if is_last and cuda.threadIdx.x == 0:
        result[0] = total


def dot(one, other):
    """Return the sum Σ_i one[i] other[i], of shape () in float64, over two arrays (n,)."""
    return _reduced(_dot, len(one), one, other)[0]


@cuda.jit
def _find_uniform_part(density, volumes, mass, volume, parts, finished, result):
    """Compute result[0] for :func:`uniform_part`; see :func:`_reduce_grid`."""
    mean, total = _mean_density(mass[0], volume), 0.0
    for i in range(cuda.grid(1), len(density), cuda.gridsize(1)):
        total += abs(density[i] - mean) * volumes[i]
    is_last, total = _reduce_grid(total, True, parts, finished)
    if is_last and cuda.threadIdx.x == 0:
        result[0] = _uniform_part(total, mean, volume)


def uniform_part(density, volumes, mass, volume):
    """Return the mean density () of the part of a density (cells,) whose kernel sums are known in closed form.

    The part is uniform: max(1 − (distance/mass)², 0) times the mean density, with the distance from the uniform
    density, see :mod:`solvers.backends.formulas`. ``volumes`` (cells,) are those of the cells, ``volume`` is their sum,
    and ``mass`` () the sum Σ ρ V.
    """
    return _reduced(_find_uniform_part, len(density), density, volumes, mass.reshape(1), float(volume))[0]


@device_function
def _write_largest(value, parts, finished, result):
    """Write the largest outflow rate ``value`` of all threads to result[0], and its time step, 1/rate, to result[1].

    Both are NaN if one rate is NaN. For ``parts`` and ``finished`` see :func:`_reduce_grid`.
    """
    is_last, largest = _reduce_grid(value, False, parts, finished)
    if is_last and cuda.threadIdx.x == 0:
        result[0], result[1] = largest, _step_of_rate(largest)


def largest_kernel(function):
    """Return a GPU kernel (..., parts, finished, result) that finds the largest result of all threads.

    ``function`` is a device function (worker, workers, ...) with a numerical result, where each thread is a worker.
    """
    plain = getattr(function, "py_func", function)
    names = ", ".join(list(signature(plain).parameters)[2:])
    share = f"function(cuda.grid(1), cuda.gridsize(1), {names})"
    kernel = f"def {plain.__name__}({names}, parts, finished, result):"
    source = f"""
def made(function):
    {kernel}
        _write_largest({share}, parts, finished, result)
    return {plain.__name__}
"""
    space = {}
    exec(source, globals(), space)
    return cuda.jit(space["made"](function))


def largest_on_grid(function):
    """Return a function (worker, workers, ...) that runs on the GPU a CPU kernel which returns a number.

    A call runs the kernel for all workers. It returns (2,) the largest number r of all workers, an outflow rate, and
    the time step 1/r.
    """
    made = cache(lambda: largest_kernel(translated(function)))

    @wraps(function.py_func)
    def largest(worker, workers, *arguments):
        return run_largest(made(), shape_of(workers), *arguments)

    return largest


def run_largest(kernel, shape, *arguments):
    """Run a kernel of :func:`largest_kernel`; return its largest number r and the time step 1/r in an array (2,)."""
    result = empty(2)
    run(kernel, shape, *arguments, empty(shape[0]), _finished(), result)
    return result


def largest_share(shares):
    """Return the largest number r (), from ``shares`` = [(r, 1/r)], the result of a kernel of :func:`largest_on_grid`.

    r is NaN if one of the numbers is NaN.
    """
    return shares[0][0]


def step_of_shares(shares):
    """Return the step 1/r () for the largest outflow rate r, from ``shares`` = [(r, 1/r)]; NaN if a rate is NaN."""
    return shares[0][1]


@cuda.jit
def _summarize(values, volumes, occupied, parts, more_parts, finished, result):
    """Compute the three numbers of :func:`summary` in ``result``; see :func:`_reduce_grid`."""
    total, largest = 0.0, values[0]
    for i in range(cuda.grid(1), len(values), cuda.gridsize(1)):
        total += values[i] * volumes[i]
        largest = _larger(largest, values[i])
    largest = _reduce_block(largest, False)
    if cuda.threadIdx.x == 0:
        more_parts[cuda.blockIdx.x] = largest
    is_last, total = _reduce_grid(total, True, parts, finished)
    if is_last:
        for block in range(cuda.threadIdx.x, cuda.gridDim.x, cuda.blockDim.x):
            largest = _larger(largest, cuda.atomic.add(more_parts, block, 0.0))
        largest = _reduce_block(largest, False)
        if cuda.threadIdx.x == 0:
            result[0], result[1], result[2] = total, occupied * total, largest


def summary(values, volumes, occupied):
    """Return the mass Σ u V of values u (cells,) with cell volumes V, ``occupied`` times this mass, and max u."""
    blocks = _blocks(len(values))
    result = empty(3)
    run(_summarize, (blocks, THREADS), values, volumes, occupied, empty(blocks), empty(blocks), _finished(), result)
    return Summary(result[0], result[1:2], result[2])


def _reduced(kernel, items, *arguments):
    """Return the results (2,) of a reduction of ``items`` items by a kernel with these arguments."""
    blocks, result = _blocks(items), empty(2)
    run(kernel, (blocks, THREADS), *arguments, empty(blocks), _finished(), result)
    return result


def _blocks(items):
    """Return the number of blocks for a reduction of ``items`` items."""
    return max(min(-(-items // (CELLS * THREADS)), BLOCKS), 1)


@cache
def _finished():
    """Return the array (1,) with the number of finished blocks; kernels run one after another and leave it at 0."""
    return zeros(1, np.int32)


def evaluate(formula, *arguments):
    """Return formula(*arguments) for numbers and arrays (), of shape () in float64.

    The formula is a function of :mod:`solvers.backends.formulas`.
    """
    result = empty(1)
    on_device = tuple(not isinstance(argument, float | int | np.generic) for argument in arguments)
    pairs = zip(arguments, on_device, strict=True)
    numbers = [argument.reshape(1) if is_array else float(argument) for argument, is_array in pairs]
    run(_evaluating(formula, on_device), (1, 1), *numbers, result)
    return result.reshape(())


@cache
def _evaluating(formula: Callable[..., float], on_device: tuple[bool, ...]) -> Any:
    """Return the kernel of one thread that evaluates a formula; ``on_device`` says which arguments are arrays (1,)."""
    names = [f"number_{k}" for k in range(len(on_device))]
    values = ", ".join(f"{name}[0]" if array else name for name, array in zip(names, on_device, strict=True))
    source = f"def {formula.__name__}({', '.join(names)}, result):\n    result[0] = of({values})"
    named = {"of": device_function(formula), "__name__": f"{__name__}.{''.join('na'[array] for array in on_device)}"}
    exec(source, named)
    return cuda.jit(named[formula.__name__])
