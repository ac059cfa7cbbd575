"""Sums over the pairs within each of many small systems of points, see :mod:`solvers.transforms.pairwise`."""

from __future__ import annotations

import numpy as np

from ..backends import host_backend
from ..mesh.mesh import Floats

_MAX_DIMENSION = 8  # above, products of matrices cost less than loops over pairs


def sums_of_systems(
    towards: Floats, points: Floats, weights: Floats, *, causal: bool = False
) -> tuple[Floats, Floats, Floats]:
    """Return s, Z and N, sums of exponentials over the pairs of points within each of many systems of n points.

    For point i, s_i = max_j ⟨b_i, y_j⟩, Z_i = Σ_j w_j e^{⟨b_i, y_j⟩ − s_i} and N_i = Σ_j w_j y_j e^{⟨b_i, y_j⟩ − s_i}.

    towards   (systems, n, d) b
    points    (systems, n, d) y
    weights   (systems, n) w ≥ 0; points of weight 0 are ignored
    causal    whether point i includes the points j ≤ i only

    Returns s (systems, n), Z (systems, n) and N (systems, n, d). Results of a system are independent of other systems.
    """
    systems, n, d = points.shape
    if d > _MAX_DIMENSION:
        return _sums_by_products(towards, points, weights, causal)
    log_scale, normalizer, sums = np.empty((systems, n)), np.empty((systems, n)), np.empty((systems, n, d))
    work = systems * n * n // 8  # eight pairs cost about as much as a cell
    host = host_backend()
    host.launch(host.exponential_sums_of_systems, work, towards, points, weights, causal, log_scale, normalizer, sums)
    return log_scale, normalizer, sums


def _sums_by_products(towards: Floats, points: Floats, weights: Floats, causal: bool) -> tuple[Floats, Floats, Floats]:
    """Return log_scale s and Z e^{−s} (systems, n), and N e^{−s} (systems, n, d), by products of matrices."""
    exponents = towards @ points.transpose(0, 2, 1)
    hidden = np.broadcast_to((weights == 0)[:, None, :], exponents.shape)
    if causal:
        hidden = hidden | np.triu(np.ones(exponents.shape[1:], dtype=bool), 1)
    exponents[hidden] = -np.inf
    log_scale = exponents.max(axis=2)
    exponents -= np.where(np.isneginf(log_scale), 0.0, log_scale)[:, :, None]
    kernel = np.exp(exponents, out=exponents)
    kernel *= weights[:, None, :]
    return log_scale, kernel.sum(axis=2), kernel @ points
