"""Transport through the faces of any mesh: velocities and values at faces, reconstructed linearly in each cell.

``slopes`` (len(cell_sides), d) are the weights of a least-squares gradient: ∇u_i = Σ_k slopes[k] (u_k − u_i), over the
sides k of cell i; ``reach`` (len(cell_sides), d) is the vector from the cell's center to that of each side's face.
"""

from .launching import inline, kernel, scratch, share

NONE, MC, VAN_LEER, KOREN = 0, 1, 2, 3


@kernel
def flux_at_faces(
    worker, workers, cell_start, cell_sides, neighbors, slopes, reach, face_normals, face_areas, tangents, bends,
    velocity, flux,
):  # fmt: skip
    """Compute the outward flux A X·n through each side, from its cell's linear reconstruction of the velocity X.

    A is the area and n the normal of the side's face. The mean of X·n along a curved face of curvature κ and tangent t
    is X·n + (A²/12) κ ∂_t X·t at its center: ``tangents`` (faces, d) are t, ``bends`` (faces,) are (A²/12) κ.
    """
    first, last = share(worker, workers, len(velocity))
    d = velocity.shape[1]
    for i in range(first, last):
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            face = side >> 1
            through = 0.0
            for c in range(d):
                through += velocity[i, c] * face_normals[face, c]
            for m in range(cell_start[i], cell_start[i + 1]):
                j = neighbors[cell_sides[m] ^ 1]
                share_at, share_along = 0.0, 0.0
                for c in range(d):
                    share_at += slopes[m, c] * reach[k, c]
                    share_along += slopes[m, c] * tangents[face, c]
                rise_at, rise_along = 0.0, 0.0
                for c in range(d):
                    rise = velocity[j, c] - velocity[i, c]
                    rise_at += rise * face_normals[face, c]
                    rise_along += rise * tangents[face, c]
                through += share_at * rise_at + bends[face] * share_along * rise_along
            flux[side] = -face_areas[face] * through if side & 1 else face_areas[face] * through


@inline
def _limit_slope(slope, ahead, behind, reach, limiter):
    """Return the slope-limited rise of a value from a cell's center to a face.

    ``ahead`` is the rise to the neighbor across the face, ``behind`` the rise from the opposite neighbor, ``slope`` the
    unlimited rise, and ``reach`` twice the face's distance over the neighbor's. Sources: MC van Leer 1977; VAN_LEER van
    Leer 1974; KOREN Koren 1993, of third order in one dimension on equal cells.
    """
    if limiter == NONE:
        return slope
    if not (ahead * behind > 0.0 and slope * ahead > 0.0):
        return 0.0 * slope  # 0 at an extremum; NaN is passed on
    rise = slope
    if limiter == VAN_LEER:
        rise *= 4.0 * ahead * behind / (ahead + behind) ** 2
    if limiter == KOREN:
        rise *= 2.0 / 3.0 * (2.0 * ahead + behind) / (ahead + behind)
    bound = min(min(reach, 1.0) * abs(ahead), reach * abs(behind))
    return min(rise, bound) if rise > 0.0 else max(rise, -bound)


@kernel
def values_at_faces(
    worker, workers, cell_start, cell_sides, neighbors, slopes, reach, distances, limiter, values, at_side
):
    """Compute the value at each side's face from its cell's linear reconstruction, with a slope limiter unless NONE.

    The value behind a cell, opposite to a neighbor j, is u_j − 2 ∇u_i·(x_j − x_i), restricted to the range of the
    neighbors. No face value is then outside the range of its two cells, and outflow never makes an extremum (local
    extremum diminishing: Jameson 1995).

    distances   (len(cell_sides), d + 1): vector from center to center, and twice the fraction up to the face
    """
    first, last = share(worker, workers, len(values))
    d = reach.shape[1]
    gradient = scratch(8)
    for i in range(first, last):
        low, high = values[i], values[i]
        for c in range(d):
            gradient[c] = 0.0
        for k in range(cell_start[i], cell_start[i + 1]):
            value = values[neighbors[cell_sides[k] ^ 1]]
            low, high = min(low, value), max(high, value)
            for c in range(d):
                gradient[c] += slopes[k, c] * (value - values[i])
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            ahead = values[neighbors[side ^ 1]] - values[i]
            slope, across = 0.0, 0.0
            for c in range(d):
                slope += gradient[c] * reach[k, c]
                across += gradient[c] * distances[k, c]
            behind = min(max(2.0 * across - ahead, values[i] - high), values[i] - low)
            at_side[side] = values[i] + _limit_slope(slope, ahead, behind, distances[k, d], limiter)


@kernel
def vectors_at_faces(
    worker, workers, cell_start, cell_sides, neighbors, slopes, reach, distances, limiter, face_normals, tangents,
    vectors, at_side,
):  # fmt: skip
    """Compute tangent vectors at each side's face of a surface; the limiter acts along the face and across the face.

    The components of ``vectors`` (d, cells) along the face's normal and tangent are reconstructed as a scalar field by
    :func:`values_at_faces`. So rotations of a field commute with the limiter. ``at_side`` is (d, sides).
    """
    first, last = share(worker, workers, vectors.shape[1])
    d = reach.shape[1]
    for i in range(first, last):
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            for c in range(d):
                at_side[c, side] = 0.0
            for axes in (face_normals, tangents):
                own = 0.0
                for c in range(d):
                    own += vectors[c, i] * axes[side >> 1, c]
                low, high, ahead, slope, across = own, own, 0.0, 0.0, 0.0
                for m in range(cell_start[i], cell_start[i + 1]):
                    value, share_at, share_across = 0.0, 0.0, 0.0
                    for c in range(d):
                        value += vectors[c, neighbors[cell_sides[m] ^ 1]] * axes[side >> 1, c]
                        share_at += slopes[m, c] * reach[k, c]
                        share_across += slopes[m, c] * distances[k, c]
                    low, high = min(low, value), max(high, value)
                    slope += share_at * (value - own)
                    across += share_across * (value - own)
                    if m == k:
                        ahead = value - own
                behind = min(max(2.0 * across - ahead, own - high), own - low)
                value = own + _limit_slope(slope, ahead, behind, distances[k, d], limiter)
                for c in range(d):
                    at_side[c, side] += value * axes[side >> 1, c]


@kernel
def outgoing_flux_through_faces(
    worker, workers, volumes, cell_start, cell_sides, neighbors, values, flux, at_side, nonnegative, sent
):
    """Compute the upwind fluxes (A X·n)⁺ u_f of each cell; return the largest outflow rate Σ (A X·n)⁺/V of a cell.

    A is the face area, X the velocity, n the outward normal, u_f the value at the face, V the cell volume. ``flux``
    (sides,) holds A X·n as computed by the cell of each side. Fluxes of a ``nonnegative`` density are ≥ 0, and 0 for an
    empty cell. Fluxes through walls are 0.
    """
    first, last = share(worker, workers, len(volumes))
    fastest = 0.0
    for i in range(first, last):
        total = 0.0
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            sent[side] = 0.0
            if neighbors[side ^ 1] == i:
                continue
            through = 0.5 * (flux[side] - flux[side ^ 1])
            if not through <= 0.0:  # so that a NaN is passed on
                total += through
                value = at_side[side]
                if nonnegative and (value < 0.0 or values[i] <= 0.0):  # ≤ includes the rounding of an emptied cell
                    value = 0.0
                sent[side] = through * value
        total /= volumes[i]
        if not (total <= fastest or fastest != fastest):  # NaN stays
            fastest = total
    return fastest


@kernel
def divergence_of_sides(worker, workers, volumes, cell_start, cell_sides, flux, rate):
    """Subtract the divergence, the flux out of each cell per volume, from ``rate`` (cells,), for fluxes (faces,).

    The flux through a face is positive from its first side to its second. A wall is a face with one side in
    ``cell_sides``, which determines the sign.
    """
    first, last = share(worker, workers, len(rate))
    for i in range(first, last):
        total = 0.0
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            total += -flux[side >> 1] if side & 1 else flux[side >> 1]
        rate[i] -= total / volumes[i]
