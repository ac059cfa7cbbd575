"""Recovery of clusters from the distribution of pairwise cosines alone: the turnpike problem of P. Rigollet's talk.

    atoms x_a with masses m_a:  ⟨x_a, x_b⟩ has probability m_a m_b ,  a, b = 1 … k

Such a configuration is determined up to rotation by masses and Gram matrix; several may have the same cosines. The
result has the fewest atoms, at most MAX_ATOMS, among the configurations that fit best in W₁. The distance between
configuration and tokens is the Gromov–Wasserstein distance of order 2, √min_P Σ (G_ij − G'_kl)² P_ik P_jl, over
couplings P of the masses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.mesh.mesh import Floats

MAX_ATOMS = 4
LEVELS = 500  # number of fitted quantiles of the cosines
STARTS = 6
TOLERANCE = 0.01  # tolerance of W₁ above the best fit


@dataclass(frozen=True)
class Configuration:
    """Configuration of k atoms, point masses on the sphere: masses (k,), heaviest first, and Gram matrix (k, k).

    distance   W₁ between the distribution of the atoms' cosines and the given one
    """

    masses: Floats
    gram: Floats
    distance: float


def recover_atoms(cosines: Floats, max_atoms: int = MAX_ATOMS) -> Configuration:
    """Return the fewest atoms, point masses on the sphere, whose pairwise cosines are distributed like those of tokens.

    cosines     those of all n(n − 1)/2 pairs i < j of n tokens
    max_atoms   largest number of atoms

    The number of atoms is the smallest whose W₁ exceeds that of the best fit by at most TOLERANCE.
    """
    n = (1 + np.sqrt(1 + 8 * len(cosines))) / 2
    whole = np.concatenate([cosines, np.ones(round(n / 2))])  # a token with itself counts as half a pair
    quantiles = np.quantile(whole, (np.arange(LEVELS) + 0.5) / LEVELS)
    point = _fit_atoms(quantiles, 1)
    if point.distance <= TOLERANCE:  # no other fit can be better by more than TOLERANCE
        return point
    found = [point, *(_fit_atoms(quantiles, k) for k in range(2, max_atoms + 1))]
    best = min(one.distance for one in found)
    return next(one for one in found if one.distance <= best + TOLERANCE)


def gromov_wasserstein(configuration: Configuration, directions: Floats) -> float:
    """Return an upper bound of the Gromov–Wasserstein distance of order 2 between atoms and tokens (n, d) of length 1.

    The tokens have equal masses. The bound is the smaller result of two descents.
    """
    import ot

    masses, gram = configuration.masses, configuration.gram
    shares, whole = np.full(len(directions), 1 / len(directions)), directions @ directions.T
    nearest = _coupling(gram, masses, whole, shares)
    squares = [
        ot.gromov.gromov_wasserstein2(gram, whole, masses, shares, G0=start)
        for start in (np.outer(masses, shares), nearest)
    ]
    return float(np.sqrt(max(min(squares), 0.0)))


def _coupling(gram: Floats, masses: Floats, whole: Floats, shares: Floats) -> Floats:
    """Return the transport plan (atoms, tokens) that pairs atoms and tokens with similar distributions of cosines.

    gram, masses    Gram matrix and masses of the atoms
    whole, shares   Gram matrix and masses of the tokens
    """
    import ot

    levels = (np.arange(50) + 0.5) / 50
    ours = [_quantiles_at(row, masses, levels) for row in gram]
    costs = np.array([[np.abs(one - np.quantile(row, levels)).mean() for row in whole] for one in ours])
    return np.asarray(ot.emd(masses, shares, costs))


def _fit_atoms(quantiles: Floats, count: int) -> Configuration:
    """Return the configuration of ``count`` atoms whose distribution of cosines is nearest in W₁ to given quantiles.

    The configuration is the best of several descents without derivatives, because W₁ has kinks.
    """
    from scipy.optimize import minimize

    def miss(parameters: Floats) -> float:
        return _distance(*_configuration(parameters, count), quantiles)

    random = np.random.default_rng(0)
    size = count - 1 + count * (count + 1) // 2
    options = {"maxfev": 200 * size, "adaptive": True, "xatol": 1e-5, "fatol": 1e-7}

    def descent(start: Floats) -> Any:
        return minimize(miss, start, method="Nelder-Mead", options=options)

    fits = [descent(random.standard_normal(size)) for _ in range(1 if count == 1 else STARTS)]
    best = min(fits, key=lambda fit: float(fit.fun))
    for _ in range(2):  # restarts from the point where a simplex has shrunk
        best = descent(best.x)
    masses, gram = _configuration(best.x, count)
    order = np.argsort(-masses)
    return Configuration(masses[order], gram[np.ix_(order, order)], float(best.fun))


def _configuration(parameters: Floats, count: int) -> tuple[Floats, Floats]:
    """Return the masses (count,) and the Gram matrix (count, count) of unit vectors that real parameters describe.

    Masses are a softmax. The k-th vector is in the span of the first k axes.
    """
    logits = np.concatenate([[0.0], parameters[: count - 1]])
    weights = np.exp(logits - logits.max())
    vectors = np.zeros((count, count))
    vectors[np.tri(count, dtype=bool)] = parameters[count - 1 :]
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
    return weights / weights.sum(), vectors @ vectors.T


def _distance(masses: Floats, gram: Floats, quantiles: Floats) -> float:
    """Return W₁ between the distribution of the atoms' cosines and the one with given sorted quantiles, exactly.

    W₁ = ∫ |difference of quantiles| over [0, 1]. The cosine of two atoms has the product of their masses as
    probability; each given quantile q covers 1/LEVELS. Where the atoms have the cosine v, from a to b, the integral is
    v(2m − a − b) + Q(a) + Q(b) − 2Q(m), with Q = ∫ q, and m in [a, b] where q passes v.
    """
    values, weights = gram.ravel(), np.outer(masses, masses).ravel()
    order = np.argsort(values)
    values, ends = values[order], np.minimum(np.cumsum(weights[order]), 1.0)
    ends[-1] = 1.0
    starts = np.concatenate([[0.0], ends[:-1]])
    passed = np.clip(np.searchsorted(quantiles, values) / LEVELS, starts, ends)
    integral = np.concatenate([[0.0], np.cumsum(quantiles) / LEVELS])
    grid = np.arange(LEVELS + 1) / LEVELS
    first, middle, last = (np.interp(places, grid, integral) for places in (starts, passed, ends))
    return float((values * (2 * passed - starts - ends) + first + last - 2 * middle).sum())


def _quantiles_at(values: Floats, weights: Floats, levels: Floats) -> Floats:
    """Return the quantiles at ``levels`` of the discrete distribution that has ``weights`` at ``values``."""
    order = np.argsort(values)
    places = np.searchsorted(np.cumsum(weights[order]), levels * weights.sum())
    return np.asarray(values[order][np.minimum(places, len(values) - 1)])
