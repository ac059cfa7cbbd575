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
    """Return the entropy H = ∫ρ log ρ = Σ m (log m − log a) (...) of masses m (..., n) in cells of area a.

    H has its minimum, log ρ̄, at the uniform density ρ̄. The density ρ is with respect to surface area on every domain.
    Only ``log_areas`` log a (n,) appear, since the areas of a sphere in many dimensions are out of range.
    """
    logs = np.log(np.maximum(masses, SMALLEST))
    logs -= log_areas
    return weighted_sum(np.maximum(masses, 0.0), logs)


def energy_log_unit(log_bound: Value) -> Floats:
    """Return the logarithm (...) of the unit of stored energies for the largest kernel e^{log_bound}.

    ``log_bound`` has the shape (...). The unit is 1, unless e^{log_bound} is out of the range of floating-point
    numbers; then it is e^{log_bound}.
    """
    return np.where(np.less_equal(log_bound, MAX_EXPONENT), 0.0, log_bound)


def energy(masses: Floats, normalizer: Floats, beta: float, log_bound: Value, limit: Callable[[], Value]) -> Value:
    """Return the interaction energy E = (1/2β) Σ_h w_h ∬ k_h(x, y) ρ(x) ρ(y) dx dy of tokens with attention heads h.

    E is computed as (1/2β) Σ m Z, in units of e^{energy_log_unit(log_bound)}. k_h = e^{β⟨Q_h x, K_h y⟩} or another
    kernel is summed over the pairs that attend: under a causal mask, the pairs where y is not beyond x in the sequence.
    The signs and sizes of Q and K enter through k, never through the factor 1/2β, so that E is continuous in the
    matrices; V does not enter.

    For one head with V = c QᵀK symmetric, without mask, network and noise, E is a Lyapunov function: layer norm post
    moves tokens by X = c P ∇(δE/δρ)/s, s = 1 unnormalized and s = Z with softmax, so that dE/dt = ∫ s|X|²ρ/c: E rises
    for c > 0 (Q = K = V = I), and falls for c < 0 (V = −I, or K = −I). Geshkovski, Letrouit, Polyanskiy, Rigollet
    (2312.10794) have Q = K = V = I.

    masses       m (..., n) of the cells or tokens
    normalizer   Σ_h w_h Z_h e^{−log_bound} (..., n), where Z_h is the sum of k_h over the tokens
    log_bound    logarithm of the largest k (...)
    limit        () → E (...) at β = 0, see :func:`energy_limit`
    """
    return energy_of_sum(weighted_sum(masses, normalizer), beta, log_bound, limit)


def energy_of_sum(total: Value, beta: float, log_bound: Value, limit: Callable[[], Value]) -> Value:
    """Return the interaction energy E (...) of :func:`energy` from the sum ``total`` (...) = Σ m Z e^{−log_bound}.

    m are masses and Z sums of the kernel over the tokens; ``limit`` is called for E at β = 0.
    """
    if beta == 0:
        return limit()
    return np.asarray(total / (2 * beta) * np.exp(log_bound - energy_log_unit(log_bound)))


def energy_limit(heads: Sequence[Head], kernel: Kernel, masses: Floats, points: Floats) -> float:
    """Return the limit for β → 0 of E − Σ_h w_h/2β, where E is the interaction energy of :func:`energy`.

    The limit is ½ Σ_h w_h ∬ (⟨Q_h x, K_h y⟩ + ℓ(Q_h x) + ℓ(K_h y)) ρρ, where ℓ = log f/β and f is the factor of the
    kernel e^{β⟨Qx,Ky⟩} f(Qx) f(Ky), 1 for the exponential one. For Q = K = I the limit is ½|∫xρ|². The limit is NaN for
    a windowed kernel, since the constant part of E then depends on ρ.

    masses   (groups, n): group g attends to the groups up to g; one group without a mask
    points   (n, d) or (groups, n, d)
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
    """Return the root mean square speed √∫|X|²ρ = √(Σ m |X|²) (...) of masses m (..., n) with velocities X (..., n, d).

    ρ is the density that the masses represent.
    """
    return root_mean_square(masses, velocity)


def root_mean_square(masses: Floats, vectors: Floats) -> Floats:
    """Return √(Σ m |y|²) (...) of vectors y (..., n, d) with masses m (..., n).

    The result is correct also for vectors whose squares overflow.
    """
    with np.errstate(over="ignore"):
        found = np.asarray(np.sqrt(weighted_sum(masses, (vectors**2).sum(axis=-1))))
    if not np.isinf(found).any():
        return found
    unit = np.abs(vectors).max(axis=(-2, -1), keepdims=True)
    scaled = np.sqrt(weighted_sum(masses, ((vectors / unit) ** 2).sum(axis=-1)))
    return np.where(np.isinf(found), unit[..., 0, 0] * scaled, found)


def weighted_sum(weights: Floats, values: Floats) -> Floats:
    """Return Σ w f (...), summed over the last axis of weights w (..., n) and values f (..., n).

    Unlike with einsum, each row is independent of the other rows also for large n.
    """
    return np.asarray((weights * values).sum(axis=-1))
