"""Masses on a mesh of the images of pieces of cells: a thread a piece, then a thread a cell.

Only a piece knows the cells that it falls into. So its parts are counted, written down one piece after the other,
sorted by cell and added up in that order: without atomics, to the same bits for any number of threads.
"""

import numpy as np
from numba import cuda

from ..cpu import remapping
from .arrays import empty, zeros
from .cells import sums_at
from .launching import run, shape_of, translated

REMAP_PARTS = 1  # of the sums, which are complete before they are added to ``scattered``
PIECES = 1 << 22  # at a time: their parts take some hundred megabytes

_remap_on_curve = translated(remapping.remap_on_curve)
_remap_on_sphere = translated(remapping.remap_on_sphere)


@cuda.jit
def _scatter_segments(places, edges, period, corners, masses, cells, amounts, at, write):
    k = cuda.grid(1)
    if k < len(corners):
        one, scattered = slice(k, k + 1), ((cells, amounts, at[k : k + 1], write),)
        _remap_on_curve(0, 1, places, corners[one], masses[one], edges, period, scattered)


@cuda.jit
def _scatter_triangles(
    images, normals, ring_start, ring_cells, edges, corners, masses, bulges, cells, amounts, at, write
):
    k = cuda.grid(1)
    if k < len(corners):
        one, scattered = slice(k, k + 1), ((cells, amounts, at[k : k + 1], write),)
        _remap_on_sphere(
            0, 1, images, corners[one], masses[one], bulges[one], normals, ring_start, ring_cells, edges, scattered
        )


def _add_up(kernel, mesh, pieces, scattered):
    """Add what falls into each cell to ``scattered`` (1, cells); the number of parts comes to the host."""
    for start in range(0, len(pieces[0]), PIECES):
        some = [array[start : start + PIECES] for array in pieces]
        shape, counts = shape_of(len(some[0])), zeros(len(some[0]), np.int64)
        run(kernel, shape, *mesh, *some, empty(1, np.int32), empty(1), counts, False)
        ends = counts.cumsum()
        total = int(ends[-1])
        if total > 0:
            cells, amounts = empty(total, np.int32), empty(total)
            run(kernel, shape, *mesh, *some, cells, amounts, ends - counts, True)
            scattered[0] += sums_at(cells, amounts, scattered.shape[1])


def remap_on_curve(worker, workers, places, corners, masses, edges, period, scattered):
    """Add to ``scattered`` (1, cells) what of each segment falls into each cell between increasing edges.

    places   coordinate of the image of each point
    period   of the coordinate; 0 on an interval, where the outer cells take what is beyond the walls
    """
    _add_up(_scatter_segments, (places, edges, period), (corners, masses), scattered)


def remap_on_sphere(
    worker, workers, images, corners, masses, bulges, normals, ring_start, ring_cells, edges, scattered
):
    """Add to ``scattered`` (1, cells) what of each flat triangle falls into each cell of the rings.

    normals   (faces, 3) of which the first ``cells`` are the eastward normals of the cells' eastern edges
    images    (points, 4) of x, y, z, polar angle
    edges     (rings + 1,) polar angle of the circles between rings
    """
    mesh = images, normals, ring_start, ring_cells, edges
    _add_up(_scatter_triangles, mesh, (corners, masses, bulges), scattered)
