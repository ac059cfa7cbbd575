"""Basins of peaks by the persistence of superlevel sets, on cells or any graph; one thread goes over the levels.

The neighbors of cell i are neighbors[start[i] : start[i + 1]].
"""

import numpy as np

from .launching import index, inline, kernel, share

DIGIT = 11  # bits of a number that it is sorted by at a time: their counts stay in the first cache
VALUES = 1 << DIGIT


@inline
def _root(parent, i):
    while parent[index(i)] != i:
        parent[index(i)] = parent[index(parent[index(i)])]
        i = parent[index(i)]
    return i


@kernel
def persistent_basins(order, level, contrast, start, neighbors, basin):
    """The peak (a cell) that each cell belongs to, (cells,).

    A peak that is less than ``contrast`` times as high as the pass to a higher one is joined to it.

    order   cells from the highest to the lowest level
    level   (cells,) > 0
    """
    basin[:] = -1
    for i in order:
        best, several = -1, False
        for k in range(start[index(i)], start[index(i + 1)]):
            j = neighbors[index(k)]
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
        for k in range(start[i], start[i + 1]):
            j = neighbors[k]
            if basin[j] >= 0:
                peak = _root(basin, j)
                if peak != best and level[peak] < contrast * level[i]:
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
def sort_cells(keys, order, other_keys, other_order):
    """Returns cells (cells,) from the largest to the smallest key, those of equal keys in the order of their numbers.

    keys   (cells,) uint64, from 0 on: there are as many passes as the largest has digits

    The arrays are work space, one of which is returned. A radix sort, digit after digit from the lowest (Knuth, The Art
    of Computer Programming 3, 5.2.5).
    """
    count, largest = len(keys), np.uint64(0)
    for i in range(count):
        order[i] = i
        largest = max(largest, keys[i])
    places = np.empty(VALUES, np.int64)
    shift = np.uint64(0)
    while shift < np.uint64(64) and largest >> shift > np.uint64(0):  # to shift by more than 63 is undefined
        for v in range(VALUES):
            places[v] = 0
        for i in range(count):
            places[VALUES - 1 - int((keys[i] >> shift) & np.uint64(VALUES - 1))] += 1
        total = 0
        for v in range(VALUES):
            places[v], total = total, total + places[v]
        for i in range(count):
            v = VALUES - 1 - int((keys[i] >> shift) & np.uint64(VALUES - 1))
            place = places[v]
            places[v] = place + 1
            other_keys[place], other_order[place] = keys[i], order[i]
        keys, other_keys, order, other_order = other_keys, keys, other_order, order
        shift += np.uint64(DIGIT)
    return order


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


@inline
def _smooth(volumes, start, neighbors, weights, values, masses, result):
    """Averages by volume of each cell and its neighbors."""
    for i in range(len(volumes)):
        masses[index(i)] = values[index(i)] * volumes[index(i)]
    for i in range(len(volumes)):
        total = masses[index(i)]
        for k in range(start[index(i)], start[index(i + 1)]):
            total += masses[index(neighbors[index(k)])]
        result[index(i)] = total / weights[index(i)]


@kernel
def clusters_of_rows(
    worker, workers, volumes, points, start, neighbors, rows, floor, contrast, number, cluster_masses, centers, counts
):
    """Basins of the peaks of each of ``rows`` (rows, cells), averaged twice over; workers share the rows.

    floor     is added to the averages
    counts    (rows,) out: how many basins, 0 where the levels of a row are all within ``contrast``
    number, cluster_masses, centers   (rows, cells), (rows, cells) and (rows, cells, d) out: see
              :func:`sum_over_basins`; each cell's number is −1 where there are none
    """
    cells = len(volumes)
    level, weights, masses = np.empty(cells), np.empty(cells), np.empty(cells)
    order, other_order, basin = np.empty(cells, np.int32), np.empty(cells, np.int32), np.empty(cells, np.int32)
    keys, other_keys = np.empty(cells, np.uint64), np.empty(cells, np.uint64)
    for i in range(cells):
        weights[i] = volumes[i]
        for k in range(start[i], start[i + 1]):
            weights[i] += volumes[neighbors[k]]
    first, last = share(worker, workers, len(rows))
    for r in range(first, last):
        _smooth(volumes, start, neighbors, weights, rows[r], masses, level)
        _smooth(volumes, start, neighbors, weights, level, masses, level)
        lowest, highest = level[0] + floor, 0.0
        for i in range(cells):
            level[i] += floor
            lowest, highest = min(lowest, level[i]), max(highest, level[i])
        if not highest >= contrast * lowest:
            counts[r] = 0
            for i in range(cells):
                number[r, i] = -1
            continue
        base = np.float64(lowest).view(np.uint64)
        for i in range(cells):
            keys[i] = np.float64(level[i]).view(np.uint64) - base  # positive numbers are in the order of their bits
            masses[i] = rows[r, i] * volumes[i]
        highest_first = sort_cells(keys, order, other_keys, other_order)
        persistent_basins(highest_first, level, contrast, start, neighbors, basin)
        counts[r] = sum_over_basins(basin, masses, points, number[r], cluster_masses[r], centers[r])
