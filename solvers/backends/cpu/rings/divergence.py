"""Outflow rates of the cells of rings of latitude, and the divergence of the fluxes.

The formulas are those of :mod:`solvers.backends.cpu.transport`; for sides and rows see
:mod:`solvers.backends.cpu.rings.sides`.
"""

import numpy as np

from ..caching import compiled
from ..launching import index, share
from .sides import (
    COUNT,
    FACE_NORTH,
    FACE_SOUTH,
    NORTH,
    NORTH_FACES,
    REGULAR,
    SOUTH,
    SOUTH_FACES,
    START,
    cells_of_part,
    helper,
    ring_of,
    row_kernel,
    side_of,
)

ignoring_nan = compiled(fastmath={"nnan", "nsz", "reassoc"}, forceinline=True)  # a maximum by vector instructions


@helper
def loss_through(own, other):
    """Return the mass per time that a cell loses through a side: its outward flux, and what the other cell pulls.

    ``own`` is the flux that the cell sends, ``other`` that of the other cell; a negative flux pulls mass in.
    """
    return max(own, 0.0) + max(-other, 0.0)


@ignoring_nan
def _largest(values, density, occupied, first, stop):
    """Return the largest value ≥ 0 of cells with a density above ``occupied``; any number if a value is NaN.

    The cells are ``first`` to ``stop`` − 1. The maximum uses vector instructions, which ignore NaN: see
    :func:`_not_numbers`.
    """
    largest = 0.0
    for i in range(first, stop):
        largest = max(largest, values[index(i)] if density[index(i)] > occupied else 0.0)
    return largest


@helper
def _not_numbers(values, density, occupied, first, stop):
    """Return the number of NaN among the values of cells whose density is NaN or above ``occupied``.

    The cells are ``first`` to ``stop`` − 1.
    """
    count = 0
    for i in range(first, stop):
        value = values[index(i)]
        count += int(value != value and not density[index(i)] <= occupied)
    return count


@row_kernel
def outflow_rates_on_rings(worker, workers, rows, volumes, density, occupied, sent, outflow):
    """Compute the outflow rate of each cell of rings, its loss of mass per time over its mass; return the largest one.

    The formulas are those of :func:`solvers.backends.cpu.transport.outflow_rates`, with volumes (rings,) and sent
    (2, faces). Workers share the cells ``begin`` to ``end`` − 1.
    """
    first, last = share(worker, workers, len(outflow))
    r, fastest, lost_numbers = ring_of(rows, first), 0.0, 0
    while first < last:
        row = rows[r]
        start, count, area = row[START], row[COUNT], volumes[r]
        stop = min(last, start + count)
        if row[REGULAR]:
            faces_north, faces_south = row[FACE_NORTH] - start, row[FACE_SOUTH] - start
            for part in range(3):
                begin, end, _, to_west = cells_of_part(part, start, count)
                for cell in range(max(first, begin), min(stop, end)):
                    i, w = index(cell), index(cell + to_west)
                    fn, fs = index(cell + faces_north), index(cell + faces_south)
                    lost = loss_through(sent[0, i], sent[1, i]) + loss_through(sent[1, fn], sent[0, fn])
                    lost += loss_through(sent[1, w], sent[0, w]) + loss_through(sent[0, fs], sent[1, fs])
                    mass = density[i] * area
                    outflow[i] = lost / mass if mass != 0.0 else 0.0
        else:
            for i in range(first, stop):
                lost, mass = 0.0, density[i] * area
                for k in range(2 + row[NORTH_FACES] + row[SOUTH_FACES]):
                    plane, face, _ = side_of(k, i - start, row)
                    lost += loss_through(sent[plane, face], sent[1 - plane, face])
                outflow[i] = lost / mass if mass != 0.0 else 0.0
        fastest = max(fastest, _largest(outflow, density, occupied[0], first, stop))
        lost_numbers += _not_numbers(outflow, density, occupied[0], first, stop)
        first, r = stop, r + 1
    return fastest if lost_numbers == 0 else np.nan


@helper
def gain_through(own, other, keep, keep_there):
    """Return the mass per time that a cell gains less what it loses through a side.

    ``own`` and ``other`` are the fluxes that the cell and its neighbor send; a negative flux is an inflow. Each is
    multiplied by the fraction, ``keep`` or ``keep_there``, of the cell that gives the mass.
    """
    return other * (keep_there if other > 0.0 else keep) - own * (keep if own > 0.0 else keep_there)


@helper
def kept_fraction(dt, outflow):
    """Return the fraction min(1, 1/(dt outflow)) of its fluxes with which a cell loses at most its mass within dt."""
    return 1.0 / max(1.0, dt * outflow)


@compiled(fastmath={"contract"}, relative_speed=4)
def divergence_on_rings(worker, workers, rows, volumes, sent, outflow, dt, rate):
    """Add to ``rate`` (cells,) the inflow less the outflow of each cell of rings, per volume.

    A cell that would lose more than its mass within dt loses all its mass (the draining limiter). The formulas are
    those of :func:`solvers.backends.cpu.transport.divergence`, with volumes (rings,) and sent (2, faces).
    """
    first, last = share(worker, workers, len(rate))
    r = ring_of(rows, first)
    while first < last:
        row = rows[r]
        start, count, over = row[START], row[COUNT], 1.0 / volumes[r]
        stop = min(last, start + count)
        if row[REGULAR]:
            to_north, to_south = row[NORTH] - start, row[SOUTH] - start
            faces_north, faces_south = row[FACE_NORTH] - start, row[FACE_SOUTH] - start
            for part in range(3):
                begin, end, to_east, to_west = cells_of_part(part, start, count)
                for cell in range(max(first, begin), min(stop, end)):
                    i, e, w = index(cell), index(cell + to_east), index(cell + to_west)
                    n, s = index(cell + to_north), index(cell + to_south)
                    fn, fs = index(cell + faces_north), index(cell + faces_south)
                    keep = kept_fraction(dt, outflow[i])
                    total = gain_through(sent[0, i], sent[1, i], keep, kept_fraction(dt, outflow[e]))
                    total += gain_through(sent[1, fn], sent[0, fn], keep, kept_fraction(dt, outflow[n]))
                    total += gain_through(sent[1, w], sent[0, w], keep, kept_fraction(dt, outflow[w]))
                    total += gain_through(sent[0, fs], sent[1, fs], keep, kept_fraction(dt, outflow[s]))
                    rate[i] += total * over
        else:
            for i in range(first, stop):
                keep, total = kept_fraction(dt, outflow[i]), 0.0
                for k in range(2 + row[NORTH_FACES] + row[SOUTH_FACES]):
                    plane, face, neighbor = side_of(k, i - start, row)
                    total += gain_through(
                        sent[plane, face], sent[1 - plane, face], keep, kept_fraction(dt, outflow[neighbor])
                    )
                rate[i] += total * over
        first, r = stop, r + 1
