"""CPU kernels, compiled by Numba on first use and cached on disk.

Every kernel takes ``(worker, workers, ...)`` and does that worker's share; :func:`launch` runs the shares on all cores.
Kernels gather (a cell sums its own sides, a ring its own modes), so results do not depend on the number of workers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
from numba import njit

WORKERS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
INLINE_WORK = 4096  # below this many items a kernel is done before a second thread has woken up

_kernel = njit(cache=True, nogil=True, error_model="numpy")
_inline = njit(cache=True, nogil=True, error_model="numpy", inline="always")


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(WORKERS - 1, 1), thread_name_prefix="solvers")


def launch(kernel: Callable[..., Any], work: int, *arguments: Any) -> list[Any]:
    """Run ``kernel(worker, workers, *arguments)`` for every worker; returns what each returned."""
    workers = WORKERS if work >= INLINE_WORK else 1
    others = [_pool().submit(kernel, worker, workers, *arguments) for worker in range(1, workers)]
    return [kernel(0, workers, *arguments), *(other.result() for other in others)]


@_inline
def _share(worker, workers, items):
    """First and last + 1 of a worker's contiguous share."""
    return items * worker // workers, items * (worker + 1) // workers


# --- transport: how much mass each cell sends through each of its sides -------------------------------------------


@_inline
def _smoothness(misfit, low, high):
    """1 where the density is resolved, 0 where it is a lump, a cubic ramp between; ``misfit`` is relative."""
    if misfit <= low:
        return 1.0
    if misfit >= high:
        return 0.0
    ramp = (high - misfit) / (high - low)
    return ramp * ramp * (3.0 - 2.0 * ramp)


@_inline
def _misfit(value, neighbor, predicted):
    """How far a neighbour is from a cell's linear reconstruction, or a quarter of its jump, over their mean.

    The jump is there for the foot of a lump, 0, a, 2a, which is on a line and yet not resolved.
    """
    total = value + neighbor
    departure = max(abs(neighbor - predicted), 0.25 * abs(neighbor - value))
    return 2.0 * departure / total if total > 0.0 else 0.0


@_kernel
def look_on_curve(
    worker, workers, centers, volumes, cell_start, cell_sides, neighbors, density, velocity, low, high, occupied,
    speed, smooth,
):  # fmt: skip
    """Signed speed u = X·t of each cell, t from its first to its second neighbour, and how resolved the density is."""
    first, last = _share(worker, workers, len(speed))
    d = centers.shape[1]
    for i in range(first, last):
        a = neighbors[cell_sides[cell_start[i]] ^ 1]
        b = neighbors[cell_sides[cell_start[i] + 1] ^ 1]
        along = 0.0
        length = 0.0
        for c in range(d):
            step = centers[b, c] - centers[a, c]
            along += velocity[i, c] * step
            length += step * step
        speed[i] = along / np.sqrt(length)
        smooth[i] = 0.0
        if density[i] > occupied:
            slope = (density[b] - density[a]) / (2.0 * volumes[i] + volumes[a] + volumes[b])
            before = density[i] - slope * (volumes[i] + volumes[a])
            after = density[i] + slope * (volumes[i] + volumes[b])
            worst = max(_misfit(density[i], density[a], before), _misfit(density[i], density[b], after))
            smooth[i] = _smoothness(worst, low, high)


@_kernel
def send_on_curve(worker, workers, volumes, cell_start, cell_sides, neighbors, density, speed, smooth, sent):
    """Mass per time that each cell of a curve sends through its sides; negative where it pulls.

    Lumps: see :func:`send_on_surface`. Resolved densities: u_f ρ_f with u_f to fourth order and ρ_f the linear
    reconstruction from the donor cell.
    """
    first, last = _share(worker, workers, len(density))
    for i in range(first, last):
        back, ahead = cell_sides[cell_start[i]], cell_sides[cell_start[i] + 1]
        a, b = neighbors[back ^ 1], neighbors[ahead ^ 1]
        sent[back] = 0.0
        sent[ahead] = 0.0
        value = density[i]
        if value == 0.0:
            continue
        to_a, to_b = 0.5 * (volumes[i] + volumes[a]), 0.5 * (volumes[i] + volumes[b])
        smooth_a, smooth_b = min(smooth[i], smooth[a]), min(smooth[i], smooth[b])
        if max(smooth_a, smooth_b) > 0.0:
            aa = neighbors[cell_sides[cell_start[a]] ^ 1]
            bb = neighbors[cell_sides[cell_start[b] + 1] ^ 1]
            u_a = (9.0 * (speed[a] + speed[i]) - speed[aa] - speed[b]) / 16.0
            u_b = (9.0 * (speed[i] + speed[b]) - speed[a] - speed[bb]) / 16.0
            half = 0.5 * volumes[i] * (density[b] - density[a]) / (to_a + to_b)
            sent[back] = smooth_a * max(-u_a, 0.0) * max(value - half, 0.0)
            sent[ahead] = smooth_b * max(u_b, 0.0) * max(value + half, 0.0)
        if min(smooth_a, smooth_b) < 1.0:
            mass = value * volumes[i]
            lump_a, lump_b = (1.0 - smooth_a) * mass / to_a, (1.0 - smooth_b) * mass / to_b
            if speed[i] > 0.0:
                pulled = 0.5 * min(1.0, density[a] * volumes[a] / mass)
                sent[ahead] += (1.0 - pulled) * speed[i] * lump_b
                sent[back] -= pulled * speed[i] * lump_a
            else:
                pulled = 0.5 * min(1.0, density[b] * volumes[b] / mass)
                sent[back] -= (1.0 - pulled) * speed[i] * lump_a
                sent[ahead] += pulled * speed[i] * lump_b


@_inline
def _tangent_basis(centers, i, j):
    """Orthonormal tangent vectors at cell i of the unit sphere, the first towards cell j."""
    x, y, z = centers[i, 0], centers[i, 1], centers[i, 2]
    ex, ey, ez = centers[j, 0] - x, centers[j, 1] - y, centers[j, 2] - z
    radial = ex * x + ey * y + ez * z
    ex, ey, ez = ex - radial * x, ey - radial * y, ez - radial * z
    length = np.sqrt(ex * ex + ey * ey + ez * ez)
    ex, ey, ez = ex / length, ey / length, ez / length
    return (ex, ey, ez), (y * ez - z * ey, z * ex - x * ez, x * ey - y * ex)


@_inline
def _in_plane(centers, i, points, k, e, f):
    """Coordinates of a nearby point in the tangent plane of cell i: the geodesic offset, to fourth order."""
    dx, dy, dz = points[k, 0] - centers[i, 0], points[k, 1] - centers[i, 1], points[k, 2] - centers[i, 2]
    arc = 1.0 + (dx * dx + dy * dy + dz * dz) / 6.0  # angle / sin(angle)
    return (dx * e[0] + dy * e[1] + dz * e[2]) * arc, (dx * f[0] + dy * f[1] + dz * f[2]) * arc


@_inline
def _neighbor_offsets(centers, i, cell_sides, start, count, neighbors, e, f, p, q):
    for k in range(count):
        p[k], q[k] = _in_plane(centers, i, centers, neighbors[cell_sides[start + k] ^ 1], e, f)


@_inline
def _inverse_of_squares(p, q, count):
    """Entries pp, pq, qq of the inverse of Σ d dᵀ over neighbour offsets d: the least-squares gradient's matrix."""
    pp, pq, qq = 0.0, 0.0, 0.0
    for k in range(count):
        pp += p[k] * p[k]
        pq += p[k] * q[k]
        qq += q[k] * q[k]
    determinant = pp * qq - pq * pq
    return qq / determinant, -pq / determinant, pp / determinant


@_inline
def _any_occupied(i, start, count, cell_sides, neighbors, density, occupied):
    densest = density[i]
    for k in range(count):
        densest = max(densest, density[neighbors[cell_sides[start + k] ^ 1]])
    return densest > occupied


@_inline
def _slope(density, i, start, count, cell_sides, neighbors, p, q, inverse):
    """Least-squares gradient of the density at cell i."""
    pp, pq, qq = inverse
    pr, qr = 0.0, 0.0
    for k in range(count):
        rise = density[neighbors[cell_sides[start + k] ^ 1]] - density[i]
        pr += p[k] * rise
        qr += q[k] * rise
    return pp * pr + pq * qr, pq * pr + qq * qr


@_kernel
def look_on_surface(
    worker, workers, centers, face_centers, face_normals, face_areas, cell_start, cell_sides, neighbors, density,
    velocity, low, high, occupied, flux, smooth,
):  # fmt: skip
    """Flux A u·n through each side of each cell of the unit sphere, outward, and how resolved the density is.

    u = X_i + ∇X_i (x_f − x_i − ¼ (x_j − x_i)) from the cell's own velocity and its gradient by least squares, so that
    the mean of both sides of a face is cubic Hermite interpolation along a line of cells, and second order on any mesh.
    """
    first, last = _share(worker, workers, len(centers))
    p, q = np.empty(16), np.empty(16)  # neighbour offsets in the tangent plane of the cell
    for i in range(first, last):
        start = cell_start[i]
        count = cell_start[i + 1] - start
        smooth[i] = 0.0
        if not _any_occupied(i, start, count, cell_sides, neighbors, density, occupied):
            continue  # then no side of it is resolved, and nobody asks for its flux
        e, f = _tangent_basis(centers, i, neighbors[cell_sides[start] ^ 1])
        _neighbor_offsets(centers, i, cell_sides, start, count, neighbors, e, f, p, q)
        pp, pq, qq = _inverse_of_squares(p, q, count)
        if density[i] > occupied:
            slope_p, slope_q = _slope(density, i, start, count, cell_sides, neighbors, p, q, (pp, pq, qq))
            worst = 0.0
            for k in range(count):
                neighbor = density[neighbors[cell_sides[start + k] ^ 1]]
                worst = max(worst, _misfit(density[i], neighbor, density[i] + slope_p * p[k] + slope_q * q[k]))
            smooth[i] = _smoothness(worst, low, high)
        if smooth[i] == 0.0:
            continue
        u, v, w = velocity[i, 0], velocity[i, 1], velocity[i, 2]
        pu, pv, pw, qu, qv, qw = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(count):
            j = neighbors[cell_sides[start + k] ^ 1]
            along_p, along_q = pp * p[k] + pq * q[k], pq * p[k] + qq * q[k]
            du, dv, dw = velocity[j, 0] - u, velocity[j, 1] - v, velocity[j, 2] - w
            pu += along_p * du
            pv += along_p * dv
            pw += along_p * dw
            qu += along_q * du
            qv += along_q * dv
            qw += along_q * dw
        for k in range(count):
            side = cell_sides[start + k]
            face = side >> 1
            at_p, at_q = _in_plane(centers, i, face_centers, face, e, f)
            at_p -= 0.25 * p[k]
            at_q -= 0.25 * q[k]
            area = -face_areas[face] if side & 1 else face_areas[face]
            flux[side] = area * (
                (u + pu * at_p + qu * at_q) * face_normals[face, 0]
                + (v + pv * at_p + qv * at_q) * face_normals[face, 1]
                + (w + pw * at_p + qw * at_q) * face_normals[face, 2]
            )


@_inline
def _split(p, q, count, vp, vq):
    """First of the two consecutive offsets that bracket v, and the weights w ≥ 0 with w₁ d₁ + w₂ d₂ = v."""
    for k in range(count):
        n = k + 1 if k + 1 < count else 0
        span = p[k] * q[n] - q[k] * p[n]
        towards_k, towards_n = vp * q[n] - vq * p[n], p[k] * vq - q[k] * vp
        if span > 0.0 and towards_k > 0.0 and towards_n >= 0.0:
            return k, n, towards_k / span, towards_n / span
    return 0, 0, 0.0 * vp, 0.0 * vq  # at rest, or NaN passed on


@_inline
def _send_lump(i, k, weight, start, count, cell_sides, neighbors, volumes, density, resolved, p, q, occupied, sent):
    """Move the mass of cell i by weight·d_k: send part of it to neighbour k, pull the rest in from behind."""
    mass = density[i] * volumes[i]
    pulled = 0.0
    if density[i] > occupied and weight > 0.0:
        a, b, weight_a, weight_b = _split(p, q, count, -p[k], -q[k])
        side_a, side_b = cell_sides[start + a], cell_sides[start + b]
        j_a, j_b = neighbors[side_a ^ 1], neighbors[side_b ^ 1]
        behind = mass
        if weight_a > 0.0:
            behind = min(behind, density[j_a] * volumes[j_a] / weight_a)
        if weight_b > 0.0:
            behind = min(behind, density[j_b] * volumes[j_b] / weight_b)
        pulled = 0.5 * behind / mass
        sent[side_a] -= pulled * (1.0 - resolved[a]) * mass * weight * weight_a
        sent[side_b] -= pulled * (1.0 - resolved[b]) * mass * weight * weight_b
    sent[cell_sides[start + k]] += (1.0 - pulled) * (1.0 - resolved[k]) * mass * weight


@_kernel
def send_on_surface(
    worker, workers, centers, volumes, face_centers, cell_start, cell_sides, neighbors, density, velocity, flux,
    smooth, occupied, sent,
):  # fmt: skip
    """Mass per time that each cell of the unit sphere sends through its sides; negative where it pulls.

    Lumps: the mass is split over the two neighbours that bracket X_i, with weights w ≥ 0 such that
    Σ w (x_f − x_i) = X_i in the tangent plane. Up to half of each part is pulled in from the opposite side instead of
    being sent on, as much as there is: that moves the center of mass just the same, and takes away the spreading of
    the upwind flux.
    Resolved densities: (A u·n)⁺ ρ_f with A u·n the mean of what :func:`look_on_surface` found from either side, and
    ρ_f the linear reconstruction from the donor cell by a least-squares gradient.
    A face is as resolved as the less resolved of its cells.
    """
    first, last = _share(worker, workers, len(density))
    p, q = np.empty(16), np.empty(16)
    resolved = np.empty(16)
    for i in range(first, last):
        start = cell_start[i]
        count = cell_start[i + 1] - start
        least, most = 1.0, 0.0
        for k in range(count):
            side = cell_sides[start + k]
            sent[side] = 0.0
            resolved[k] = min(smooth[i], smooth[neighbors[side ^ 1]])
            least, most = min(least, resolved[k]), max(most, resolved[k])
        value = density[i]
        if value == 0.0:
            continue
        e, f = _tangent_basis(centers, i, neighbors[cell_sides[start] ^ 1])
        _neighbor_offsets(centers, i, cell_sides, start, count, neighbors, e, f, p, q)

        if most > 0.0:
            inverse = _inverse_of_squares(p, q, count)
            slope_p, slope_q = _slope(density, i, start, count, cell_sides, neighbors, p, q, inverse)
            for k in range(count):
                side = cell_sides[start + k]
                through = 0.5 * (flux[side] - flux[side ^ 1])
                if resolved[k] > 0.0 and not through <= 0.0:  # so that a NaN is passed on
                    at_p, at_q = _in_plane(centers, i, face_centers, side >> 1, e, f)
                    sent[side] = resolved[k] * through * max(value + slope_p * at_p + slope_q * at_q, 0.0)

        if least < 1.0:
            vp = velocity[i, 0] * e[0] + velocity[i, 1] * e[1] + velocity[i, 2] * e[2]
            vq = velocity[i, 0] * f[0] + velocity[i, 1] * f[1] + velocity[i, 2] * f[2]
            k, n, weight_k, weight_n = _split(p, q, count, vp, vq)
            _send_lump(
                i, k, weight_k, start, count, cell_sides, neighbors, volumes, density, resolved, p, q, occupied, sent
            )
            _send_lump(
                i, n, weight_n, start, count, cell_sides, neighbors, volumes, density, resolved, p, q, occupied, sent
            )


@_kernel
def outflows(worker, workers, volumes, cell_start, cell_sides, density, occupied, sent, outflow):
    """Rate at which each cell loses mass, sent by itself or pulled by others; returns the fastest occupied one's."""
    first, last = _share(worker, workers, len(outflow))
    fastest = 0.0
    for i in range(first, last):
        lost = 0.0
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            lost += max(sent[side], 0.0) + max(-sent[side ^ 1], 0.0)
        mass = density[i] * volumes[i]
        outflow[i] = lost / mass if mass != 0.0 else 0.0
        if not density[i] <= occupied and not (outflow[i] <= fastest or fastest != fastest):  # NaN stays
            fastest = outflow[i]
    return fastest


@_kernel
def receive(worker, workers, volumes, cell_start, cell_sides, neighbors, sent, outflow, dt, rate):
    """Add to ``rate`` what each cell receives less what it loses, per volume.

    A cell that would lose more than it holds within dt loses what it holds (the draining limiter).
    """
    first, last = _share(worker, workers, len(rate))
    for i in range(first, last):
        keep = 1.0 / max(1.0, dt * outflow[i])
        total = 0.0
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            there, here = sent[side ^ 1], sent[side]
            keep_there = 1.0 / max(1.0, dt * outflow[neighbors[side ^ 1]])
            total += there * (keep_there if there > 0.0 else keep) - here * (keep if here > 0.0 else keep_there)
        rate[i] += total / volumes[i]


@_inline
def _fourth_order(before, left, right, after):
    """Difference right − left for a flux of fourth order on equal cells."""
    return (15.0 * (right - left) - (after - before)) / 12.0


@_inline
def _curve_fluxes(i, conductance, cell_start, cell_sides, neighbors, density):
    """Inward diffusion fluxes through the two sides of a cell of a curve of equal cells."""
    back, ahead = cell_sides[cell_start[i]], cell_sides[cell_start[i] + 1]
    a, b = neighbors[back ^ 1], neighbors[ahead ^ 1]
    aa, bb = neighbors[cell_sides[cell_start[a]] ^ 1], neighbors[cell_sides[cell_start[b] + 1] ^ 1]
    rise = conductance[ahead >> 1] * _fourth_order(density[a], density[i], density[b], density[bb])
    fall = conductance[back >> 1] * _fourth_order(density[aa], density[a], density[i], density[b])
    return -fall, rise


@_kernel
def diffuse_on_curve(worker, workers, volumes, conductance, cell_start, cell_sides, neighbors, density, rate):
    """rate = Δρ on a curve of equal cells by fourth-order fluxes."""
    first, last = _share(worker, workers, len(rate))
    for i in range(first, last):
        back, ahead = _curve_fluxes(i, conductance, cell_start, cell_sides, neighbors, density)
        rate[i] = (back + ahead) / volumes[i]


@_kernel
def diffuse_on_surface(worker, workers, volumes, conductance, cell_start, cell_sides, neighbors, density, rate):
    """rate = Δρ by two-point fluxes: Σ_faces conductance (ρ_j − ρ_i) / V_i."""
    first, last = _share(worker, workers, len(rate))
    for i in range(first, last):
        total = 0.0
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            total += conductance[side >> 1] * (density[neighbors[side ^ 1]] - density[i])
        rate[i] = total / volumes[i]


@_kernel
def send_diffusion_on_curve(worker, workers, conductance, cell_start, cell_sides, neighbors, density, sent):
    """The outward part of the fluxes of :func:`diffuse_on_curve`, side by side."""
    first, last = _share(worker, workers, len(density))
    for i in range(first, last):
        back, ahead = _curve_fluxes(i, conductance, cell_start, cell_sides, neighbors, density)
        sent[cell_sides[cell_start[i]]] = max(-back, 0.0)
        sent[cell_sides[cell_start[i] + 1]] = max(-ahead, 0.0)


@_kernel
def send_diffusion_on_surface(worker, workers, conductance, cell_start, cell_sides, neighbors, density, sent):
    """The outward part of the fluxes of :func:`diffuse_on_surface`, side by side."""
    first, last = _share(worker, workers, len(density))
    for i in range(first, last):
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            sent[side] = max(conductance[side >> 1] * (density[i] - density[neighbors[side ^ 1]]), 0.0)


@_kernel
def limit_sent(
    worker, workers, volumes, cell_start, cell_sides, neighbors, density, sent, keep, following, result
):
    """result = density once every cell has sent its share ``keep`` of ``sent``; following = the share it can afford."""
    first, last = _share(worker, workers, len(result))
    for i in range(first, last):
        gained, lost = 0.0, 0.0
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            gained += sent[side ^ 1] * keep[neighbors[side ^ 1]]
            lost += sent[side]
        held = density[i] * volumes[i] + gained
        result[i] = (held - keep[i] * lost) / volumes[i]
        following[i] = min(keep[i], held / lost) if lost > 0.0 else keep[i]
        if result[i] < 0.0 and result[i] > -1e-15 * held / volumes[i]:
            result[i] = 0.0  # the rounding of a cell that gives all it holds


@_kernel
def advance(worker, workers, start, stage, rate, dt, weight, result):
    """result = w + weight (start − w) with w = stage + dt rate: one stage of a Shu–Osher scheme.

    Written so that equal states stay equal to the last bit.
    """
    first, last = _share(worker, workers, len(result))
    for i in range(first, last):
        w = stage[i] + dt * rate[i]
        result[i] = w + weight * (start[i] - w)


# --- clusters ------------------------------------------------------------------------------------------------------


@_kernel
def average_neighbors(worker, workers, volumes, cell_start, cell_sides, neighbors, values, result):
    """Average of each cell and its neighbours, weighted by volume."""
    first, last = _share(worker, workers, len(values))
    for i in range(first, last):
        total, weight = values[i] * volumes[i], volumes[i]
        for k in range(cell_start[i], cell_start[i + 1]):
            j = neighbors[cell_sides[k] ^ 1]
            total += values[j] * volumes[j]
            weight += volumes[j]
        result[i] = total / weight


@_inline
def _root(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@_kernel
def persistent_basins(order, level, persistence, cell_start, cell_sides, neighbors, basin):
    """The peak (a cell) that each cell belongs to; peaks of less persistence are joined to higher ones.

    order   cells from the highest to the lowest level
    """
    basin[:] = -1
    for i in order:
        best = -1
        for k in range(cell_start[i], cell_start[i + 1]):
            j = neighbors[cell_sides[k] ^ 1]
            if basin[j] >= 0:
                peak = _root(basin, j)
                if best < 0 or level[peak] > level[best] or (level[peak] == level[best] and peak < best):
                    best = peak
        if best < 0:
            basin[i] = i
            continue
        basin[i] = best
        for k in range(cell_start[i], cell_start[i + 1]):
            j = neighbors[cell_sides[k] ^ 1]
            if basin[j] >= 0:
                peak = _root(basin, j)
                if peak != best and level[peak] - level[i] < persistence:
                    basin[peak] = best
    for i in order:
        basin[i] = _root(basin, i)


# --- harmonic transform on rings of latitude -----------------------------------------------------------------------


@_kernel
def unfold_rings(worker, workers, spectrum, cells, first_ring, modes_re, modes_im):
    """Azimuthal modes m = 0 … L of rings with ``cells`` cells from their discrete Fourier transform.

    modes[m, ring] = Σ_j w_j e^{−imφ_j}, φ_j = (j + ½)·2π/cells; exact for every m, also beyond cells/2.
    """
    degrees, rings = modes_re.shape[0], spectrum.shape[0]
    for m in range(worker, degrees, workers):
        k = m % cells
        phase = np.exp(-1j * np.pi * m / cells)
        for r in range(rings):
            value = spectrum[r, k] if 2 * k <= cells else np.conj(spectrum[r, cells - k])
            value = value * phase
            modes_re[m, first_ring + r] = value.real
            modes_im[m, first_ring + r] = value.imag


@_kernel
def fold_rings(worker, workers, modes_re, modes_im, cells, first_ring, by_order, scale, spectrum):
    """Discrete Fourier transform of rings from their azimuthal modes: the inverse of :func:`unfold_rings`.

    ``by_order`` multiplies mode m by i·m (the derivative along φ); ``scale`` (rings) multiplies each ring.
    """
    degrees, rings = modes_re.shape[0], spectrum.shape[0]
    first, last = _share(worker, workers, rings)
    for r in range(first, last):
        for k in range(spectrum.shape[1]):
            spectrum[r, k] = 0.0
    for m in range(degrees):
        k = m % cells
        opposite = (cells - k) % cells
        phase = np.exp(1j * np.pi * m / cells)
        if by_order:
            phase = phase * 1j * m
        for r in range(first, last):
            value = complex(modes_re[m, first_ring + r], modes_im[m, first_ring + r]) * phase * scale[first_ring + r]
            if 2 * k <= cells:
                spectrum[r, k] += value
            if m > 0 and 2 * opposite <= cells:
                spectrum[r, opposite] += np.conj(value)


@_inline
def _legendre_start(m, sine, previous, current):
    """P̄_mm of the orthonormal associated Legendre functions at every ring: (1/√4π) Π √((2k+1)/2k) sin^m θ."""
    norm = 1.0 / np.sqrt(4.0 * np.pi)
    for k in range(1, m + 1):
        norm *= np.sqrt((2.0 * k + 1.0) / (2.0 * k))
    for r in range(len(sine)):
        previous[r] = 0.0
        current[r] = norm * sine[r] ** m


@_inline
def _legendre_up(l, m):
    """α of P̄_l = α_l (cos θ P̄_{l−1} − P̄_{l−2}/α_{l−1})."""
    return np.sqrt((4.0 * l * l - 1.0) / (l * l - m * m))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})
def legendre_analysis(worker, workers, cosine, sine, even_re, even_im, odd_re, odd_im, coefficients):
    """coefficients[l, m] = Σ_rings P̄_lm(cos θ) modes[m, ring], over northern rings.

    even, odd: (L + 1, half) sums and differences of the modes of mirrored rings.
    """
    degrees, half = even_re.shape
    previous, current, following = np.empty(half), np.empty(half), np.empty(half)
    for m in range(worker, degrees, workers):
        _legendre_start(m, sine, previous, current)
        below = 0.0
        for l in range(m, degrees):
            re, im = 0.0, 0.0
            if (l - m) % 2 == 0:
                for r in range(half):
                    re += current[r] * even_re[m, r]
                    im += current[r] * even_im[m, r]
            else:
                for r in range(half):
                    re += current[r] * odd_re[m, r]
                    im += current[r] * odd_im[m, r]
            coefficients[l, m] = complex(re, im)
            up = _legendre_up(l + 1.0, m)
            for r in range(half):
                following[r] = up * (cosine[r] * current[r] - below * previous[r])
            below = 1.0 / up
            previous, current, following = current, following, previous


@_kernel
def legendre_synthesis(worker, workers, cosine, sine, coefficients, mirror, modes_re, modes_im):
    """modes[s, m, ring] = Σ_l coefficients[s, l, m] P̄_lm(cos θ) for several sets s at once, on all rings.

    cosine, sine: (half) northern rings and the equator; ``mirror`` (half) is the southern ring of each.
    """
    sets, degrees = coefficients.shape[0], coefficients.shape[1]
    half = len(cosine)
    previous, current, following = np.empty(half), np.empty(half), np.empty(half)
    sums = np.empty((2 * sets, 2, half))  # (re and im of each set), (even, odd), ring
    for m in range(worker, degrees, workers):
        _legendre_start(m, sine, previous, current)
        sums[:] = 0.0
        below = 0.0
        for l in range(m, degrees):
            parity = (l - m) % 2
            for s in range(sets):
                re, im = coefficients[s, l, m].real, coefficients[s, l, m].imag
                for r in range(half):
                    sums[2 * s, parity, r] += re * current[r]
                    sums[2 * s + 1, parity, r] += im * current[r]
            up = _legendre_up(l + 1.0, m)
            for r in range(half):
                following[r] = up * (cosine[r] * current[r] - below * previous[r])
            below = 1.0 / up
            previous, current, following = current, following, previous
        for s in range(sets):
            for r in range(half):
                modes_re[s, m, mirror[r]] = sums[2 * s, 0, r] - sums[2 * s, 1, r]
                modes_im[s, m, mirror[r]] = sums[2 * s + 1, 0, r] - sums[2 * s + 1, 1, r]
                modes_re[s, m, r] = sums[2 * s, 0, r] + sums[2 * s, 1, r]
                modes_im[s, m, r] = sums[2 * s + 1, 0, r] + sums[2 * s + 1, 1, r]


@_kernel
def gradient_to_vectors(worker, workers, centers, south, east, result):
    """Tangent vectors in R³ from their components along e_θ (south) and e_φ (east) at the given points."""
    first, last = _share(worker, workers, len(result))
    for i in range(first, last):
        x, y, z = centers[i, 0], centers[i, 1], centers[i, 2]
        sine = np.sqrt(x * x + y * y)
        cos_phi, sin_phi = x / sine, y / sine
        result[i, 0] = south[i] * z * cos_phi - east[i] * sin_phi
        result[i, 1] = south[i] * z * sin_phi + east[i] * cos_phi
        result[i, 2] = -south[i] * sine


@_kernel
def scale_softmax(worker, workers, normalizer, numerator):
    """numerator /= max(Z, |numerator|) in place, so that |X| ≤ 1 also where Z is lost to rounding."""
    first, last = _share(worker, workers, len(normalizer))
    d = numerator.shape[1]
    for i in range(first, last):
        square = 0.0
        for c in range(d):
            square += numerator[i, c] * numerator[i, c]
        bound = max(normalizer[i], np.sqrt(square))
        if bound > 0.0:
            for c in range(d):
                numerator[i, c] /= bound
