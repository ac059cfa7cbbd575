"""Basins of peaks by the persistence of superlevel sets, on cells or any graph, in one thread.

The neighbors of cell i are neighbors[start[i] : start[i + 1]].
"""

import numpy as np

from .launching import index, inline, kernel, share


@kernel
def _root(parent, i):
    """Return the root of the tree that contains cell i, and shorten the path to the root in ``parent`` (cells,)."""
    while parent[index(i)] != i:
        parent[index(i)] = parent[index(parent[index(i)])]
        i = parent[index(i)]
    return i


@kernel
def _is_higher(level, j, i):
    """Return whether cell j precedes cell i by level: a higher level, or an equal one and a lower number."""
    return level[index(j)] > level[index(i)] or (level[index(j)] == level[index(i)] and j < i)


@kernel
def sort_highest_first(order, count, level):
    """Sort the first ``count`` cells in ``order`` by ``level``, the highest first, and by number if levels are equal.

    The method is Shell's sort with gaps that grow by 9/4.
    """
    gap = 1
    while 9 * gap < 4 * count:
        gap = gap * 9 // 4 + 1
    while gap > 0:
        for k in range(gap, count):
            moved, j = order[k], k
            while j >= gap:
                other = order[j - gap]
                if level[other] > level[moved] or (level[other] == level[moved] and other < moved):
                    break
                order[j] = other
                j -= gap
            order[j] = moved
        gap = gap * 4 // 9


@inline
def persistent_basins(level, contrast, start, neighbors, order, basin):
    """Find the peak, itself a cell, to which each cell leads by steps to the highest neighbor: basin (cells,).

    A peak that is less than ``contrast`` times as high as the pass to a higher peak is joined to that peak. Passes are
    cells with higher neighbors of other peaks, and are processed from the highest to the lowest.

    level               (cells,) > 0
    start, neighbors    the neighbors of cell i are neighbors[start[i] : start[i + 1]]
    order               (cells,) work space
    """
    for i in range(len(level)):
        highest = i
        for k in range(start[index(i)], start[index(i + 1)]):
            if _is_higher(level, neighbors[index(k)], highest):
                highest = neighbors[index(k)]
        basin[i] = highest
    for i in range(len(level)):
        basin[i] = _root(basin, i)
    passes = 0
    for i in range(len(level)):
        for k in range(start[index(i)], start[index(i + 1)]):
            j = neighbors[index(k)]
            if basin[index(j)] != basin[index(i)] and _is_higher(level, j, i):
                lower = min(level[index(basin[index(i)])], level[index(basin[index(j)])])
                if lower < contrast * level[index(i)]:
                    order[passes] = i
                    passes += 1
                    break
    if passes == 0:
        return
    sort_highest_first(order, passes, level)
    for place in range(passes):
        i = order[place]
        best = _root(basin, i)
        for k in range(start[i], start[i + 1]):
            j = neighbors[k]
            if _is_higher(level, j, i):
                peak = _root(basin, j)
                if _is_higher(level, peak, best):
                    best = peak
        for k in range(start[i], start[i + 1]):
            j = neighbors[k]
            if _is_higher(level, j, i):
                peak = _root(basin, j)
                if peak != best and level[peak] < contrast * level[i]:
                    basin[peak] = best
    for i in range(len(level)):
        basin[i] = _root(basin, i)


@inline
def sum_over_basins(basin, masses, points, number, basin_masses, centers):
    """Compute the masses of the basins and their centers Σmx/|Σmx|, the heaviest basin first; return their number.

    A basin consists of the cells that lead to one peak. Sums are added in the order of the cells.

    basin     (cells,) the peak of each cell, itself a cell
    points    (cells, d) x, unit vectors
    number    (cells,) out: the number of each cell's basin
    basin_masses, centers   (cells,) and (cells, d) out: mass and center of each basin come first; the center is the
              peak for Σmx = 0
    """
    count, d = 0, points.shape[1]
    for i in range(len(basin)):
        if basin[i] == i:
            number[i] = count
            count += 1
    peaks, place, order = np.empty(count, np.intp), np.empty(count, np.intp), np.empty(count, np.int32)
    sums = np.empty((count, 1 + d))
    for k in range(count):  # np.zeros, arange and slices would compile half a second longer
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
    sort_highest_first(order, count, basin_masses)
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


@kernel
def clusters_of_rows(
    worker, workers, volumes, points, start, neighbors, rows, floor, contrast, number, cluster_masses, centers, counts
):
    """Find the basins of the peaks of each density in ``rows`` (rows, cells), after two averages over neighbors.

    A basin consists of the cells that lead to one peak by steps to the highest neighbor. Workers share the rows.

    floor     added to the averages
    contrast  smallest ratio of a peak to the pass toward a higher one, see :func:`persistent_basins`
    counts    (rows,) out: number of basins, 0 for a row whose levels are all within ``contrast``
    number, cluster_masses, centers   (rows, cells), (rows, cells) and (rows, cells, d) out: see
              :func:`sum_over_basins`; the number of each cell is −1 without basins
    """
    cells = len(volumes)
    level, weights, masses = np.empty(cells), np.empty(cells), np.empty(cells)
    order, basin = np.empty(cells, np.int32), np.empty(cells, np.int32)
    for i in range(cells):
        weights[i] = volumes[i]
        for k in range(start[i], start[i + 1]):
            weights[i] += volumes[neighbors[k]]
    first, last = share(worker, workers, len(rows))
    for r in range(first, last):
        for i in range(cells):
            masses[index(i)] = rows[r, index(i)] * volumes[index(i)]
        for _ in range(2):  # averages by volume of each cell and its neighbors
            for i in range(cells):
                total = masses[index(i)]
                for k in range(start[index(i)], start[index(i + 1)]):
                    total += masses[index(neighbors[index(k)])]
                level[index(i)] = total / weights[index(i)]
            for i in range(cells):
                masses[index(i)] = level[index(i)] * volumes[index(i)]
        lowest, highest = level[0] + floor, 0.0
        for i in range(cells):
            level[i] += floor
            lowest, highest = min(lowest, level[i]), max(highest, level[i])
        if not highest >= contrast * lowest:
            counts[r] = 0
            for i in range(cells):
                number[r, i] = -1
            continue
        persistent_basins(level, contrast, start, neighbors, order, basin)
        for i in range(cells):
            masses[i] = rows[r, i] * volumes[i]
        counts[r] = sum_over_basins(basin, masses, points, number[r], cluster_masses[r], centers[r])
