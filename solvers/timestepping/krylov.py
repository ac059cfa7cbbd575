"""Functions of a matrix times a vector, in its Krylov space (Hochbruck and Lubich, SIAM J. Numer. Anal. 34 (1997))."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..mesh.mesh import Floats

MAX_DIMENSION = 60


def phi1_times(matrix: Callable[[Floats], Floats], vector: Floats, dt: float) -> tuple[Floats, Floats]:
    """dt φ₁(dt J) v and an estimate of its error, from at most MAX_DIMENSION products with J."""
    from scipy.linalg import expm

    size = float(np.linalg.norm(vector))
    if size == 0.0:
        return np.zeros_like(vector), np.zeros_like(vector)
    basis, small = [vector / size], np.zeros((MAX_DIMENSION + 1, MAX_DIMENSION))
    for k in range(MAX_DIMENSION):
        found = matrix(basis[k])
        for j, old in enumerate(basis):  # modified Gram–Schmidt
            small[j, k] = float(np.vdot(old, found))
            found = found - small[j, k] * old
        small[k + 1, k] = float(np.linalg.norm(found))
        if small[k + 1, k] <= 1e-12 * abs(small[: k + 1, : k + 1]).max():
            break
        basis.append(found / small[k + 1, k])
    m = k + 1
    augmented = np.zeros((m + 2, m + 2))  # its exponential holds φ₁ and φ₂ of the small matrix
    augmented[:m, :m], augmented[0, m], augmented[m, m + 1] = dt * small[:m, :m], 1.0, 1.0
    exponential = expm(augmented)
    weights = size * dt * exponential[:m, m]
    change = sum((w * b for w, b in zip(weights, basis, strict=False)), np.zeros_like(vector))
    last = dt * small[m, m - 1] * exponential[m - 1, m + 1] * size * dt
    lost = basis[m] * last if len(basis) > m else np.zeros_like(vector)
    return np.asarray(change), np.asarray(lost)
