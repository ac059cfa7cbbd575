"""Kernels that go over all cells: Runge–Kutta stages, softmax, vectors, averages, basins of peaks."""

import numpy as np

from .caching import compiled
from .launching import index, inline, kernel, share


@kernel
def advance(worker, workers, start, stage, rate, dt, weight, result):
    """result = w + weight (start − w) with w = stage + dt rate: one stage of a Shu–Osher scheme.

    Written so that equal states stay equal to the last bit.
    """
    first, last = share(worker, workers, len(result))
    for i in range(first, last):
        w = stage[i] + dt * rate[i]
        result[i] = w + weight * (start[i] - w)


@compiled(apart=True)
def distances_from(worker, workers, values, level, distances):
    """|u_i − level|; level (1,)."""
    first, last = share(worker, workers, len(values))
    for i in range(first, last):
        distances[index(i)] = abs(values[index(i)] - level[0])


@compiled(apart=True)
def masses_above(worker, workers, density, volumes, level, masses):
    """Masses (ρ_i − level) V_i of the cells; level (1,)."""
    first, last = share(worker, workers, len(density))
    for i in range(first, last):
        masses[index(i)] = (density[index(i)] - level[0]) * volumes[index(i)]


@compiled(fastmath={"contract"}, apart=True)
def scale_softmax(worker, workers, normalizer, numerator, reach):
    """N /= max(Z, |N|/reach) in place, (n, d) by (n,), so that |N| ≤ reach also where Z is lost to rounding."""
    first, last = share(worker, workers, len(normalizer))
    d = numerator.shape[1]
    if d == 2:  # by vector instructions
        for i in range(first, last):
            k = index(i)
            x, y = numerator[k, 0], numerator[k, 1]
            bound = max(normalizer[k], np.sqrt(x * x + y * y) / reach)
            bound = bound if bound > 0.0 else 1.0
            numerator[k, 0], numerator[k, 1] = x / bound, y / bound
        return
    if d == 3:
        for i in range(first, last):
            k = index(i)
            x, y, z = numerator[k, 0], numerator[k, 1], numerator[k, 2]
            bound = max(normalizer[k], np.sqrt(x * x + y * y + z * z) / reach)
            bound = bound if bound > 0.0 else 1.0
            numerator[k, 0], numerator[k, 1], numerator[k, 2] = x / bound, y / bound, z / bound
        return
    for i in range(first, last):
        square = 0.0
        for c in range(d):
            square += numerator[i, c] * numerator[i, c]
        bound = max(normalizer[i], np.sqrt(square) / reach)
        if bound > 0.0:
            for c in range(d):
                numerator[i, c] /= bound


@compiled(apart=True)
def apply_matrix(worker, workers, matrix, vectors):
    """vectors[i] = matrix vectors[i] in place, for vectors (n, d)."""
    first, last = share(worker, workers, len(vectors))
    d = vectors.shape[1]
    if d == 3:  # by vector instructions
        for i in range(first, last):
            k = index(i)
            x, y, z = vectors[k, 0], vectors[k, 1], vectors[k, 2]
            for a in range(3):
                vectors[k, a] = matrix[a, 0] * x + matrix[a, 1] * y + matrix[a, 2] * z
        return
    image = np.empty(d)
    for i in range(first, last):
        for a in range(d):
            image[a] = 0.0
            for b in range(d):
                image[a] += matrix[a, b] * vectors[i, b]
        for a in range(d):
            vectors[i, a] = image[a]


@kernel
def project_to_tangent(worker, workers, points, vectors):
    """vectors[i] −= ⟨x_i, vectors[i]⟩ x_i in place, for unit vectors x (n, d)."""
    first, last = share(worker, workers, len(vectors))
    d = vectors.shape[1]
    for i in range(first, last):
        along = 0.0
        for c in range(d):
            along += points[i, c] * vectors[i, c]
        for c in range(d):
            vectors[i, c] -= along * points[i, c]


@kernel
def average_neighbors(worker, workers, volumes, cell_start, cell_sides, neighbors, values, result):
    """Average of each cell and its neighbours, weighted by volume."""
    first, last = share(worker, workers, len(values))
    for i in range(first, last):
        total, weight = values[i] * volumes[i], volumes[i]
        for k in range(cell_start[i], cell_start[i + 1]):
            j = neighbors[cell_sides[k] ^ 1]
            total += values[j] * volumes[j]
            weight += volumes[j]
        result[i] = total / weight


@inline
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@kernel
def persistent_basins(order, level, persistence, cell_start, cell_sides, neighbors, basin):
    """The peak (a cell) that each cell belongs to; peaks of less persistence are joined to higher ones.

    order   cells from the highest to the lowest level
    """
    basin[:] = -1
    for i in order:
        best, several = -1, False
        for k in range(cell_start[i], cell_start[i + 1]):
            j = neighbors[cell_sides[k] ^ 1]
            if basin[j] >= 0:
                peak = _root(basin, j)
                several = several or (best >= 0 and peak != best)
                if best < 0 or level[peak] > level[best] or (level[peak] == level[best] and peak < best):
                    best = peak
        if best < 0:
            basin[i] = i
            continue
        basin[i] = best
        if not several:
            continue
        for k in range(cell_start[i], cell_start[i + 1]):
            j = neighbors[cell_sides[k] ^ 1]
            if basin[j] >= 0:
                peak = _root(basin, j)
                if peak != best and level[peak] - level[i] < persistence:
                    basin[peak] = best
    for i in order:
        basin[i] = _root(basin, i)


@kernel
def sort_equal(order, level):
    """Cells of equal levels in the order of their numbers, where ``order`` (cells,) has equal ones side by side."""
    first = 0
    for k in range(1, len(order) + 1):
        if k == len(order) or level[order[k]] != level[order[first]]:
            if k - first > 1:
                order[first:k].sort()
            first = k


@kernel
def sum_over_basins(basin, masses, points, number, peaks, sums):
    """Sums over the cells of each basin, added in their order: (basins, 1 + d) of masses m and of m x.

    basin    (cells,) the peak of each cell, a cell that is its own
    points   (cells, d) x
    number   (cells,) out: the number of each cell's basin, by their peaks
    peaks    (cells,) out: the first are the peaks
    sums     (cells, 1 + d) out: the first are the sums
    Returns how many basins there are.
    """
    count = 0
    for i in range(len(basin)):
        if basin[i] == i:
            number[i] = count
            peaks[count] = i
            sums[count] = 0.0
            count += 1
    for i in range(len(basin)):
        k = number[basin[i]]
        sums[k, 0] += masses[i]
        for c in range(points.shape[1]):
            sums[k, 1 + c] += masses[i] * points[i, c]
    for i in range(len(basin)):
        if basin[i] != i:
            number[i] = number[basin[i]]
    return count
