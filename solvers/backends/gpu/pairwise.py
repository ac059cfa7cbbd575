"""Sums over all pairs of a target and a source, one thread for each target, as in flash attention (2205.14135).

Source: Dao and others, arXiv:2205.14135. The threads of a tile read a group of sources together into shared memory.
Each thread has its own exponents and running maximum.

The numbers of targets and sources that a mask selects stay on the device, where the threads divide the work.
"""

from math import exp, inf

import numpy as np
from numba import cuda

from .arrays import SIMULATED, empty, xp
from .launching import THREADS, device_function, run
from .pair_products import exponential_sums_by_products

PAIR_SOURCES = 16  # exponents that a thread holds in registers
_ROWS = 4  # rows of the sums that are added at a time; the first ones stay in registers
PAIR_BYTES = 8 * THREADS  # of a row of a tile: in float64 one thread of a block for each target
_DEPTH = 16  # most components of sources in shared memory: products of matrices are faster for more
_SHARES = 32 if SIMULATED else 1 << 17  # threads for lost targets, each with all sources or a part of them
_MAX_PARTS = 5 if SIMULATED else 256  # parts of the sources of a target: one thread adds their sums


@cuda.jit
def _add_all(targets, sources, vectors, running, causal, log_scale, sums):
    """Compute the sums of :func:`exponential_sums`, a block for each tile and a thread for each target."""
    tile, lane, lanes = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    depth, rows = targets.shape[1], vectors.shape[1]
    shared = cuda.shared.array((_DEPTH, PAIR_SOURCES), targets.dtype)  # sources side by side: read several at a time
    factors = cuda.shared.array((_ROWS, PAIR_SOURCES), targets.dtype)
    exponents = cuda.local.array(PAIR_SOURCES, targets.dtype)
    totals = cuda.local.array(_ROWS, targets.dtype)
    for row in range(_ROWS):
        totals[row] = 0.0
    for row in range(_ROWS, rows):
        sums[tile, row, lane] = 0.0
    scale = log_scale[tile, lane]
    shrink = exp(scale - scale)  # 1 in the targets' format
    groups = len(vectors)
    if causal:  # groups later than all targets of the tile
        groups = min(groups, -(-(tile + 1) * lanes // PAIR_SOURCES))
    for group in range(groups):
        first = group * PAIR_SOURCES
        for j in range(PAIR_SOURCES):
            exponents[j] = 0.0
        cuda.syncthreads()
        for place in range(lane, PAIR_SOURCES * depth, lanes):
            shared[place % depth, place // depth] = sources[first + place // depth, place % depth]
        cuda.syncthreads()
        for k in range(depth):
            target = targets[tile, k, lane]
            for j in range(PAIR_SOURCES):
                exponents[j] += target * shared[k, j]
        if causal:
            for j in range(PAIR_SOURCES):
                if first + j > tile * lanes + lane:
                    exponents[j] = -inf
        if running:
            before = scale
            for j in range(PAIR_SOURCES):
                scale = max(scale, exponents[j])
            shrink = exp(before - scale)
        for j in range(PAIR_SOURCES):
            exponents[j] = exp(exponents[j] - scale)
        for start in range(0, rows, _ROWS):
            cuda.syncthreads()
            for place in range(lane, _ROWS * PAIR_SOURCES, lanes):
                row, j = place // PAIR_SOURCES, place % PAIR_SOURCES
                factors[row, j] = vectors[group, start + row, j] if start + row < rows else 0.0
            cuda.syncthreads()
            for row in range(_ROWS):
                part = factors[row, 0] * exponents[0]
                for j in range(1, PAIR_SOURCES):
                    part += factors[row, j] * exponents[j]
                if start == 0:
                    totals[row] = totals[row] * shrink + part
                elif start + row < rows:
                    sums[tile, start + row, lane] = sums[tile, start + row, lane] * shrink + part
    for row in range(_ROWS):
        if row < rows:
            sums[tile, row, lane] = totals[row]
    log_scale[tile, lane] = scale


def exponential_sums(worker, workers, targets, sources, vectors, running, causal, log_scale, sums):
    """Compute sums[t, c, i] = Σ_j vectors[c, j] e^{⟨b_i, y_j⟩ − s_i} over all sources j, for targets i in tiles t.

    Sources j are in groups of PAIR_SOURCES; s_i prevents overflow.

    targets    (tiles, depth, lanes) b, PAIR_BYTES / itemsize targets i in each tile
    sources    (groups · PAIR_SOURCES, depth) y
    vectors    (groups, rows, PAIR_SOURCES)
    running    whether s_i is raised to the largest ⟨b_i, y_j⟩; else s_i is fixed
    causal     whether target i includes sources j ≤ i only
    log_scale  (tiles, lanes) s
    """
    tiles, depth, lanes = targets.shape
    if depth > _DEPTH:
        exponential_sums_by_products(targets, sources, vectors, running, causal, log_scale, sums)
        return
    run(_add_all, (tiles, lanes), targets, sources, vectors, running, causal, log_scale, sums)


def true_indices(mask):
    """Return the indices where a mask (n,) is true, then the other indices, and the number of true entries.

    The indices of true entries are in increasing order. The number stays on the GPU.
    """
    among = xp.cumsum(mask, dtype=np.int32)  # number of true entries so far
    index = xp.cumsum(xp.ones_like(among), dtype=np.int32) - 1
    places = xp.empty_like(among)
    places[xp.where(mask, among - 1, len(mask) - 1 + among - index)] = index  # the others from the end on
    return places, mask.sum(keepdims=True)


def may_have_true(mask):
    """Return True for any mask (n,), since a test of its entries would need a transfer from the GPU to the host."""
    return True


def conditional(condition, one, other):
    """Return one() if a condition on the GPU holds, else other(), which return tuples of arrays; both are evaluated."""
    return tuple(xp.where(condition, here, there) for here, there in zip(one(), other(), strict=True))


@device_function
def _parts(count):
    """Return the number of parts into which the sources of each of ``count`` targets are divided among threads.

    Few targets have many parts, so that all threads work.
    """
    return min(max(_SHARES // count, 1), _MAX_PARTS)


@device_function
def _exponent(target, source):
    """Return ⟨b, y⟩ of a target b and a source y, both (2,) or (3,)."""
    exponent = target[0] * source[0] + target[1] * source[1]
    return exponent + target[2] * source[2] if len(target) == 3 else exponent


@device_function
def _add_part(target, occupied, first, stop, sources, weights, place, scale, normalizer, vectors):
    """Compute s, Z and N of one target b over some of the sources y, and write them to row ``place`` of three arrays.

    Z = Σ_j w_j e^{⟨b,y_j⟩ − s} and N = Σ_j w_j y_j e^{⟨b,y_j⟩ − s}, where s is the largest exponent. The sources j are
    occupied[first], …, occupied[stop − 1], and w are the ``weights``.
    """
    d, highest, total = len(target), -inf, 0.0
    for k in range(first, stop):
        highest = max(highest, _exponent(target, sources[occupied[k]]))
    x = y = z = 0.0
    for k in range(first, stop):
        source = sources[occupied[k]]
        factor = weights[occupied[k]] * exp(_exponent(target, source) - highest)
        total += factor
        x += factor * source[0]
        y += factor * source[1]
        if d == 3:
            z += factor * source[2]
    scale[place], normalizer[place], vectors[place, 0], vectors[place, 1] = highest, total, x, y
    if d == 3:
        vectors[place, 2] = z


@cuda.jit
def _add_parts(
    lost, lost_count, occupied, occupied_count, targets, sources, weights, scale, normalizer, vectors, scales,
    normalizers, rest,
):  # fmt: skip
    """Compute s, Z and N of :func:`redo_sums` for the lost targets, over one part of the sources in each thread.

    The sums over the first part are written to ``scale``, ``normalizer`` and ``vectors`` at the target, those over the
    other parts to the scratch arrays ``scales``, ``normalizers`` and ``rest``.
    """
    count, amount = lost_count[0], occupied_count[0]
    if count > 0:
        parts = _parts(count)
        for share in range(cuda.grid(1), count * parts, cuda.gridsize(1)):
            part, i = share // count, lost[share % count]
            first, stop = amount * part // parts, amount * (part + 1) // parts
            if part == 0:
                _add_part(targets[i], occupied, first, stop, sources, weights, i, scale, normalizer, vectors)
            else:
                beside = share - count
                _add_part(targets[i], occupied, first, stop, sources, weights, beside, scales, normalizers, rest)


@cuda.jit
def _join_parts(lost, lost_count, scale, normalizer, vectors, scales, normalizers, rest):
    """Add the sums Z and N of lost targets over all parts of the sources, from the results of :func:`_add_parts`.

    The sums of each part are first rescaled to s, the largest exponent of all parts. The totals replace the sums over
    the first part in ``scale``, ``normalizer`` and ``vectors``.
    """
    count = lost_count[0]
    for k in range(cuda.grid(1), count, cuda.gridsize(1)):
        i, stop = lost[k], count * (_parts(count) - 1)
        highest = scale[i]
        for beside in range(k, stop, count):
            highest = max(highest, scales[beside])
        factor = exp(scale[i] - highest)
        scale[i] = highest
        normalizer[i] *= factor
        for c in range(vectors.shape[1]):
            vectors[i, c] *= factor
        for beside in range(k, stop, count):
            factor = exp(scales[beside] - highest)
            normalizer[i] += factor * normalizers[beside]
            for c in range(vectors.shape[1]):
                vectors[i, c] += factor * rest[beside, c]


def redo_sums(lost, occupied, count, targets, sources, weights, sums, by):
    """Replace the sums s, Z and N of lost targets b by direct sums over all sources y, in place.

    Z = Σ_j w_j e^{⟨b,y_j⟩ − s} and N = Σ_j w_j y_j e^{⟨b,y_j⟩ − s}, where s is the target's largest exponent. ``sums``
    holds s (n,), Z (n,) and N (n, d).

    lost              (n,) true for targets whose sums a transform has lost to rounding
    occupied, count   :func:`true_indices` of the weights, which are positive there
    targets           function of indices (k,) or of a slice that returns b (k, d), d = 2 or 3
    by                function for the sums on the CPU; unused here: the number of lost targets stays on the device
    """
    beside = empty(_SHARES), empty(_SHARES), empty((_SHARES, sources.shape[1]))
    shape, lost_indices = (_SHARES // THREADS, THREADS), true_indices(lost)
    run(_add_parts, shape, *lost_indices, occupied, count, targets(slice(None)), sources, weights, *sums, *beside)
    run(_join_parts, shape, *lost_indices, *sums, *beside)
