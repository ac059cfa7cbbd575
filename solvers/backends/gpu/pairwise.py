"""Sums over all pairs of a target and a source, a thread a target, as in flash attention (Dao and others, 2205.14135).

The threads of a tile read a group of sources together into the memory that they share. Exponents and the running
maximum are a thread's own.
"""

from math import exp, inf

from numba import cuda

from solvers.backends.gpu.launching import THREADS, run

PAIR_SOURCES = 16  # exponents that a thread holds in registers
PAIR_ROWS = 4  # rows of the sums that are added up at a time; the first ones stay in registers
PAIR_BYTES = 8 * THREADS  # of a row of a tile: in float64 a thread of a block for each target
_DEPTH = 16  # components of the sources that are at hand at a time


@cuda.jit
def _add_all(targets, sources, vectors, running, causal, log_scale, sums):
    tile, lane, lanes = cuda.blockIdx.x, cuda.threadIdx.x, cuda.blockDim.x
    depth, rows = targets.shape[1], vectors.shape[1]
    near = cuda.shared.array((_DEPTH, PAIR_SOURCES), targets.dtype)  # sources side by side: read several at a time
    factors = cuda.shared.array((PAIR_ROWS, PAIR_SOURCES), targets.dtype)
    exponents = cuda.local.array(PAIR_SOURCES, targets.dtype)
    own = cuda.local.array(PAIR_ROWS, targets.dtype)
    for row in range(PAIR_ROWS):
        own[row] = 0.0
    for row in range(PAIR_ROWS, rows):
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
        for start in range(0, depth, _DEPTH):
            width = min(_DEPTH, depth - start)
            cuda.syncthreads()
            for place in range(lane, PAIR_SOURCES * width, lanes):
                near[place % width, place // width] = sources[first + place // width, start + place % width]
            cuda.syncthreads()
            for k in range(width):
                target = targets[tile, start + k, lane]
                for j in range(PAIR_SOURCES):
                    exponents[j] += target * near[k, j]
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
        for start in range(0, rows, PAIR_ROWS):
            cuda.syncthreads()
            for place in range(lane, PAIR_ROWS * PAIR_SOURCES, lanes):
                row, j = place // PAIR_SOURCES, place % PAIR_SOURCES
                factors[row, j] = vectors[group, start + row, j]
            cuda.syncthreads()
            for row in range(PAIR_ROWS):
                part = factors[row, 0] * exponents[0]
                for j in range(1, PAIR_SOURCES):
                    part += factors[row, j] * exponents[j]
                if start == 0:
                    own[row] = own[row] * shrink + part
                else:
                    sums[tile, start + row, lane] = sums[tile, start + row, lane] * shrink + part
    for row in range(PAIR_ROWS):
        sums[tile, row, lane] = own[row]
    log_scale[tile, lane] = scale


def exponential_sums(worker, workers, targets, sources, vectors, running, causal, log_scale, sums):
    """sums[t, c, i] = Σ_j vectors[c, j] e^{⟨b_i, y_j⟩ − s_i} over groups of PAIR_SOURCES sources j.

    targets    (tiles, depth, lanes) b, PAIR_BYTES / itemsize targets i in each tile
    sources    (groups · PAIR_SOURCES, depth) y
    vectors    (groups, rows, PAIR_SOURCES), rows a multiple of PAIR_ROWS
    running    whether s_i is to be raised to the largest ⟨b_i, y_j⟩; else it stays
    causal     whether target i sees sources j ≤ i only
    log_scale  (tiles, lanes) s
    """
    tiles, _, lanes = targets.shape
    run(_add_all, (tiles, lanes), targets, sources, vectors, running, causal, log_scale, sums)
