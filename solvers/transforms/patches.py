"""Masses in small patches of the circle or sphere, represented by masses at a few nodes of each patch.

The kernel e^{⟨b,y⟩} changes little within a patch, so that q nodes in each direction interpolate the kernel. The error
is 1e-12 of the contribution of the patch at any target. Unlike with harmonics, no relative accuracy is lost far from
all masses. The method suits clustered masses, which occupy few patches.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..backends import backend_for
from ..mesh.coordinates import unit_vectors
from ..mesh.mesh import Floats
from .pairwise import exponential_sums

Indices = NDArray[np.int64]

NODES = 12  # q: for exponents that change by ±1 within a patch, the error is 2 I_q(1) = 1e-12
_MIN_PATCHES = 5  # along the side of the cube or square, since y is interpolated too
_PAIRS_OF_A_SOURCE = 2000  # pairs that cost as much as gathering one source


def gathered_sums(targets: Floats, sources: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Return s, Σ_j w_j e^{⟨b,y_j⟩ − s} and Σ_j w_j y_j e^{⟨b,y_j⟩ − s} of targets b (n, d) and unit vectors y (m, d).

    s (n,) is the largest exponent of each target. For many targets :func:`interpolated_sources` first replaces the
    sources by fewer nodes, except on a device that sums pairs faster.
    """
    if len(targets) > _PAIRS_OF_A_SOURCE and not backend_for(targets).PAIRS_ONLY:
        steepness = float(np.sqrt((targets**2).sum(axis=1).max()))
        sources, weights = interpolated_sources(sources, weights, steepness)
    return exponential_sums(targets, sources, weights)


def interpolated_sources(points: Floats, weights: Floats, steepness: float) -> tuple[Floats, Floats]:
    """Return (m, d) nodes and (m,) masses of any sign that replace ``points`` and ``weights`` in sums of e^{⟨b,y⟩}.

    The sums Σ w f(y) of f(y) = e^{⟨b,y⟩} and of f(y) = y e^{⟨b,y⟩} keep their values to about 1e-12. If there are fewer
    points than nodes, the points and weights are returned.

    points     (n, d) unit vectors y, d = 2 or 3
    weights    (n,) weights w
    steepness  largest |b|
    """
    d, count = points.shape[1], fine_patches(steepness)
    patches, local, order, starts = sorted_by_patch(*project_to_cube(points), count)
    if len(starts) * NODES ** (d - 1) >= len(points):
        return points, weights
    masses = [masses_at_nodes(local[group], weights[group]) for group in np.split(order, starts[1:])]
    return nodes_of(patches, count, d).reshape(-1, d), np.concatenate(masses)


def fine_patches(steepness: float) -> int:
    """Return the number of patches along a side of the cube (on a circle, the square) around the sphere.

    In patches of this size NODES nodes along each axis interpolate e^{⟨b,y⟩} to about 1e-12 for |b| ≤ ``steepness``.
    """
    return max(int(np.ceil(np.pi / 4 * steepness)), _MIN_PATCHES)


def project_to_cube(points: Floats) -> tuple[Indices, Floats]:
    """Project unit vectors (n, d) to the cube around the sphere: return faces (n,) and angles on them (n, d − 1).

    A face has the number 2·axis, or 2·axis + 1 on the negative side. Angles are −π/4 … π/4, the arctan of the other
    coordinates over the absolute value of the coordinate along the axis.
    """
    n, d = points.shape
    axis = np.abs(points).argmax(axis=1)
    height = points[np.arange(n), axis]
    others = (axis[:, None] + np.arange(1, d)) % d
    angles = np.arctan(np.take_along_axis(points, others, axis=1) / np.abs(height)[:, None])
    return (2 * axis + (height < 0)).astype(np.int64), angles


def sorted_by_patch(faces: Indices, angles: Floats, count: int) -> tuple[Indices, Floats, Indices, Indices]:
    """Sort points on a cube around the sphere into equal patches, ``count`` of them along a side of each face.

    faces, angles   (n,) and (n, d − 1) position of each point, see :func:`project_to_cube`

    Returns (patches, d) the face and indices of each nonempty patch, (n, d − 1) the position of each point in its
    patch, −1 … 1, the order (n,) of the points by patch, and the first point of each patch in this order.
    """
    steps = (angles + np.pi / 4) * (2 * count / np.pi)
    places = np.clip(steps.astype(np.int64), 0, count - 1)
    columns = np.column_stack([faces, places])
    number = np.ravel_multi_index(tuple(columns.T), (2 * columns.shape[1], *(count,) * places.shape[1]))
    order = np.argsort(number, kind="stable")
    starts = np.flatnonzero(np.diff(number[order], prepend=-1)).astype(np.int64)
    return columns[order[starts]], 2 * (steps - places) - 1, order.astype(np.int64), starts


def _chebyshev() -> tuple[Floats, Floats]:
    """Return q = NODES Chebyshev points t_p and c_kp (q, q) of the Lagrange polynomials ℓ_p(t) = Σ_k T_k(t) c_kp."""
    angle = np.pi / NODES * (np.arange(NODES) + 0.5)
    waves = np.cos(np.arange(NODES)[:, None] * angle)
    waves[1:] *= 2
    return np.cos(angle), waves / NODES


def masses_at_nodes(local: Floats, weights: Floats) -> Floats:
    """Return masses (q^{d−1},) at the interpolation nodes of a patch, in place of weights (n,) at points of the patch.

    A mass is Σ_j w_j ℓ_p(t_j) for d = 2, Σ_j w_j ℓ_p(t_j1) ℓ_r(t_j2) for d = 3, with Lagrange polynomials ℓ at
    q = NODES nodes. ``local`` (n, d − 1) are the positions t of the points in the patch, −1 … 1.
    """
    lagrange = _chebyshev()[1]
    waves = np.polynomial.chebyshev.chebvander(local, NODES - 1) @ lagrange
    if local.shape[1] == 1:
        return np.asarray(weights @ waves[:, 0])
    return np.asarray((weights[:, None] * waves[:, 0]).T @ waves[:, 1]).reshape(-1)


def nodes_of(patches: Indices, count: int, dimension: int) -> Floats:
    """Return the interpolation nodes of patches on the unit sphere, (patches, q^{d−1}, d) unit vectors, q = NODES.

    ``patches`` (patches, d) holds the cube's face and the indices of each patch, with ``count`` patches along a side.
    """
    t = _chebyshev()[0]
    grid = np.stack(np.meshgrid(*(t,) * (dimension - 1), indexing="ij"), axis=-1).reshape(-1, dimension - 1)
    angles = (patches[:, None, 1:] + (grid + 1) / 2) * (np.pi / 2 / count) - np.pi / 4
    axis, sign = np.divmod(patches[:, 0], 2)
    vectors = np.empty((*angles.shape[:2], dimension))
    rows = np.arange(len(patches))
    vectors[rows, :, axis] = np.where(sign, -1.0, 1.0)[:, None]
    for step in range(1, dimension):
        vectors[rows, :, (axis + step) % dimension] = np.tan(angles[..., step - 1])
    return unit_vectors(vectors)
