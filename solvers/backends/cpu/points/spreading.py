"""Kernels of transforms between nonuniform points and a periodic grid: sorting, spreading and interpolation.

The window of a point covers WINDOW_NODES² nodes of the grid. The first node is the point's cell; points are sorted by
cell.
"""

import numpy as np

from ...sizes import WINDOW_NODES
from ..caching import compiled
from ..exponential import CONTRACT
from ..launching import index, inline, kernel, share
from ..product import add_rows

HALF = WINDOW_NODES // 2
BATCH = 64  # points whose windows are evaluated together

_kernel = compiled(fastmath={*CONTRACT, "reassoc"})


@inline
def _place(angle, nodes):
    """Return the first grid node in the window of a point, on a periodic axis of ``nodes``, and the point's offset.

    The point has the angle α, N nodes have the distance 2π/N. With x = α N/2π and W = WINDOW_NODES, the window covers
    nodes l … l + W − 1, l = ⌈x − W/2⌉; the offset is 2(l − x) + W − 1, between −1 and 1.
    """
    x = angle * (nodes / (2.0 * np.pi))
    x -= nodes * np.floor(x / nodes)
    node = np.ceil(x - 0.5 * WINDOW_NODES)
    return int(node) % nodes, 2.0 * (node - x) + (WINDOW_NODES - 1)


@kernel
def count_points(worker, workers, angles, shape, cells):
    """Compute the grid cells (n,) of points at angles (axes, n); return the number of the worker's points in each cell.

    The last number counts points with an angle that is not finite. A point's cell is the first grid node in the window
    that spreads its weight. Cells are numbered row by row in a grid of ``shape`` (rows, columns), of one row for one
    axis.
    """
    rows, columns = shape
    axes, count = angles.shape
    found = np.zeros(rows * columns + 1, np.int64)
    first, last = share(worker, workers, count)
    for i in range(first, last):
        cell, finite = 0, True
        for axis in range(axes):
            nodes = shape[axis + 2 - axes]
            finite = finite and np.isfinite(angles[axis, i])
            node, _ = _place(angles[axis, i] if finite else 0.0, nodes)
            cell = cell * nodes + node
        cells[i] = cell
        found[cell if finite else rows * columns] += 1
    return found


@kernel
def sort_points(worker, workers, angles, shape, cells, starts, order, sorted_cells, offsets):
    """Sort points by grid cell, and by number within a cell, and compute their offsets (axes, n) in the cells.

    angles, cells          (axes, n) and (n,): position and cell of each point, see :func:`count_points`
    starts                 (workers, cells) place of the first point of each worker and cell; overwritten
    order, sorted_cells    (n,) out: the sorted points' numbers and cells
    """
    first, last = share(worker, workers, len(cells))
    axes = len(angles)
    for i in range(first, last):
        cell = cells[i]
        rank = starts[worker, cell]
        starts[worker, cell] = rank + 1
        order[rank] = i
        sorted_cells[rank] = cell
        for axis in range(axes):
            _, offsets[axis, rank] = _place(angles[axis, i], shape[axis + 2 - axes])


@inline
def _windows(offsets, first, count, polynomials, powers, parts, values):
    """Evaluate the window functions of ``count`` points from ``first`` on at grid nodes: values[p, j] = E_j + t O_j.

    The node opposite to node j has E_j − t O_j, since the window is even. E and O, the columns of ``polynomials``, are
    the even and odd parts in the point's offset t, polynomials in t².
    """
    for p in range(count):
        t, power = offsets[first + p], 1.0
        for k in range(len(powers)):
            powers[k] = power
            power *= t * t
        parts[:] = 0.0
        add_rows(powers, polynomials, 0, polynomials.shape[1], parts)
        for j in range(HALF):
            even, odd = parts[j], t * parts[HALF + j]
            values[p, j], values[p, WINDOW_NODES - 1 - j] = even + odd, even - odd


@inline
def _evaluate_windows(offsets, first, count, polynomials, powers, parts, down, along):
    """Evaluate the window functions of ``count`` points at the grid nodes along both axes, ``down`` and ``along`` rows.

    With a single row of nodes ``down`` is 1 at one node.
    """
    _windows(offsets[-1], first, count, polynomials, powers, parts, along)
    if len(offsets) == 2:
        _windows(offsets[0], first, count, polynomials, powers, parts, down)
    else:
        down[:, 0] = 1.0


@_kernel
def spread(worker, workers, polynomials, part, columns, order, cells, offsets, weights, bands, buffer):
    """Compute Σ_j w_j φ(node − x_j) for each part of the sorted points, on the rectangle of grid nodes that it covers.

    φ is a window function. A part has ``part`` consecutive points.

    bands    (parts, 5) rectangle: first row and column, number of rows and columns, and its offset in the buffer
    """
    powers, parts = np.empty(len(polynomials)), np.empty(WINDOW_NODES)
    down, along = np.zeros((BATCH, WINDOW_NODES)), np.zeros((BATCH, WINDOW_NODES))
    lanes = polynomials.shape[1]  # WINDOW_NODES as a variable, since loops of variable length are vectorized
    deep = lanes if len(offsets) == 2 else 1
    for piece in range(worker, len(bands), workers):
        first_row, first_column, rows, width, start = bands[piece]
        band = buffer[start : start + rows * width].reshape(rows, width)
        band[:] = 0.0
        stop = min((piece + 1) * part, len(cells))
        for first in range(piece * part, stop, BATCH):
            last = min(first + BATCH, stop)
            _evaluate_windows(offsets, first, last - first, polynomials, powers, parts, down, along)
            for p in range(last - first):
                weight, cell = weights[order[first + p]], cells[first + p]
                row, column = cell // columns - first_row, cell % columns - first_column
                for r in range(deep):
                    factor = weight * down[p, r]
                    for j in range(lanes):
                        band[row + r, index(column + j)] += factor * along[p, index(j)]


@compiled(relative_speed=8)
def add_bands(worker, workers, bands, buffer, grid):
    """Sum the values of all rectangles in ``buffer`` on the periodic grid (rows, columns), in order.

    A rectangle is described by a row of ``bands``, see :func:`spread`. Each worker has its own rows of the grid.
    """
    rows, columns = grid.shape
    first, last = share(worker, workers, rows)
    grid[first:last] = 0.0
    for piece in range(len(bands)):
        first_row, first_column, height, width, start = bands[piece]
        for b in range(height):
            row = (first_row + b) % rows
            if first <= row < last:
                begin, inside = start + b * width, min(width, columns - first_column)
                for c in range(inside):
                    grid[row, first_column + c] += buffer[begin + c]
                for c in range(inside, width):
                    grid[row, first_column + c - columns] += buffer[begin + c]


@_kernel
def interpolate(worker, workers, polynomials, order, cells, offsets, grids, values):
    """Compute values[j, s] = Σ_nodes φ(node − x_j) g_s(node) at points x_j, for periodic grids g_s and a window φ.

    ``grids`` are (sets, rows + …, columns + WINDOW_NODES), continued periodically by the nodes of a window.
    """
    powers, parts = np.empty(len(polynomials)), np.empty(WINDOW_NODES)
    down, along, sums = np.zeros((BATCH, WINDOW_NODES)), np.zeros((BATCH, WINDOW_NODES)), np.empty(WINDOW_NODES)
    lanes = polynomials.shape[1]  # WINDOW_NODES, as above
    columns, deep = grids.shape[2] - lanes, lanes if len(offsets) == 2 else 1
    first_batch, last_batch = share(worker, workers, (len(cells) + BATCH - 1) // BATCH)
    for first in range(first_batch * BATCH, min(last_batch * BATCH, len(cells)), BATCH):
        last = min(first + BATCH, len(cells))
        _evaluate_windows(offsets, first, last - first, polynomials, powers, parts, down, along)
        for s in range(len(grids)):
            for p in range(last - first):
                cell, value = cells[first + p], 0.0
                sums[:] = 0.0
                add_rows(down[p, :deep], grids[s, cell // columns :], cell % columns, lanes, sums)
                for j in range(lanes):
                    value += along[p, j] * sums[j]
                values[order[first + p], s] = value
