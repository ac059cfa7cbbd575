"""Conservative remap of densities on a sphere of rings to a regular grid of latitude and longitude."""

from __future__ import annotations

import numpy as np

from ..mesh.mesh import Floats, Integers


def grid_edges(latitudes: int, longitudes: int) -> tuple[Floats, Floats]:
    """Return the edges (latitudes + 1,) and (longitudes + 1,) of a regular grid in degrees, from south and from 0."""
    return np.linspace(-90.0, 90.0, latitudes + 1), np.linspace(0.0, 360.0, longitudes + 1)


def average_on_grid(density: Floats, ring_cells: Integers, latitudes: int, longitudes: int) -> Floats:
    """Return the averages (latitudes, longitudes) of a density (cells,) over the cells of a regular grid.

    A cell of the grid receives the mass of each mesh cell in proportion to the area of their overlap. The total mass
    is conserved, and no new extrema appear.

    Parameters
    ----------
    density : (cells,) array
        Cell averages, ring by ring from the north.
    ring_cells : (rings,) array of int
        Number of cells of each ring, from north to south.
    latitudes, longitudes : int
        Numbers of cells of the grid along latitude, from south to north, and along longitude, from 0 to 360 degrees.

    Returns
    -------
    (latitudes, longitudes) array
        Averages of the density over the cells of the grid.
    """
    turns = np.linspace(0.0, 1.0, longitudes + 1)
    rings = np.split(density, np.cumsum(ring_cells)[:-1])
    along_rings = np.array([longitudes * np.diff(np.interp(turns, *_integral(ring))) for ring in rings])
    edges = np.sin(np.linspace(-np.pi / 2, np.pi / 2, len(rings) + 1))  # heights of the edges of the rings
    heights, of_grid = np.diff(edges), np.sin(np.linspace(-np.pi / 2, np.pi / 2, latitudes + 1))
    integral = np.vstack([np.zeros(longitudes), np.cumsum(along_rings[::-1] * heights[:, None], axis=0)])
    below = np.clip(np.searchsorted(edges, of_grid, side="right") - 1, 0, len(rings) - 1)  # ring of each edge
    part = ((of_grid - edges[below]) / heights[below])[:, None]
    at_edges = integral[below] + part * (integral[below + 1] - integral[below])
    return np.asarray(np.diff(at_edges, axis=0) / np.diff(of_grid)[:, None])


def _integral(ring: Floats) -> tuple[Floats, Floats]:
    """Return the edges (n + 1,) of a ring's cells in turns of 2π, and a density's integral (n + 1,) up to each edge."""
    return np.linspace(0.0, 1.0, len(ring) + 1), np.concatenate([[0.0], np.cumsum(ring) / len(ring)])
