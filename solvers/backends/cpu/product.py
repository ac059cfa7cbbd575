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


@inline
def add_rows_to_two(factors, others, rows, one, other):
    """Add Σ_k factors[k] rows[k] to ``one`` and Σ_k others[k] rows[k] to ``other``, for rows (depth, width).

    Each row is loaded once for both sums, four rows at a time.
    """
    depth, width = rows.shape
    whole = depth // 4 * 4
    for k in range(0, whole, 4):
        a, b, c, d = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
        e, f, g, h = others[k], others[k + 1], others[k + 2], others[k + 3]
        for j in range(width):
            i = index(j)
            p, q, r, s = rows[k, i], rows[k + 1, i], rows[k + 2, i], rows[k + 3, i]
            one[i] = (((one[i] + a * p) + b * q) + c * r) + d * s
            other[i] = (((other[i] + e * p) + f * q) + g * r) + h * s
    for k in range(whole, depth):
        a, e = factors[k], others[k]
        for j in range(width):
            i = index(j)
            one[i] += a * rows[k, i]
            other[i] += e * rows[k, i]
