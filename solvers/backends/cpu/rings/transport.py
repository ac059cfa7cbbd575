"""Outgoing fluxes of the cells of rings of latitude: :mod:`solvers.backends.cpu.transport_surface` for them.

All cells of a ring are alike, so their geometry is numbers per ring, in the plane (east, north) at a cell's center:
of one kind of cell, or of two, by turns, where a neighboring ring has half as many. Sides and rows are those of
:mod:`solvers.backends.cpu.rings.sides`.

slopes     (kinds, 2, 5) the weights of a least-squares gradient: ∂_p u, ∂_q u = Σ_k slopes[:, k] (u_k − u)
offsets, reach, tangents   (kinds, 2, 5) of each side: the neighbor's center, the face's center, the face's tangent
stencils   (2, kinds, 5, 12) weights of the velocity (east, north) of each neighbor, and last of the cell itself, in
           the flux through a side, and in half the correction of a product's mean for each slope of the density
spans      (kinds, 5) 1 over the area that a neighbor's offset and the next one's span
opposite   (kinds, 5, 5) weights w ≥ 0 with Σ_m w_km d_m = −d_k, of two neighbors at most
"""

from ..launching import index, rows_of_run
from ..transport import blending_weight, smoothness_indicator
from .runs import cells_of_run, first_of_kind, outgoing_flux_of_run, reconstruct_run, upwind
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
    REGULAR,
    SOUTH,
    START,
    cells_of_part,
    helper,
    part_of,
    ring_of,
    row_kernel,
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
    sides = (c[k, 10] * a + c[k, 11] * b) + (c[k, 0] * ae + c[k, 1] * be) + (c[k, 4] * aw + c[k, 5] * bw)
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
    around = rows_of_run()
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
            for k in range(row[KINDS]):
                i = first_of_kind(k, first, row)
                while i < stop:
                    cells = cells_of_run(i, stop, row, around)
                    reconstruct_run(
                        i, cells, kind + k, row, slopes, offsets, tangents, stencils, density, east, north, low, high,
                        occupied, flux, smooth, sent, around,
                    )  # fmt: skip
                    i += cells * row[KINDS]
        first, r = stop, r + 1


@row_kernel
def outgoing_flux_on_rings(
    worker, workers, begin, end, rows, volumes, slopes, offsets, reach, spans, opposite, density, east, north, flux,
    smooth, occupied, sent,
):  # fmt: skip
    """As :func:`solvers.backends.cpu.transport_surface.outgoing_flux_on_surface`; volumes (rings,), sent (2, faces)."""
    around = rows_of_run()
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
                    up_e = upwind(flux[0, ge], flux[1, ge], center + p * f[0, 0] + q * f[1, 0])
                    up_n = upwind(flux[1, gn], flux[0, gn], center + p * f[0, 1] + q * f[1, 1])
                    up_w = upwind(flux[1, gw], flux[0, gw], center + p * f[0, 2] + q * f[1, 2])
                    up_s = upwind(flux[0, gs], flux[1, gs], center + p * f[0, 3] + q * f[1, 3])

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
            for k in range(row[KINDS]):
                i = first_of_kind(k, first, row)
                while i < stop:
                    cells = cells_of_run(i, stop, row, around)
                    outgoing_flux_of_run(
                        i, cells, kind + k, r, row, volumes, slopes, offsets, reach, spans, opposite, density, east,
                        north, flux, smooth, occupied, sent, around,
                    )  # fmt: skip
                    i += cells * row[KINDS]
        first, r = stop, r + 1
