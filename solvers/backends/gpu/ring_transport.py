"""Transport on a sphere of rings: blocks of one ring, a thread for each cell, with the cell's neighbors in registers.

The formulas, the tables of each kind of cell and the columns of ``rows`` are those of the modules in
:mod:`solvers.backends.cpu.rings`, whose kernels go through runs of cells. The face fluxes are in one array: the fluxes
of the first cell of each face, then those of the second. The place of a side is its face, or that plus all faces.
"""

from numba import cuda, uint64

from ..cpu import transport
from ..cpu.rings import divergence, runs, sides
from ..cpu.rings.sides import (
    COUNT,
    FACE_NORTH,
    FACE_SOUTH,
    KIND,
    KINDS,
    NORTH,
    NORTH_FACES,
    REGULAR,
    SOUTH,
    SOUTH_FACES,
    START,
)
from ..sizes import MAX_RING_SIDES
from .arrays import SIMULATED
from .launching import THREADS, device_function, run, translated
from .reductions import largest_kernel, run_largest
from .unrolling import with_loops_written_out

BLOCKS = 1 if SIMULATED else 8  # of a ring
REDUCED = 2048  # blocks at most of a kernel with one result, whose last block reads the results of all
_TURN = MAX_RING_SIDES + 1  # the sides of a cell, and the first one again

_smoothness_indicator = translated(transport.smoothness_indicator)
_blending_weight = translated(transport.blending_weight)
_upwind = translated(runs.upwind)
_loss_through = translated(divergence.loss_through)
_gain_through = translated(divergence.gain_through)
_kept_fraction = translated(divergence.kept_fraction)
_side_of = translated(sides.side_of)
_ring_of_side = translated(sides.ring_of_side)


def _kernel(function):
    """Compile a kernel with unrolled loops over the sides of a cell, so that its local arrays are in registers."""
    return cuda.jit(with_loops_written_out(function))


@device_function
def _side(k, j, row, faces):
    """Return the neighbor across side k of cell j of a ring, and the index of the side's flux.

    An absent side gives the cell itself and the index 0. ``row`` (16,) describes the ring. Fluxes of the second cells
    of the ``faces`` of the mesh are stored after those of the first cells.
    """
    if k >= 2 + row[NORTH_FACES] + row[SOUTH_FACES]:
        return row[START] + j, 0
    if row[REGULAR]:
        if k == 0:
            return row[START] + (j + 1 if j + 1 < row[COUNT] else 0), row[START] + j
        if k == 1:
            return row[NORTH] + j, faces + row[FACE_NORTH] + j
        if k == 2:
            west = row[START] + (j - 1 if j > 0 else row[COUNT] - 1)
            return west, faces + west
        return row[SOUTH] + j, row[FACE_SOUTH] + j
    plane, face, neighbor = _side_of(k, j, row)
    return neighbor, plane * faces + face


@device_function
def _sides(j, row, faces):
    """Return the five neighbors of cell j of a ring, and the places of the fluxes through its five sides.

    All numbers are unsigned, so that an access to an array needs no test for negative indices.
    """
    a, at_a = _side(0, j, row, faces)
    b, at_b = _side(1, j, row, faces)
    c, at_c = _side(2, j, row, faces)
    d, at_d = _side(3, j, row, faces)
    e, at_e = _side(4, j, row, faces)
    neighbors = uint64(a), uint64(b), uint64(c), uint64(d), uint64(e)
    return neighbors, (uint64(at_a), uint64(at_b), uint64(at_c), uint64(at_d), uint64(at_e))


@device_function
def _other(place, faces):
    """Return the place of the flux through the same face from the other cell."""
    return place + faces if place < faces else place - faces


@device_function
def _at(values, n):
    """Return the values at the five cells with the numbers n (5,)."""
    return values[n[0]], values[n[1]], values[n[2]], values[n[3]], values[n[4]]


@device_function
def _slope(s, around, u):
    """Return a component Σ_k s_k (u_k − u) of the least-squares gradient of a cell with value u and five neighbors."""
    slope = s[0] * (around[0] - u) + s[1] * (around[1] - u) + s[2] * (around[2] - u)
    return slope + s[3] * (around[3] - u) + s[4] * (around[4] - u)


@device_function
def _stencil(c, xs, ys, x, y):
    """Return the sum of the twelve weights c times the velocities (x, y) of five neighbors and of the cell itself."""
    around = (c[0] * xs[0] + c[1] * ys[0]) + (c[2] * xs[1] + c[3] * ys[1])
    around += (c[4] * xs[2] + c[5] * ys[2]) + (c[6] * xs[3] + c[7] * ys[3])
    return around + (c[8] * xs[4] + c[9] * ys[4]) + (c[10] * x + c[11] * y)


@_kernel
def _reconstruct(
    rows, slopes, offsets, tangents, stencils, density, east, north, low, high, occupied, flux, smooth, sent
):
    """Compute the fluxes and weights of :func:`reconstruct_on_rings`, a thread for each cell."""
    row = rows[cuda.blockIdx.x // BLOCKS]
    count = 2 + row[NORTH_FACES] + row[SOUTH_FACES]
    first = cuda.blockIdx.x % BLOCKS * cuda.blockDim.x + cuda.threadIdx.x
    for j in range(first, row[COUNT], BLOCKS * cuda.blockDim.x):
        i, kind = uint64(row[START] + j), uint64(row[KIND] + (j & row[KINDS] - 1))
        n, places = _sides(j, row, len(sent) // 2)
        u, x, y = density[i], east[i], north[i]
        around, xs, ys = _at(density, n), _at(east, n), _at(north, n)
        p, q = _slope(slopes[kind, 0], around, u), _slope(slopes[kind, 1], around, u)
        worst = 0.0
        for k in range(MAX_RING_SIDES):
            if k < count:
                predicted = u + p * offsets[kind, 0, k] + q * offsets[kind, 1, k]
                worst = max(worst, _smoothness_indicator(u, around[k], predicted))
        smooth[i] = _blending_weight(worst, low, high) if u > occupied[0] else 0.0
        for k in range(MAX_RING_SIDES):
            if k < count:
                flux[places[k]] = _stencil(stencils[0, kind, k], xs, ys, x, y)
                along = p * tangents[kind, 0, k] + q * tangents[kind, 1, k]
                sent[places[k]] = _stencil(stencils[1, kind, k], xs, ys, x, y) * along


def reconstruct_on_rings(
    worker, workers, rows, slopes, offsets, tangents, stencils, density, east, north, low, high, occupied, flux, smooth,
    sent,
):  # fmt: skip
    """Compute the outward flux A u·n through each side of the cells of rings, and each cell's smoothness weight.

    The tables are explained in :mod:`solvers.backends.cpu.rings.transport`, other arrays and formulas at
    :func:`solvers.backends.cpu.transport_surface.reconstruct_on_surface`. All cells are computed, whatever ``begin``
    and ``end``.
    """
    run(
        _reconstruct, (BLOCKS * len(rows), THREADS), rows, slopes, offsets, tangents, stencils, density, east, north,
        low, high, occupied, flux.reshape(-1), smooth, sent.reshape(-1),
    )  # fmt: skip


@_kernel
def _send(
    rows, volumes, slopes, offsets, reach, spans, opposite, density, east, north, flux, smooth, occupied, sent
):  # fmt: skip
    """Compute the masses per time of :func:`outgoing_flux_on_rings`, a thread for each cell."""
    r = cuda.blockIdx.x // BLOCKS
    row, faces, area = rows[r], uint64(len(sent) // 2), volumes[r]
    count = 2 + row[NORTH_FACES] + row[SOUTH_FACES]
    moved = cuda.local.array(_TURN, density.dtype)  # mass per time in the direction of each neighbor
    unresolved = cuda.local.array(MAX_RING_SIDES, density.dtype)  # of an unresolved cell: what each side sends
    first = cuda.blockIdx.x % BLOCKS * cuda.blockDim.x + cuda.threadIdx.x
    for j in range(first, row[COUNT], BLOCKS * cuda.blockDim.x):
        i, kind = uint64(row[START] + j), uint64(row[KIND] + (j & row[KINDS] - 1))
        n, places = _sides(j, row, len(sent) // 2)
        u, x, y = density[i], east[i], north[i]
        around, weights = _at(density, n), _at(smooth, n)
        for k in range(MAX_RING_SIDES):
            moved[k], unresolved[k] = 0.0, 0.0 * (x + y)  # a NaN is passed on
        moved[MAX_RING_SIDES] = 0.0
        for k in range(MAX_RING_SIDES):  # unresolved cells between neighbor k and the next
            if k < count:
                after = k + 1 if k + 1 < count else 0
                across = offsets[kind, 0, k] * y - offsets[kind, 1, k] * x
                beyond = offsets[kind, 0, after] * y - offsets[kind, 1, after] * x
                amount = u * (area * spans[kind, k]) if across >= 0.0 and beyond < 0.0 else 0.0
                moved[k] -= amount * beyond
                moved[k + 1] += amount * across
        for k in range(1, _TURN):  # the first neighbor follows the last
            if k == count:
                moved[0] += moved[k]
                moved[k] = 0.0
        half = 0.5 / (u * area) if u > occupied[0] else 0.0
        for k in range(MAX_RING_SIDES):  # mass pulled in from the neighbors m behind a cell, two at most
            if k < count:
                pull = u * area
                for m in range(MAX_RING_SIDES):
                    if opposite[kind, k, m] > 0.0:
                        behind = volumes[uint64(_ring_of_side(m, r, row))] / opposite[kind, k, m]
                        pull = min(pull, around[m] * behind)
                pull = half * pull * moved[k]
                unresolved[k] += moved[k] - pull
                for m in range(MAX_RING_SIDES):
                    if opposite[kind, k, m] > 0.0:
                        unresolved[m] -= pull * opposite[kind, k, m]
        p, q = _slope(slopes[kind, 0], around, u), _slope(slopes[kind, 1], around, u)
        for k in range(MAX_RING_SIDES):
            if k < count:
                place = places[k]
                value = u + p * reach[kind, 0, k] + q * reach[kind, 1, k]
                through = _upwind(flux[place], flux[_other(place, faces)], value)
                share = min(smooth[i], weights[k])
                sent[place] = share * (sent[place] + through) + (1.0 - share) * unresolved[k]


def outgoing_flux_on_rings(
    worker, workers, rows, volumes, slopes, offsets, reach, spans, opposite, density, east, north, flux, smooth,
    occupied, sent,
):  # fmt: skip
    """Compute the mass per time that each cell of rings sends through its sides; negative where it pulls mass in.

    For the arguments see :func:`solvers.backends.cpu.rings.transport.outgoing_flux_on_rings`; all cells are computed.
    """
    run(
        _send, (BLOCKS * len(rows), THREADS), rows, volumes, slopes, offsets, reach, spans, opposite, density, east,
        north, flux.reshape(-1), smooth, occupied, sent.reshape(-1),
    )  # fmt: skip


@device_function
@with_loops_written_out
def _find_outflow_rates(worker, workers, rows, volumes, density, occupied, sent, outflow):
    """Compute the outflow rate of each cell; return the largest one of a thread, NaN if one of its rates is NaN."""
    faces, fastest = uint64(len(sent) // 2), 0.0
    for strip in range(worker // THREADS, BLOCKS * len(rows), workers // THREADS):
        row, area = rows[strip // BLOCKS], volumes[strip // BLOCKS]
        count = 2 + row[NORTH_FACES] + row[SOUTH_FACES]
        for j in range(strip % BLOCKS * THREADS + worker % THREADS, row[COUNT], BLOCKS * THREADS):
            i, lost = uint64(row[START] + j), 0.0
            _, places = _sides(j, row, len(sent) // 2)
            for k in range(MAX_RING_SIDES):
                if k < count:
                    lost += _loss_through(sent[places[k]], sent[_other(places[k], faces)])
            mass = density[i] * area
            rate = lost / mass if mass != 0.0 else 0.0
            outflow[i] = rate
            if not density[i] <= occupied[0] and not (rate <= fastest or fastest != fastest):  # NaN stays
                fastest = rate
    return fastest


_find_fastest = largest_kernel(_find_outflow_rates)


def outflow_rates_on_rings(worker, workers, rows, volumes, density, occupied, sent, outflow):
    """Compute the outflow rate of each cell of rings, its loss of mass per time over its mass; return the largest.

    For the arguments see :func:`solvers.backends.cpu.rings.divergence.outflow_rates_on_rings`. The result is an array
    (2,) with the largest rate and its time step.
    """
    blocks = min(BLOCKS * len(rows), REDUCED)
    shape = blocks, THREADS
    return run_largest(_find_fastest, shape, rows, volumes, density, occupied, sent.reshape(-1), outflow)


@_kernel
def _add_divergence(rows, volumes, sent, outflow, dt, rate):
    """Add the divergence of :func:`divergence_on_rings` to ``rate`` (cells,), a thread for each cell."""
    r = cuda.blockIdx.x // BLOCKS
    row, faces, over = rows[r], uint64(len(sent) // 2), 1.0 / volumes[r]
    count = 2 + row[NORTH_FACES] + row[SOUTH_FACES]
    first = cuda.blockIdx.x % BLOCKS * cuda.blockDim.x + cuda.threadIdx.x
    for j in range(first, row[COUNT], BLOCKS * cuda.blockDim.x):
        i, total = uint64(row[START] + j), 0.0
        n, places = _sides(j, row, len(sent) // 2)
        keep = _kept_fraction(dt, outflow[i])
        for k in range(MAX_RING_SIDES):
            if k < count:
                place = places[k]
                keep_there = _kept_fraction(dt, outflow[n[k]])
                total += _gain_through(sent[place], sent[_other(place, faces)], keep, keep_there)
        rate[i] += total * over


def divergence_on_rings(worker, workers, rows, volumes, sent, outflow, dt, rate):
    """Add to ``rate`` (cells,) the inflow less the outflow of each cell of rings, per volume.

    For the arguments see :func:`solvers.backends.cpu.rings.divergence.divergence_on_rings`.
    """
    run(_add_divergence, (BLOCKS * len(rows), THREADS), rows, volumes, sent.reshape(-1), outflow, dt, rate)
