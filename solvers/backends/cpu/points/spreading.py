"""Kernels of transforms between nonuniform points and a periodic grid: sorting, spreading and interpolation.

A point touches LANES² nodes of the grid, the first of which is its cell; points are sorted by cell. Values of the
window function, sums over the points of a cell, and values at its points are products of small matrices, held in
registers.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..caching import compiled
from ..exponential import CONTRACT
from ..launching import inline, kernel, share
from ..product import TILE_BYTES, Code, in_all_lanes, row_dots, row_products, wide_vectors

LANES = 16  # nodes along an axis that a window takes in memory: the widest, or with zeros at both ends
HALF = LANES // 2
BATCH = 64  # points whose windows are evaluated together
ROWS = 8 if TILE_BYTES == 256 else 2  # rows of LANES float64 that stay in the registers of AVX-512, or of others

_evaluate = row_products(ROWS, 8 * LANES, accumulate=False)
_sum_up, _sum_up_one = row_dots(ROWS, 8 * LANES), row_dots(1, 8 * LANES)
_accumulate = row_products(ROWS, 8 * LANES, accumulate=True)
_kernel = compiled(fastmath={*CONTRACT, "reassoc"})


@inline
def _place(angle, nodes):
    """First node that the window of a point covers, on a periodic axis of so many, and the point's offset.

    With x = α N/2π, the window covers nodes l … l + LANES − 1, l = ⌈x − LANES/2⌉; the offset is 2(l − x) + LANES − 1,
    between −1 and 1.
    """
    x = angle * (nodes / (2.0 * np.pi))
    x -= nodes * np.floor(x / nodes)
    node = np.ceil(x - 0.5 * LANES)
    return int(node) % nodes, 2.0 * (node - x) + (LANES - 1)


@kernel
def count_points(worker, workers, angles, shape, cells):
    """Cells (n,) of points at angles (axes, n); returns how many of this worker's each cell has, and at the end how
    many have an angle that is not finite.

    Cells are numbered row by row in a grid of ``shape`` (rows, columns), of one row for one axis.
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
    """Points in the order of their cells, and of their numbers in a cell, and their offsets (axes, n).

    starts (workers, cells) are spent.
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
    """Windows of ``count`` points from ``first``: values[p, j] = E_j + t O_j, values[p, LANES − 1 − j] = E_j − t O_j.

    The window is even, and so half of its nodes are enough: E and O, the columns of ``polynomials``, are its even and
    odd part in the offset t, polynomials in t².
    """
    for p in range(count):
        powers[0, p] = 1.0
    for k in range(1, len(powers)):
        for p in range(count):
            powers[k, p] = powers[k - 1, p] * (offsets[first + p] * offsets[first + p])
    for p in range(0, count, ROWS):
        _evaluate(powers.T, p, polynomials, len(powers), parts, p)
    for p in range(count):
        _join_parts(parts, p, offsets[first + p], values)


@intrinsic
def _join_parts(typing, parts, row, offset, values):
    """values[row, j] = parts[row, j] + offset parts[row, HALF + j], and their difference at LANES − 1 − j."""

    def generate(context, builder, signature, arguments):
        code, half = Code(context, builder, signature, arguments), ir.VectorType(ir.DoubleType(), HALF)
        reverse = ir.Constant(ir.VectorType(ir.IntType(32), HALF), [*reversed(range(HALF))])

        def pointer(place, column):
            return code.pointer(place, arguments[1], column, half)

        even, odd = (builder.load(pointer(0, column), align=8) for column in (0, HALF))
        odd = builder.fmul(in_all_lanes(builder, arguments[2], HALF), odd)
        difference = builder.fsub(even, odd)
        builder.store(builder.fadd(even, odd), pointer(3, 0), align=8)
        builder.store(builder.shuffle_vector(difference, difference, reverse), pointer(3, HALF), align=8)
        return context.get_dummy_value()

    return types.void(parts, types.intp, types.float64, values), generate


@inline
def _both_windows(offsets, first, count, polynomials, powers, parts, down, along):
    """Windows along the rows, 1 at one node where there is one row, and along the columns."""
    _windows(offsets[-1], first, count, polynomials, powers, parts, along)
    if len(offsets) == 2:
        _windows(offsets[0], first, count, polynomials, powers, parts, down)
    else:
        down[:, 0] = 1.0


@inline
def _run(cells, first, last):
    """End of the points from ``first`` that are in one cell."""
    end = first + 1
    while end < last and cells[end] == cells[first]:
        end += 1
    return end


@_kernel
def spread(worker, workers, polynomials, part, columns, order, cells, offsets, weights, bands, buffer):
    """Σ_j w_j φ(node − x_j) of each ``part`` of the sorted points, on the nodes that it reaches.

    bands    (parts, 5) first row and column, number of rows and columns, and where the part begins in the buffer
    """
    wide_vectors()
    powers, parts = np.zeros((len(polynomials), BATCH)), np.zeros((BATCH, LANES))
    down, along = np.zeros((BATCH, LANES)), np.zeros((BATCH, LANES))
    deep = LANES if len(offsets) == 2 else ROWS
    for piece in range(worker, len(bands), workers):
        first_row, first_column, rows, width, start = bands[piece]
        band = buffer[start : start + rows * width].reshape(rows, width)
        band[:] = 0.0
        stop = min((piece + 1) * part, len(cells))
        for first in range(piece * part, stop, BATCH):
            last = min(first + BATCH, stop)
            _both_windows(offsets, first, last - first, polynomials, powers, parts, down, along)
            for p in range(last - first):
                weight = weights[order[first + p]]
                for j in range(LANES):
                    along[p, j] *= weight
            point = first
            while point < last:
                end = _run(cells, point, last)
                block = band[cells[point] // columns - first_row :, cells[point] % columns - first_column :]
                left, right = down[point - first :].T, along[point - first :]
                for row in range(0, deep, ROWS):
                    _accumulate(left, row, right, end - point, block, row)
                point = end


@compiled(light=8)
def add_bands(worker, workers, bands, buffer, grid):
    """The periodic grid (rows, columns) as the sum of all bands, in their order; each worker has its own rows."""
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
    """values[j, s] = Σ φ(node − x_j) g_s(node), of periodic grids (sets, rows + …, columns + LANES)."""
    wide_vectors()
    powers, parts = np.zeros((len(polynomials), BATCH)), np.zeros((BATCH, LANES))
    down, along, found = np.zeros((BATCH, LANES)), np.zeros((BATCH, LANES)), np.zeros((BATCH, 1))
    columns, deep = grids.shape[2] - LANES, LANES if len(offsets) == 2 else 1
    first_batch, last_batch = share(worker, workers, (len(cells) + BATCH - 1) // BATCH)
    for first in range(first_batch * BATCH, min(last_batch * BATCH, len(cells)), BATCH):
        last = min(first + BATCH, len(cells))
        _both_windows(offsets, first, last - first, polynomials, powers, parts, down, along)
        for s in range(len(grids)):
            point = first
            while point < last:
                end = _run(cells, point, last)
                block = grids[s, cells[point] // columns :, cells[point] % columns :]
                while point + ROWS <= end:
                    _sum_up(down, point - first, block, deep, along, found)
                    point += ROWS
                while point < end:
                    _sum_up_one(down, point - first, block, deep, along, found)
                    point += 1
            for p in range(last - first):
                values[order[first + p], s] = found[p, 0]  # in one line of the caches for all sets
