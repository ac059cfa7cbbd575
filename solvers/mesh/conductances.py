"""Conductances of the faces between cells of rings of latitude, for two-point diffusion fluxes."""

from __future__ import annotations

import numpy as np

from .rings import Counts, Floats, faces_between, starts_of


def ring_conductances(counts: Counts, areas: Floats, colatitudes: Floats) -> Floats:
    """Return (faces,) conductances: faces within rings, then those between rings, from north to south.

    The coordinates x, y, z of the cell centers are eigenvectors of the two-point Laplacian, with Δ's eigenvalue −2:

        Σ_faces conductance (x_j − x_i) = −2 area_i x_i  in every cell i,

    so that the center of mass of every density decays as e^{−2κt}, in all directions. The height z determines the
    conductances between rings, and x and y then those within. With the counts of
    :func:`solvers.mesh.rings.cells_of_rings` all are at least 0.43.

    counts        (rings,) cells of each ring, as many as in the next ring or 2:1
    areas         (rings,) area of a cell of each ring
    colatitudes   (rings,) polar angle of the cell centers
    """
    between, sine = faces_between(counts), np.sin(colatitudes)
    link = _fluxes_of_height(counts * areas, colatitudes) / (between * _differences(colatitudes))
    # To the two fine cells across from a coarse one, half a fine cell east and west of its own center.
    bend = np.where(np.diff(counts) == 0, 1.0, np.cos(np.pi / between))
    gain = 2 * areas * sine  # of x, at azimuth 0, less what comes from the next rings: faces within carry it away
    gain[1:] += link * (between // counts[1:]) * (sine[:-1] * bend - sine[1:])
    gain[:-1] += link * (between // counts[:-1]) * (sine[1:] * bend - sine[:-1])
    within = gain / (4 * sine * np.sin(np.pi / counts) ** 2)
    conductances = np.repeat(np.append(within, link), np.append(counts, between))
    start = starts_of(counts)
    for r in np.flatnonzero(np.diff(counts)):
        # The coarse cell pulls x of its two fine cells towards its own azimuth: a weaker link between the two, and
        # a stronger one to the fine cells beside, balance that.
        fine, coarse = (r, r + 1) if counts[r] > counts[r + 1] else (r + 1, r)
        excess = link[r] * sine[coarse] / (4 * sine[fine] * np.cos(np.pi / counts[fine]))
        conductances[start[fine] : start[fine + 1] : 2] -= excess
        conductances[start[fine] + 1 : start[fine + 1] : 2] += excess
    return conductances


def _fluxes_of_height(ring_areas: Floats, colatitudes: Floats) -> Floats:
    """Return (rings − 1,) 2 Σ area z over the cells on one side of each circle between rings, the smaller side."""
    moments = 2 * ring_areas * np.cos(colatitudes)
    of_north, of_south = np.cumsum(moments)[:-1], -np.cumsum(moments[::-1])[-2::-1]
    return np.asarray(np.where(np.arange(1, len(moments)) <= len(moments) // 2, of_north, of_south))


def _differences(colatitudes: Floats) -> Floats:
    """Return (rings − 1,) z of the centers of each ring less z of the next ring's, without cancellation."""
    north, south = colatitudes[:-1], colatitudes[1:]
    return np.asarray(2 * np.sin((south - north) / 2) * np.sin((north + south) / 2))
