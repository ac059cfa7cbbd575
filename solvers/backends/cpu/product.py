"""Sums of rows of a cached matrix: the inner loop of products of small matrices."""

from .launching import index, inline


@inline
def add_rows(factors, rows, column, width, total):
    """Add Σ_k factors[k] rows[k, column + j] to total[j] for j < width, four rows at a time."""
    depth = len(factors)
    whole = depth // 4 * 4
    for k in range(0, whole, 4):
        a, b, c, d = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        for j in range(width):
            place = index(column + j)
            total[index(j)] += (a * rows[k, place] + b * rows[k + 1, place]) + (
                c * rows[k + 2, place] + d * rows[k + 3, place]
            )
    for k in range(whole, depth):
        a = factors[k]
        for j in range(width):
            total[index(j)] += a * rows[k, index(column + j)]
