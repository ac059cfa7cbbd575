"""Kernels that go over all cells: Runge–Kutta stages, softmax, vectors; on the host averages and basins of peaks."""

import numpy as np

from .caching import compiled
from .launching import index, inline, kernel, share

SWEEP = 8  # equal levels in one of so many cells: to go through all cells is faster than to sort them


@compiled(light=8)
def advance(worker, workers, start, stage, rate, dt, weight, result):
    """result = w + weight (start − w) with w = stage + dt rate: one stage of a Shu–Osher scheme.

    Written so that equal states stay equal to the last bit.
    """
    first, last = share(worker, workers, len(result))
    for i in range(first, last):
        w = stage[i] + dt * rate[i]
        result[i] = w + weight * (start[i] - w)


@compiled(apart=True, light=16)
def masses_above(worker, workers, density, volumes, level, masses):
    """Masses (ρ_i − level) V_i of the cells; level (1,)."""
    first, last = share(worker, workers, len(density))
    for i in range(first, last):
        masses[index(i)] = (density[index(i)] - level[0]) * volumes[index(i)]


@compiled(fastmath={"contract"}, apart=True, light=8)
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


@inline
def _root(parent, i):
    while parent[index(i)] != i:
        parent[index(i)] = parent[index(parent[index(i)])]
        i = parent[index(i)]
    return i


@kernel
def persistent_basins(order, level, persistence, cell_start, cell_sides, neighbors, basin):
    """The peak (a cell) that each cell belongs to; peaks of less persistence are joined to higher ones.

    order   cells from the highest to the lowest level
    """
    basin[:] = -1
    for i in order:
        best, several = -1, False
        for k in range(cell_start[index(i)], cell_start[index(i + 1)]):
            j = neighbors[index(cell_sides[index(k)] ^ 1)]
            if basin[index(j)] >= 0:
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
def sort_highest_first(order, level):
    """Cells in ``order`` by their ``level``, the highest first, those of equal levels in their order (Shell's sort)."""
    gap = len(order) // 2
    while gap > 0:
        for k in range(gap, len(order)):
            moved, j = order[k], k
            while j >= gap:
                other = order[j - gap]
                if level[other] > level[moved] or (level[other] == level[moved] and other < moved):
                    break
                order[j] = other
                j -= gap
            order[j] = moved
        gap //= 2


@kernel
def sort_equal(order, level):
    """Cells of equal levels in the order of their numbers, where ``order`` (cells,) has equal ones side by side."""
    first = 0
    for k in range(1, len(order) + 1):
        if k == len(order) or level[order[k]] != level[order[first]]:
            if SWEEP * (k - first) > len(order):  # a plateau, where nothing is
                plateau, place = level[order[first]], first
                for i in range(len(order)):
                    if level[i] == plateau:
                        order[place] = i
                        place += 1
            elif k - first > 1:
                sort_highest_first(order[first:k], level)
            first = k


@kernel
def sum_over_basins(basin, masses, points, number, basin_masses, centers):
    """Masses of the basins and their centers Σmx/|Σmx|, the heaviest first; sums are added in the order of the cells.

    basin     (cells,) the peak of each cell, a cell that is its own
    points    (cells, d) x, unit vectors
    number    (cells,) out: the number of each cell's basin
    basin_masses, centers   (cells,) and (cells, d) out: the first are mass and center of each basin; a peak where
              Σmx = 0
    Returns how many basins there are.
    """
    count, d = 0, points.shape[1]
    for i in range(len(basin)):
        if basin[i] == i:
            number[i] = count
            count += 1
    peaks, place, order = np.empty(count, np.intp), np.empty(count, np.intp), np.empty(count, np.intp)
    sums = np.empty((count, 1 + d))
    for k in range(count):  # np.zeros, arange and slices would take half a second to compile
        for c in range(1 + d):
            sums[k, c] = 0.0
    for i in range(len(basin)):
        if basin[i] == i:
            peaks[number[i]] = i
        k = number[basin[i]]
        sums[k, 0] += masses[i]
        for c in range(d):
            sums[k, 1 + c] += masses[i] * points[i, c]
    for k in range(count):
        order[k], basin_masses[k] = k, sums[k, 0]
    sort_highest_first(order, basin_masses)
    for rank in range(count):
        k, square = order[rank], 0.0
        place[k] = rank
        for c in range(d):
            square += sums[k, 1 + c] ** 2
        basin_masses[rank] = sums[k, 0]
        for c in range(d):
            centers[rank, c] = sums[k, 1 + c] / np.sqrt(square) if square > 0.0 else points[peaks[k], c]
    for i in range(len(basin)):
        if basin[i] != i:
            number[i] = place[number[basin[i]]]
    for k in range(count):
        number[peaks[k]] = place[k]
    return count


@compiled(apart=True)
def smooth_rows(volumes, cell_start, cell_sides, neighbors, rows, masses, weights, result):
    """Averages of each cell and its neighbors by volume, twice over, of each of ``rows`` (rows, cells).

    masses, weights   (cells,) scratch
    """
    for i in range(len(volumes)):
        weights[index(i)] = volumes[index(i)]
        for k in range(cell_start[index(i)], cell_start[index(i + 1)]):
            weights[index(i)] += volumes[index(neighbors[index(cell_sides[index(k)] ^ 1)])]
    for r in range(len(rows)):
        for repeat in range(2):
            values = rows[r] if repeat == 0 else result[r]
            for i in range(len(volumes)):
                masses[index(i)] = values[index(i)] * volumes[index(i)]
            for i in range(len(volumes)):
                total = masses[index(i)]
                for k in range(cell_start[index(i)], cell_start[index(i + 1)]):
                    total += masses[index(neighbors[index(cell_sides[index(k)] ^ 1)])]
                result[r, i] = total / weights[index(i)]


@kernel
def basins_of_rows(
    order, level, persistence, cell_start, cell_sides, neighbors, masses, points, basin, number, basin_masses, centers,
    counts,
):  # fmt: skip
    """:func:`persistent_basins` and :func:`sum_over_basins` of each row of ``order`` and ``level`` (rows, cells).

    Equal levels count in the order of the cells' numbers. counts (rows,) is how many basins each row has, 0 where its
    levels differ by less than ``persistence`` and each cell's number is −1; basin (cells,) is scratch.
    """
    for r in range(len(order)):
        if not level[r, order[r, 0]] - level[r, order[r, -1]] < persistence:
            sort_equal(order[r], level[r])
            persistent_basins(order[r], level[r], persistence, cell_start, cell_sides, neighbors, basin)
            counts[r] = sum_over_basins(basin, masses[r], points, number[r], basin_masses[r], centers[r])
        else:
            counts[r] = 0
            for i in range(len(basin)):
                number[r, i] = -1
