"""Outgoing fluxes of the cells of rings, for runs of cells of one kind in rows of numbers.

Cells of a kind have a stride of one or two, and their neighbors the same stride, half or twice. The values around the
cells of a run are copied into rows, one for each side and one for the cells themselves, so that loops over a run have
unit stride and use vector instructions. The functions are parts of the kernels of
:mod:`solvers.backends.cpu.rings.transport`, with the same arguments.

first, count   the first cell of a run, and the number of cells
kind           the row of its cells in the tables
rows           (27, n) work space, for runs of n cells at most
"""

from ...sizes import MAX_RING_SIDES
from ..launching import index, inline
from ..transport import blending_weight, smoothness_indicator
from .sides import (
    COUNT,
    KINDS,
    NORTH_FACES,
    NORTH_TIMES,
    SOUTH_FACES,
    SOUTH_TIMES,
    START,
    helper,
    ring_of_side,
    row_kernel,
    side_of,
)

OWN = MAX_RING_SIDES  # the row of the cells themselves, after those of the sides


@helper
def first_of_kind(k, first, row):
    """Return the first cell of kind k on a ring, from cell ``first`` on; kinds alternate along the ring.

    ``row`` (13,) describes the ring.
    """
    return first + (k - (first - row[START])) % row[KINDS]


@helper
def cells_of_run(i, stop, row, rows):
    """Return the number of cells of one kind on a ring from cell i to ``stop`` − 1, at most the columns of ``rows``.

    ``row`` (13,) describes the ring, ``rows`` is the work array of a run of cells.
    """
    return min((stop - i + row[KINDS] - 1) // row[KINDS], rows.shape[1])


@helper
def _side_of_run(k, j, row):
    """Return six numbers of side k of a run's first cell, with which loops find that side of all cells of the run.

    The numbers are plane, face and neighbor as :func:`side_of`, the strides of faces and of
    neighbors, and the cells of a full turn of the ring, 0 if the side is north or south. Absent sides and k = OWN give
    the cell itself.
    """
    if k >= 2 + row[NORTH_FACES] + row[SOUTH_FACES]:
        return 0, 0, row[START] + j, 0, row[KINDS], 0
    plane, face, neighbor = side_of(k, j, row)
    if k == 0 or k == row[NORTH_FACES] + 1:
        return plane, face, neighbor, row[KINDS], row[KINDS], row[COUNT]
    is_north = k <= row[NORTH_FACES]
    step = row[KINDS] * (row[NORTH_FACES] if is_north else row[SOUTH_FACES])
    return plane, face, neighbor, step, step // (row[NORTH_TIMES] if is_north else row[SOUTH_TIMES]), 0


@helper
def _count_before_end(first, count, step, end, turn):
    """Return how many of the ``count`` cells or faces first, first + step, … precede the ``end`` of a ring.

    For ``turn`` = 0 all do.
    """
    return count if turn == 0 else min(count, (end - first + step - 1) // step)


@row_kernel
def _gather(values, first, count, step, end, turn, rows, k):
    """Copy values[first], values[first + step], … of the cells of a run, or of their neighbors, into row k of ``rows``.

    Numbers from ``end`` on are reduced by ``turn``, the cells of a full turn of the ring.
    """
    before = _count_before_end(first, count, step, end, turn)
    for cell in range(before):
        rows[k, index(cell)] = values[index(first + cell * step)]
    for cell in range(before, count):
        rows[k, index(cell)] = values[index(first + cell * step - turn)]


@row_kernel
def _scatter(rows, k, first, count, step, end, turn, values):
    """Copy row k of ``rows`` to values[first], values[first + step], …, the cells of a run, or the faces at one side.

    Numbers from ``end`` on are reduced by ``turn``, the cells of a full turn of the ring.
    """
    before = _count_before_end(first, count, step, end, turn)
    for cell in range(before):
        values[index(first + cell * step)] = rows[k, index(cell)]
    for cell in range(before, count):
        values[index(first + cell * step - turn)] = rows[k, index(cell)]


@helper
def _load_five(s):
    """Return the five numbers of a table row as a tuple, which loops over a run of cells keep in registers."""
    return s[0], s[1], s[2], s[3], s[4]


@helper
def _load_twelve(c):
    """Return the twelve weights of a stencil as a tuple, which loops over a run of cells keep in registers."""
    return c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9], c[10], c[11]


@helper
def _slope(s, rows, v, u):
    """Return a component Σ_k s_k (u_k − u) of the least-squares gradient of one cell with value u, from five neighbors.

    Column v of ``rows`` belongs to the cell; its rows 0 to 4 hold the neighbors' values u_k.
    """
    slope = s[0] * (rows[0, v] - u) + s[1] * (rows[1, v] - u) + s[2] * (rows[2, v] - u)
    return slope + s[3] * (rows[3, v] - u) + s[4] * (rows[4, v] - u)


@helper
def _find_slopes(s, rows, count, p, q):
    """Compute the least-squares gradients of a run of cells: the components along east and north, into rows p and q.

    The weights ``s`` are (2, 5). ``rows`` holds the values of the neighbors and, in row OWN, of the cells.
    """
    east, north = _load_five(s[0]), _load_five(s[1])
    for cell in range(count):
        v = index(cell)
        u = rows[OWN, v]
        rows[p, v], rows[q, v] = _slope(east, rows, v, u), _slope(north, rows, v, u)


@helper
def _stencil(c, rows, x, y, v):
    """Return the sum of the twelve weights c of a stencil times the velocities of a cell and its five neighbors.

    Column v of ``rows`` holds the components of the velocities: six rows from row x on along east, six from row y on
    along north.
    """
    sides = (c[0] * rows[x, v] + c[1] * rows[y, v]) + (c[2] * rows[x + 1, v] + c[3] * rows[y + 1, v])
    sides += (c[4] * rows[x + 2, v] + c[5] * rows[y + 2, v]) + (c[6] * rows[x + 3, v] + c[7] * rows[y + 3, v])
    return sides + (c[8] * rows[x + 4, v] + c[9] * rows[y + 4, v]) + (c[10] * rows[x + 5, v] + c[11] * rows[y + 5, v])


@inline
def reconstruct_run(
    first, count, kind, row, slopes, offsets, tangents, stencils, density, east, north, low, high, occupied, flux,
    smooth, sent, rows,
):  # fmt: skip
    """Compute the fluxes and smoothness weights of a run of cells, a part of :func:`reconstruct_on_rings`.

    The flux is A u·n, outward through each side. A run has ``count`` cells of one kind on a ring from cell ``first``
    on. ``row`` (13,) describes the ring, ``rows`` is a work array.
    """
    x, y, p, q, through, bend = 6, 12, 18, 19, 20, 21
    d, t, least, sides = offsets[kind], tangents[kind], occupied[0], 2 + row[NORTH_FACES] + row[SOUTH_FACES]
    j, end = first - row[START], row[START] + row[COUNT]
    for k in range(MAX_RING_SIDES + 1):
        _, _, neighbor, _, step, turn = _side_of_run(k, j, row)
        _gather(density, neighbor, count, step, end, turn, rows, k)
        _gather(east, neighbor, count, step, end, turn, rows, x + k)
        _gather(north, neighbor, count, step, end, turn, rows, y + k)
    _find_slopes(slopes[kind], rows, count, p, q)
    worst = through
    for cell in range(count):
        rows[worst, index(cell)] = 0.0
    for k in range(sides):
        to_east, to_north = d[0, k], d[1, k]
        for cell in range(count):
            v = index(cell)
            predicted = rows[OWN, v] + rows[p, v] * to_east + rows[q, v] * to_north
            rows[worst, v] = max(rows[worst, v], smoothness_indicator(rows[OWN, v], rows[k, v], predicted))
    for cell in range(count):
        v = index(cell)
        rows[worst, v] = blending_weight(rows[worst, v], low, high) if rows[OWN, v] > least else 0.0
    _scatter(rows, worst, first, count, row[KINDS], end, 0, smooth)
    for k in range(sides):
        of_flux, of_bend = _load_twelve(stencils[0, kind, k]), _load_twelve(stencils[1, kind, k])
        along_east, along_north = t[0, k], t[1, k]
        for cell in range(count):
            v = index(cell)
            rows[through, v] = _stencil(of_flux, rows, x, y, v)
            rows[bend, v] = _stencil(of_bend, rows, x, y, v) * (rows[p, v] * along_east + rows[q, v] * along_north)
        plane, face, _, step, _, turn = _side_of_run(k, j, row)
        _scatter(rows, through, face, count, step, end, turn, flux[plane])
        _scatter(rows, bend, face, count, step, end, turn, sent[plane])


@helper
def upwind(own, other, value):
    """Return the upwind flux (A u·n)⁺ max(ρ_f, 0) through a side of a cell, with A u·n = (own − other)/2.

    ρ_f is ``value``, the density at the face. ``own`` and ``other`` are A u·n as computed outward by the two cells of
    the face. NaN is passed on.
    """
    through = 0.5 * (own - other)
    return 0.0 if through <= 0.0 else through * max(value, 0.0)


@helper
def _find_neighbor_behind(o, k, begin):
    """Return the first neighbor from number ``begin`` on that is partly opposite to neighbor k, or OWN if none is.

    ``o`` (5, 5) holds positive weights for the neighbors opposite to each one.
    """
    for m in range(begin, MAX_RING_SIDES):
        if o[k, m] > 0.0:
            return m
    return OWN


@helper
def _subtract_pulled_mass(rows, unresolved, m, pull, weight, count):
    """Subtract mass that the cells of a run pull in through their side m from their fluxes through this side.

    The mass is row ``pull`` times ``weight``, the flux through side m is row ``unresolved`` + m. For m = OWN, no side,
    the function does nothing.
    """
    for cell in range(count if m < OWN else 0):
        rows[unresolved + m, index(cell)] -= rows[pull, index(cell)] * weight


@inline
def outgoing_flux_of_run(
    first, count, kind, r, row, volumes, slopes, offsets, reach, spans, opposite, density, east, north, flux, smooth,
    occupied, sent, rows,
):  # fmt: skip
    """Compute the mass per time that the cells of a run send through their sides, for :func:`outgoing_flux_on_rings`.

    A run has ``count`` cells of one kind on a ring from cell ``first`` on. ``row`` (13,) describes ring r, ``rows`` is
    a work array.
    """
    resolved, to, unresolved, x, y, half = 6, 12, 18, 24, 25, 26
    d, f, h, o, least = offsets[kind], reach[kind], spans[kind], opposite[kind], occupied[0]
    sides, area = 2 + row[NORTH_FACES] + row[SOUTH_FACES], volumes[r]
    j, end = first - row[START], row[START] + row[COUNT]
    for k in range(MAX_RING_SIDES + 1):
        _, _, neighbor, _, step, turn = _side_of_run(k, j, row)
        _gather(density, neighbor, count, step, end, turn, rows, k)
        _gather(smooth, neighbor, count, step, end, turn, rows, resolved + k)
    _gather(east, first, count, row[KINDS], end, 0, rows, x)
    _gather(north, first, count, row[KINDS], end, 0, rows, y)
    for k in range(MAX_RING_SIDES + 1):
        for cell in range(count):
            v = index(cell)
            rows[to + k, v], rows[unresolved + k, v] = 0.0, 0.0 * (rows[x, v] + rows[y, v])  # a NaN is passed on
    for k in range(sides):  # unresolved cells between neighbor k and the next
        after = k + 1 if k + 1 < sides else 0
        d_east, d_north, after_east, after_north, span = d[0, k], d[1, k], d[0, after], d[1, after], area * h[k]
        for cell in range(count):
            v = index(cell)
            across = d_east * rows[y, v] - d_north * rows[x, v]
            beyond = after_east * rows[y, v] - after_north * rows[x, v]
            moved = rows[OWN, v] * span if across >= 0.0 and beyond < 0.0 else 0.0
            rows[to + k, v] -= moved * beyond
            rows[to + after, v] += moved * across
    for cell in range(count):
        v = index(cell)
        rows[half, v] = 0.5 / (rows[OWN, v] * area) if rows[OWN, v] > least else 0.0
    pull = to + OWN
    for k in range(sides):  # mass pulled in from neighbors m and n behind a cell
        m = _find_neighbor_behind(o, k, 0)
        n = _find_neighbor_behind(o, k, m + 1)
        of_m, of_n = o[k, m] if m < OWN else 0.0, o[k, n] if n < OWN else 0.0
        area_m = volumes[ring_of_side(m, r, row)] / of_m if m < OWN else area
        area_n = volumes[ring_of_side(n, r, row)] / of_n if n < OWN else area
        for cell in range(count):
            v = index(cell)
            behind = min(rows[OWN, v] * area, min(rows[m, v] * area_m, rows[n, v] * area_n))
            rows[pull, v] = rows[half, v] * behind * rows[to + k, v]
        for cell in range(count):
            v = index(cell)
            rows[unresolved + k, v] += rows[to + k, v] - rows[pull, v]
        _subtract_pulled_mass(rows, unresolved, m, pull, of_m, count)
        _subtract_pulled_mass(rows, unresolved, n, pull, of_n, count)
    p, q, own, other, before, after = x, y, to, to + 1, to + 2, to + 3
    _find_slopes(slopes[kind], rows, count, p, q)
    for k in range(sides):
        plane, face, _, step, _, turn = _side_of_run(k, j, row)
        to_east, to_north = f[0, k], f[1, k]
        _gather(flux[plane], face, count, step, end, turn, rows, own)
        _gather(flux[1 - plane], face, count, step, end, turn, rows, other)
        _gather(sent[plane], face, count, step, end, turn, rows, before)
        for cell in range(count):
            v = index(cell)
            value = rows[OWN, v] + rows[p, v] * to_east + rows[q, v] * to_north
            through = upwind(rows[own, v], rows[other, v], value)
            share = min(rows[resolved + OWN, v], rows[resolved + k, v])
            rows[after, v] = share * (rows[before, v] + through) + (1.0 - share) * rows[unresolved + k, v]
        _scatter(rows, after, face, count, step, end, turn, sent[plane])
