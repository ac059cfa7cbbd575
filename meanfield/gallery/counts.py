"""Predicted counts of random points: centers of sequential parking, and points within one hemisphere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers.mesh.mesh import Floats


def parking_centers(points: Floats, angle: float) -> NDArray[np.intp]:
    """Return the indices of the centers that sequential parking selects from unit vectors ``points`` (n, d).

    A point is a center if it is farther than ``angle`` (radians) from all previous centers. Rényi (1958) studied the
    line. Under a causal mask, tokens gather around these centers for a long time, for angles of order 1/√β (Karagodin,
    Polyanskiy, Rigollet, arXiv:2411.04990).
    """
    centers: list[int] = []
    nearest = np.cos(angle)
    for k, point in enumerate(points):
        if not (points[centers] @ point >= nearest).any():
            centers.append(k)
    return np.array(centers, dtype=np.intp)


def in_one_hemisphere(points: Floats) -> bool:
    """Return whether some w has ⟨x, w⟩ > 0 for all ``points`` (n, d), that is, 0 is outside their convex hull.

    Non-negative least squares gives the distance of (0, 1) from the cone of the vectors (x, 1), zero if 0 is inside.
    """
    from scipy.optimize import nnls

    lifted = np.vstack([points.T, np.ones(len(points))])
    target = np.zeros(len(lifted))
    target[-1] = 1.0
    return bool(nnls(lifted, target)[1] > 1e-9)  # the residual is zero to rounding if 0 is in the hull


def share_in_one_hemisphere(count: int, dimension: int) -> float:
    """Return the probability that ``count`` uniform directions in R^``dimension`` are in one hemisphere (Wendel 1962).

    The probability is 2^{−(n−1)} Σ_{k<d} C(n−1, k) for n directions in R^d.
    """
    from scipy.special import comb

    return float(comb(count - 1, np.arange(dimension)).sum() / 2.0 ** (count - 1))
