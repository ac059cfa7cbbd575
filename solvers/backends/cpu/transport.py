"""Transport: outflow rates, and the divergence of the masses that cells send through their sides."""

from .launching import inline, kernel, share


@inline
def blending_weight(indicator, low, high):
    """Return 1 for a smoothness ``indicator`` up to ``low``, 0 from ``high`` on, a cubic ramp between.

    The weight blends fluxes of a resolved density, 1, and of an unresolved one, 0.
    """
    if indicator <= low:
        return 1.0
    if indicator >= high:
        return 0.0
    ramp = (high - indicator) / (high - low)
    return ramp * ramp * (3.0 - 2.0 * ramp)


@inline
def smoothness_indicator(value, neighbor, predicted):
    """Return |neighbor − predicted|, or ¼ |neighbor − value| if this is larger, over the mean of both cells' densities.

    ``predicted`` is the linear reconstruction of the density in a cell, evaluated at its neighbor. The quarter of the
    jump covers the foot of an unresolved peak, 0, a, 2a, which lies on a line but is not resolved. The indicator is 0
    for empty cells.
    """
    total = value + neighbor
    departure = max(abs(neighbor - predicted), 0.25 * abs(neighbor - value))
    return 2.0 * departure / total if total > 0.0 else 0.0


@kernel
def outflow_rates(worker, workers, volumes, cell_start, cell_sides, density, occupied, sent, outflow):
    """Compute the outflow rate of each cell, its loss of mass per time over its mass; return the largest one.

    A cell loses what it sends through its sides, sent > 0, and what a neighbor pulls out of it, sent < 0. The largest
    rate is that of a worker's cells with a density above ``occupied`` (1,), or NaN.
    """
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
    """Add to ``rate`` (cells,) the inflow less the outflow of each cell, per volume.

    ``sent`` (sides,) is the mass per time that each cell sends through a side; a negative one is pulled in. A cell that
    would lose more than its mass within dt, by its rate ``outflow``, loses all its mass (the draining limiter).
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
