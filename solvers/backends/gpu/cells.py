"""Kernels over cells that differ from those of the CPU: a matrix product, sums by index, basins of peaks."""

from numba import cuda

from .. import cpu
from .arrays import empty, xp, zeros
from .launching import run, shape_of, translated


@cuda.jit
def _multiply(matrix, vectors, images):
    """Compute images[i, a] = Σ_b matrix[a, b] vectors[i, b], one thread for each component."""
    item, d = cuda.grid(1), vectors.shape[1]
    if item < images.size:
        i, a = item // d, item % d
        total = matrix[a, 0] * vectors[i, 0]
        for b in range(1, d):
            total += matrix[a, b] * vectors[i, b]
        images[i, a] = total


def apply_matrix(worker, workers, matrix, vectors):
    """Compute vectors[i] = matrix vectors[i] in place, for vectors (n, d)."""
    images = empty(vectors.shape, vectors.dtype)
    run(_multiply, shape_of(vectors.size), matrix, vectors, images)
    vectors[...] = images


@cuda.jit
def _add_runs(order, start, amounts, sums):
    """Compute sums[i] = Σ amounts[order[k]] from k = start[i] to start[i + 1] − 1, one thread for each sum."""
    i = cuda.grid(1)
    if i < len(sums):
        total = 0.0
        for k in range(start[i], start[i + 1]):
            total += amounts[order[k]]
        sums[i] = total


def sums_at(places, amounts, count):
    """Return sums[p] = Σ amounts[i] over all i with places[i] = p, for p = 0 … count − 1.

    Amounts are sorted by place and added in their order, so that results are bitwise reproducible.
    """
    if not len(places):
        return zeros(count, amounts.dtype)
    order = xp.argsort(places, kind="stable")
    start = xp.searchsorted(places[order], xp.arange(count + 1, dtype=places.dtype))
    sums = empty(count, amounts.dtype)
    run(_add_runs, shape_of(count), order, start, amounts, sums)
    return sums


_basins = translated(cpu.persistent_basins)


@cuda.jit
def _find_basins(level, contrast, start, neighbors, order, basin):
    """Find the peak to which each cell leads, ``basin`` (cells,), in one GPU thread; see :func:`persistent_basins`."""
    _basins(level, contrast, start, neighbors, order, basin)


def persistent_basins(level, contrast, start, neighbors, order, basin):
    """Find the peak, itself a cell, to which each cell leads by steps to the highest neighbor: basin (cells,).

    A peak that is less than ``contrast`` times as high as the pass to a higher peak is joined to that peak. Passes are
    processed sequentially by one thread, for lines of a few thousand cells. Diagnostics find peaks on the host.

    level               (cells,) > 0
    start, neighbors    the neighbors of cell i are neighbors[start[i] : start[i + 1]]
    order               (cells,) work space
    """
    run(_find_basins, (1, 1), level, contrast, start, neighbors, order, basin)
