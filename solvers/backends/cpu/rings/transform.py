"""Harmonic transform on rings of latitude."""

import numpy as np

from ..caching import compiled
from ..launching import index, kernel, share


@kernel
def gradient_to_vectors(worker, workers, centers, east, north, along, result):
    """Compute vectors in R³ from components east, north and along the position, at points of the unit sphere.

    ``along`` is (0,) for tangent vectors.
    """
    first, last = share(worker, workers, len(result))
    for i in range(first, last):
        x, y, z = centers[i, 0], centers[i, 1], centers[i, 2]
        sine = np.sqrt(x * x + y * y)
        cos_phi, sin_phi = x / sine, y / sine
        result[i, 0] = -north[i] * z * cos_phi - east[i] * sin_phi
        result[i, 1] = -north[i] * z * sin_phi + east[i] * cos_phi
        result[i, 2] = north[i] * sine
        if len(along):
            result[i, 0] += along[i] * x
            result[i, 1] += along[i] * y
            result[i, 2] += along[i] * z


@compiled(fastmath={"reassoc", "contract"})
def apply_blocks(worker, workers, blocks, start, first, width, vectors, result):
    """Compute the products (n, rows) of a block-diagonal matrix with each of ``vectors`` (n, columns).

    Row i of the matrix is blocks[start[i]: start[i] + width[i]], from column first[i] on.
    """
    begin, end = share(worker, workers, result.shape[1])
    for item in range(begin, end):
        i = index(item)
        row, column, count = start[i], first[i], width[i]
        for k in range(len(vectors)):
            total = 0.0
            for c in range(count):
                total += blocks[index(row + c)] * vectors[index(k), index(column + c)]
            result[index(k), i] = total
