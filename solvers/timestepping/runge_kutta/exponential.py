"""Exponential Rosenbrock steps with matrix functions in Krylov spaces."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...mesh.mesh import Floats
from ..state import State, from_reals, reals
from .error_controlled import ErrorControlled

MAX_DIMENSION = 60


class ExponentialRosenbrock(ErrorControlled):
    """Exponential Rosenbrock integrator with error control for ∂ₜu = f(t, u), by matrix functions in Krylov spaces.

    A step is y + dt φ₁(dt J) F(y) for y = (u, t), with F = (f, 1) and J = ∂F/∂y. φ₁(z) = (e^z − 1)/z is evaluated in a
    Krylov space of J. Steps are exact for ∂ₜu = Lu + b + ct, else of order 2. The error estimate is the remainder of
    the linearization, ⅓ dt |f₁ − f₀ − J(y₁ − y₀)|, and the error of the Krylov space. Source: Hochbruck and Ostermann,
    Acta Numerica 19 (2010) 209, section 2.4. Complex u are real vectors here, as f need not be differentiable in them.
    """

    order = 3

    def attempt(self, state: State, dt: float) -> tuple[Floats, Floats]:
        problem, time, start = self.problem, state.time, state.values
        rate = problem.full(time, start)
        small = 1e-7 * (1.0 + float(np.abs(start).max()))
        drift = (problem.full(time + 1e-6 * dt, start) - rate) / (1e-6 * dt)  # ∂f/∂t
        # scale of t, which gives both parts of F equal size
        unit = max(float(np.linalg.norm(rate)), dt * float(np.linalg.norm(drift))) or 1.0

        def jacobian(vector: Floats) -> Floats:
            """Return J y for a vector y of reals, the last of which belongs to the time."""
            of_values = from_reals(vector[:-1], start)
            length = small / max(float(np.abs(of_values).max()), np.finfo(float).tiny)
            change = (problem.full(time, start + length * of_values) - rate) / length + vector[-1] / unit * drift
            return np.append(reals(change), 0.0)

        change, lost = phi1_times(jacobian, np.append(reals(rate), unit), dt)
        values = start + from_reals(change[:-1], start)
        remainder = problem.full(time + dt, values) - rate - from_reals(jacobian(change)[:-1], start)
        return values, dt / 3 * remainder + from_reals(lost[:-1], start)


def phi1_times(matrix: Callable[[Floats], Floats], vector: Floats, dt: float) -> tuple[Floats, Floats]:
    """Return dt φ₁(dt J) v for a vector v, and an estimate of its error, with φ₁(z) = (e^z − 1)/z in a Krylov space.

    ``matrix`` is the function v → J v, called at most MAX_DIMENSION times. Source: Hochbruck and Lubich, SIAM J. Numer.
    Anal. 34 (1997) 1911.
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
    augmented = np.zeros((m + 2, m + 2))  # the exponential holds φ₁ and φ₂ of the small matrix
    augmented[:m, :m], augmented[0, m], augmented[m, m + 1] = dt * small[:m, :m], 1.0, 1.0
    exponential = expm(augmented)
    weights = size * dt * exponential[:m, m]
    change = sum((w * b for w, b in zip(weights, basis, strict=False)), np.zeros_like(vector))
    last = dt * small[m, m - 1] * exponential[m - 1, m + 1] * size * dt
    lost = basis[m] * last if len(basis) > m else np.zeros_like(vector)
    return np.asarray(change), np.asarray(lost)
