"""Modified Bessel functions of any order and argument by logarithms and ratios, without overflow or underflow.

    g_ν(b) = Γ(ν + 1) (2/b)^ν I_ν(b) = 1 + b²/(4(ν + 1)) + …          r_ν(b) = I_{ν+1}(b)/I_ν(b),   0 ≤ r_ν < 1

On S^{d−1}, with ν = d/2 − 1, g_ν(b) is the mean of e^{b⟨x,e⟩} over all x, and r_ν = (log g_ν)′ the mean of ⟨x, e⟩
under e^{b⟨x,e⟩}. SciPy's I_ν(b) underflows for ν > b, in high dimensions nearly everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from ..mesh.mesh import Floats

_LARGE = 32.0  # order from which the uniform expansion is used
_TERMS = 13  # the first omitted term is at most 13!/(π 2^13) / 32^13 of the sum: 9e-15


def log_bessel(order: float, argument: Floats) -> tuple[Floats, Floats]:
    """Return log g_ν(b) and r_ν(b) = I_{ν+1}(b)/I_ν(b), with g_ν(b) = Γ(ν + 1)(2/b)^ν I_ν(b).

    Here ν = ``order`` ≥ −½ and b = ``argument`` ≥ 0. The errors are 1e-13 max(1, log g), the results have the shape of
    ``argument``. Debye's expansion gives large ν. The downward recurrence r_ν = (b/2(ν + 1)) / (1 + b
    r_{ν+1}/(2(ν + 1))) is stable, since the ratio and the growth of g are sums of positive terms.
    """
    return list(_recur_downwards(order, np.asarray(argument, dtype=float), 1))[-1]


def bessel_ratios(order: float, argument: float, count: int) -> tuple[float, Floats]:
    """Return log g_ν(b) and the ratios r_ν(b), r_{ν+1}(b), … (count,), with r_ν(b) = I_{ν+1}(b)/I_ν(b).

    Here g_ν(b) = Γ(ν + 1)(2/b)^ν I_ν(b), ν = ``order`` ≥ −½ and b = ``argument`` ≥ 0. One recurrence gives all of them,
    as in :func:`log_bessel`.
    """
    pairs = list(_recur_downwards(order, np.float64(argument), count))
    return float(pairs[-1][0]), np.array([ratio for _, ratio in pairs[-count:][::-1]])


def _recur_downwards(order: float, b: Any, count: int) -> Iterator[tuple[Any, Any]]:
    """Yield log g_k(b) and r_k(b) for orders k = ν + n, ν + n − 1, …, ν, with ν + n at least max(32, ν + count − 1).

    Here ν = ``order``, g_k(b) = Γ(k + 1)(2/b)^k I_k(b) and r_k(b) = I_{k+1}(b)/I_k(b), for b ≥ 0 of any shape.
    """
    steps = max(count - 1, int(np.ceil(_LARGE - order)))
    top = order + steps
    log_g, following = _log_uniform(top, b), _log_uniform(top + 1, b)
    ratio = b / (2 * (top + 1)) * np.exp(following - log_g)
    yield log_g, ratio
    for nu in top - 1 - np.arange(steps):
        growth = b * ratio / (2 * (nu + 1))
        log_g = log_g + np.log1p(growth)
        ratio = b / (2 * (nu + 1) * (1 + growth))
        yield log_g, ratio


def _log_uniform(order: float, b: Floats) -> Floats:
    """Return log g_ν(b), g_ν(b) = Γ(ν + 1)(2/b)^ν I_ν(b), for large ν = ``order`` by Debye's uniform expansion.

    The expansion is I_ν(νz) ≈ e^{νη}/√(2πν) (1 + z²)^{−1/4} Σ_k u_k(p)/ν^k, p = 1/√(1 + z²) (DLMF 10.41.3). Stirling's
    series replaces Γ(ν + 1)(2/b)^ν, so that no large terms cancel.
    """
    z = b / order
    w = np.sqrt(1 + z * z)
    above = z * z / (1 + w)  # w − 1
    stirling = 1 / (12 * order) - 1 / (360 * order**3) + 1 / (1260 * order**5) - 1 / (1680 * order**7)
    series = _debye(order)(1 / w)
    logarithm: Floats = stirling + order * (above - np.log1p(above / 2)) - 0.5 * np.log(w) + np.log(series)
    return logarithm


@cache
def _debye(order: float) -> Polynomial:
    """Return the polynomial Σ_k u_k(p)/ν^k in p of Debye's expansion of I_ν (DLMF 10.41.9), ν = ``order``.

    The polynomials are u_0 = 1, u_{k+1}(p) = ½ p²(1 − p²) u_k′(p) + ⅛ ∫₀^p (1 − 5t²) u_k(t) dt.
    """
    term = total = Polynomial([1.0])
    for _ in range(_TERMS - 1):
        term = (Polynomial([0, 0, 0.5, 0, -0.5]) * term.deriv() + (Polynomial([1, 0, -5]) * term).integ() / 8) / order
        total = total + term
    return total
