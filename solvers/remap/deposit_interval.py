"""Deposits of point masses on an interval: a split over two cells with equal mass and first moment."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..mesh.mesh import Floats, Mesh


def deposit_on_interval(mesh: Mesh, places: ArrayLike, masses: ArrayLike) -> Floats:
    """Return the density (cells,) on an interval of point masses ``masses`` (n,) at the coordinates ``places`` (n,).

    Each mass is shared by the two cells whose centers bracket it, with the same first moment. Between an end of the
    interval and the nearest center, that cell receives the whole mass. Raises ValueError for a point outside the
    interval.
    """
    x, center = np.asarray(places, dtype=float), mesh.centers[:, 0]
    first, last = mesh.face_centers[0, 0], mesh.face_centers[-1, 0]
    for place in x[~((first <= x) & (x <= last))]:
        raise ValueError(f"point {place:g}: expected within [{first:g}, {last:g}]")
    left = np.searchsorted(center, x, side="right").clip(1, mesh.cells - 1) - 1
    share = ((x - center[left]) / (center[left + 1] - center[left])).clip(0.0, 1.0)
    cell_masses = np.zeros(mesh.cells)
    np.add.at(cell_masses, left, (1 - share) * np.asarray(masses, dtype=float))
    np.add.at(cell_masses, left + 1, share * np.asarray(masses, dtype=float))
    return cell_masses / mesh.volumes
