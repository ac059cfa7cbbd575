"""Outgoing fluxes of the cells of rings of latitude: :mod:`solvers.backends.cpu.transport_surface` for them.

All cells of a ring are alike, so their geometry is numbers per ring, in the plane (east, north) at a cell's center:
of one kind of cell, or of two, by turns, where a neighbouring ring has half as many. Sides are named by a plane and a
face: ``sent[0, f]`` is what the first cell of face f sends, ``sent[1, f]`` the second. So is ``flux``, what each finds
for A u·n, but that it holds the faces of some rings only, where ``rows`` has the place of the first. A ring between two
others of as many cells has sides east, north, west, south at every cell, and loops over it have unit stride.

rows       (rings, 16) integers, see :mod:`solvers.terms.ring_geometry`
slopes     (kinds, 2, 6) the weights of a least-squares gradient: ∂_p u, ∂_q u = Σ_k slopes[:, k] (u_k − u)
offsets, reach, tangents   (kinds, 2, 6) of each side: the neighbour's center, the face's center, the face's tangent
stencils   (2, kinds, 6, 14) weights of the velocity (east, north) of each neighbour, and last of the cell itself, in
           the flux through a side, and in half the correction of a product's mean for each slope of the density
spans      (kinds, 6) 1 over the area that a neighbour's offset and the next one's span
opposite   (kinds, 6, 6) weights w ≥ 0 with Σ_m w_km d_m = −d_k, of two neighbours at most
begin, end  the cells that all workers share
"""

import numpy as np

from ..caching import compiled
from ..launching import index, scratch, share
from ..transport import blending_weight, smoothness_indicator

START, COUNT, KIND, KINDS, REGULAR = range(5)  # columns of rows: first cell, cells, first kind of cell, kinds
NORTH, NORTH_FACES, FACE_NORTH, NORTH_TIMES = range(5, 9)  # first cell there, faces of a cell, first face, and of how
SOUTH, SOUTH_FACES, FACE_SOUTH, SOUTH_TIMES = range(9, 13)  # many faces there each cell of that ring has one
FLUX_WITHIN, FLUX_NORTH, FLUX_SOUTH = range(13, 16)  # place of the first face within the ring, and on either side
FREE = 1e300  # a mass that limits nothing

row_kernel = compiled(fastmath={"contract"}, apart=True)
helper = compiled(fastmath={"contract"}, forceinline=True)  # by LLVM, which takes less time than Numba
ignoring_nan = compiled(fastmath={"nnan", "nsz", "reassoc"}, forceinline=True)  # a maximum by vector instructions


@helper
def part_of(worker, workers, begin, end):
    """First and last + 1 of a worker's share of the cells from ``begin`` to ``end``."""
    first, last = share(worker, workers, end - begin)
    return begin + first, begin + last


@helper
def _ring_of(rows, i):
    """The ring that holds a cell, by bisection."""
    low, high = 0, len(rows)
    while high - low > 1:
        middle = (low + high) // 2
        if rows[middle, START] <= i:
            low = middle
        else:
            high = middle
    return low


@helper
def _side(k, j, row):
    """Plane and face of side k of cell j of a ring, the place of its flux, and the neighbour."""
    north, south = row[NORTH_FACES], row[SOUTH_FACES]
    if k == 0:
        east = j + 1 if j + 1 < row[COUNT] else 0
        return 0, row[START] + j, row[FLUX_WITHIN] + j, row[START] + east
    if k <= north:
        f = j * north + north - k
        return 1, row[FACE_NORTH] + f, row[FLUX_NORTH] + f, row[NORTH] + f // row[NORTH_TIMES]
    if k == north + 1:
        west = j - 1 if j > 0 else row[COUNT] - 1
        return 1, row[START] + west, row[FLUX_WITHIN] + west, row[START] + west
    f = j * south + k - north - 2
    return 0, row[FACE_SOUTH] + f, row[FLUX_SOUTH] + f, row[SOUTH] + f // row[SOUTH_TIMES]


@helper
def _ring_of_side(k, r, row):
    """The ring of the neighbour through side k of a cell of ring r."""
    if k == 0 or k == row[NORTH_FACES] + 1:
        return r
    return r - 1 if k <= row[NORTH_FACES] else r + 1


@helper
def _part(part, start, count):
    """The first cell of a ring, those between, or the last; and how far their neighbours east and west are."""
    if part == 0:
        return start, start + 1, 1, count - 1
    if part == 1:
        return start + 1, start + count - 1, 1, -1
    return start + count - 1, start + count, 1 - count, -1


@row_kernel
def local_components(worker, workers, begin, end, rows, sine, cosine, centers, vectors, east, north):
    """Components along east and north of tangent vectors at cell centers."""
    first, last = part_of(worker, workers, begin, end)
    r = _ring_of(rows, first)
    while first < last:
        stop = min(last, rows[r, START] + rows[r, COUNT])
        over, z = 1.0 / sine[r], cosine[r]
        for i in range(first, stop):
            c = index(i)
            cos_phi, sin_phi = centers[c, 0] * over, centers[c, 1] * over
            x, y = vectors[c, 0], vectors[c, 1]
            east[c] = y * cos_phi - x * sin_phi
            north[c] = vectors[c, 2] * sine[r] - (x * cos_phi + y * sin_phi) * z
        first, r = stop, r + 1


@helper
def _stencil(c, k, a, b, ae, be, an, bn, aw, bw, as_, bs):
    """Σ of a stencil's weights times the velocities of a cell and its neighbours east, north, west, south."""
    near = (c[k, 12] * a + c[k, 13] * b) + (c[k, 0] * ae + c[k, 1] * be) + (c[k, 4] * aw + c[k, 5] * bw)
    return near + (c[k, 2] * an + c[k, 3] * bn) + (c[k, 6] * as_ + c[k, 7] * bs)


@helper
def _slope(s, towards, here, at_e, at_n, at_w, at_s):
    """Component of the least-squares gradient of a cell with four sides, from the values there and around."""
    slope = s[towards, 0] * (at_e - here) + s[towards, 1] * (at_n - here) + s[towards, 2] * (at_w - here)
    return slope + s[towards, 3] * (at_s - here)


@row_kernel
def reconstruct_on_rings(
    worker, workers, begin, end, rows, slopes, offsets, tangents, stencils, density, east, north, low, high, occupied,
    flux, smooth, sent,
):  # fmt: skip
    """As :func:`solvers.backends.cpu.transport_surface.reconstruct_on_surface`; sent (2, faces)."""
    near, near_east, near_north = scratch(8), scratch(8), scratch(8)  # of a cell's neighbours
    first, last = part_of(worker, workers, begin, end)
    r = _ring_of(rows, first)
    while first < last:
        row = rows[r]
        start, count, kind = row[START], row[COUNT], row[KIND]
        stop = min(last, start + count)
        if row[REGULAR]:
            s, d, t, c, b = slopes[kind], offsets[kind], tangents[kind], stencils[0, kind], stencils[1, kind]
            for part in range(3):
                begin, end, to_east, to_west = _part(part, start, count)
                to_north, to_south = row[NORTH] - start, row[SOUTH] - start
                faces_north, faces_south = row[FACE_NORTH] - start, row[FACE_SOUTH] - start
                within, north_of, south_of = row[FLUX_WITHIN] - start, row[FLUX_NORTH] - start, row[FLUX_SOUTH] - start
                for cell in range(max(first, begin), min(stop, end)):
                    i, e, w = index(cell), index(cell + to_east), index(cell + to_west)
                    n, m = index(cell + to_north), index(cell + to_south)
                    fn, fs = index(cell + faces_north), index(cell + faces_south)
                    ge, gw = index(cell + within), index(cell + to_west + within)
                    gn, gs = index(cell + north_of), index(cell + south_of)
                    here, at_e, at_n, at_w, at_s = density[i], density[e], density[n], density[w], density[m]
                    p = _slope(s, 0, here, at_e, at_n, at_w, at_s)
                    q = _slope(s, 1, here, at_e, at_n, at_w, at_s)
                    worst = smoothness_indicator(here, at_e, here + p * d[0, 0] + q * d[1, 0])
                    worst = max(worst, smoothness_indicator(here, at_n, here + p * d[0, 1] + q * d[1, 1]))
                    worst = max(worst, smoothness_indicator(here, at_w, here + p * d[0, 2] + q * d[1, 2]))
                    worst = max(worst, smoothness_indicator(here, at_s, here + p * d[0, 3] + q * d[1, 3]))
                    smooth[i] = blending_weight(worst, low, high) if here > occupied[0] else 0.0
                    u, v, ue, ve, un, vn = east[i], north[i], east[e], north[e], east[n], north[n]
                    uw, vw, us, vs = east[w], north[w], east[m], north[m]
                    flux[0, ge] = _stencil(c, 0, u, v, ue, ve, un, vn, uw, vw, us, vs)
                    flux[1, gn] = _stencil(c, 1, u, v, ue, ve, un, vn, uw, vw, us, vs)
                    flux[1, gw] = _stencil(c, 2, u, v, ue, ve, un, vn, uw, vw, us, vs)
                    flux[0, gs] = _stencil(c, 3, u, v, ue, ve, un, vn, uw, vw, us, vs)
                    sent[0, i] = _stencil(b, 0, u, v, ue, ve, un, vn, uw, vw, us, vs) * (p * t[0, 0] + q * t[1, 0])
                    sent[1, fn] = _stencil(b, 1, u, v, ue, ve, un, vn, uw, vw, us, vs) * (p * t[0, 1] + q * t[1, 1])
                    sent[1, w] = _stencil(b, 2, u, v, ue, ve, un, vn, uw, vw, us, vs) * (p * t[0, 2] + q * t[1, 2])
                    sent[0, fs] = _stencil(b, 3, u, v, ue, ve, un, vn, uw, vw, us, vs) * (p * t[0, 3] + q * t[1, 3])
        else:
            sides = 2 + row[NORTH_FACES] + row[SOUTH_FACES]
            for i in range(first, stop):
                k_of = kind + (i - start) % row[KINDS]
                p, q, worst = 0.0, 0.0, 0.0
                for k in range(sides):
                    _, _, _, j = _side(k, i - start, row)
                    near[k], near_east[k], near_north[k] = density[j], east[j], north[j]
                    p += slopes[k_of, 0, k] * (near[k] - density[i])
                    q += slopes[k_of, 1, k] * (near[k] - density[i])
                for k in range(sides):
                    predicted = density[i] + p * offsets[k_of, 0, k] + q * offsets[k_of, 1, k]
                    worst = max(worst, smoothness_indicator(density[i], near[k], predicted))
                smooth[i] = blending_weight(worst, low, high) if density[i] > occupied[0] else 0.0
                for k in range(sides):
                    plane, face, place, _ = _side(k, i - start, row)
                    through = stencils[0, k_of, k, 12] * east[i] + stencils[0, k_of, k, 13] * north[i]
                    bend = stencils[1, k_of, k, 12] * east[i] + stencils[1, k_of, k, 13] * north[i]
                    for m in range(sides):
                        u, v = near_east[m], near_north[m]
                        through += stencils[0, k_of, k, 2 * m] * u + stencils[0, k_of, k, 2 * m + 1] * v
                        bend += stencils[1, k_of, k, 2 * m] * u + stencils[1, k_of, k, 2 * m + 1] * v
                    flux[plane, place] = through
                    sent[plane, face] = bend * (p * tangents[k_of, 0, k] + q * tangents[k_of, 1, k])
        first, r = stop, r + 1


@helper
def _upwind(own, other, value):
    """(A u·n)⁺ ρ_f, of what both cells of a side find for A u·n; NaN passed on."""
    through = 0.5 * (own - other)
    return 0.0 if through <= 0.0 else through * max(value, 0.0)


@row_kernel
def outgoing_flux_on_rings(
    worker, workers, begin, end, rows, volumes, slopes, offsets, reach, spans, opposite, density, east, north, flux,
    smooth, occupied, sent,
):  # fmt: skip
    """As :func:`solvers.backends.cpu.transport_surface.outgoing_flux_on_surface`; volumes (rings,), sent (2, faces)."""
    held, unresolved = scratch(8), scratch(8)  # masses of a cell's neighbours, and how unresolved its sides are
    first, last = part_of(worker, workers, begin, end)
    r = _ring_of(rows, first)
    while first < last:
        row = rows[r]
        start, count, kind = row[START], row[COUNT], row[KIND]
        stop = min(last, start + count)
        if row[REGULAR]:
            s, d, f, h, o = slopes[kind], offsets[kind], reach[kind], spans[kind], opposite[kind]
            area, north_area, south_area = volumes[r], volumes[r - 1], volumes[r + 1]
            free_en, free_es = (0.0 if o[0, 1] > 0.0 else FREE), (0.0 if o[0, 3] > 0.0 else FREE)
            free_wn, free_ws = (0.0 if o[2, 1] > 0.0 else FREE), (0.0 if o[2, 3] > 0.0 else FREE)
            over_en, over_es = (1.0 / o[0, 1] if o[0, 1] > 0.0 else 0.0), (1.0 / o[0, 3] if o[0, 3] > 0.0 else 0.0)
            over_wn, over_ws = (1.0 / o[2, 1] if o[2, 1] > 0.0 else 0.0), (1.0 / o[2, 3] if o[2, 3] > 0.0 else 0.0)
            over_ew, over_we, over_ns, over_sn = 1.0 / o[0, 2], 1.0 / o[2, 0], 1.0 / o[1, 3], 1.0 / o[3, 1]
            for part in range(3):
                begin, end, to_east, to_west = _part(part, start, count)
                to_north, to_south = row[NORTH] - start, row[SOUTH] - start
                faces_north, faces_south = row[FACE_NORTH] - start, row[FACE_SOUTH] - start
                within, north_of, south_of = row[FLUX_WITHIN] - start, row[FLUX_NORTH] - start, row[FLUX_SOUTH] - start
                for cell in range(max(first, begin), min(stop, end)):
                    i, e, w = index(cell), index(cell + to_east), index(cell + to_west)
                    n, m = index(cell + to_north), index(cell + to_south)
                    fn, fs = index(cell + faces_north), index(cell + faces_south)
                    ge, gw = index(cell + within), index(cell + to_west + within)
                    gn, gs = index(cell + north_of), index(cell + south_of)
                    here, at_e, at_n, at_w, at_s = density[i], density[e], density[n], density[w], density[m]
                    p = _slope(s, 0, here, at_e, at_n, at_w, at_s)
                    q = _slope(s, 1, here, at_e, at_n, at_w, at_s)
                    res_e, res_n = min(smooth[i], smooth[e]), min(smooth[i], smooth[n])
                    res_w, res_s = min(smooth[i], smooth[w]), min(smooth[i], smooth[m])
                    up_e = _upwind(flux[0, ge], flux[1, ge], here + p * f[0, 0] + q * f[1, 0])
                    up_n = _upwind(flux[1, gn], flux[0, gn], here + p * f[0, 1] + q * f[1, 1])
                    up_w = _upwind(flux[1, gw], flux[0, gw], here + p * f[0, 2] + q * f[1, 2])
                    up_s = _upwind(flux[0, gs], flux[1, gs], here + p * f[0, 3] + q * f[1, 3])

                    u, v = east[i], north[i]
                    ce, cn = d[0, 0] * v - d[1, 0] * u, d[0, 1] * v - d[1, 1] * u
                    cw, cs = d[0, 2] * v - d[1, 2] * u, d[0, 3] * v - d[1, 3] * u
                    en = 1.0 if ce >= 0.0 and cn < 0.0 else 0.0
                    nw = 1.0 if cn >= 0.0 and cw < 0.0 else 0.0
                    ws = 1.0 if cw >= 0.0 and cs < 0.0 else 0.0
                    se = 1.0 if cs >= 0.0 and ce < 0.0 else 0.0
                    mass = here * area
                    # 0·u: a NaN is passed on
                    to_e = mass * (se * h[3] * cs - en * h[0] * cn + 0.0 * (u + v))
                    to_n = mass * (en * h[0] * ce - nw * h[1] * cw)
                    to_w = mass * (nw * h[1] * cn - ws * h[2] * cs)
                    to_s = mass * (ws * h[2] * cw - se * h[3] * ce)
                    half = 0.5 / mass if here > occupied[0] else 0.0
                    mass_n, mass_s = at_n * north_area, at_s * south_area
                    behind = min(min(mass, at_w * area * over_ew), mass_n * over_en + free_en)
                    pull_e = half * min(behind, mass_s * over_es + free_es) * to_e
                    behind = min(min(mass, at_e * area * over_we), mass_n * over_wn + free_wn)
                    pull_w = half * min(behind, mass_s * over_ws + free_ws) * to_w
                    pull_n = half * min(mass, mass_s * over_ns) * to_n
                    pull_s = half * min(mass, mass_n * over_sn) * to_s
                    lump_e = to_e - pull_e - pull_w * o[2, 0]
                    lump_w = to_w - pull_w - pull_e * o[0, 2]
                    lump_n = to_n - pull_n - pull_s * o[3, 1] - pull_e * o[0, 1] - pull_w * o[2, 1]
                    lump_s = to_s - pull_s - pull_n * o[1, 3] - pull_e * o[0, 3] - pull_w * o[2, 3]
                    sent[0, i] = res_e * (sent[0, i] + up_e) + (1.0 - res_e) * lump_e
                    sent[1, fn] = res_n * (sent[1, fn] + up_n) + (1.0 - res_n) * lump_n
                    sent[1, w] = res_w * (sent[1, w] + up_w) + (1.0 - res_w) * lump_w
                    sent[0, fs] = res_s * (sent[0, fs] + up_s) + (1.0 - res_s) * lump_s
        else:
            sides = 2 + row[NORTH_FACES] + row[SOUTH_FACES]
            for i in range(first, stop):
                j, k_of, here = i - start, kind + (i - start) % row[KINDS], density[i]
                p, q, mass = 0.0, 0.0, here * volumes[r]
                for k in range(sides):
                    _, _, _, neighbor = _side(k, j, row)
                    held[k] = density[neighbor] * volumes[_ring_of_side(k, r, row)]
                    unresolved[k] = 1.0 - min(smooth[i], smooth[neighbor])
                    p += slopes[k_of, 0, k] * (density[neighbor] - here)
                    q += slopes[k_of, 1, k] * (density[neighbor] - here)
                for k in range(sides):
                    plane, face, place, _ = _side(k, j, row)
                    value = here + p * reach[k_of, 0, k] + q * reach[k_of, 1, k]
                    through = _upwind(flux[plane, place], flux[1 - plane, place], value)
                    sent[plane, face] = (1.0 - unresolved[k]) * (sent[plane, face] + through)
                for k in range(sides):  # lumps between neighbour k and the next
                    after = k + 1 if k + 1 < sides else 0
                    across = offsets[k_of, 0, k] * north[i] - offsets[k_of, 1, k] * east[i]
                    beyond = offsets[k_of, 0, after] * north[i] - offsets[k_of, 1, after] * east[i]
                    if (across >= 0.0 and beyond >= 0.0) or across < 0.0:
                        continue
                    for step in range(2):
                        way = after if step else k
                        to = mass * spans[k_of, k] * (across if step else -beyond)
                        if to != 0.0:
                            behind = mass
                            for m in range(sides):
                                weight = opposite[k_of, way, m]
                                if weight > 0.0:
                                    behind = min(behind, held[m] / weight)
                            pull = 0.5 * behind / mass * to if here > occupied[0] else 0.0
                            for m in range(sides):
                                part = -pull * opposite[k_of, way, m] + (to - pull if m == way else 0.0)
                                if part != 0.0 and unresolved[m] > 0.0:
                                    plane, face, _, _ = _side(m, j, row)
                                    sent[plane, face] += unresolved[m] * part
        first, r = stop, r + 1


@helper
def _lost(own, other):
    """What a cell loses through a side: what it sends, and what the other cell pulls."""
    return max(own, 0.0) + max(-other, 0.0)


@ignoring_nan
def _largest(values, density, occupied, first, stop):
    """The largest value ≥ 0 of occupied cells; any where one is NaN."""
    largest = 0.0
    for i in range(first, stop):
        largest = max(largest, values[index(i)] if density[index(i)] > occupied else 0.0)
    return largest


@helper
def _not_numbers(values, density, occupied, first, stop):
    """How many values of occupied cells, or of a density that is NaN, are NaN."""
    count = 0
    for i in range(first, stop):
        value = values[index(i)]
        count += int(value != value and not density[index(i)] <= occupied)
    return count


@row_kernel
def outflow_rates_on_rings(worker, workers, begin, end, rows, volumes, density, occupied, sent, outflow):
    """As :func:`solvers.backends.cpu.transport.outflow_rates`; volumes (rings,), sent (2, faces)."""
    first, last = part_of(worker, workers, begin, end)
    r, fastest, lost_numbers = _ring_of(rows, first), 0.0, 0
    while first < last:
        row = rows[r]
        start, count, area = row[START], row[COUNT], volumes[r]
        stop = min(last, start + count)
        if row[REGULAR]:
            faces_north, faces_south = row[FACE_NORTH] - start, row[FACE_SOUTH] - start
            for part in range(3):
                begin, end, _, to_west = _part(part, start, count)
                for cell in range(max(first, begin), min(stop, end)):
                    i, w = index(cell), index(cell + to_west)
                    fn, fs = index(cell + faces_north), index(cell + faces_south)
                    lost = _lost(sent[0, i], sent[1, i]) + _lost(sent[1, fn], sent[0, fn])
                    lost += _lost(sent[1, w], sent[0, w]) + _lost(sent[0, fs], sent[1, fs])
                    mass = density[i] * area
                    outflow[i] = lost / mass if mass != 0.0 else 0.0
        else:
            for i in range(first, stop):
                lost, mass = 0.0, density[i] * area
                for k in range(2 + row[NORTH_FACES] + row[SOUTH_FACES]):
                    plane, face, _, _ = _side(k, i - start, row)
                    lost += _lost(sent[plane, face], sent[1 - plane, face])
                outflow[i] = lost / mass if mass != 0.0 else 0.0
        fastest = max(fastest, _largest(outflow, density, occupied[0], first, stop))
        lost_numbers += _not_numbers(outflow, density, occupied[0], first, stop)
        first, r = stop, r + 1
    return fastest if lost_numbers == 0 else np.nan


@helper
def _balance(own, other, keep, keep_there):
    """What a cell gains through a side less what it loses, each limited by the share that its giver keeps to."""
    return other * (keep_there if other > 0.0 else keep) - own * (keep if own > 0.0 else keep_there)


@helper
def _kept(dt, outflow):
    """The share of what a cell sends that it can afford."""
    return 1.0 / max(1.0, dt * outflow)


@row_kernel
def divergence_on_rings(worker, workers, rows, volumes, sent, outflow, dt, rate):
    """As :func:`solvers.backends.cpu.transport.divergence`; volumes (rings,), sent (2, faces)."""
    first, last = share(worker, workers, len(rate))
    r = _ring_of(rows, first)
    while first < last:
        row = rows[r]
        start, count, over = row[START], row[COUNT], 1.0 / volumes[r]
        stop = min(last, start + count)
        if row[REGULAR]:
            to_north, to_south = row[NORTH] - start, row[SOUTH] - start
            faces_north, faces_south = row[FACE_NORTH] - start, row[FACE_SOUTH] - start
            for part in range(3):
                begin, end, to_east, to_west = _part(part, start, count)
                for cell in range(max(first, begin), min(stop, end)):
                    i, e, w = index(cell), index(cell + to_east), index(cell + to_west)
                    n, s = index(cell + to_north), index(cell + to_south)
                    fn, fs = index(cell + faces_north), index(cell + faces_south)
                    keep = _kept(dt, outflow[i])
                    total = _balance(sent[0, i], sent[1, i], keep, _kept(dt, outflow[e]))
                    total += _balance(sent[1, fn], sent[0, fn], keep, _kept(dt, outflow[n]))
                    total += _balance(sent[1, w], sent[0, w], keep, _kept(dt, outflow[w]))
                    total += _balance(sent[0, fs], sent[1, fs], keep, _kept(dt, outflow[s]))
                    rate[i] += total * over
        else:
            for i in range(first, stop):
                keep, total = _kept(dt, outflow[i]), 0.0
                for k in range(2 + row[NORTH_FACES] + row[SOUTH_FACES]):
                    plane, face, _, neighbor = _side(k, i - start, row)
                    total += _balance(sent[plane, face], sent[1 - plane, face], keep, _kept(dt, outflow[neighbor]))
                rate[i] += total * over
        first, r = stop, r + 1
