"""Conductances of the faces between cells of rings of latitude, for two-point diffusion fluxes."""

from __future__ import annotations

import numpy as np

from .rings import Counts, Floats, faces_between, starts_of


def ring_conductances(counts: Counts, areas: Floats, colatitudes: Floats) -> Floats:
    """Return the conductances (faces,) of a sphere of rings: factors of u_j − u_i in two-point diffusion fluxes.

    The faces within rings come first, then those between rings, from north to south. The coordinates x, y, z of the
    cell centers are eigenvectors of the two-point Laplacian, with Δ's eigenvalue −2:

        Σ_faces conductance (x_j − x_i) = −2 area_i x_i  in every cell i,

    so that the center of mass of every density decays as e^{−2κt}, in all directions. The equation for z determines the
    conductances between rings, and the equations for x and y then determine those within rings. With the counts of
    :func:`solvers.mesh.rings.cells_of_rings` all conductances are at least 0.43.

    counts        (rings,) number of cells of each ring; neighboring rings have equal numbers or the ratio 2:1
    areas         (rings,) area of a cell of each ring
    colatitudes   (rings,) polar angle of the cell centers
    """
    between, sine = faces_between(counts), np.sin(colatitudes)
    link = _fluxes_of_height(counts * areas, colatitudes) / (between * _differences(colatitudes))
    # A coarse cell has two fine neighbors across, half a fine cell east and west of its center.
    bend = np.where(np.diff(counts) == 0, 1.0, np.cos(np.pi / between))
    # Gain of x at azimuth 0, less the fluxes from the next rings; the faces within the ring balance it.
    gain = 2 * areas * sine
    gain[1:] += link * (between // counts[1:]) * (sine[:-1] * bend - sine[1:])
    gain[:-1] += link * (between // counts[:-1]) * (sine[1:] * bend - sine[:-1])
    within = gain / (4 * sine * np.sin(np.pi / counts) ** 2)
    conductances = np.repeat(np.append(within, link), np.append(counts, between))
    start = starts_of(counts)
    for r in np.flatnonzero(np.diff(counts)):
        # The coarse cell draws x of its two fine cells towards its own azimuth. A smaller conductance between the two
        # and a larger one to the adjacent fine cells compensate this flux.
        fine, coarse = (r, r + 1) if counts[r] > counts[r + 1] else (r + 1, r)
        excess = link[r] * sine[coarse] / (4 * sine[fine] * np.cos(np.pi / counts[fine]))
        conductances[start[fine] : start[fine + 1] : 2] -= excess
        conductances[start[fine] + 1 : start[fine + 1] : 2] += excess
    return conductances


def _fluxes_of_height(ring_areas: Floats, colatitudes: Floats) -> Floats:
    """Return the southward two-point flux (rings − 1,) of the height z through each circle between rings.

    The flux is 2 Σ area z over the cells north of the circle, or −2 Σ area z over those south of it, since z is an
    eigenvector of the Laplacian with the eigenvalue −2. The side with fewer rings is summed.
    """
    moments = 2 * ring_areas * np.cos(colatitudes)
    of_north, of_south = np.cumsum(moments)[:-1], -np.cumsum(moments[::-1])[-2::-1]
    return np.asarray(np.where(np.arange(1, len(moments)) <= len(moments) // 2, of_north, of_south))


def _differences(colatitudes: Floats) -> Floats:
    """Return the height of each ring's cell centers less that of the next ring's (rings − 1,), without cancellation."""
    north, south = colatitudes[:-1], colatitudes[1:]
    return np.asarray(2 * np.sin((south - north) / 2) * np.sin((north + south) / 2))
