"""Conductances of the faces between rings of latitude, for two-point diffusion fluxes."""

from __future__ import annotations

import numpy as np

from ..backends.protocol import Array
from .rings import Counts, Floats, faces_between, starts_of


def ring_conductances(counts: Counts, edges: Floats, colatitudes: Floats) -> Floats:
    """(faces,) area over distance of the cell centers: faces within rings, then those between, from north to south.

    counts        (rings,) cells of each ring, the same as the next ring's or 2:1
    edges         (rings + 1,) polar angle of the circles between rings
    colatitudes   (rings,) polar angle of the cell centers
    """
    between = faces_between(counts)
    within = np.diff(edges) / (2 * np.sin(colatitudes) * np.sin(np.pi / counts))
    inverse = [
        _inverse_distance(edge, *pair, *cells)
        for edge, pair, cells in zip(edges[1:-1], _pairs(colatitudes), _pairs(counts), strict=True)
    ]
    across = np.sin(edges[1:-1]) * (2 * np.pi / between) * np.array(inverse)
    conductances = np.repeat(np.append(within, across), np.append(counts, between))
    start = starts_of(counts)
    for r in np.flatnonzero(np.diff(counts)):
        # Two fine cells face a coarse one: its flux is (½(ρ₁ + ρ₂) − ρ)/distance, not the slanted differences,
        # which would be inconsistent. As a symmetric operator that is a weaker link between the two.
        fine = r if counts[r] > counts[r + 1] else r + 1
        conductances[start[fine] : start[fine + 1] : 2] -= across[r] / 2
    return conductances


def _pairs(values: Array) -> Array:
    """(rings − 1, 2) each ring's value and the next one's."""
    return np.stack([values[:-1], values[1:]], axis=1)


def _inverse_distance(edge: float, north: float, south: float, north_cells: int, south_cells: int) -> float:
    """n·d/|d|² between the cells on both sides of a circle of latitude, n the normal averaged over the wider cell.

    d joins the cell centers, or the mean of two fine cells' centers: linear functions are exact where cells are bent.
    """
    cells = min(north_cells, south_cells)
    spread_north = np.cos(np.pi / north_cells) if north_cells > cells else 1.0  # of the mean of two centers
    spread_south = np.cos(np.pi / south_cells) if south_cells > cells else 1.0
    outward = spread_south * np.sin(south) - spread_north * np.sin(north)
    upward = np.cos(south) - np.cos(north)
    along = np.cos(edge) * np.sinc(1 / cells) * outward - np.sin(edge) * upward
    return float(along / (outward**2 + upward**2))
