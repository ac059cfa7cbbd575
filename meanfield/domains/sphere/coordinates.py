"""Angles of the cells of the circle and the sphere, as coordinates of a density."""

from __future__ import annotations

import numpy as np

from solvers.io.layout import Variable
from solvers.mesh.mesh import Floats


def coordinates_of(centers: Floats) -> tuple[Variable, ...]:
    """Return the angle in radians, or longitude and latitude in degrees, of unit vectors (cells, 2) or (cells, 3).

    Angle and longitude begin at 0, like the cells of each ring.
    """
    x, y, *z = centers.T
    angle = np.arctan2(y, x) % (2 * np.pi)
    if not z:
        return (Variable("angle", ("cell",), angle, "rad", "angle", is_coordinate=True),)
    latitude = np.degrees(np.arctan2(z[0], np.hypot(x, y)))
    return (
        Variable("longitude", ("cell",), np.degrees(angle), "degrees_east", "longitude", is_coordinate=True),
        Variable("latitude", ("cell",), latitude, "degrees_north", "latitude", is_coordinate=True),
    )
