"""Sums over all pairs of a target and a source, tile by tile, as flash attention does (Dao and others, 2205.14135)."""

import numpy as np

from .caching import compiled
from .exponential import CONTRACT, exponential
from .launching import index, inline
from .product import add_rows, add_rows_to_two

PAIR_SOURCES, PAIR_BYTES = 96, 256  # a tile of exponents fills half of a core's fastest cache
_TOGETHER = 4  # consecutive tiles that use a group of sources while the group is in cache
_PARTS = 4  # independent partial sums of bins, a power of two, which avoid dependent additions

_kernel = compiled(fastmath=CONTRACT)


def true_indices(mask):
    """Return the indices where a mask (n,) is true, in increasing order, and their number.

    On a GPU the indices of the other entries follow, so that no number is transferred to the host.
    """
    places = np.flatnonzero(mask)
    return places, len(places)


def may_have_true(mask):
    """Return whether any entry of a mask (n,) is true; on a GPU return True, without a transfer to the host."""
    return bool(mask.any())


def conditional(condition, one, other):
    """Return one() if a condition holds, else other(), which return tuples of arrays; a GPU evaluates both."""
    return one() if condition else other()


def redo_sums(lost, occupied, count, targets, sources, weights, sums, by):
    """Replace the sums s, Z and N of lost targets b by direct sums over all sources y, in place.

    Z = Σ_j w_j e^{⟨b,y_j⟩ − s} and N = Σ_j w_j y_j e^{⟨b,y_j⟩ − s}, where s is the target's largest exponent. ``sums``
    holds s (n,), Z (n,) and N (n, d).

    lost              (n,) true for targets whose sums a transform has lost to rounding
    occupied, count   :func:`true_indices` of the weights, which are positive there
    targets           function of indices (k,) or of a slice that returns b (k, d), d = 2 or 3
    by                function (b, y, w) that returns s, Z and N, such as
                      `solvers.transforms.pairwise.exponential_sums`; unused on a GPU, which sums over all pairs itself
    """
    places = np.flatnonzero(lost)
    if len(places):
        for whole, part in zip(sums, by(targets(places), sources[occupied], weights[occupied]), strict=True):
            whole[places] = part


@inline
def _hide_later(exponents, ahead, lanes):
    """Set the exponents (sources, lanes) of a causal sum to −∞ where source j is later in the sequence than target i.

    Source j has the number j + ``ahead``, counted from the first of the tile's ``lanes`` targets.
    """
    for j in range(len(exponents)):
        for i in range(min(max(j + ahead, 0), lanes)):
            exponents[j, i] = -np.inf


@inline
def _raise_scale(exponents, scale, shrink, lanes):
    """Raise the ``scale`` s_i of each of ``lanes`` targets to its largest exponent, if that is larger.

    The ``exponents`` are (sources, lanes). ``shrink`` (lanes,) is set to e^{s before − s after}, the factor that
    rescales sums of e^{exponent − s}.
    """
    for i in range(lanes):
        shrink[i] = scale[i]
    for j in range(len(exponents)):
        for i in range(lanes):
            scale[i] = max(scale[i], exponents[j, i])
    for i in range(lanes):
        shrink[i] = exponential(shrink[i] - scale[i])


@inline
def _add_group(targets, sources, first, vectors, running, ahead, scale, total, exponents, shrink):
    """Add the terms of one group of sources to the sums Σ_j vectors[c, j] e^{⟨b_i, y_j⟩ − s_i} of one tile of targets.

    targets, sources     (depth, lanes) b and (all sources, depth) y; the group has sources ``first`` and the next ones
    vectors              (rows, PAIR_SOURCES)
    running              whether s_i is raised to the largest exponent; else s_i is fixed
    ahead                number of the first source of the group minus that of the first target of the tile, for a sum
                         without sources later than a target; −PAIR_SOURCES for a sum over all sources
    scale, total         (lanes,) s and (rows, lanes) sums, in place
    exponents, shrink    work arrays (PAIR_SOURCES, lanes) and (lanes,), with shrink = 1 at first
    """
    lanes = targets.shape[1]
    exponents[:] = 0.0
    for j in range(0, PAIR_SOURCES, 2):
        add_rows_to_two(sources[first + j], sources[first + j + 1], targets, exponents[j], exponents[j + 1])
    _hide_later(exponents, ahead, lanes)
    if running:
        _raise_scale(exponents, scale, shrink, lanes)
    for j in range(PAIR_SOURCES):
        for i in range(lanes):
            exponents[j, i] = exponential(exponents[j, i] - scale[i])
    for row in range(len(total)):
        for i in range(lanes):
            total[row, i] *= shrink[i]
    for row in range(0, len(total) - 1, 2):
        add_rows_to_two(vectors[row], vectors[row + 1], exponents, total[row], total[row + 1])
    if len(total) % 2:
        add_rows(vectors[-1], exponents, 0, lanes, total[-1])


@_kernel
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
    lanes = targets.shape[2]
    exponents = np.empty((PAIR_SOURCES, lanes), targets.dtype)
    shrink = np.ones(lanes, targets.dtype)
    for start in range(worker * _TOGETHER, len(targets), workers * _TOGETHER):
        together = range(start, min(start + _TOGETHER, len(targets)))
        sums[start : together.stop] = 0.0
        for group in range(len(vectors)):
            first = group * PAIR_SOURCES
            for tile in together:
                ahead = first - tile * lanes if causal else -PAIR_SOURCES
                if ahead < lanes:
                    _add_group(
                        targets[tile], sources, first, vectors[group], running, ahead, log_scale[tile], sums[tile],
                        exponents, shrink,
                    )  # fmt: skip


@inline
def _bin_of(z, edges, slots):
    """Return the number of the bin of z in a histogram over [−1, 1] with increasing bin ``edges``.

    ``slots`` holds the highest bin in each of equal parts of [−1, 1]. The search starts there and goes down.
    """
    found = int(slots[index(max(min(int((z + 1.0) * (0.5 * len(slots))), len(slots) - 1), 0))])
    while found > 0 and z < edges[index(found)]:
        found -= 1
    return found


@_kernel
def bin_pairs(points, tiles, first, last, masses, edges, slots, sums):
    """Add pairs of points to a histogram of z_ij = ⟨x_i, x_j⟩ with weights m_i m_j, for the points j of some tiles.

    Pairs i < j add 2 m_i m_j to the bin of z_ij in ``sums[0]``, points j add m_j² to the bin of z_jj in ``sums[1]``.

    points    (n, d) x
    tiles     (tiles, d, lanes) x in tiles of PAIR_BYTES / 8 points, padded; the pairs of j in tiles ``first`` to
              ``last`` − 1 are added
    masses    (n,) or more: 0 for padding
    edges     (bins + 1,) increasing edges of the bins; the outer bins include all z beyond the edges
    slots     (slots,) the highest bin in each of equal parts of [−1, 1]
    sums      (2, bins) sums of the pairs of different points, and of each point with itself
    """
    lanes, bins = tiles.shape[2], sums.shape[1]
    cosines, parts = np.empty(lanes), np.zeros((_PARTS, bins))
    for tile in range(first, last):
        begin = tile * lanes
        for i in range(min(begin + lanes, len(points))):
            cosines[:] = 0.0
            add_rows(points[i], tiles[tile], 0, lanes, cosines)
            for k in range(max(i - begin + 1, 0), lanes):
                place = index(_bin_of(cosines[index(k)], edges, slots))
                parts[index(k & (_PARTS - 1)), place] += masses[i] * masses[index(begin + k)]
            if i >= begin:
                sums[1, _bin_of(cosines[i - begin], edges, slots)] += masses[i] ** 2
    for b in range(bins):
        for part in range(_PARTS):
            sums[0, b] += 2.0 * parts[part, b]
