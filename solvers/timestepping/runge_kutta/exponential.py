"""Exponential steps by functions of a matrix times a vector, in its Krylov space."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...mesh.mesh import Floats
from ..state import State
from .error_controlled import ErrorControlled

MAX_DIMENSION = 60


class ExponentialRosenbrock(ErrorControlled):
    """u + dt φ₁(dt J)(f + …): exact for ∂ₜu = Lu + b, of second order else (Hochbruck and Ostermann 2010, section 2).

    φ₁(z) = (e^z − 1)/z of a Krylov space of J = ∂f/∂u; the error is that of what J leaves over, ⅓ dt |f₁ − f₀ − J(u₁ −
    u₀)|, and of the Krylov space.
    """

    order = 3

    def attempt(self, state: State, dt: float) -> tuple[Floats, Floats]:
        problem, time, start = self.problem, state.time, state.values
        rate = problem.full(time, start)
        small = 1e-7 * (1.0 + float(np.abs(start).max()))

        def jacobian(vector: Floats) -> Floats:
            length = small / max(float(np.abs(vector).max()), np.finfo(float).tiny)
            return (problem.full(time, start + length * vector) - rate) / length

        drift = (problem.full(time + 1e-6 * dt, start) - rate) / 1e-6  # dt ∂f/∂t
        change, lost = phi1_times(jacobian, rate + 0.5 * drift, dt)
        values = start + change
        left_over = problem.full(time + dt, values) - rate - drift - jacobian(change)
        return values, dt / 3 * left_over + lost


def phi1_times(matrix: Callable[[Floats], Floats], vector: Floats, dt: float) -> tuple[Floats, Floats]:
    """Return dt φ₁(dt J) v and an estimate of its error, from at most MAX_DIMENSION products with J.

    Hochbruck and Lubich, SIAM J. Numer. Anal. 34 (1997) 1911.
    """
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
