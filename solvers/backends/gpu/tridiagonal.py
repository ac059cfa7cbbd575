"""Parallel cyclic reduction of tridiagonal systems (Hockney and Jesshope, Parallel Computers, 1981) in one block."""

from numba import cuda

from .arrays import SIMULATED, empty
from .launching import run

BLOCK = 16 if SIMULATED else 512  # threads, which share the rows; 1024 threads would need too many registers


@cuda.jit
def _reduce(below, diagonal, above, right, rows, solution):
    """Solve a tridiagonal system by cyclic reduction: eliminate the neighbors of each row, then the rows two away, ….

    The distance doubles in each step, until each row is decoupled.

    rows   (2, 4, n) below, diagonal, above and right of all rows, before and after a reduction step
    """
    n, thread, threads = len(diagonal), cuda.threadIdx.x, cuda.blockDim.x
    for i in range(thread, n, threads):
        rows[0, 0, i] = below[i - 1] if i > 0 else 0.0
        rows[0, 1, i] = diagonal[i]
        rows[0, 2, i] = above[i] if i < n - 1 else 0.0
        rows[0, 3, i] = right[i]
    away, turn = 1, 0
    while away < n:
        cuda.syncthreads()
        old, new = rows[turn], rows[1 - turn]
        for i in range(thread, n, threads):
            a, b = max(i - away, 0), min(i + away, n - 1)  # beyond the ends a row's weight is 0
            from_a, from_b = -old[0, i] / old[1, a], -old[2, i] / old[1, b]
            new[0, i] = from_a * old[0, a]
            new[1, i] = old[1, i] + from_a * old[2, a] + from_b * old[0, b]
            new[2, i] = from_b * old[2, b]
            new[3, i] = old[3, i] + from_a * old[3, a] + from_b * old[3, b]
        away, turn = 2 * away, 1 - turn
    for i in range(thread, n, threads):  # the rows that this thread has written itself
        solution[i] = rows[turn, 3, i] / rows[turn, 1, i]


def solve_tridiagonal(below, diagonal, above, right):
    """Return the solution x (n,) of below[i − 1] x[i − 1] + diagonal[i] x[i] + above[i] x[i + 1] = right[i].

    ``below`` and ``above`` are (n − 1,). Columns must be diagonally dominant, since there is no pivoting.
    """
    solution = empty(right.shape, right.dtype)
    run(_reduce, (1, BLOCK), below, diagonal, above, right, empty((2, 4, len(right)), right.dtype), solution)
    return solution
