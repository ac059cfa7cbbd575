"""Kernels over cells that differ from the CPU's: a product that needs its old values, and basins of peaks."""

from numba import cuda

from solvers.backends import cpu
from solvers.backends.gpu.arrays import bring, empty, place
from solvers.backends.gpu.launching import run, shape_of


@cuda.jit
def _multiply(matrix, vectors, images):
    """images[i, a] = Σ_b matrix[a, b] vectors[i, b]: a thread a component."""
    item, d = cuda.grid(1), vectors.shape[1]
    if item < images.size:
        i, a = item // d, item % d
        total = matrix[a, 0] * vectors[i, 0]
        for b in range(1, d):
            total += matrix[a, b] * vectors[i, b]
        images[i, a] = total


@cuda.jit
def _copy(values, result):
    """result = values, both with one index."""
    i = cuda.grid(1)
    if i < len(values):
        result[i] = values[i]


def apply_matrix(worker, workers, matrix, vectors):
    """vectors[i] = matrix vectors[i] in place, for vectors (n, d)."""
    images = empty(vectors.shape, vectors.dtype)
    run(_multiply, shape_of(vectors.size), matrix, vectors, images)
    run(_copy, shape_of(vectors.size), images.reshape(-1), vectors.reshape(-1))


def persistent_basins(order, level, persistence, cell_start, cell_sides, neighbors, basin):
    """The peak (a cell) that each cell belongs to; peaks of less persistence are joined to higher ones.

    Cells take their turns one after the other, so this runs on the host: it is for diagnostics, not for every step.

    order   cells from the highest to the lowest level
    """
    found = bring(basin).copy()
    neighborhood = (bring(cell_start), bring(cell_sides), bring(neighbors))
    cpu.persistent_basins(bring(order), bring(level), persistence, *neighborhood, found)
    run(_copy, shape_of(len(found)), place(found), basin)
