"""Heat kernel of the unit sphere S^{d−1}: random geodesic distances of Brownian motion from its start.

The kernel at τ = κt has E[P_l(cos θ)] = e^{−l(l + d − 2)τ}, where P_l is the Gegenbauer polynomial of degree l in
dimension d with P_l(1) = 1. Mijatović, Mramor and Uribe Bravo, "A note on the exact simulation of spherical Brownian
motion" (Statistics and Probability Letters 165, 2020), describe its radial part.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from solvers.mesh.mesh import Floats

MIN_TAU, MAX_DIMENSION = 1e-3, 32  # validity of the series: outside, its terms cancel or are too many
NODES = 256
TAILS = 1e-8, 1e-10  # probabilities at the ends of the table, where the series still has relative accuracy
NEGLIGIBLE = 1e-18  # smallest term of the series
TINY = 1e-100  # τ below which a distance is lost beside 1; its square is still a normal number


def draw_distances(random: np.random.Generator, count: int, d: int, tau: float) -> Floats:
    """Return geodesic distances (count,), in radians, of Brownian motion on S^{d−1} from its start at τ = κt.

    On the circle they are normal, with a sign. For 3 ≤ d ≤ 32 and τ ≥ 1e-3 the distribution function is inverted: means
    of P_l, l ≤ 8, have errors below 1e-7, from d = 4 on below 1e-9. Else sin²(θ/2) is drawn from the beta distribution
    with the exact means of P₁ and P₂, which is the limit of the kernel for τ → 0 and τ → ∞. Rates of degree 3 and 8
    then have relative errors of 2e-8 and 5e-7 for d ≤ 32, of 1e-4 and 3e-3 for d > 32 and (d − 1)τ ≤ ½, and the error
    of every mean is at most 2e-4.
    """
    tau = max(tau, TINY)
    if d == 2:
        return math.sqrt(2 * tau) * random.standard_normal(count)
    if tau < MIN_TAU or d > MAX_DIMENSION:
        return 2 * np.arcsin(np.sqrt(random.beta(*_matched_beta(d, tau), count)))
    lengths = np.sqrt(2 * random.standard_gamma((d - 1) / 2, count))
    return _distance_of_length(d, float(f"{tau:.12g}"))(lengths)


def _matched_beta(d: int, tau: float) -> tuple[float, float]:
    """Return the parameters of the beta distribution of sin²(θ/2) with the exact mean and variance of cos θ.

    θ is the distance of Brownian motion on S^{d−1} from its start at τ = κt.
    """
    from scipy.special import betainc

    variance = betainc(2, d - 1, -math.expm1(-2 * tau)) / d  # of cos θ: 1/d + (1 − 1/d)e^{−2dτ} − e^{−2(d−1)τ}
    total = -math.expm1(-2 * (d - 1) * tau) / variance - 1
    mean = -math.expm1(-(d - 1) * tau) / 2
    return float(mean * total), float((1 - mean) * total)


@lru_cache(maxsize=16)
def _distance_of_length(d: int, tau: float) -> Callable[[Floats], Floats]:
    """Return the map from lengths of normal vectors in R^{d−1} to distances of Brownian motion on S^{d−1}.

    The distance is from the start, at τ = κt. The map is increasing and preserves probabilities. It is smooth and
    nearly linear: a cubic spline is accurate to 1e-9 of a radian.
    """
    from scipy.interpolate import CubicSpline
    from scipy.special import gammaincinv

    farthest = min(math.pi, math.sqrt(2 * tau) * (math.sqrt(d - 1) + 7.5))  # 7.5 standard deviations in flat space
    distances = np.linspace(0.0, farthest, NODES + 1)
    probabilities = _distribution(d, tau, distances)
    inside = (probabilities > TAILS[0]) & (probabilities < 1 - TAILS[1])
    lengths = np.sqrt(2 * gammaincinv((d - 1) / 2, probabilities[inside]))
    spline = CubicSpline(np.append(0.0, lengths), np.append(0.0, distances[inside]))
    return lambda some: np.asarray(spline(np.minimum(some, lengths[-1])))


def _distribution(d: int, tau: float, distances: Floats) -> Floats:
    """Return the probabilities (n,) that Brownian motion on S^{d−1} is within given distances of its start at τ = κt.

    c ∫₀^θ sin^{d−2} Σ_l N_l e^{−l(l+d−2)τ} P_l(cos) = uniform part + c sin^{d−1}θ/(d−1) Σ_{l≥1} N_l e^{−l(l+d−2)τ}
    P⁺_{l−1}(cos θ), with the dimension N_l of harmonics of degree l, Gegenbauer polynomials P_l with P_l(1) = 1, and P⁺
    in dimension d + 2.
    """
    from scipy.special import betainc, gammaln

    half, cosines, total, l = (d - 1) / 2, np.cos(distances), np.zeros_like(distances), 1
    before, polynomial, dimension = np.zeros_like(distances), np.ones_like(distances), float(d)
    while (weight := dimension * math.exp(-l * (l + d - 2) * tau)) > NEGLIGIBLE:
        total += weight * polynomial
        before, polynomial = (
            polynomial,
            ((2 * l + d - 2) * cosines * polynomial - (l - 1) * before) / (l + d - 1),
        )
        dimension *= (2 * l + d) / (2 * l + d - 2) * (l + d - 2) / (l + 1)
        l += 1
    scale = math.exp(gammaln(d / 2) - gammaln(half)) / math.sqrt(math.pi) / (d - 1)
    uniform = betainc(half, half, np.sin(distances / 2) ** 2)
    return np.asarray(uniform + scale * np.sin(distances) ** (d - 1) * total)
