"""Outgoing fluxes of the cells of rings beside a change of their number: runs of cells of one kind, in rows of numbers.

Cells of a kind are one or two apart, and their neighbors as many, or half or twice as many. What is around the cells
of a run is copied into rows, one for each side and one for the cells themselves, so that loops over a run have unit
stride and use vector instructions, as those over other rings do. These are parts of the kernels of
:mod:`solvers.backends.cpu.rings.transport`, whose arguments they have.

first, count   the first cell of a run, and how many it has
kind           the row of its cells in the tables
rows           (26, n) work space, for runs of n cells at most
"""

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
    side_of,
)

SIDES = 5  # of a cell at most
OWN = SIDES  # the row of the cells themselves, behind those at their sides


@helper
def first_of_kind(k, first, row):
    """The first cell of kind k of a ring, from cell ``first`` on."""
    return first + (k - (first - row[START])) % row[KINDS]


@helper
def cells_of_run(i, stop, row, rows):
    """How many cells of a kind are in the run from cell i on."""
    return min((stop - i + row[KINDS] - 1) // row[KINDS], rows.shape[1])


@helper
def _side_of_run(k, j, row):
    """:func:`side_of` for a run's first cell; how far faces and neighbors of the next cell are, and cells of a turn.

    For sides that are not, and for k = OWN, the cell itself.
    """
    if k >= 2 + row[NORTH_FACES] + row[SOUTH_FACES]:
        return 0, 0, 0, row[START] + j, 0, row[KINDS], 0
    plane, face, place, neighbor = side_of(k, j, row)
    if k == 0 or k == row[NORTH_FACES] + 1:
        return plane, face, place, neighbor, row[KINDS], row[KINDS], row[COUNT]
    is_north = k <= row[NORTH_FACES]
    step = row[KINDS] * (row[NORTH_FACES] if is_north else row[SOUTH_FACES])
    return plane, face, place, neighbor, step, step // (row[NORTH_TIMES] if is_north else row[SOUTH_TIMES]), 0


@helper
def _turned(i, end, turn):
    """The cell, or the face east of it, that has number i: those from the end of a ring on are its first ones."""
    return index(i - turn if i >= end else i)


@helper
def _slope(s, rows, v, u):
    """Component of the least-squares gradient of a cell, from the values there, u, and around, in the first rows."""
    slope = s[0] * (rows[0, v] - u) + s[1] * (rows[1, v] - u) + s[2] * (rows[2, v] - u)
    return slope + s[3] * (rows[3, v] - u) + s[4] * (rows[4, v] - u)


@helper
def _stencil(c, rows, x, y, v):
    """Σ of a stencil's weights times the velocities, rows from x and y on, of a cell and its neighbors."""
    sides = (c[0] * rows[x, v] + c[1] * rows[y, v]) + (c[2] * rows[x + 1, v] + c[3] * rows[y + 1, v])
    sides += (c[4] * rows[x + 2, v] + c[5] * rows[y + 2, v]) + (c[6] * rows[x + 3, v] + c[7] * rows[y + 3, v])
    return sides + (c[8] * rows[x + 4, v] + c[9] * rows[y + 4, v]) + (c[10] * rows[x + 5, v] + c[11] * rows[y + 5, v])


@inline
def reconstruct_run(
    first, count, kind, row, slopes, offsets, tangents, stencils, density, east, north, low, high, occupied, flux,
    smooth, sent, rows,
):  # fmt: skip
    """What :func:`reconstruct_on_rings` does, for a run."""
    x, y, p, q, through, bend = 6, 12, 18, 19, 20, 21
    s, d, t, c, b = slopes[kind], offsets[kind], tangents[kind], stencils[0, kind], stencils[1, kind]
    end = row[START] + row[COUNT]
    for k in range(SIDES + 1):
        _, _, _, neighbor, _, step, turn = _side_of_run(k, first - row[START], row)
        for cell in range(count):
            v, i = index(cell), _turned(neighbor + cell * step, end, turn)
            rows[k, v], rows[x + k, v], rows[y + k, v] = density[i], east[i], north[i]
    for cell in range(count):
        v, worst = index(cell), 0.0
        u = rows[OWN, v]
        rows[p, v], rows[q, v] = _slope(s[0], rows, v, u), _slope(s[1], rows, v, u)
        for k in range(SIDES):
            predicted = u + rows[p, v] * d[0, k] + rows[q, v] * d[1, k]
            worst = max(worst, smoothness_indicator(u, rows[k, v], predicted))
        rows[through, v] = blending_weight(worst, low, high) if u > occupied[0] else 0.0
    for cell in range(count):
        smooth[index(first + cell * row[KINDS])] = rows[through, index(cell)]
    for k in range(2 + row[NORTH_FACES] + row[SOUTH_FACES]):
        for cell in range(count):
            v = index(cell)
            rows[through, v] = _stencil(c[k], rows, x, y, v)
            rows[bend, v] = _stencil(b[k], rows, x, y, v) * (rows[p, v] * t[0, k] + rows[q, v] * t[1, k])
        plane, face, place, _, step, _, turn = _side_of_run(k, first - row[START], row)
        for cell in range(count):
            f = _turned(face + cell * step, end, turn)
            flux[plane, f + index(place - face)] = rows[through, index(cell)]
            sent[plane, f] = rows[bend, index(cell)]


@helper
def upwind(own, other, value):
    """(A u·n)⁺ ρ_f, of what both cells of a side find for A u·n; NaN passed on."""
    through = 0.5 * (own - other)
    return 0.0 if through <= 0.0 else through * max(value, 0.0)


@helper
def _behind(o, k, begin):
    """The first neighbor from number ``begin`` on that is in part opposite to neighbor k, or OWN."""
    for m in range(begin, SIDES):
        if o[k, m] > 0.0:
            return m
    return OWN


@inline
def outgoing_flux_of_run(
    first, count, kind, r, row, volumes, slopes, offsets, reach, spans, opposite, density, east, north, flux, smooth,
    occupied, sent, rows,
):  # fmt: skip
    """What :func:`outgoing_flux_on_rings` does, for a run."""
    resolved, to, lump, x, y = 6, 12, 18, 24, 25
    s, d, f, h, o = slopes[kind], offsets[kind], reach[kind], spans[kind], opposite[kind]
    sides, area, end = 2 + row[NORTH_FACES] + row[SOUTH_FACES], volumes[r], row[START] + row[COUNT]
    for k in range(SIDES + 1):
        _, _, _, neighbor, _, step, turn = _side_of_run(k, first - row[START], row)
        for cell in range(count):
            v, i = index(cell), _turned(neighbor + cell * step, end, turn)
            rows[k, v], rows[resolved + k, v] = density[i], smooth[i]
    for cell in range(count):
        v, i = index(cell), index(first + cell * row[KINDS])
        rows[x, v], rows[y, v] = east[i], north[i]
    for k in range(SIDES + 1):
        for cell in range(count):
            v = index(cell)
            rows[to + k, v], rows[lump + k, v] = 0.0, 0.0 * (rows[x, v] + rows[y, v])  # a NaN is passed on
    for k in range(sides):  # unresolved cells between neighbor k and the next
        after = k + 1 if k + 1 < sides else 0
        for cell in range(count):
            v = index(cell)
            across = d[0, k] * rows[y, v] - d[1, k] * rows[x, v]
            beyond = d[0, after] * rows[y, v] - d[1, after] * rows[x, v]
            moved = rows[OWN, v] * area * h[k] if across >= 0.0 and beyond < 0.0 else 0.0
            rows[to + k, v] -= moved * beyond
            rows[to + after, v] += moved * across
    for k in range(sides):  # what neighbors m and n behind a cell send on
        m = _behind(o, k, 0)
        n = _behind(o, k, m + 1)
        of_m, of_n = o[k, m] if m < OWN else 0.0, o[k, n] if n < OWN else 0.0
        area_m = volumes[ring_of_side(m, r, row)] / of_m if m < OWN else area
        area_n = volumes[ring_of_side(n, r, row)] / of_n if n < OWN else area
        for cell in range(count):
            v = index(cell)
            mass = rows[OWN, v] * area
            half = 0.5 / mass if rows[OWN, v] > occupied[0] else 0.0
            pull = half * min(mass, min(rows[m, v] * area_m, rows[n, v] * area_n)) * rows[to + k, v]
            rows[lump + k, v] += rows[to + k, v] - pull
            rows[lump + m, v] -= pull * of_m
            rows[lump + n, v] -= pull * of_n
    p, q = x, y
    for cell in range(count):
        v = index(cell)
        u = rows[OWN, v]
        rows[p, v], rows[q, v] = _slope(s[0], rows, v, u), _slope(s[1], rows, v, u)
    for k in range(sides):
        plane, face, place, _, step, _, turn = _side_of_run(k, first - row[START], row)
        for cell in range(count):
            v, i = index(cell), _turned(face + cell * step, end, turn)
            j = i + index(place - face)
            value = rows[OWN, v] + rows[p, v] * f[0, k] + rows[q, v] * f[1, k]
            through = upwind(flux[plane, j], flux[1 - plane, j], value)
            share = min(rows[resolved + OWN, v], rows[resolved + k, v])
            sent[plane, i] = share * (sent[plane, i] + through) + (1.0 - share) * rows[lump + k, v]
