"""Counts of random points that theory predicts: centers of sequential parking, and points within one hemisphere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from solvers.mesh.mesh import Floats


def parking_centers(points: Floats, angle: float) -> NDArray[np.intp]:
    """Indices of the unit vectors ``points`` (n, d) that are farther than ``angle`` (radians) from all centers before.

    The first is one. Rényi (1958) on a line; under a causal mask such tokens hold clusters for long, of angles like
    1/√β (Karagodin, Polyanskiy, Rigollet 2411.04990).
    """
    chosen: list[int] = []
    nearest = np.cos(angle)
    for k, point in enumerate(points):
        if not (points[chosen] @ point >= nearest).any():
            chosen.append(k)
    return np.array(chosen, dtype=np.intp)


def in_one_hemisphere(points: Floats) -> bool:
    """Whether some w has ⟨x, w⟩ > 0 for all ``points`` (n, d): whether 0 is outside their convex hull.

    By non-negative least squares: the distance of (0, 1) from the cone of the (x, 1).
    """
    from scipy.optimize import nnls

    lifted = np.vstack([points.T, np.ones(len(points))])
    target = np.zeros(len(lifted))
    target[-1] = 1.0
    return bool(nnls(lifted, target)[1] > 1e-9)  # zero to rounding where 0 is in the hull


def share_in_one_hemisphere(count: int, dimension: int) -> float:
    """Probability that ``count`` uniform directions in R^``dimension`` are in one hemisphere (Wendel 1962).

    2^{−(n−1)} Σ_{k<d} C(n−1, k).
    """
    from scipy.special import comb

    return float(comb(count - 1, np.arange(dimension)).sum() / 2.0 ** (count - 1))
