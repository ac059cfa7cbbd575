"""Outgoing fluxes of the cells of a curve: unresolved cells by their own velocity, others by reconstruction."""

import numpy as np

from .launching import inline, kernel, share
from .transport import blending_weight, smoothness_indicator


@kernel
def reconstruct_on_curve(
    worker, workers, centers, volumes, cell_start, cell_sides, neighbors, density, velocity, low, high, occupied,
    speed, smooth,
):  # fmt: skip
    """Compute the speed X·t of each cell of a curve, and a smoothness weight, 1 where the density is resolved.

    X is the velocity (cells, d), t the direction from the first to the second neighbor. The weight decreases from 1 to
    0 where :func:`smoothness_indicator` increases from ``low`` to ``high``. The weight is 0 in cells whose density is
    at most ``occupied`` (1,). ``speed`` and ``smooth`` (cells,) are filled.
    """
    first, last = share(worker, workers, len(speed))
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
        if density[i] > occupied[0]:
            slope = (density[b] - density[a]) / (2.0 * volumes[i] + volumes[a] + volumes[b])
            before = density[i] - slope * (volumes[i] + volumes[a])
            after = density[i] + slope * (volumes[i] + volumes[b])
            at_a = smoothness_indicator(density[i], density[a], before)
            worst = max(at_a, smoothness_indicator(density[i], density[b], after))
            smooth[i] = blending_weight(worst, low, high)


@inline
def _speed_at_face(before, left, right, after, walled):
    """Return the speed at a face between cells ``left`` and ``right`` of a curve, interpolated from four cells.

    Next to a wall two cells are used, since values beyond the wall would be guesses.
    """
    if walled:
        return 0.5 * (left + right)
    return (7.0 * (left + right) - before - after) / 12.0


@kernel
def outgoing_flux_on_curve(worker, workers, volumes, cell_start, cell_sides, neighbors, density, speed, smooth, sent):
    """Compute the mass per time that each cell of a curve sends through its sides; negative where it pulls mass in.

    ``smooth`` (cells,) is 1 for a resolved density, 0 for an unresolved one. For unresolved cells see
    :func:`outgoing_flux_on_surface`. Resolved densities have the flux u_f ρ_f, with ρ_f the linear reconstruction from
    the donor cell and u_f by the weights (−1, 7, 7, −1)/12. The difference of these u_f is ∂u at the center to fourth
    order, where the masses that determine the velocity lie. A cell that is its own neighbor has a wall without flux.
    """
    first, last = share(worker, workers, len(density))
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
        open_a, open_b = a != i, b != i
        if max(smooth_a, smooth_b) > 0.0:
            aa = neighbors[cell_sides[cell_start[a]] ^ 1]
            bb = neighbors[cell_sides[cell_start[b] + 1] ^ 1]
            u_a = _speed_at_face(speed[aa], speed[a], speed[i], speed[b], aa == a or b == i)
            u_b = _speed_at_face(speed[a], speed[i], speed[b], speed[bb], a == i or bb == b)
            half = 0.5 * volumes[i] * (density[b] - density[a]) / (to_a + to_b)
            if open_a:
                sent[back] = smooth_a * max(-u_a, 0.0) * max(value - half, 0.0)
            if open_b:
                sent[ahead] = smooth_b * max(u_b, 0.0) * max(value + half, 0.0)
        if min(smooth_a, smooth_b) < 1.0:
            mass = value * volumes[i]
            unresolved_a, unresolved_b = (1.0 - smooth_a) * mass / to_a, (1.0 - smooth_b) * mass / to_b
            if speed[i] > 0.0 and open_b:
                pulled = 0.5 * min(1.0, density[a] * volumes[a] / mass) if open_a else 0.0
                sent[ahead] += (1.0 - pulled) * speed[i] * unresolved_b
                sent[back] -= pulled * speed[i] * unresolved_a
            elif speed[i] <= 0.0 and open_a:
                pulled = 0.5 * min(1.0, density[b] * volumes[b] / mass) if open_b else 0.0
                sent[back] -= (1.0 - pulled) * speed[i] * unresolved_a
                sent[ahead] += pulled * speed[i] * unresolved_b
