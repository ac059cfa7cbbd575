"""Transport: outflow rates, and the divergence of the masses that cells send through their sides."""

from .launching import inline, kernel, share


@inline
def blending_weight(indicator, low, high):
    """Return 1 for a resolved density, 0 for an unresolved one, a cubic ramp between, by a relative indicator."""
    if indicator <= low:
        return 1.0
    if indicator >= high:
        return 0.0
    ramp = (high - indicator) / (high - low)
    return ramp * ramp * (3.0 - 2.0 * ramp)


@inline
def smoothness_indicator(value, neighbor, predicted):
    """Return the distance of a neighbor from the linear reconstruction, or ¼ of the jump, over the mean.

    The jump covers the foot of an unresolved peak, 0, a, 2a, which lies on a line but is not resolved.
    """
    total = value + neighbor
    departure = max(abs(neighbor - predicted), 0.25 * abs(neighbor - value))
    return 2.0 * departure / total if total > 0.0 else 0.0


@kernel
def outflow_rates(worker, workers, volumes, cell_start, cell_sides, density, occupied, sent, outflow):
    """Compute the rate at which each cell loses mass to itself and others; return the fastest of occupied cells."""
    first, last = share(worker, workers, len(outflow))
    fastest = 0.0
    for i in range(first, last):
        lost = 0.0
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            lost += max(sent[side], 0.0) + max(-sent[side ^ 1], 0.0)
        mass = density[i] * volumes[i]
        outflow[i] = lost / mass if mass != 0.0 else 0.0
        if not density[i] <= occupied[0] and not (outflow[i] <= fastest or fastest != fastest):  # NaN stays
            fastest = outflow[i]
    return fastest


@kernel
def divergence(worker, workers, volumes, cell_start, cell_sides, neighbors, sent, outflow, dt, rate):
    """Add to ``rate`` the inflow less the outflow of each cell, per volume.

    A cell that would lose more than its mass within dt loses all its mass (the draining limiter).
    """
    first, last = share(worker, workers, len(rate))
    for i in range(first, last):
        keeps = 1.0 / max(1.0, dt * outflow[i])
        total = 0.0
        for k in range(cell_start[i], cell_start[i + 1]):
            side = cell_sides[k]
            inward, outward = sent[side ^ 1], sent[side]
            neighbor_keeps = 1.0 / max(1.0, dt * outflow[neighbors[side ^ 1]])
            total += inward * (neighbor_keeps if inward > 0.0 else keeps) - outward * (
                keeps if outward > 0.0 else neighbor_keeps
            )
        rate[i] += total / volumes[i]
