"""Outgoing fluxes of the unit sphere's cells: unresolved ones by their velocity, others by reconstruction."""

import numpy as np

from .launching import inline, kernel, scratch, share
from .transport import blending_weight, smoothness_indicator

ROUNDING = 1e-9  # weights of a neighbor behind that are smaller count as 0 and do not limit the pulled mass


@inline
def _tangent_basis(centers, i, j):
    """Return two orthonormal tangent vectors at cell i of the unit sphere, of which the first points toward cell j."""
    x, y, z = centers[i, 0], centers[i, 1], centers[i, 2]
    ex, ey, ez = centers[j, 0] - x, centers[j, 1] - y, centers[j, 2] - z
    radial = ex * x + ey * y + ez * z
    ex, ey, ez = ex - radial * x, ey - radial * y, ez - radial * z
    length = np.sqrt(ex * ex + ey * ey + ez * ez)
    ex, ey, ez = ex / length, ey / length, ez / length
    return (ex, ey, ez), (y * ez - z * ey, z * ex - x * ez, x * ey - y * ex)


@inline
def _geodesic_offset(centers, i, points, k, e, f):
    """Return the geodesic offset of point k from the center of cell i of the unit sphere, to fourth order.

    The two components are along the orthonormal tangent vectors e and f at the cell.
    """
    dx, dy, dz = points[k, 0] - centers[i, 0], points[k, 1] - centers[i, 1], points[k, 2] - centers[i, 2]
    arc = 1.0 + (dx * dx + dy * dy + dz * dz) / 6.0  # angle / sin(angle)
    return (dx * e[0] + dy * e[1] + dz * e[2]) * arc, (dx * f[0] + dy * f[1] + dz * f[2]) * arc


@inline
def _neighbor_offsets(centers, i, cell_sides, start, count, neighbors, e, f, p, q):
    """Compute the geodesic offsets (p, q) of the neighbors of cell i, along the tangent vectors e and f."""
    for k in range(count):
        p[k], q[k] = _geodesic_offset(centers, i, centers, neighbors[cell_sides[start + k] ^ 1], e, f)


@inline
def _inverse_of_squares(p, q, count):
    """Return entries pp, pq, qq of (Σ d dᵀ)⁻¹ over neighbor offsets d = (p, q), the least-squares gradient's matrix."""
    pp, pq, qq = 0.0, 0.0, 0.0
    for k in range(count):
        pp += p[k] * p[k]
        pq += p[k] * q[k]
        qq += q[k] * q[k]
    determinant = pp * qq - pq * pq
    return qq / determinant, -pq / determinant, pp / determinant


@inline
def _is_near_occupied(i, start, count, cell_sides, neighbors, density, occupied):
    """Return whether the density of cell i or of one of its neighbors is above ``occupied`` (1,)."""
    densest = density[i]
    for k in range(count):
        densest = max(densest, density[neighbors[cell_sides[start + k] ^ 1]])
    return densest > occupied[0]


@inline
def _slope(density, i, start, count, cell_sides, neighbors, p, q, inverse):
    """Return the two components of the least-squares gradient of the density at cell i, in its tangent plane.

    p, q       offsets of the neighbors' centers
    inverse    result of :func:`_inverse_of_squares`
    """
    pp, pq, qq = inverse
    pr, qr = 0.0, 0.0
    for k in range(count):
        rise = density[neighbors[cell_sides[start + k] ^ 1]] - density[i]
        pr += p[k] * rise
        qr += q[k] * rise
    return pp * pr + pq * qr, pq * pr + qq * qr


@kernel
def reconstruct_on_surface(
    worker, workers, centers, face_centers, face_normals, face_areas, face_curvatures, cell_start, cell_sides,
    neighbors, density, velocity, low, high, occupied, flux, smooth, sent,
):  # fmt: skip
    """Compute the outward flux A u·n through each side of the unit sphere's cells, and each cell's smoothness weight.

    The weight ``smooth`` (cells,) is 1 where the density is resolved, 0 where it is not. A is the length of a side's
    face, n its normal, X the velocity.

    u = X_i + ∇X_i (x_f − x_i − ¼ (x_j − x_i)) uses the cell's velocity and its least-squares gradient. The mean of both
    sides of a face is then cubic Hermite interpolation along a line of cells, and of second order on any mesh.

    Faces are curved, and their lengths jump where rings change 2:1. The mean of a product along a face of length A and
    tangent t is therefore needed to second order: mean of f g = product of means + (A²/12) ∂_t f ∂_t g. For X·n the
    correction is part of ``flux``, with ∂_t n = curvature·t; for u·n ρ half of it, from either side, is in ``sent``.
    """
    first, last = share(worker, workers, len(centers))
    p, q = scratch(16), scratch(16)  # neighbor offsets in the tangent plane of the cell
    for i in range(first, last):
        start = cell_start[i]
        count = cell_start[i + 1] - start
        smooth[i] = 0.0
        for k in range(count):
            sent[cell_sides[start + k]] = 0.0
        if not _is_near_occupied(i, start, count, cell_sides, neighbors, density, occupied):
            continue  # no side of the cell is resolved, so that its flux is not used
        e, f = _tangent_basis(centers, i, neighbors[cell_sides[start] ^ 1])
        _neighbor_offsets(centers, i, cell_sides, start, count, neighbors, e, f, p, q)
        pp, pq, qq = _inverse_of_squares(p, q, count)
        if density[i] > occupied[0]:
            slope_p, slope_q = _slope(density, i, start, count, cell_sides, neighbors, p, q, (pp, pq, qq))
            worst = 0.0
            for k in range(count):
                neighbor = density[neighbors[cell_sides[start + k] ^ 1]]
                worst = max(
                    worst, smoothness_indicator(density[i], neighbor, density[i] + slope_p * p[k] + slope_q * q[k])
                )
            smooth[i] = blending_weight(worst, low, high)
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
            at_p, at_q = _geodesic_offset(centers, i, face_centers, face, e, f)
            at_p -= 0.25 * p[k]
            at_q -= 0.25 * q[k]
            area = -face_areas[face] if side & 1 else face_areas[face]
            bend = face_curvatures[face]
            twelfth = area * area / 12.0
            x, y, z = face_centers[face, 0], face_centers[face, 1], face_centers[face, 2]
            nx, ny, nz = face_normals[face, 0], face_normals[face, 1], face_normals[face, 2]
            tx, ty, tz = y * nz - z * ny, z * nx - x * nz, x * ny - y * nx
            t_p, t_q = tx * e[0] + ty * e[1] + tz * e[2], tx * f[0] + ty * f[1] + tz * f[2]
            tu, tv, tw = pu * t_p + qu * t_q, pv * t_p + qv * t_q, pw * t_p + qw * t_q  # ∂_t X
            mean = (
                (u + pu * at_p + qu * at_q) * nx + (v + pv * at_p + qv * at_q) * ny + (w + pw * at_p + qw * at_q) * nz
            )
            flux[side] = area * (mean + twelfth * bend * (tu * tx + tv * ty + tw * tz))
            change = tu * nx + tv * ny + tw * nz + bend * (u * tx + v * ty + w * tz)  # ∂_t (X·n)
            sent[side] = 0.5 * area * twelfth * change * (slope_p * t_p + slope_q * t_q)


@inline
def _split(p, q, count, vp, vq):
    """Return the numbers of the two consecutive offsets d that bracket a vector v, and w ≥ 0 with w₁ d₁ + w₂ d₂ = v.

    p, q      components of the offsets d of ``count`` neighbors, counterclockwise
    vp, vq    components of v
    """
    for k in range(count):
        n = k + 1 if k + 1 < count else 0
        span = p[k] * q[n] - q[k] * p[n]
        towards_k, towards_n = vp * q[n] - vq * p[n], p[k] * vq - q[k] * vp
        if span > 0.0 and towards_k > 0.0 and towards_n >= 0.0:
            return k, n, towards_k / span, towards_n / span
    return 0, 0, 0.0 * vp, 0.0 * vq  # 0 at rest; NaN is passed on


@inline
def _add_unresolved_flux(
    i, k, weight, start, count, cell_sides, neighbors, volumes, density, resolved, p, q, occupied, sent
):
    """Add to ``sent`` fluxes that move the center of mass as if the mass m of cell i had the velocity weight·d_k.

    d_k = (p[k], q[k]) is the offset of neighbor k. The fraction 1 − f of m·weight is sent to neighbor k. Instead of the
    fraction f ≤ ½, mass is pulled in from the two neighbors on either side of −d_k, as negative fluxes. Their masses
    limit f, and f = 0 in a cell that is not occupied. Each flux is multiplied by the unresolved fraction, 1 −
    ``resolved``, of its side.
    """
    mass = density[i] * volumes[i]
    pulled = 0.0
    if density[i] > occupied[0] and weight > 0.0:
        a, b, weight_a, weight_b = _split(p, q, count, -p[k], -q[k])
        side_a, side_b = cell_sides[start + a], cell_sides[start + b]
        j_a, j_b = neighbors[side_a ^ 1], neighbors[side_b ^ 1]
        behind = mass
        if weight_a > ROUNDING:
            behind = min(behind, density[j_a] * volumes[j_a] / weight_a)
        if weight_b > ROUNDING:
            behind = min(behind, density[j_b] * volumes[j_b] / weight_b)
        pulled = 0.5 * behind / mass
        sent[side_a] -= pulled * (1.0 - resolved[a]) * mass * weight * weight_a
        sent[side_b] -= pulled * (1.0 - resolved[b]) * mass * weight * weight_b
    sent[cell_sides[start + k]] += (1.0 - pulled) * (1.0 - resolved[k]) * mass * weight


@kernel
def outgoing_flux_on_surface(
    worker, workers, centers, volumes, face_centers, cell_start, cell_sides, neighbors, density, velocity, flux,
    smooth, occupied, sent,
):  # fmt: skip
    """Compute the mass per time that each unit-sphere cell sends through its sides; negative where it pulls mass in.

    The mass of an unresolved cell is split over the two neighbors that bracket the velocity X_i, with weights w ≥ 0
    such that Σ w (x_f − x_i) = X_i in the tangent plane. Up to half of each part is pulled in from the opposite side
    instead of sent forward, limited by the mass there. This exchange moves the center of mass equally and removes the
    diffusion of the upwind flux. A resolved density has the flux (A u·n)⁺ ρ_f, with A u·n the mean over both sides of
    :func:`reconstruct_on_surface`, and ρ_f the linear reconstruction from the donor cell by a least-squares gradient. A
    face is as resolved as the less resolved of its cells.
    """
    first, last = share(worker, workers, len(density))
    p, q = scratch(16), scratch(16)
    resolved = scratch(16)
    for i in range(first, last):
        start = cell_start[i]
        count = cell_start[i + 1] - start
        min_resolved, max_resolved = 1.0, 0.0
        for k in range(count):
            side = cell_sides[start + k]
            resolved[k] = min(smooth[i], smooth[neighbors[side ^ 1]])
            sent[side] *= resolved[k]
            min_resolved, max_resolved = min(min_resolved, resolved[k]), max(max_resolved, resolved[k])
        value = density[i]
        if value == 0.0:
            continue
        e, f = _tangent_basis(centers, i, neighbors[cell_sides[start] ^ 1])
        _neighbor_offsets(centers, i, cell_sides, start, count, neighbors, e, f, p, q)

        if max_resolved > 0.0:
            inverse = _inverse_of_squares(p, q, count)
            slope_p, slope_q = _slope(density, i, start, count, cell_sides, neighbors, p, q, inverse)
            for k in range(count):
                side = cell_sides[start + k]
                through = 0.5 * (flux[side] - flux[side ^ 1])
                if resolved[k] > 0.0 and not through <= 0.0:  # so that a NaN is passed on
                    at_p, at_q = _geodesic_offset(centers, i, face_centers, side >> 1, e, f)
                    sent[side] += resolved[k] * through * max(value + slope_p * at_p + slope_q * at_q, 0.0)

        if min_resolved < 1.0:
            vp = velocity[i, 0] * e[0] + velocity[i, 1] * e[1] + velocity[i, 2] * e[2]
            vq = velocity[i, 0] * f[0] + velocity[i, 1] * f[1] + velocity[i, 2] * f[2]
            k, n, weight_k, weight_n = _split(p, q, count, vp, vq)
            _add_unresolved_flux(
                i, k, weight_k, start, count, cell_sides, neighbors, volumes, density, resolved, p, q, occupied, sent
            )
            _add_unresolved_flux(
                i, n, weight_n, start, count, cell_sides, neighbors, volumes, density, resolved, p, q, occupied, sent
            )
