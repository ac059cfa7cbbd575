"""Gauss–Jacobi rules for z = ⟨x, e⟩ on S^{d−1}, and harmonics that are orthonormal with their weights."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from solvers.mesh.mesh import Floats


@lru_cache(maxsize=4)
def gauss_rule(dimension: int, count: int) -> tuple[Floats, Floats]:
    """Return the nodes and weights (count,) of a Gauss–Jacobi rule on S^{d−1}, d = ``dimension``, as read-only arrays.

    The rule integrates functions of z = ⟨x, e⟩ over the uniform distribution of x.
    """
    from scipy.special import roots_jacobi

    nodes: Floats = roots_jacobi(count, (dimension - 3) / 2, (dimension - 3) / 2)[0]
    return _mark_read_only(nodes, _christoffel(nodes, dimension))


@lru_cache(maxsize=16)
def harmonics(dimension: int, count: int, m: int) -> tuple[Floats, Floats]:
    """Return √w s^m p_k and √w s^m p_k' (nodes, k) of order m at ``count`` nodes, as read-only arrays.

    w are the weights of the nodes z, s = √(1 − z²), and p_k are polynomials of degrees k up to 3/4 of ``count``, for
    which the columns √w s^m p_k are orthonormal.
    """
    nodes, weights = gauss_rule(dimension, count)
    root = np.sqrt(weights) * np.sqrt((1 - nodes) * (1 + nodes)) ** m
    return _mark_read_only(*_orthonormal(nodes, root, 3 * count // 4))


def _mark_read_only(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Mark two arrays as read-only and return them."""
    one.flags.writeable = other.flags.writeable = False
    return one, other


def _christoffel(z: Floats, dimension: int) -> Floats:
    """Return the weights of the Gauss rule with the nodes z, scaled to the sum 1.

    The weights are 1/Σ p_k(z)² for orthonormal polynomials p_k. SciPy's weights are wrong by up to 5e-11 of the weights
    near the poles, the weights computed here by 3e-13.
    """
    if dimension == 2:
        return np.full(len(z), 1 / len(z))
    k, nu = np.arange(1.0, len(z)), dimension / 2 - 1
    recurrence = np.sqrt(k * (k + 2 * nu - 1) / (4 * (k + nu) * (k + nu - 1)))
    before, value, total, last = np.zeros_like(z), np.ones_like(z), np.ones_like(z), 0.0
    for step in recurrence:
        before, value = value, (z * value - last * before) / step
        total, last = total + value**2, step
    weights: Floats = 1 / total
    weights /= weights.sum()
    return weights


def _orthonormal(z: Floats, root: Floats, count: int) -> tuple[Floats, Floats]:
    """Return √w p_k and √w p_k' (nodes, count + 1) at the nodes z for polynomials p_k of degrees k = 0 … ``count``.

    The polynomials are orthonormal with the weights w = ``root``², and found by recurrence in the degree.
    """
    values, slopes = np.zeros((2, len(z), count + 1))
    values[:, 0] = root / np.linalg.norm(root)
    for k in range(count):
        known, slopes_known = values[:, : k + 1], slopes[:, : k + 1]
        value, slope = z * values[:, k], z * slopes[:, k] + values[:, k]
        for _ in range(2):  # two passes of orthogonalization are enough (Kahan and Parlett)
            parts = known.T @ value
            value, slope = value - known @ parts, slope - slopes_known @ parts
        size = np.linalg.norm(value)
        values[:, k + 1], slopes[:, k + 1] = value / size, slope / size
    return values, slopes
