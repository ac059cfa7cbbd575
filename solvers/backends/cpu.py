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
def curve_speed(worker, workers, centers, cell_start, cell_sides, neighbors, velocity, speed):
    """Signed speed u = X·t of each cell of a curve, along the direction from its first to its second neighbour."""
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


@_kernel
def send_on_curve(
    worker, workers, volumes, cell_start, cell_sides, neighbors, density, speed, low, high, occupied, sent, outflow
):
    """Mass per time that each cell of a curve sends through its sides; returns the fastest occupied cell's rate.

    Lumps move by the donor cell's velocity, u_i/distance of their mass to the neighbour ahead; resolved densities by
    the flux u_f ρ_f with u_f to fourth order and ρ_f the linear reconstruction from the donor cell.
    """
    first, last = _share(worker, workers, len(density))
    fastest = 0.0
    for i in range(first, last):
        back, ahead = cell_sides[cell_start[i]], cell_sides[cell_start[i] + 1]
        a, b = neighbors[back ^ 1], neighbors[ahead ^ 1]
        sent[back] = 0.0
        sent[ahead] = 0.0
        outflow[i] = 0.0
        value = density[i]
        if value == 0.0:
            continue
        to_a, to_b = 0.5 * (volumes[i] + volumes[a]), 0.5 * (volumes[i] + volumes[b])
        if speed[i] > 0.0:
            donor_a, donor_b = 0.0, value * volumes[i] * speed[i] / to_b
        else:
            donor_a, donor_b = -value * volumes[i] * speed[i] / to_a, 0.0
        smooth = 0.0
        if value > occupied:
            slope = (density[b] - density[a]) / (to_a + to_b)
            worst = max(
                _misfit(value, density[a], value - slope * to_a), _misfit(value, density[b], value + slope * to_b)
            )
            smooth = _smoothness(worst, low, high)
        if smooth > 0.0:
            aa = neighbors[cell_sides[cell_start[a]] ^ 1]
            bb = neighbors[cell_sides[cell_start[b] + 1] ^ 1]
            u_a = (9.0 * (speed[a] + speed[i]) - speed[aa] - speed[b]) / 16.0
            u_b = (9.0 * (speed[i] + speed[b]) - speed[a] - speed[bb]) / 16.0
            half = 0.5 * volumes[i] * slope
            sent[back] = smooth * max(-u_a, 0.0) * max(value - half, 0.0)
            sent[ahead] = smooth * max(u_b, 0.0) * max(value + half, 0.0)
        sent[back] += (1.0 - smooth) * donor_a
        sent[ahead] += (1.0 - smooth) * donor_b
        outflow[i] = (sent[back] + sent[ahead]) / (value * volumes[i])
        if value > occupied and not outflow[i] <= fastest:  # so that a NaN is passed on
            fastest = outflow[i]
    return fastest


@_kernel
def send_on_surface(
    worker,
    workers,
    centers,
    volumes,
    face_centers,
    face_normals,
    face_areas,
    cell_start,
    cell_sides,
    neighbors,
    density,
    velocity,
    low,
    high,
    occupied,
    sent,
    outflow,
):
    """Mass per time that each cell of the unit sphere sends through its sides; returns the fastest occupied rate.

    Lumps: split over the two neighbours that bracket X_i, with weights w ≥ 0 such that Σ w (x_f − x_i) = X_i in the
    tangent plane. Resolved densities: A (u·n)⁺ ρ_f with u the mean of the two cells' velocities and ρ_f the linear
    reconstruction from the donor cell by a least-squares gradient.
    """
    first, last = _share(worker, workers, len(density))
    p, q = np.empty(16), np.empty(16)  # neighbour offsets in the tangent plane of the cell
    fastest = 0.0
    for i in range(first, last):
        start = cell_start[i]
        count = cell_start[i + 1] - start
        for k in range(count):
            sent[cell_sides[start + k]] = 0.0
        outflow[i] = 0.0
        value = density[i]
        if value == 0.0:
            continue
        x, y, z = centers[i, 0], centers[i, 1], centers[i, 2]

        # Tangent basis: e towards the first neighbour, f = x × e.
        j = neighbors[cell_sides[start] ^ 1]
        ex, ey, ez = centers[j, 0] - x, centers[j, 1] - y, centers[j, 2] - z
        radial = ex * x + ey * y + ez * z
        ex, ey, ez = ex - radial * x, ey - radial * y, ez - radial * z
        length = np.sqrt(ex * ex + ey * ey + ez * ez)
        ex, ey, ez = ex / length, ey / length, ez / length
        fx, fy, fz = y * ez - z * ey, z * ex - x * ez, x * ey - y * ex

        for k in range(count):
            j = neighbors[cell_sides[start + k] ^ 1]
            dx, dy, dz = centers[j, 0] - x, centers[j, 1] - y, centers[j, 2] - z
            arc = 1.0 + (dx * dx + dy * dy + dz * dz) / 6.0  # angle/sin(angle), so that offsets are geodesic
            p[k] = (dx * ex + dy * ey + dz * ez) * arc
            q[k] = (dx * fx + dy * fy + dz * fz) * arc

        smooth = 0.0
        if value > occupied:
            pp, pq, qq, pr, qr = 0.0, 0.0, 0.0, 0.0, 0.0
            for k in range(count):
                rise = density[neighbors[cell_sides[start + k] ^ 1]] - value
                pp += p[k] * p[k]
                pq += p[k] * q[k]
                qq += q[k] * q[k]
                pr += p[k] * rise
                qr += q[k] * rise
            determinant = pp * qq - pq * pq
            slope_p, slope_q = (qq * pr - pq * qr) / determinant, (pp * qr - pq * pr) / determinant
            worst = 0.0
            for k in range(count):
                neighbor = density[neighbors[cell_sides[start + k] ^ 1]]
                worst = max(worst, _misfit(value, neighbor, value + slope_p * p[k] + slope_q * q[k]))
            smooth = _smoothness(worst, low, high)

        total = 0.0
        if smooth > 0.0:
            for k in range(count):
                side = cell_sides[start + k]
                face = side >> 1
                j = neighbors[side ^ 1]
                nx, ny, nz = face_normals[face, 0], face_normals[face, 1], face_normals[face, 2]
                u = 0.5 * (
                    (velocity[i, 0] + velocity[j, 0]) * nx
                    + (velocity[i, 1] + velocity[j, 1]) * ny
                    + (velocity[i, 2] + velocity[j, 2]) * nz
                )
                if side & 1:
                    u = -u
                if u > 0.0:
                    dx, dy, dz = face_centers[face, 0] - x, face_centers[face, 1] - y, face_centers[face, 2] - z
                    along_p, along_q = dx * ex + dy * ey + dz * ez, dx * fx + dy * fy + dz * fz
                    reconstructed = value + slope_p * along_p + slope_q * along_q
                    sent[side] = smooth * face_areas[face] * u * max(reconstructed, 0.0)
                    total += sent[side]

        if smooth < 1.0:
            vp = velocity[i, 0] * ex + velocity[i, 1] * ey + velocity[i, 2] * ez
            vq = velocity[i, 0] * fx + velocity[i, 1] * fy + velocity[i, 2] * fz
            lump = (1.0 - smooth) * value * volumes[i]
            for k in range(count):
                n = k + 1 if k + 1 < count else 0
                span = p[k] * q[n] - q[k] * p[n]
                towards_k, towards_n = vp * q[n] - vq * p[n], p[k] * vq - q[k] * vp
                if span > 0.0 and towards_k > 0.0 and towards_n >= 0.0:
                    sent[cell_sides[start + k]] += lump * towards_k / span
                    sent[cell_sides[start + n]] += lump * towards_n / span
                    total += lump * (towards_k + towards_n) / span
                    break
        outflow[i] = total / (value * volumes[i])
        if value > occupied and not outflow[i] <= fastest:  # so that a NaN is passed on
            fastest = outflow[i]
    return fastest


@_kernel
def receive(worker, workers, volumes, cell_start, cell_sides, neighbors, sent, outflow, dt, rate):
    """Add to ``rate`` what each cell receives less what it sends, per volume.

    A cell that would send more than it holds within dt sends what it holds (the draining limiter).
    """
    first, last = _share(worker, workers, len(rate))
    for i in range(first, last):
        keep = 1.0 / max(1.0, dt * outflow[i])
        total = 0.0
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            j = neighbors[side ^ 1]
            total += sent[side ^ 1] / max(1.0, dt * outflow[j]) - sent[side] * keep
        rate[i] += total / volumes[i]


@_kernel
def diffuse(worker, workers, volumes, conductance, cell_start, cell_sides, neighbors, density, rate):
    """rate = Δρ by two-point fluxes: Σ_faces (A/distance) (ρ_j − ρ_i) / V_i."""
    first, last = _share(worker, workers, len(rate))
    for i in range(first, last):
        total = 0.0
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            total += conductance[side >> 1] * (density[neighbors[side ^ 1]] - density[i])
        rate[i] = total / volumes[i]


@_kernel
def advance(worker, workers, start, stage, rate, dt, weight, result):
    """result = w + weight (start − w) with w = stage + dt rate: one stage of a Shu–Osher scheme.

    Written so that equal states stay equal to the last bit.
    """
    first, last = _share(worker, workers, len(result))
    for i in range(first, last):
        w = stage[i] + dt * rate[i]
        result[i] = w + weight * (start[i] - w)


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
