"""Outgoing fluxes of the cells of rings in one pass over memory, band by band while a band is in cache.

A band consists of rings with a thousand cells or more. Each kernel of the modules `transport` and `divergence` lags one
ring behind the previous kernel, whose results on the rings on either side it needs. Consecutive bands form a part for a
worker; :func:`join_bands` completes the rings at the boundary of two parts. The results equal those of the same kernels
in sequence. Fluxes are stored for the faces of a band and of the previous ring, in reused memory of each part: see
:func:`plan_bands`.

bands   (bands + 1,) the first ring of each, and the number of rings
parts   (parts + 1,) the first ring of each, and the number of rings
flux    (parts, 2, places)
The other arguments are those of the kernels; outflow (cells,) first holds the smoothness weight of each cell.
"""

from itertools import pairwise

import numpy as np

from ..caching import compiled
from ..launching import inline, workers_for
from .divergence import outflow_rates_on_rings
from .sides import COUNT, FLUX_NORTH, FLUX_SOUTH, FLUX_WITHIN, NORTH_FACES, SOUTH_FACES, START
from .transport import outgoing_flux_on_rings, reconstruct_on_rings

BAND_CELLS = 1024
MIN_BANDS = 4  # minimum number of bands, and so rings, in a part; two rings at either end are left to join_bands

calling = compiled()


def plan_bands(ring_cells, rows):
    """Return a plan for flux kernels that process a sphere's rings in bands: ``bands``, ``parts``, ``rows``, places.

    bands   (bands + 1,) the first ring of each group of about a thousand cells, and the number of rings
    parts   (parts + 1,) the first ring of each group of bands for one thread, and the number of rings
    rows    copy of the table of rings (rings, 16), with the places of fluxes in the memory of each part
    places  number of fluxes in the memory of a part, for each plane
    """
    bands = _bands_of(ring_cells)
    parts = _parts_of(bands, workers_for(int(ring_cells.sum())))
    return bands, parts, *_places_of_fluxes(rows, bands, parts)


def _bands_of(counts: np.ndarray) -> np.ndarray:
    """Return the first ring of each band, a group of rings with 1024 cells or more, and last the number of rings.

    The rings have ``counts`` cells.
    """
    edges, cells = [0], 0
    for ring, count in enumerate(counts, 1):
        cells += int(count)
        if cells >= BAND_CELLS:
            edges.append(ring)
            cells = 0
    return np.asarray([*edges[: max(len(edges) - 1, 1)], len(counts)], dtype=np.int64)


def _parts_of(bands: np.ndarray, workers: int) -> np.ndarray:
    """Return the first ring of each part, a group of bands for one thread, and last the number of rings.

    There are as many parts as ``workers``, or fewer if a part would have less than MIN_BANDS bands.
    """
    count = len(bands) - 1
    parts = max(min(workers, count // MIN_BANDS), 1)
    return np.asarray(bands[count * np.arange(parts + 1) // parts])


def _places_of_fluxes(rows: np.ndarray, bands: np.ndarray, parts: np.ndarray) -> tuple[np.ndarray, int]:
    """Return a copy of ``rows`` with the places of fluxes in the memory of each part, and the number of places.

    A part is a group of rings for one thread; its memory is reused for the fluxes through the faces of a few rings. The
    faces north of, within and south of a part's first ring have fixed places, for :func:`join_bands`. The faces of the
    other rings follow cyclically in the remaining places.
    """
    rows = rows.copy()
    within, south = rows[:, COUNT], rows[:, COUNT] * rows[:, SOUTH_FACES]
    sizes = within + south
    seen = [sizes[max(first - 2, 0) : stop].sum() for first, stop in pairwise(bands)]
    stored = int(max(rows[r, COUNT] * rows[r, NORTH_FACES] + sizes[r] for r in parts[:-1]))
    places = stored + int(max(seen)) + int(max(within.max(), south.max()))
    for first, end in pairwise(parts):
        rows[first, FLUX_NORTH], rows[first, FLUX_WITHIN] = 0, rows[first, COUNT] * rows[first, NORTH_FACES]
        rows[first, FLUX_SOUTH], at = rows[first, FLUX_WITHIN] + within[first], stored
        for r in range(first + 1, end):
            rows[r, FLUX_NORTH] = rows[r - 1, FLUX_SOUTH]
            for column, size in ((FLUX_WITHIN, within[r]), (FLUX_SOUTH, south[r])):
                rows[r, column] = stored if at + size > places else at
                at = rows[r, column] + size
    return rows, places


@inline
def _cell(rows, r):
    """Return the first cell of ring r, or the number of cells if r is the number of rings."""
    return rows[r, START] if r < len(rows) else rows[len(rows) - 1, START] + rows[len(rows) - 1, START + 1]


@inline
def _larger(one, other):
    """Return the larger of two numbers, or NaN if one of them is NaN."""
    return one if other <= one or one != one else other


@calling
def flux_in_bands(
    worker, workers, bands, parts, rows, volumes, offsets, reach, slopes, tangents, stencils, spans, opposite, density,
    east, north, low, high, occupied, flux, sent, outflow,
):  # fmt: skip
    """Compute the outgoing fluxes of the cells of a worker's parts, groups of rings; return the largest outflow rate.

    The rings of a part are processed in bands that fit into a cache. The fluxes at the boundary of two parts are left
    to :func:`join_bands`. The outflow rate is the loss of mass per time over the mass of an occupied cell.
    """
    fastest = 0.0
    for part in range(worker, len(parts) - 1, workers):
        lost = _flux_in_part(
            part, bands, parts, rows, volumes, offsets, reach, slopes, tangents, stencils, spans, opposite, density,
            east, north, low, high, occupied, flux, sent, outflow,
        )  # fmt: skip
        fastest = _larger(fastest, lost)
    return fastest


@inline
def _flux_in_part(
    part, bands, parts, rows, volumes, offsets, reach, slopes, tangents, stencils, spans, opposite, density, east,
    north, low, high, occupied, flux, sent, outflow,
):  # fmt: skip
    """Compute the outgoing fluxes of one part, a group of rings, band by band; return the largest outflow rate.

    For bands and the outflow rate see :func:`flux_in_bands`.
    """
    rings, fastest = len(rows), 0.0
    begin, end = parts[part], parts[part + 1]
    done, band = begin, 0
    sent_from, lost_from = (begin, begin) if begin == 0 else (begin + 1, begin + 2)
    while done < end:
        while bands[band + 1] <= done:
            band += 1
        stop = bands[band + 1]
        reconstruct_on_rings(
            0, 1, _cell(rows, done), _cell(rows, stop), rows, slopes, offsets, tangents, stencils, density, east, north,
            low, high, occupied, flux[part], outflow, sent,
        )  # fmt: skip
        done = stop
        to = rings if stop == rings else max(stop - 1, sent_from)
        outgoing_flux_on_rings(
            0, 1, _cell(rows, sent_from), _cell(rows, to), rows, volumes, slopes, offsets, reach, spans, opposite,
            density, east, north, flux[part], outflow, occupied, sent,
        )  # fmt: skip
        sent_from = to
        to = rings if stop == rings else max(stop - 2, lost_from)
        lost = outflow_rates_on_rings(
            0, 1, _cell(rows, lost_from), _cell(rows, to), rows, volumes, density, occupied, sent, outflow
        )  # fmt: skip
        fastest, lost_from = _larger(fastest, lost), to
    return fastest


@calling
def join_bands(
    part, parts, rows, volumes, offsets, reach, slopes, spans, opposite, density, occupied, east, north, flux, sent,
    outflow,
):  # fmt: skip
    """Compute the outgoing fluxes at the boundary of a part, a group of rings, and the next; return an outflow rate.

    The rate is the largest loss of mass per time over the mass of an occupied cell in the two rings on either side.
    """
    between = parts[part + 1]
    of_north, of_south = rows[between - 1, FLUX_SOUTH], rows[between, FLUX_NORTH]
    for f in range(rows[between, COUNT] * rows[between, NORTH_FACES]):
        flux[part, 1, of_north + f] = flux[part + 1, 1, of_south + f]
        flux[part + 1, 0, of_south + f] = flux[part, 0, of_north + f]
    for side in range(2):
        outgoing_flux_on_rings(
            0, 1, _cell(rows, between - 1 + side), _cell(rows, between + side), rows, volumes, slopes, offsets, reach,
            spans, opposite, density, east, north, flux[part + side], outflow, occupied, sent,
        )  # fmt: skip
    return outflow_rates_on_rings(
        0, 1, _cell(rows, between - 2), _cell(rows, between + 2), rows, volumes, density, occupied, sent, outflow
    )  # fmt: skip
