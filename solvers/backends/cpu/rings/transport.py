"""Outgoing fluxes of the cells of rings of latitude: :mod:`solvers.backends.cpu.transport_surface` for them.

All cells of a ring are alike, so their geometry is numbers per ring, in the plane (east, north) at a cell's center:
of one kind of cell, or of two, by turns, where a neighboring ring has half as many. Sides and rows are those of
:mod:`solvers.backends.cpu.rings.sides`.

slopes     (kinds, 2, 6) the weights of a least-squares gradient: ∂_p u, ∂_q u = Σ_k slopes[:, k] (u_k − u)
offsets, reach, tangents   (kinds, 2, 6) of each side: the neighbor's center, the face's center, the face's tangent
stencils   (2, kinds, 6, 14) weights of the velocity (east, north) of each neighbor, and last of the cell itself, in
           the flux through a side, and in half the correction of a product's mean for each slope of the density
spans      (kinds, 6) 1 over the area that a neighbor's offset and the next one's span
opposite   (kinds, 6, 6) weights w ≥ 0 with Σ_m w_km d_m = −d_k, of two neighbors at most
"""

from ..launching import index, scratch
from ..transport import blending_weight, smoothness_indicator
from .sides import (
    COUNT,
    FACE_NORTH,
    FACE_SOUTH,
    FLUX_NORTH,
    FLUX_SOUTH,
    FLUX_WITHIN,
    KIND,
    KINDS,
    NORTH,
    NORTH_FACES,
    REGULAR,
    SOUTH,
    SOUTH_FACES,
    START,
    cells_of_part,
    helper,
    part_of,
    ring_of,
    ring_of_side,
    row_kernel,
    side_of,
)

FREE = 1e300  # a mass that limits nothing


@row_kernel
def local_components(worker, workers, begin, end, rows, sine, cosine, centers, vectors, east, north):
    """Components along east and north of tangent vectors at cell centers."""
    first, last = part_of(worker, workers, begin, end)
    r = ring_of(rows, first)
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
    """Σ of a stencil's weights times the velocities of a cell and its neighbors east, north, west, south."""
    sides = (c[k, 12] * a + c[k, 13] * b) + (c[k, 0] * ae + c[k, 1] * be) + (c[k, 4] * aw + c[k, 5] * bw)
    return sides + (c[k, 2] * an + c[k, 3] * bn) + (c[k, 6] * as_ + c[k, 7] * bs)


@helper
def _slope(s, towards, center, at_e, at_n, at_w, at_s):
    """Component of the least-squares gradient of a cell with four sides, from the values there and around."""
    slope = s[towards, 0] * (at_e - center) + s[towards, 1] * (at_n - center) + s[towards, 2] * (at_w - center)
    return slope + s[towards, 3] * (at_s - center)


@row_kernel
def reconstruct_on_rings(
    worker, workers, begin, end, rows, slopes, offsets, tangents, stencils, density, east, north, low, high, occupied,
    flux, smooth, sent,
):  # fmt: skip
    """As :func:`solvers.backends.cpu.transport_surface.reconstruct_on_surface`; sent (2, faces)."""
    neighbors, neighbors_east, neighbors_north = scratch(8), scratch(8), scratch(8)  # of a cell's neighbors
    first, last = part_of(worker, workers, begin, end)
    r = ring_of(rows, first)
    while first < last:
        row = rows[r]
        start, count, kind = row[START], row[COUNT], row[KIND]
        stop = min(last, start + count)
        if row[REGULAR]:
            s, d, t, c, b = slopes[kind], offsets[kind], tangents[kind], stencils[0, kind], stencils[1, kind]
            for part in range(3):
                begin, end, to_east, to_west = cells_of_part(part, start, count)
                to_north, to_south = row[NORTH] - start, row[SOUTH] - start
                faces_north, faces_south = row[FACE_NORTH] - start, row[FACE_SOUTH] - start
                within, north_of, south_of = row[FLUX_WITHIN] - start, row[FLUX_NORTH] - start, row[FLUX_SOUTH] - start
                for cell in range(max(first, begin), min(stop, end)):
                    i, e, w = index(cell), index(cell + to_east), index(cell + to_west)
                    n, m = index(cell + to_north), index(cell + to_south)
                    fn, fs = index(cell + faces_north), index(cell + faces_south)
                    ge, gw = index(cell + within), index(cell + to_west + within)
                    gn, gs = index(cell + north_of), index(cell + south_of)
                    center, at_e, at_n, at_w, at_s = density[i], density[e], density[n], density[w], density[m]
                    p = _slope(s, 0, center, at_e, at_n, at_w, at_s)
                    q = _slope(s, 1, center, at_e, at_n, at_w, at_s)
                    worst = smoothness_indicator(center, at_e, center + p * d[0, 0] + q * d[1, 0])
                    worst = max(worst, smoothness_indicator(center, at_n, center + p * d[0, 1] + q * d[1, 1]))
                    worst = max(worst, smoothness_indicator(center, at_w, center + p * d[0, 2] + q * d[1, 2]))
                    worst = max(worst, smoothness_indicator(center, at_s, center + p * d[0, 3] + q * d[1, 3]))
                    smooth[i] = blending_weight(worst, low, high) if center > occupied[0] else 0.0
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
                    _, _, _, j = side_of(k, i - start, row)
                    neighbors[k], neighbors_east[k], neighbors_north[k] = density[j], east[j], north[j]
                    p += slopes[k_of, 0, k] * (neighbors[k] - density[i])
                    q += slopes[k_of, 1, k] * (neighbors[k] - density[i])
                for k in range(sides):
                    predicted = density[i] + p * offsets[k_of, 0, k] + q * offsets[k_of, 1, k]
                    worst = max(worst, smoothness_indicator(density[i], neighbors[k], predicted))
                smooth[i] = blending_weight(worst, low, high) if density[i] > occupied[0] else 0.0
                for k in range(sides):
                    plane, face, place, _ = side_of(k, i - start, row)
                    through = stencils[0, k_of, k, 12] * east[i] + stencils[0, k_of, k, 13] * north[i]
                    bend = stencils[1, k_of, k, 12] * east[i] + stencils[1, k_of, k, 13] * north[i]
                    for m in range(sides):
                        u, v = neighbors_east[m], neighbors_north[m]
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
    neighbor_masses = scratch(8)
    unresolved = scratch(8)  # of each side of a cell
    first, last = part_of(worker, workers, begin, end)
    r = ring_of(rows, first)
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
                begin, end, to_east, to_west = cells_of_part(part, start, count)
                to_north, to_south = row[NORTH] - start, row[SOUTH] - start
                faces_north, faces_south = row[FACE_NORTH] - start, row[FACE_SOUTH] - start
                within, north_of, south_of = row[FLUX_WITHIN] - start, row[FLUX_NORTH] - start, row[FLUX_SOUTH] - start
                for cell in range(max(first, begin), min(stop, end)):
                    i, e, w = index(cell), index(cell + to_east), index(cell + to_west)
                    n, m = index(cell + to_north), index(cell + to_south)
                    fn, fs = index(cell + faces_north), index(cell + faces_south)
                    ge, gw = index(cell + within), index(cell + to_west + within)
                    gn, gs = index(cell + north_of), index(cell + south_of)
                    center, at_e, at_n, at_w, at_s = density[i], density[e], density[n], density[w], density[m]
                    p = _slope(s, 0, center, at_e, at_n, at_w, at_s)
                    q = _slope(s, 1, center, at_e, at_n, at_w, at_s)
                    res_e, res_n = min(smooth[i], smooth[e]), min(smooth[i], smooth[n])
                    res_w, res_s = min(smooth[i], smooth[w]), min(smooth[i], smooth[m])
                    up_e = _upwind(flux[0, ge], flux[1, ge], center + p * f[0, 0] + q * f[1, 0])
                    up_n = _upwind(flux[1, gn], flux[0, gn], center + p * f[0, 1] + q * f[1, 1])
                    up_w = _upwind(flux[1, gw], flux[0, gw], center + p * f[0, 2] + q * f[1, 2])
                    up_s = _upwind(flux[0, gs], flux[1, gs], center + p * f[0, 3] + q * f[1, 3])

                    u, v = east[i], north[i]
                    ce, cn = d[0, 0] * v - d[1, 0] * u, d[0, 1] * v - d[1, 1] * u
                    cw, cs = d[0, 2] * v - d[1, 2] * u, d[0, 3] * v - d[1, 3] * u
                    en = 1.0 if ce >= 0.0 and cn < 0.0 else 0.0
                    nw = 1.0 if cn >= 0.0 and cw < 0.0 else 0.0
                    ws = 1.0 if cw >= 0.0 and cs < 0.0 else 0.0
                    se = 1.0 if cs >= 0.0 and ce < 0.0 else 0.0
                    mass = center * area
                    # 0·u: a NaN is passed on
                    to_e = mass * (se * h[3] * cs - en * h[0] * cn + 0.0 * (u + v))
                    to_n = mass * (en * h[0] * ce - nw * h[1] * cw)
                    to_w = mass * (nw * h[1] * cn - ws * h[2] * cs)
                    to_s = mass * (ws * h[2] * cw - se * h[3] * ce)
                    half = 0.5 / mass if center > occupied[0] else 0.0
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
                j, k_of, center = i - start, kind + (i - start) % row[KINDS], density[i]
                p, q, mass = 0.0, 0.0, center * volumes[r]
                for k in range(sides):
                    _, _, _, neighbor = side_of(k, j, row)
                    neighbor_masses[k] = density[neighbor] * volumes[ring_of_side(k, r, row)]
                    unresolved[k] = 1.0 - min(smooth[i], smooth[neighbor])
                    p += slopes[k_of, 0, k] * (density[neighbor] - center)
                    q += slopes[k_of, 1, k] * (density[neighbor] - center)
                for k in range(sides):
                    plane, face, place, _ = side_of(k, j, row)
                    value = center + p * reach[k_of, 0, k] + q * reach[k_of, 1, k]
                    through = _upwind(flux[plane, place], flux[1 - plane, place], value)
                    sent[plane, face] = (1.0 - unresolved[k]) * (sent[plane, face] + through)
                for k in range(sides):  # unresolved cells between neighbor k and the next
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
                                    behind = min(behind, neighbor_masses[m] / weight)
                            pull = 0.5 * behind / mass * to if center > occupied[0] else 0.0
                            for m in range(sides):
                                part = -pull * opposite[k_of, way, m] + (to - pull if m == way else 0.0)
                                if part != 0.0 and unresolved[m] > 0.0:
                                    plane, face, _, _ = side_of(m, j, row)
                                    sent[plane, face] += unresolved[m] * part
        first, r = stop, r + 1
