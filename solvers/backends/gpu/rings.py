"""Fourier sums along rings of latitude, one launch for all rings: a block for each pair of mirrored rings.

The angles φ_j = (j + ½)·2π/n of a ring of n = 4q cells are four images of the first q, as in
:mod:`solvers.backends.cpu.rings.sums`. A thread has an order m, or an angle. It multiplies e^{imφ} by a constant from
one angle, or order, to the next, and computes the wave anew at the start of each tile, so that errors stay at rounding.
"""

from math import cos, pi, sin

import numpy as np
from numba import cuda

from .arrays import SIMULATED
from .launching import device_function, run

LANES = 8 if SIMULATED else 128  # threads of a block, and the orders or the angles that it treats together
TILE = 4 if SIMULATED else 128  # angles, or orders, in shared memory at a time; even
_PADDED = TILE + 1  # so that rows of even and odd orders lie in different banks


def wave_table(count, points, degree):
    """Return an empty table, for kernels that compute waves themselves; see :mod:`solvers.backends.cpu.rings.sums`."""
    return np.zeros(0)


@device_function
def _wave(m, j, count):
    """Return cos mφ_j and sin mφ_j with φ_j = (j + ½)·2π/count, accurate for any order m."""
    angle = pi * (m * (2 * j + 1) % (2 * count)) / count
    return cos(angle), sin(angle)


@device_function
def _set_parts(a, b, c, d, parts, first, j):
    """Set four rows of ``parts`` from row ``first`` on to combinations of the values at φ, −φ, π − φ and π + φ.

    The rows belong to cos mφ with even and odd m, then to sin mφ with even and odd m.
    """
    parts[first, j], parts[first + 1, j] = (a + b) + (c + d), (a + b) - (c + d)
    parts[first + 2, j], parts[first + 3, j] = (a - b) - (c - d), (a - b) + (c - d)


@device_function
def _split_by_symmetry(values, level, weight, other, start, mirrored, count, points, at, j, parts):
    """Compute column j of ``parts`` (8, ...): the parts of the sum and of the difference of mirrored rings.

    The column belongs to the angle number ``at``. For the other arguments see :mod:`solvers.backends.cpu.rings.sums`.
    """
    if 4 * points == count:
        half = 2 * points
        a, p = weight * (values[start + at] - level), other * (values[mirrored + at] - level)
        b, q = weight * (values[start + count - 1 - at] - level), other * (values[mirrored + count - 1 - at] - level)
        c, s = weight * (values[start + half - 1 - at] - level), other * (values[mirrored + half - 1 - at] - level)
        d, t = weight * (values[start + half + at] - level), other * (values[mirrored + half + at] - level)
        _set_parts(a + p, b + q, c + s, d + t, parts, 0, j)
        _set_parts(a - p, b - q, c - s, d - t, parts, 4, j)
    else:
        a, p = weight * (values[start + at] - level), other * (values[mirrored + at] - level)
        for row in range(4):
            parts[row, j], parts[4 + row, j] = a + p, a - p


@cuda.jit
def _analyze_rings(values, level, weights, ring_start, ring_cells, points, modes):
    """Compute azimuthal modes, a block for each row and pair of mirrored rings and a thread for each order."""
    rings, degrees, half = len(ring_cells), modes.shape[2], modes.shape[3]
    row, r = cuda.blockIdx.x % len(values), half - 1 - cuda.blockIdx.x // len(values)  # long rings first
    lane, lanes, south, count, q = cuda.threadIdx.x, cuda.blockDim.x, rings - 1 - r, ring_cells[r], points[r]
    other = 0.0 if south == r else weights[south]
    parts = cuda.shared.array((8, _PADDED), np.float64)
    for first in range(0, degrees, lanes):
        m = first + lane
        parity = m % 2
        turn_re, turn_im = cos(2.0 * pi * (m % count) / count), sin(2.0 * pi * (m % count) / count)
        even_re, even_im, odd_re, odd_im = 0.0, 0.0, 0.0, 0.0
        for start in range(0, q, TILE):
            width = min(TILE, q - start)
            cuda.syncthreads()
            for j in range(lane, width, lanes):
                _split_by_symmetry(
                    values[row], level[row], weights[r], other, ring_start[r], ring_start[south], count, q, start + j,
                    j, parts,
                )  # fmt: skip
            cuda.syncthreads()
            if m < degrees:
                re, im = _wave(m, start, count)
                for j in range(width):
                    even_re += re * parts[parity, j]
                    even_im -= im * parts[2 + parity, j]
                    odd_re += re * parts[4 + parity, j]
                    odd_im -= im * parts[6 + parity, j]
                    re, im = re * turn_re - im * turn_im, im * turn_re + re * turn_im
        if m < degrees:
            modes[row, 0, m, r], modes[row, 1, m, r] = even_re, even_im
            modes[row, 2, m, r], modes[row, 3, m, r] = odd_re, odd_im


def ring_analysis(worker, workers, values, level, weights, ring_start, ring_cells, points, tables, table_start, modes):
    """Compute azimuthal modes (rows, 4, L + 1, half), re and im, of the sums and differences of mirrored rings.

    The modes of a ring are Σ_j w (u_j − level) e^{−imφ_j} of values u (rows, cells) with levels (rows,) and a weight w
    of each ring (rings,); the ring on the equator is included in the sums and in the differences. ``points`` (half,)
    are numbers of angles of each northern ring that are summed over: by symmetry a quarter of its cells if their number
    is a multiple of 4, otherwise all of them. ``tables`` and ``table_start`` are unused.
    """
    blocks = len(values) * modes.shape[3]
    run(_analyze_rings, (blocks, LANES), values, level, weights, ring_start, ring_cells, points, modes)


@device_function
def _write(even, odd, even_sine, odd_sine, start, count, points, at, row):
    """Write the values at the images of the angle number ``at`` of a ring to ``row``, from their symmetric parts.

    The parts are the contributions of cos mφ with even and odd m, then of sin mφ.
    """
    row[start + at] = (even + odd) + (even_sine + odd_sine)
    if 4 * points == count:
        half = 2 * points
        row[start + half + at] = (even - odd) + (even_sine - odd_sine)
        row[start + count - 1 - at] = (even + odd) - (even_sine + odd_sine)
        row[start + half - 1 - at] = (even - odd) - (even_sine - odd_sine)


@cuda.jit
def _synthesize_rings(re, im, by_order, scales, places, ring_start, ring_cells, points, values, fields):
    """Compute functions from azimuthal modes, a block for a row, a function and a pair of rings, a thread an angle."""
    rows, sets, degrees, rings = re.shape
    half, block = (rings + 1) // 2, cuda.blockIdx.x
    s, row, r = block % sets, block // sets % rows, half - 1 - block // (sets * rows)  # long rings first
    lane, lanes, south, count, q = cuda.threadIdx.x, cuda.blockDim.x, rings - 1 - r, ring_cells[r], points[r]
    columns = cuda.shared.array(
        (4, TILE), np.float64
    )  # of cosine and sine: of the northern ring, then the southern one
    for first in range(0, q, lanes):
        at = first + lane
        turn_re, turn_im = _wave(1, at, count)
        even, odd, even_sine, odd_sine = 0.0, 0.0, 0.0, 0.0
        south_even, south_odd, south_even_sine, south_odd_sine = 0.0, 0.0, 0.0, 0.0
        for start in range(0, degrees, TILE):
            width = min(TILE, (degrees - start + 1) // 2 * 2)
            cuda.syncthreads()
            for place in range(lane, 2 * width, lanes):
                side, k = place // width, place % width
                m, ring = start + k, south if side else r
                x, y = 0.0, 0.0  # beyond the last order, which makes their number even
                if m < degrees:
                    weight = scales[s, ring] if m == 0 else 2.0 * scales[s, ring]
                    x, y = weight * re[row, s, m, ring], weight * im[row, s, m, ring]
                    if by_order[s]:
                        x, y = -m * y, m * x
                columns[2 * side, k], columns[2 * side + 1, k] = x, -y
            cuda.syncthreads()
            wave_re, wave_im = _wave(start, at, count)
            for k in range(0, width, 2):
                even += columns[0, k] * wave_re
                even_sine += columns[1, k] * wave_im
                south_even += columns[2, k] * wave_re
                south_even_sine += columns[3, k] * wave_im
                wave_re, wave_im = wave_re * turn_re - wave_im * turn_im, wave_im * turn_re + wave_re * turn_im
                odd += columns[0, k + 1] * wave_re
                odd_sine += columns[1, k + 1] * wave_im
                south_odd += columns[2, k + 1] * wave_re
                south_odd_sine += columns[3, k + 1] * wave_im
                wave_re, wave_im = wave_re * turn_re - wave_im * turn_im, wave_im * turn_re + wave_re * turn_im
        if at < q:
            into = values[row] if s == 0 else fields[places[s], row]
            _write(even, odd, even_sine, odd_sine, ring_start[r], count, q, at, into)
            if south != r:
                _write(
                    south_even, south_odd, south_even_sine, south_odd_sine, ring_start[south], count, q, at, into
                )  # fmt: skip


def ring_functions(
    worker, workers, re, im, by_order, scales, places, ring_start, ring_cells, points, tables, table_start, values,
    fields,
):  # fmt: skip
    """Compute functions at the cells of all rings from azimuthal modes re and im (rows, sets, L + 1, rings).

    The first function of a row is written to values (rows, cells), the others to ``fields`` (sets − 1, rows, cells).
    For the other arguments see :func:`solvers.backends.cpu.rings.sums.ring_functions`.
    """
    rows, sets, _, rings = re.shape
    shape = rows * sets * ((rings + 1) // 2), LANES
    run(_synthesize_rings, shape, re, im, by_order, scales, places, ring_start, ring_cells, points, values, fields)
