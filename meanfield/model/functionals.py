"""Functionals of a state, shared by densities, particles and atoms: entropy, interaction energy, speed.

Arrays are on the host: masses m (..., n) of cells or tokens, and values at each cell or token, of one state or several.
The value of one state is bitwise independent of the other states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from meanfield.model.heads import Head, matrix_of
from meanfield.model.kernel import Kernel
from solvers.mesh.mesh import Floats

MAX_EXPONENT = 700.0  # exponent of the largest kernel: e^709 is the largest double
SMALLEST = np.finfo(float).tiny  # mass below which m log m counts as 0
Value = float | Floats


def entropy(masses: Floats, log_areas: Floats) -> Floats:
    """Return H = ∫ρ log ρ = Σ m (log m − log a), a the area of each cell; the minimum is log ρ̄, of the uniform
    density.

    H is with respect to surface area on every domain. Only logarithms of areas appear, since the areas of a sphere in
    many dimensions are out of range.
    """
    logs = np.log(np.maximum(masses, SMALLEST))
    logs -= log_areas
    return weighted_sum(np.maximum(masses, 0.0), logs)


def energy_log_unit(log_bound: Value) -> Floats:
    """Return the logarithm of the unit of stored energies: 0, or ``log_bound`` (...) where e^{log_bound} is out of
    range.
    """
    return np.where(np.less_equal(log_bound, MAX_EXPONENT), 0.0, log_bound)


def energy(masses: Floats, normalizer: Floats, beta: float, log_bound: Value, limit: Callable[[], Value]) -> Value:
    """Return E = (1/2β) Σ_h w_h ∬ k_h(x, y) ρ(x) ρ(y) dx dy = (1/2β) Σ m Z, in units of e^{energy_log_unit(log_bound)}.

    k_h = e^{β⟨Q_h x, K_h y⟩} or another kernel, over the pairs that attend: under a causal mask, the pairs where the
    label or the position of y is not beyond that of x. The signs and sizes of Q and K enter through k, never through
    the factor 1/2β, so that E is continuous in the matrices; V does not enter.

    For one head with V = c QᵀK symmetric, without mask, network and noise, E is a Lyapunov function: layer norm post
    moves tokens by X = c P ∇(δE/δρ)/s, s = 1 unnormalized and s = Z with softmax, so that dE/dt = ∫ s|X|²ρ/c: E rises
    for c > 0 (Q = K = V = I), and falls for c < 0 (V = −I, or K = −I). Geshkovski, Letrouit, Polyanskiy, Rigollet
    (2312.10794) have Q = K = V = I.

    masses       m (..., n)
    normalizer   Σ_h w_h Z_h e^{−log_bound} (..., n)
    log_bound    logarithm of the largest k (...)
    limit        () → E (...) at β = 0, see :func:`energy_limit`
    """
    return energy_of_sum(weighted_sum(masses, normalizer), beta, log_bound, limit)


def energy_of_sum(total: Value, beta: float, log_bound: Value, limit: Callable[[], Value]) -> Value:
    """Return the energy E (...) from ``total`` (...) = Σ m Z e^{−log_bound}, see :func:`energy`."""
    if beta == 0:
        return limit()
    return np.asarray(total / (2 * beta) * np.exp(log_bound - energy_log_unit(log_bound)))


def energy_limit(heads: Sequence[Head], kernel: Kernel, masses: Floats, points: Floats) -> float:
    """Return lim (E − Σ_h w_h/2β) for β → 0, which is ½ Σ_h w_h ∬ (⟨Q_h x, K_h y⟩ + ℓ(Q_h x) + ℓ(K_h y)) ρρ, ℓ = log
    f/β.

    f is the factor of the kernel, 1 for the exponential one.

    masses   (groups, n): group g attends to the groups up to g; one group without a mask
    points   (n, d) or (groups, n, d)

    For Q = K = I the limit is ½|∫xρ|². It is NaN for a window, whose constant depends on ρ.
    """
    if kernel.zonal is not None:
        return np.nan
    total, rows = 0.0, masses[:, None, :]
    mass, moment = masses.sum(axis=1), (rows @ points)[:, 0]
    d = points.shape[-1]
    for head in heads:
        query, key = matrix_of(head.query, d), matrix_of(head.key, d)
        total += head.weight * float(((moment @ query.T) * np.cumsum(moment @ key.T, axis=0)).sum())
        if kernel.log_factor is not None:
            query_factor, key_factor = (
                (rows @ kernel.log_factor(1.0, ((points @ matrix.T) ** 2).sum(axis=-1))[..., None])[:, 0, 0]
                for matrix in (query, key)
            )
            total += head.weight * float(query_factor @ np.cumsum(mass) + mass @ np.cumsum(key_factor))
    return total / 2


def speed(masses: Floats, velocity: Floats) -> Floats:
    """Return the root mean square speed √∫|X|²ρ = √(Σ m |X|²) of velocities X (..., n, d)."""
    return root_mean_square(masses, velocity)


def root_mean_square(masses: Floats, vectors: Floats) -> Floats:
    """Return √(Σ m |y|²) (...) of vectors y (..., n, d), also of vectors whose squares overflow."""
    with np.errstate(over="ignore"):
        found = np.asarray(np.sqrt(weighted_sum(masses, (vectors**2).sum(axis=-1))))
    if not np.isinf(found).any():
        return found
    unit = np.abs(vectors).max(axis=(-2, -1), keepdims=True)
    scaled = np.sqrt(weighted_sum(masses, ((vectors / unit) ** 2).sum(axis=-1)))
    return np.where(np.isinf(found), unit[..., 0, 0] * scaled, found)


def weighted_sum(weights: Floats, values: Floats) -> Floats:
    """Return Σ w f (...) of (..., n) and (..., n); unlike einsum, each row is independent of the other rows for large
    n.
    """
    return np.asarray((weights * values).sum(axis=-1))
