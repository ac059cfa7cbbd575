"""Sums over all pairs of a target and a source by products of matrices, tile by tile, as in flash attention.

One product computes a tile of exponents, one kernel replaces them by exponentials, and a second product multiplies the
exponentials by the sources' vectors. In many dimensions these products are faster than a kernel of our own.

Source: Dao and others, arXiv:2205.14135.
"""

from math import exp

from numba import cuda

from .arrays import SIMULATED, empty, xp, zeros
from .launching import THREADS, run

_SOURCES = 16 if SIMULATED else 2048  # of a tile: a block keeps their exponents in shared memory
_TARGETS = 8 if SIMULATED else 2  # of a block: more targets would leave too little shared memory for several blocks
_LANES = THREADS // _TARGETS  # threads of a target
_TILE_BYTES = 1 << 12 if SIMULATED else 1 << 28  # of exponents, a matrix large enough for all parts of a device


@cuda.jit
def _exponentials(exponents, log_weights, weights, ahead, running, log_scale, normalizer, sums, product):
    """Replace the exponents x_ij of a tile by e^{x_ij + a_j − s_i}, and rescale the sums over earlier tiles.

    exponents    (targets, sources) x, in place; targets are a multiple of _TARGETS, sources at most _SOURCES
    log_weights  (sources,) a
    weights      (sources,) w
    ahead        target i includes the sources j ≤ i − ahead of the tile only, ahead ≤ 0
    running      whether s_i is raised to the largest x_ij + a_j; else s_i is fixed
    log_scale    (targets,) s, in place
    normalizer   (targets,) Σ_j w_j e^{x_ij + a_j − s_i}, to which this tile is added
    sums         (targets, components) rescaled sums over earlier tiles, except the last one
    product      (targets, components) sums over the last tile, which are added to ``sums``
    """
    row, lane = cuda.threadIdx.x // _LANES, cuda.threadIdx.x % _LANES
    i, sources = cuda.blockIdx.x * _TARGETS + row, exponents.shape[1]
    shifted = cuda.shared.array((_TARGETS, _SOURCES), exponents.dtype)
    maxima = cuda.shared.array((_TARGETS, _LANES), exponents.dtype)
    totals = cuda.shared.array((_TARGETS, _LANES), exponents.dtype)
    total = cuda.local.array(1, exponents.dtype)  # numbers of the targets' format
    shrink = cuda.local.array(1, exponents.dtype)
    total[0], shrink[0], scale, stop = 0.0, 1.0, log_scale[i], min(sources, i + 1 - ahead)
    for j in range(lane, stop, _LANES):
        shifted[row, j] = exponents[i, j] + log_weights[j]
    if running:
        for j in range(lane, stop, _LANES):
            scale = max(scale, shifted[row, j])
        maxima[row, lane] = scale
        cuda.syncthreads()
        for k in range(_LANES):
            scale = max(scale, maxima[row, k])
        shrink[0] = exp(log_scale[i] - scale)
    for j in range(lane, stop, _LANES):
        factor = exp(shifted[row, j] - scale)
        exponents[i, j] = factor
        total[0] += weights[j] * factor
    for j in range(stop + lane, sources, _LANES):
        exponents[i, j] = 0.0
    for c in range(lane, sums.shape[1], _LANES):
        sums[i, c] = (sums[i, c] + product[i, c]) * shrink[0]
    totals[row, lane] = total[0]
    cuda.syncthreads()
    if lane == 0:
        for k in range(1, _LANES):
            total[0] += totals[row, k]
        normalizer[i] = normalizer[i] * shrink[0] + total[0]
        log_scale[i] = scale


def exponential_sums_by_products(tiles, sources, vectors, running, causal, log_scale, sums):
    """Compute the sums of :func:`exponential_sums`, with the same arguments, by products of matrices."""
    (count, depth, lanes), components = tiles.shape, vectors.shape[1] - 1
    targets = xp.ascontiguousarray(tiles[:, :-1].transpose(0, 2, 1)).reshape(count * lanes, depth - 1)
    points, log_weights = xp.ascontiguousarray(sources[:, :-1]), xp.ascontiguousarray(sources[:, -1])
    weights = xp.ascontiguousarray(vectors[:, 0]).reshape(len(points))
    values = xp.ascontiguousarray(vectors[:, 1:].transpose(0, 2, 1)).reshape(len(points), components)
    most = max(_TILE_BYTES // (_SOURCES * lanes * tiles.dtype.itemsize), 1)
    parts = max(-(-count // most), 1)
    together = max(-(-count // parts), 1)  # tiles of targets in a part
    memory = empty(together * lanes * min(_SOURCES, len(points)), tiles.dtype)
    for first in range(0, count, together):
        part = slice(first, min(first + together, count))
        rows = slice(first * lanes, part.stop * lanes)
        normalizer, totals = _sums_of_part(
            targets[rows], points, log_weights, weights, values, running, rows.start if causal else None,
            log_scale[part].reshape(-1), memory,
        )  # fmt: skip
        sums[part, 0] = normalizer.reshape(-1, lanes)
        sums[part, 1:] = totals.reshape(part.stop - first, lanes, components).transpose(0, 2, 1)


def _sums_of_part(targets, points, log_weights, weights, values, running, begin, log_scale, memory):
    """Return Z_i = Σ_j w_j e^{a_j + ⟨b_i, y_j⟩ − s_i} (n,) and N_i (n, c), the same sums of w_j v_j e^{…}.

    targets      (n, d) b
    points       (m, d) y
    log_weights  (m,) a
    weights      (m,) w
    values       (m, c) w v
    running      whether s_i is raised to the largest exponent; else s_i is fixed
    begin        number of the first target in a causal sum, where target i includes the sources j ≤ i; else None
    log_scale    (n,) s, in place
    memory       space for the exponents of n targets and _SOURCES sources
    """
    n, number = len(targets), targets.dtype
    normalizer, totals = zeros(n, number), zeros((n, values.shape[1]), number)
    product = zeros(totals.shape, number)  # sums over the last tile of each target
    for first in range(0, len(points), _SOURCES):
        tile = slice(first, min(first + _SOURCES, len(points)))
        width = tile.stop - first
        rows = slice(0 if begin is None else max(first - begin, 0), n)
        if rows.start >= n:
            break  # all further sources are later than the targets
        exponents = memory[: (n - rows.start) * width].reshape(-1, width)
        xp.dot(targets[rows], points[tile].T, out=exponents)
        ahead = -width if begin is None else min(first - begin, 0)
        run(
            _exponentials, (len(exponents) // _TARGETS, THREADS), exponents, log_weights[tile], weights[tile], ahead,
            running, log_scale[rows], normalizer[rows], totals[rows], product[rows],
        )  # fmt: skip
        xp.dot(exponents, values[tile], out=product[rows])
    totals += product
    return normalizer, totals
