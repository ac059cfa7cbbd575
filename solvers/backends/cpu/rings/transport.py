"""Outgoing fluxes of the cells of rings of latitude, by :mod:`solvers.backends.cpu.transport_surface`'s formulas.

All cells of a ring are equal, so that their geometry is stored per ring, in the plane (east, north) at a cell's center:
one kind of cell, or two alternating kinds if a neighboring ring has half as many cells. For sides and rows see
:mod:`solvers.backends.cpu.rings.sides`.

slopes     (kinds, 2, 5) the weights of a least-squares gradient: ∂_p u, ∂_q u = Σ_k slopes[:, k] (u_k − u)
offsets, reach, tangents   (kinds, 2, 5) of each side: the neighbor's center, the face's center, the face's tangent
stencils   (2, kinds, 5, 12) weights of the velocity (east, north) of each neighbor, and last of the cell itself, in
           the flux through a side, and in half the correction of a product's mean for each slope of the density
spans      (kinds, 5) inverse of the area spanned by the offsets of a neighbor and the next one
opposite   (kinds, 5, 5) weights w ≥ 0 with Σ_m w_km d_m = −d_k, of two neighbors at most
"""

import numpy as np

from ..launching import index, share
from .runs import cells_of_run, first_of_kind, outgoing_flux_of_run, reconstruct_run
from .sides import COUNT, KIND, KINDS, START, ring_of, row_kernel

RUN = 120  # most cells of a run: work arrays (27, RUN) have a row for each quantity, and stay in a core's cache


@row_kernel
def local_components(worker, workers, rows, sine, cosine, centers, vectors, east, north):
    """Compute the components east and north of tangent vectors (cells, 3) at the cell centers of a sphere of rings.

    ``sine`` and ``cosine`` (rings,) are those of the polar angle.
    """
    first, last = share(worker, workers, len(east))
    r = ring_of(rows, first)
    while first < last:
        stop = min(last, rows[r, START] + rows[r, COUNT])
        over, z = 1.0 / sine[r], cosine[r]
        for i in range(first, stop):
            c = index(i)
            cos_phi, sin_phi = centers[c, 0] * over, centers[c, 1] * over
            x, y = vectors[c, 0], vectors[c, 1]
            east[c] = y * cos_phi - x * sin_phi
            north[c] = vectors[c, 2] * sine[r] - (x * cos_phi + y * sin_phi) * z
        first, r = stop, r + 1


@row_kernel
def reconstruct_on_rings(
    worker, workers, rows, slopes, offsets, tangents, stencils, density, east, north, low, high, occupied, flux, smooth,
    sent,
):  # fmt: skip
    """Compute the outward flux A u·n through each side of the cells of rings, and each cell's smoothness weight.

    The formulas are those of :func:`solvers.backends.cpu.transport_surface.reconstruct_on_surface`, with the geometry
    in tables for each kind of cell; ``flux`` and ``sent`` are (2, faces).
    """
    around = np.empty((27, RUN))
    first, last = share(worker, workers, len(density))
    r = ring_of(rows, first)
    while first < last:
        row = rows[r]
        stop = min(last, row[START] + row[COUNT])
        for k in range(row[KINDS]):
            i = first_of_kind(k, first, row)
            while i < stop:
                cells = cells_of_run(i, stop, row, around)
                reconstruct_run(
                    i, cells, row[KIND] + k, row, slopes, offsets, tangents, stencils, density, east, north, low, high,
                    occupied, flux, smooth, sent, around,
                )  # fmt: skip
                i += cells * row[KINDS]
        first, r = stop, r + 1


@row_kernel
def outgoing_flux_on_rings(
    worker, workers, rows, volumes, slopes, offsets, reach, spans, opposite, density, east, north, flux, smooth,
    occupied, sent,
):  # fmt: skip
    """Compute the mass per time that each cell of rings sends through its sides; negative where it pulls mass in.

    The formulas are those of :func:`solvers.backends.cpu.transport_surface.outgoing_flux_on_surface`, with the geometry
    in tables for each kind of cell. ``volumes`` are (rings,), ``sent`` (2, faces).
    """
    around = np.empty((27, RUN))
    first, last = share(worker, workers, len(density))
    r = ring_of(rows, first)
    while first < last:
        row = rows[r]
        stop = min(last, row[START] + row[COUNT])
        for k in range(row[KINDS]):
            i = first_of_kind(k, first, row)
            while i < stop:
                cells = cells_of_run(i, stop, row, around)
                outgoing_flux_of_run(
                    i, cells, row[KIND] + k, r, row, volumes, slopes, offsets, reach, spans, opposite, density, east,
                    north, flux, smooth, occupied, sent, around,
                )  # fmt: skip
                i += cells * row[KINDS]
        first, r = stop, r + 1
