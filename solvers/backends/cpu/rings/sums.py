"""Fourier sums along rings of latitude for low orders: products with tables of cos mφ and sin mφ.

The angles φ_j = (j + ½)·2π/n of a ring of n = 4q cells are four images of the first q: φ, −φ, π − φ and π + φ. This
symmetry splits sums over a ring by the parity of m and by cosine and sine, so that each takes q products; other rings
take n. Two mirrored rings are summed at once.

``tables``: for each number of cells cos mφ_j, then sin mφ_j, as (orders, width) with 8 orders at a time;
``table_start`` (half,) is the start of the table of each northern ring, ``points`` (half,) are q, or n if n is no
multiple of 4. Tables are padded with zeros to the width, a multiple of NARROW: whole vectors.
"""

import numpy as np

from ..caching import compiled
from ..launching import index, inline
from ..product import add_rows

NARROW = 8
TILE = 64  # points of a table that all sets use in turn

summing = compiled(fastmath={"reassoc", "contract"}, relative_speed=2)  # sums in any order; NaN and ∞ are kept


@inline
def _largest(counts):
    """Return the largest of some counts, without Numba's maximum, which imports SciPy's linear algebra, 0.1 s."""
    found = counts[0]
    for count in counts:
        found = max(found, count)
    return found


@inline
def width_of(points):
    """Return the row length, padded to whole vector registers, of tables of waves at ``points`` points."""
    return (points + NARROW - 1) // NARROW * NARROW


def wave_table(count, points, degree):
    """Return cos mφ_j and sin mφ_j at the first points of a ring of ``count`` cells, (2, orders, width) as one row.

    φ_j = (j + ½)·2π/count. The orders m = 0 … degree are padded to a multiple of 8, the points to :func:`width_of`.
    """
    orders = (degree + 8) // 8 * 8
    steps = np.outer(np.arange(orders), 2 * np.arange(points) + 1) % (2 * count)  # of π/count, within one turn
    angle = steps * (np.pi / count)
    waves = np.zeros((2, orders, width_of.py_func(points)))
    waves[:, :, :points] = np.cos(angle), np.sin(angle)
    return waves.reshape(-1)


@inline
def _split_by_symmetry(values, level, weight, other, start, mirrored, count, points, even, odd):
    """Compute the parts of even and odd cosines and sines (4, points) of the sum and difference of mirrored rings.

    The parts determine the Fourier sums over a ring by symmetry about φ = 0 and φ = π/2. ``even`` is filled for the
    sum, ``odd`` for the difference.

    values, level   values of the cells, and a number that is subtracted
    weight, other   weights of the ring and of the mirrored one; the ring on the equator mirrors itself and has the
                    other weight 0, so that the sum and the difference equal the ring
    """
    if 4 * points == count:
        half = 2 * points
        for j in range(points):
            a = weight * (values[index(start + j)] - level)
            b = weight * (values[index(start + count - 1 - j)] - level)
            c = weight * (values[index(start + half - 1 - j)] - level)
            d = weight * (values[index(start + half + j)] - level)
            p = other * (values[index(mirrored + j)] - level)
            q = other * (values[index(mirrored + count - 1 - j)] - level)
            s = other * (values[index(mirrored + half - 1 - j)] - level)
            t = other * (values[index(mirrored + half + j)] - level)
            _set_parts(a + p, b + q, c + s, d + t, j, even)
            _set_parts(a - p, b - q, c - s, d - t, j, odd)
    else:
        for j in range(points):
            a = weight * (values[index(start + j)] - level)
            b = other * (values[index(mirrored + j)] - level)
            for part in range(4):
                even[part, j], odd[part, j] = a + b, a - b


@inline
def _set_parts(a, b, c, d, j, parts):
    """Set parts[:, j] to combinations of the values a, b, c, d at φ, −φ, π − φ and π + φ of even or odd symmetry.

    The parts belong to cos mφ with even and odd m, then to sin mφ with even and odd m.
    """
    parts[0, j], parts[1, j] = (a + b) + (c + d), (a + b) - (c + d)
    parts[2, j], parts[3, j] = (a - b) - (c - d), (a - b) + (c - d)


@inline
def _products(tables, at, points, width, even, odd):
    """Return Σ_j table[row, j] even[j] and Σ_j table[row, j] odd[j] for four rows of a table of waves, in two tuples.

    The rows of the table start at ``at`` and are two orders apart, each of length ``width``.
    """
    a, b, c, d, e, f, g, h = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    p, s, t = 2 * width, 4 * width, 6 * width
    for j in range(points):
        w, x = tables[index(at + j)], tables[index(at + p + j)]
        y, z = tables[index(at + s + j)], tables[index(at + t + j)]
        u, v = even[j], odd[j]
        a += w * u
        b += x * u
        c += y * u
        d += z * u
        e += w * v
        f += x * v
        g += y * v
        h += z * v
    return (a, b, c, d), (e, f, g, h)


@summing
def ring_analysis(
    worker, workers, values, level, weights, ring_start, ring_cells, points, tables, table_start, modes
):  # fmt: skip
    """Compute azimuthal modes (rows, 4, L + 1, half), re and im, of the sums and differences of mirrored rings.

    The modes of a ring are Σ_j w (u_j − level) e^{−imφ_j} of values u (rows, cells) with levels (rows,) and a weight w
    of each ring (rings,); the ring on the equator is included in the sums and in the differences.

    points, tables, table_start   tables of waves, see :func:`wave_table`; points and start of each northern ring
    """
    rings, half, degrees = len(ring_cells), len(points), modes.shape[2]
    orders = (degrees + 7) // 8 * 8
    folded = np.empty((2, 4, _largest(points)))
    even, odd = folded[0], folded[1]
    cells = ring_start[half]
    for item in range(len(values) * half):
        row, r = item // half, item % half
        if (row * cells + ring_start[r]) * workers // (len(values) * cells) != worker:
            continue  # neighboring rings belong to one worker, so that no two workers write to one cache line
        south, q, count = rings - 1 - r, points[r], ring_cells[r]
        other, within = 0.0 if south == r else weights[south], min(degrees, count // 2 + 1)
        _split_by_symmetry(
            values[row], level[row], weights[r], other, ring_start[r], ring_start[south], count, q, even, odd
        )
        width = width_of(q)
        for wave in range(2):
            sign = 1.0 - 2.0 * wave
            for parity in range(2):
                part = 2 * wave + parity
                for m in range(parity, within, 8):
                    at = table_start[r] + (wave * orders + m) * width
                    of_even, of_odd = _products(tables, at, q, width, even[part], odd[part])
                    for k in range(min(4, (degrees - m + 1) // 2)):
                        modes[row, wave, m + 2 * k, r] = sign * of_even[k]
                        modes[row, 2 + wave, m + 2 * k, r] = sign * of_odd[k]
        for m in range(within, degrees):  # waves of orders n − m and n + m alias to m on n cells
            same, sign = (count - m, 1.0) if m < count else (m - count, -1.0)
            for part in range(4):
                modes[row, part, m, r] = (sign if part % 2 else -1.0) * modes[row, part, same, r]


@inline
def _fill_columns(re, im, s, r, by_order, scale, columns):
    """Compute the coefficients of cosines and sines on ring r, columns (2, orders), from azimuthal modes of set s.

    ``by_order`` takes the derivative ∂/∂φ; ``scale`` multiplies the result.
    """
    for m in range(re.shape[1]):
        weight, x, y = scale if m == 0 else 2.0 * scale, re[s, m, r], im[s, m, r]
        if by_order:
            x, y = -m * y, m * x
        columns[0, m], columns[1, m] = weight * x, -weight * y


@inline
def _write(parts, start, count, points, row):
    """Write the values along a ring to row[start: start + count], from their symmetric parts (4, points).

    The parts are the contributions of cos mφ with even and odd m, then of sin mφ, at the first points of the ring.
    """
    even, odd, even_sine, odd_sine = parts[0], parts[1], parts[2], parts[3]
    if 4 * points != count:
        for j in range(points):
            row[index(start + j)] = (even[j] + odd[j]) + (even_sine[j] + odd_sine[j])
        return
    half, last = start + 2 * points, start + count - 1
    for j in range(points):
        row[index(start + j)] = (even[j] + odd[j]) + (even_sine[j] + odd_sine[j])
        row[index(half + j)] = (even[j] - odd[j]) + (even_sine[j] - odd_sine[j])
    for j in range(points):
        row[index(last - j)] = (even[j] + odd[j]) - (even_sine[j] + odd_sine[j])
        row[index(half - 1 - j)] = (even[j] - odd[j]) - (even_sine[j] - odd_sine[j])


@inline
def _find_parts(tables, start, orders, width, columns, parts):
    """Compute the symmetric parts (sets, 4, width) of functions along a ring, from their columns (sets, 2, orders).

    Columns are coefficients of cosines and sines. Parts are the contributions of cos mφ with even and odd m, then of
    sin mφ. The table of waves starts at ``start``.
    """
    for wave in range(2):
        begin = start + wave * orders * width
        table = tables[begin : begin + orders * width].reshape(orders // 2, 2 * width)
        for parity in range(2):
            for first in range(0, width, TILE):
                size = min(TILE, width - first)
                for s in range(len(columns)):
                    found = parts[s, 2 * wave + parity, first:]
                    found[:size] = 0.0
                    add_rows(columns[s, wave, parity::2], table, parity * width + first, size, found)


@summing
def ring_functions(
    worker, workers, re, im, by_order, scales, places, ring_start, ring_cells, points, tables, table_start, values,
    fields,
):  # fmt: skip
    """Compute functions at the cells of all rings from azimuthal modes re and im (rows, sets, L + 1, rings).

    There are 3 or 4 sets, one for each function.

    by_order   (sets,) whether to take ∂/∂φ
    scales     (sets, rings) factor of each ring
    places     (sets,) row of each set among the fields; the first set gives the values
    values, fields   (rows, cells) and (sets − 1, rows, cells) out
    points, tables, table_start   tables of waves, see :func:`wave_table`; points and start of each northern ring

    A worker has contiguous cells, like in kernels over cells, since data in another core's cache take longer to read.
    """
    rings, sets, orders, cells = len(ring_cells), re.shape[1], (re.shape[2] + 7) // 8 * 8, values.shape[1]
    columns, parts = np.zeros((sets, 2, orders)), np.empty((sets, 4, width_of(_largest(points))))
    for row in range(len(re)):
        for ring in range(rings):
            if (row * cells + ring_start[ring]) * workers // (len(re) * cells) != worker:
                continue
            north = min(ring, rings - 1 - ring)  # the ring or its mirror image of equal size
            for s in range(sets):
                _fill_columns(re[row], im[row], s, ring, by_order[s], scales[s, ring], columns[s])
            _find_parts(tables, table_start[north], orders, width_of(points[north]), columns, parts)
            for s in range(sets):
                into = values[row] if s == 0 else fields[places[s], row]
                _write(parts[s], ring_start[ring], ring_cells[ring], points[north], into)
