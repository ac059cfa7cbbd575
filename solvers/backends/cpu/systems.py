"""Sums over all pairs within each of many small systems of points, of equal size and dimension."""

import numpy as np

from .caching import compiled
from .exponential import CONTRACT, exponential
from .launching import inline, share

_kernel = compiled(fastmath=CONTRACT)


@inline
def _exponents(b, y, j, first, exponents):
    """Compute the exponents ⟨b_i, y_j⟩ of one source j and all targets i from ``first`` on, for b and y (d, n)."""
    count = exponents.shape[0] - first
    into = exponents[first:]
    row, number = b[0, first:], y[0, j]
    for i in range(count):
        into[i] = row[i] * number
    for c in range(1, len(b)):
        row, number = b[c, first:], y[c, j]
        for i in range(count):
            into[i] += row[i] * number


@_kernel
def exponential_sums_of_systems(worker, workers, towards, points, weights, causal, log_scale, normalizer, sums):
    """Compute s_i = max_j ⟨b_i, y_j⟩ and sums Z_i and N_i over the points j of each of many systems of n points.

    Z_i = Σ_j w_j e^{⟨b_i, y_j⟩ − s_i} and N_i = Σ_j w_j y_j e^{⟨b_i, y_j⟩ − s_i}.

    towards     (systems, n, d) b
    points      (systems, n, d) y
    weights     (systems, n) w; points of weight 0 are ignored
    causal      whether point i includes points j ≤ i only
    log_scale, normalizer, sums   (systems, n), (systems, n) and (systems, n, d) out: s, Z and N

    Loops run along targets i, side by side.
    """
    systems, n, d = points.shape
    b, y, total = np.empty((d, n)), np.empty((d, n)), np.empty((d, n))
    scale, mass, exponents = np.empty(n), np.empty(n), np.empty(n)
    begin, end = share(worker, workers, systems)
    for system in range(begin, end):
        for i in range(n):  # copies by slices would take seconds to compile
            scale[i], mass[i] = -np.inf, 0.0
            for c in range(d):
                b[c, i], y[c, i], total[c, i] = towards[system, i, c], points[system, i, c], 0.0
        for j in range(n):
            if weights[system, j] != 0.0:
                first = j if causal else 0
                _exponents(b, y, j, first, exponents)
                logs, highest = exponents[first:], scale[first:]
                for i in range(len(logs)):
                    highest[i] = max(highest[i], logs[i])
        for j in range(n):
            weight = weights[system, j]
            if weight != 0.0:
                first = j if causal else 0
                _exponents(b, y, j, first, exponents)
                logs, highest, normalizers = exponents[first:], scale[first:], mass[first:]
                for i in range(len(logs)):
                    logs[i] = weight * exponential(logs[i] - highest[i])
                for i in range(len(logs)):
                    normalizers[i] += logs[i]
                for c in range(d):
                    row, number = total[c, first:], y[c, j]
                    for i in range(len(logs)):
                        row[i] += logs[i] * number
        for i in range(n):
            log_scale[system, i], normalizer[system, i] = scale[i], mass[i]
            for c in range(d):
                sums[system, i, c] = total[c, i]
