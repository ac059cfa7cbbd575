"""Arrays on the backend's device, and the transforms of regular arrays, by NumPy and SciPy."""

import os
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .. import formulas
from ..protocol import Array, Summary
from .caching import compiled
from .launching import index, launch, share

DOT_PARTS = 64  # parts of a sum over all cells
PARTS_WORK = 20_000  # number of products from which a sum is computed in parts
BLAS_WORK = 10_000  # number of products up to which BLAS uses one thread, in a third of the time of einsum
PAIRS_ONLY = False  # whether sums over arbitrary points use all pairs: here transforms and patches are faster


xp: Any = np  # the namespace of array functions
NAN_MEMORY = bool(os.environ.get("SOLVERS_NAN_MEMORY"))  # a test mode that reveals reads of uninitialized memory


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> Array:
    """Return an uninitialized array; in a test mode fill it with NaN, or −1 for integers.

    The environment variable SOLVERS_NAN_MEMORY selects the test mode, which reveals reads of uninitialized memory.
    """
    if NAN_MEMORY:
        return np.full(shape, np.nan if np.dtype(dtype).kind in "fc" else -1, dtype)
    return np.empty(shape, dtype)


def cached(make):
    """Return a function that returns a new copy of make(), an array computed once; the copy may be overwritten."""
    return make().copy


def zeros(shape, dtype=np.float64):
    """Return an array of zeros."""
    return np.zeros(shape, dtype)


def to_device(array):
    """Return an array unchanged: the CPU's counterpart of a copy from the host to the GPU."""
    return array


def to_host(array):
    """Return an array unchanged: the CPU's counterpart of a copy from the GPU to the host."""
    return array


def rfft(values):
    """Return the Fourier sums Σ_j values[..., j] e^{−2πijk/n} for k = 0 … n/2, along the last axis of n values."""
    return np.fft.rfft(values)


def irfft(spectrum, count, norm="backward"):
    """Return the ``count`` real values of a spectrum of :func:`rfft`, along the last axis.

    The spectrum may be overwritten. With norm="forward" the values are not divided by ``count``.
    """
    return np.fft.irfft(spectrum, count, norm=norm)


def sums_at(places, amounts, count):
    """Return sums[p] = Σ amounts[i] over all i with places[i] = p, for p = 0 … count − 1."""
    return np.bincount(places, amounts, count)


def dot(one, other):
    """Return the sum Σ_i one[i] other[i], of shape (), over two arrays (n,)."""
    if len(one) <= BLAS_WORK and one.dtype == other.dtype == np.float64:
        return np.dot(one, other)
    if len(one) < PARTS_WORK:
        return np.einsum("i,i", one, other, dtype=np.float64, casting="same_kind")  # BLAS would start its threads
    sums = np.empty(DOT_PARTS)
    launch(_dot_of_parts, len(one), np.ascontiguousarray(one), np.ascontiguousarray(other), sums)
    return sums.sum()


@compiled(fastmath={"reassoc", "contract"}, relative_speed=32)
def _dot_of_parts(worker, workers, one, other, sums):
    """Compute the sum of one[i] other[i] over each of len(sums) parts of two arrays.

    The number of parts, and so the total, is independent of the number of workers.
    """
    begin, end = share(worker, workers, len(sums))
    for part in range(begin, end):
        first, last = share(part, len(sums), len(one))
        total = 0.0
        for i in range(first, last):
            total += one[index(i)] * other[index(i)]
        sums[part] = total


def uniform_part(density, volumes, mass, volume):
    """Return the mean density () of the part of a density (cells,) whose kernel sums are known in closed form.

    The part is uniform: max(1 − (distance/mass)², 0) times the mean density, with the distance from the uniform
    density, see :mod:`solvers.backends.formulas`. ``volumes`` (cells,) are those of the cells, ``volume`` is their sum,
    and ``mass`` () the sum Σ ρ V.
    """
    mean, sums = formulas.mean_density(mass, volume), np.empty(DOT_PARTS)
    launch(_distance_of_parts, len(density), density, np.full(1, mean), volumes, sums)
    return formulas.uniform_part(sums.sum(), mean, volume)


def summary(values, volumes, occupied):
    """Return the mass Σ u V of values u (cells,) with cell volumes V, and ``occupied`` times the mass, as a Summary."""
    mass = dot(volumes, values)
    return Summary(mass, np.full(1, occupied * mass, values.dtype), None)


def largest_share(shares):
    """Return the largest of a kernel's results, one number from each worker; NaN if one is NaN."""
    return float(np.max(shares))


def step_of_shares(shares):
    """Return the time step 1/rate of the largest outflow rate, from the rates of all workers; NaN if one is NaN."""
    return formulas.step_of_rate(largest_share(shares))


def evaluate(formula, *arguments):
    """Return formula(*arguments), for a function of :mod:`solvers.backends.formulas`."""
    return formula(*arguments)


@compiled(fastmath={"reassoc", "contract"}, relative_speed=32)
def _distance_of_parts(worker, workers, values, level, weights, sums):
    """Compute the sum of |values[i] − level| weights[i] over each of len(sums) parts of two arrays; level (1,)."""
    begin, end = share(worker, workers, len(sums))
    for part in range(begin, end):
        first, last = share(part, len(sums), len(values))
        total = 0.0
        for i in range(first, last):
            total += abs(values[index(i)] - level[0]) * weights[index(i)]
        sums[part] = total


def erf(values):
    """Return the error function 2/√π ∫₀ˣ e^{−t²} dt of each value x."""
    from scipy.special import erf

    return erf(values)


def erfc(values):
    """Return the complementary error function 1 − 2/√π ∫₀ˣ e^{−t²} dt of each value x."""
    from scipy.special import erfc

    return erfc(values)
