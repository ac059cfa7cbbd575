"""Masses on a mesh from the images of pieces of cells: one thread for each piece, then one for each cell.

A part is the overlap of a piece with a cell. The parts are counted, stored piece by piece, sorted by cell and added in
that order: without atomics, bitwise equal for any number of threads.
"""

import numpy as np
from numba import cuda

from ..cpu import remapping
from .arrays import empty, zeros
from .cells import sums_at
from .launching import run, shape_of, translated

REMAP_PARTS = 1  # partial sums: sums are complete before they are added to ``scattered``
PIECES = 1 << 22  # at a time: their parts take a few hundred megabytes

_remap_on_curve = translated(remapping.remap_on_curve)
_remap_on_sphere = translated(remapping.remap_on_sphere)


@cuda.jit
def _scatter_segments(places, edges, period, corners, masses, cells, amounts, at, write):
    """Append cell and mass of each part of a segment to ``cells`` and ``amounts``, one thread for each segment.

    ``at`` (segments,) is the next free index of each segment; if ``write`` is false, parts are only counted there.
    """
    k = cuda.grid(1)
    if k < len(corners):
        one, scattered = slice(k, k + 1), ((cells, amounts, at[k : k + 1], write),)
        _remap_on_curve(0, 1, places, corners[one], masses[one], edges, period, scattered)


@cuda.jit
def _scatter_triangles(
    images, normals, ring_start, ring_cells, edges, corners, masses, bulges, cells, amounts, at, write
):
    """Append cell and mass of each part of a triangle, as :func:`_scatter_segments` for a segment."""
    k = cuda.grid(1)
    if k < len(corners):
        one, scattered = slice(k, k + 1), ((cells, amounts, at[k : k + 1], write),)
        _remap_on_sphere(
            0, 1, images, corners[one], masses[one], bulges[one], normals, ring_start, ring_cells, edges, scattered
        )


def _add_up(kernel, mesh, pieces, scattered):
    """Add the mass of pieces to the cells that they overlap, ``scattered`` (1, cells), by two passes of a kernel.

    The first pass counts the cells that each piece overlaps. The second pass stores the mass of each overlap, and these
    are summed by cell. Both passes take PIECES pieces at a time; the number of their overlaps is copied to the host.
    ``mesh`` and ``pieces`` are the kernel's arguments.
    """
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
    """Add to ``scattered`` (1, cells) the mass that each segment of a curve has in each cell that it overlaps.

    places   coordinate of the image of each point
    corners  (segments, 2) the points at the ends of each segment
    masses   (segments, 2) masses at the ends: linear along the segment, whose mass is their mean
    edges    (cells + 1,) increasing coordinates of the cell edges
    period   period of the coordinate; 0 on an interval, where the outer cells include all mass beyond the walls
    """
    _add_up(_scatter_segments, (places, edges, period), (corners, masses), scattered)


def remap_on_sphere(
    worker, workers, images, corners, masses, bulges, normals, ring_start, ring_cells, edges, scattered
):
    """Add to ``scattered`` (1, cells) the mass that each flat triangle has in each cell of a sphere's rings.

    The mass is that of the overlap of the triangle and the cell.

    images    (points, 4) of x, y, z, polar angle
    corners   (triangles, 3) the points at the corners of each triangle
    masses    (triangles, 3) masses at the corners: linear on the triangle, whose mass is their mean
    bulges    curvature of one side of each triangle, see :func:`solvers.backends.cpu.remapping.remap_on_sphere`
    normals   (faces, 3); the first ``cells`` rows are the eastward normals of the cells' eastern edges
    edges     (rings + 1,) polar angle of the circles between rings
    """
    mesh = images, normals, ring_start, ring_cells, edges
    _add_up(_scatter_triangles, mesh, (corners, masses, bulges), scattered)
