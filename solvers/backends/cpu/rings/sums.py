"""Fourier sums along rings of latitude for a few orders: products with tables of cos mφ and sin mφ.

A ring of n = 4q cells has its angles φ_j = (j + ½)·2π/n in four images of the first q: φ, −φ, π − φ and π + φ. By them
sums over a ring split by the parity of m and by cosine and sine, so that each takes q products; other rings take n.
Two mirrored rings are summed at once.

``tables``: for each number of cells cos mφ_j, then sin mφ_j, as (orders, points) with 8 orders a time; ``table_start``
(half,) is where the one of each northern ring begins, ``points`` (half,) are q, or n where n is no multiple of 4.
"""

import numpy as np

from ..caching import compiled
from ..launching import index, inline

summing = compiled(fastmath={"reassoc", "contract"}, apart=True)  # products in any order, which keeps NaN and ∞


@inline
def _fold(masses, start, count, points, sign, parts):
    """Add sign times a ring's masses to its even cosine, odd cosine, even sine and odd sine parts (4, points)."""
    if 4 * points == count:
        half = start + 2 * points
        for j in range(points):
            a, b = masses[index(start + j)], masses[index(start + count - 1 - j)]
            c, d = masses[index(half - 1 - j)], masses[index(half + j)]
            parts[0, j] += sign * ((a + b) + (c + d))
            parts[1, j] += sign * ((a + b) - (c + d))
            parts[2, j] += sign * ((a - b) - (c - d))
            parts[3, j] += sign * ((a - b) + (c - d))
    else:
        for j in range(points):
            for part in range(4):
                parts[part, j] += sign * masses[index(start + j)]


@inline
def _products(tables, at, points, even, odd):
    """Σ_j of two rows of a table, two orders apart, with two rows of parts each."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    after = at + 2 * points
    for j in range(points):
        x, y = tables[index(at + j)], tables[index(after + j)]
        a += x * even[j]
        b += y * even[j]
        c += x * odd[j]
        d += y * odd[j]
    return a, b, c, d


@summing
def ring_analysis(worker, workers, masses, ring_start, ring_cells, points, tables, table_start, modes):
    """Azimuthal modes of the sums and differences of mirrored rings; modes (4, L + 1, half): even and odd, re and im.

    modes[m] = Σ_j w_j e^{−imφ_j}; the ring on the equator is in the even ones, and in the odd ones alike.
    """
    rings, half, degrees = len(ring_cells), len(points), modes.shape[1]
    orders = (degrees + 7) // 8 * 8
    even, odd = np.empty((4, points.max())), np.empty((4, points.max()))
    for r in range(worker, half, workers):
        south, count, q = rings - 1 - r, ring_cells[r], points[r]
        even[:, :q] = 0.0
        odd[:, :q] = 0.0
        _fold(masses, ring_start[r], count, q, 1.0, even)
        _fold(masses, ring_start[r], count, q, 1.0, odd)
        if south != r:
            _fold(masses, ring_start[south], count, q, 1.0, even)
            _fold(masses, ring_start[south], count, q, -1.0, odd)
        for wave in range(2):
            sign = 1.0 - 2.0 * wave
            for parity in range(2):
                part = 2 * wave + parity
                for m in range(parity, degrees, 4):
                    at = table_start[r] + (wave * orders + m) * q
                    a, b, c, d = _products(tables, at, q, even[part], odd[part])
                    modes[wave, m, r], modes[2 + wave, m, r] = sign * a, sign * c
                    if m + 2 < degrees:
                        modes[wave, m + 2, r], modes[2 + wave, m + 2, r] = sign * b, sign * d


@inline
def _add_rows(tables, at, points, m, one, other, to_one, to_other):
    """Add Σ c_m table[m] over four orders m, m + 2, …, with the coefficients of two columns."""
    a, b, c, d = one[m], one[m + 2], one[m + 4], one[m + 6]
    e, f, g, h = other[m], other[m + 2], other[m + 4], other[m + 6]
    p, s, t = 2 * points, 4 * points, 6 * points
    for j in range(points):
        w, x = tables[index(at + j)], tables[index(at + p + j)]
        y, z = tables[index(at + s + j)], tables[index(at + t + j)]
        to_one[j] += (a * w + b * x) + (c * y + d * z)
        to_other[j] += (e * w + f * x) + (g * y + h * z)


@inline
def _sum_parts(re, im, s, r, south, by_order, scale, tables, start, points, columns, parts):
    """Even cosine, odd cosine, even sine and odd sine parts of a set on two mirrored rings, parts (2, 4, points).

    ``by_order`` takes ∂/∂φ; ``scale`` multiplies.
    """
    degrees, orders = re.shape[1], columns.shape[2]
    for m in range(degrees):
        weight = scale if m == 0 else 2.0 * scale
        for side in range(2):
            x, y = re[s, m, south if side else r], im[s, m, south if side else r]
            if by_order:
                x, y = -m * y, m * x
            columns[side, 0, m] = weight * x
            columns[side, 1, m] = -weight * y
    parts[:, :, :points] = 0.0
    for wave in range(2):
        for parity in range(2):
            part = 2 * wave + parity
            for m in range(parity, orders, 8):
                at = start + (wave * orders + m) * points
                _add_rows(
                    tables, at, points, m, columns[0, wave], columns[1, wave], parts[0, part], parts[1, part]
                )  # fmt: skip


@inline
def _image(parts, image, j):
    """The value at φ_j, −φ_j, π − φ_j or π + φ_j."""
    across = 1.0 if image == 0 or image == 2 else -1.0
    beyond = 1.0 if image < 2 else -1.0
    return parts[0, j] + beyond * parts[1, j] + across * (beyond * parts[2, j] + parts[3, j])


@inline
def _place(image, j, count):
    """Where in a ring of ``count`` cells the image of a cell lies."""
    if image == 0:
        return j
    if image == 1:
        return count - 1 - j
    return count // 2 - 1 - j if image == 2 else count // 2 + j


@summing
def ring_synthesis(worker, workers, re, im, ring_start, ring_cells, points, tables, table_start, values):
    """Values at the cells of all rings from the azimuthal modes (1, L + 1, rings) of a real function."""
    rings, half, orders = len(ring_cells), len(points), (re.shape[1] + 7) // 8 * 8
    columns, parts = np.zeros((2, 2, orders)), np.empty((2, 4, points.max()))
    for r in range(worker, half, workers):
        south, q = rings - 1 - r, points[r]
        _sum_parts(re, im, 0, r, south, False, 1.0, tables, table_start[r], q, columns, parts)
        for side in range(2):
            start = ring_start[south if side else r]
            for image in range(4 if 4 * q == ring_cells[r] else 1):
                for j in range(q):
                    values[index(start + _place(image, j, ring_cells[r]))] = _image(parts[side], image, j)


@summing
def ring_gradient(
    worker, workers, re, im, ring_start, ring_cells, sine, cosine, points, tables, table_start, values, vectors
):
    """Values and tangent vectors at the cells of all rings, from modes (3 or 4, L + 1, rings).

    The sets are a function, sin θ ∂θ and 1 of a potential, whose gradient are the vectors, and maybe what they have
    along x beside. sine, cosine (rings,): of the polar angle of the cell centers.
    """
    rings, half, orders = len(ring_cells), len(points), (re.shape[1] + 7) // 8 * 8
    sets = re.shape[0]
    columns, parts = np.zeros((2, 2, orders)), np.zeros((4, 2, 4, points.max()))
    for r in range(worker, half, workers):
        mirrored, q, count = rings - 1 - r, points[r], ring_cells[r]
        for s in range(sets):
            scale = 1.0 / sine[r] if s == 1 or s == 2 else 1.0
            _sum_parts(re, im, s, r, mirrored, s == 2, scale, tables, table_start[r], q, columns, parts[s])
        cosines = tables[table_start[r] + q :]  # of φ: the row of m = 1
        sines = tables[table_start[r] + (orders + 1) * q :]
        for side in range(2):
            ring = mirrored if side else r
            x, z = sine[ring], cosine[ring]
            for image in range(4 if 4 * q == count else 1):
                across = 1.0 if image == 0 or image == 2 else -1.0
                beyond = 1.0 if image < 2 else -1.0
                for j in range(q):
                    i = index(ring_start[ring] + _place(image, j, count))
                    cos_phi, sin_phi = beyond * cosines[j], across * sines[j]
                    values[i] = _image(parts[0, side], image, j)
                    south, east = _image(parts[1, side], image, j), _image(parts[2, side], image, j)
                    along = _image(parts[3, side], image, j)
                    outward = south * z + along * x
                    vectors[i, 0] = outward * cos_phi - east * sin_phi
                    vectors[i, 1] = outward * sin_phi + east * cos_phi
                    vectors[i, 2] = along * z - south * x
