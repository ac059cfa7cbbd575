"""Solution of tridiagonal linear systems."""

import numpy as np


def solve_tridiagonal(below, diagonal, above, right):
    """Return the solution x (n,) of below[i − 1] x[i − 1] + diagonal[i] x[i] + above[i] x[i + 1] = right[i].

    ``below`` and ``above`` are (n − 1,). Columns must be diagonally dominant, since the GPU's function does not pivot.
    """
    from scipy.linalg import solve_banded

    bands = np.zeros((3, len(diagonal)))
    bands[0, 1:], bands[1], bands[2, :-1] = above, diagonal, below
    return solve_banded((1, 1), bands, right, check_finite=False)  # NaN goes through: the time step detects it
