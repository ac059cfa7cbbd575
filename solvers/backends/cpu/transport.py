"""Transport: how much mass each cell sends through each of its sides, and what comes of it."""

from .launching import inline, kernel, share


@inline
def blending_weight(indicator, low, high):
    """1 where the density is resolved, 0 where it is not, a cubic ramp between; ``indicator`` is relative."""
    if indicator <= low:
        return 1.0
    if indicator >= high:
        return 0.0
    ramp = (high - indicator) / (high - low)
    return ramp * ramp * (3.0 - 2.0 * ramp)


@inline
def smoothness_indicator(value, neighbor, predicted):
    """Distance of a neighbor from a cell's linear reconstruction, or a quarter of its jump, over their mean.

    The jump is there for the foot of an unresolved peak, 0, a, 2a, which is on a line and yet not resolved.
    """
    total = value + neighbor
    departure = max(abs(neighbor - predicted), 0.25 * abs(neighbor - value))
    return 2.0 * departure / total if total > 0.0 else 0.0


@kernel
def outflow_rates(worker, workers, volumes, cell_start, cell_sides, density, occupied, sent, outflow):
    """Rate at which each cell loses mass, sent by itself or pulled by others; returns the fastest occupied one's."""
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
    """Add to ``rate`` what each cell receives less what it loses, per volume.

    A cell that would lose more than it holds within dt loses what it holds (the draining limiter).
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
