"""Linear theory of the uniform density: growth rates of its modes, the fastest one, critical noise.

Funk–Hecke with ν = d/2 − 1: a degree-l perturbation of the uniform density on S^{d−1} grows as e^{λ_l t},

    softmax       λ_l = l(l+d−2) (v I_{l+ν}(β) / (β I_ν(β)) − κ)
    unnormalized  λ_l = l(l+d−2) (v c_l/β − κ),   c_l = Γ(d/2) (2/β)^ν I_{l+ν}(β)

(Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794; Mun and Rosenzweig 2606.05140 for the noise.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from solvers.mesh import Floats


def growth_rates(
    dimension: int,
    beta: float,
    degrees: ArrayLike,
    normalization: str = "softmax",
    noise: float = 0.0,
    value: float = 1.0,
    rescaled: bool = False,
) -> Floats:
    """λ_l for each degree l, per unit time.

    dimension   ambient d ≥ 2
    beta        inverse temperature; negative where QᵀK = −I
    value       v of V = vI
    rescaled    unnormalized attention with e^{β⟨x,y⟩ − |β|}
    """
    from solvers.gegenbauer import exponential_spectrum

    l = np.asarray(degrees)
    if beta == 0:
        attention = np.where(l == 1, 1.0 / dimension, 0.0)
    else:
        log_first, ratios = exponential_spectrum(dimension, beta, int(l.max()) + 1)
        attention = ratios[l] / beta
        if normalization != "softmax":
            attention = attention * np.exp(log_first - (abs(beta) if rescaled else 0.0))
    return np.asarray(l * (l + dimension - 2) * (value * attention - noise))


def critical_noise(dimension: int, beta: float, normalization: str = "softmax", value: float = 1.0) -> float:
    """κ below which the uniform density is unstable: the largest growth rate without noise over l(l+d−2)."""
    l = np.arange(1, most_degrees(beta))
    rates = growth_rates(dimension, beta, l, normalization, value=value)
    return max(float((rates / (l * (l + dimension - 2))).max()), 0.0)


def fastest_degree(dimension: int, beta: float, value: float = 1.0) -> int:
    """Degree of the fastest mode without noise, the same for both normalizations; l(l+d−2) ≈ 2β for large β."""
    l = np.arange(1, most_degrees(beta))
    return int(l[growth_rates(dimension, beta, l, value=value).argmax()])


def expected_clusters_from_tokens(beta: float) -> float:
    """Expected modes of the kernel density of many uniform random tokens on S¹, √(Σk⁴I_k²/Σk²I_k²) ≈ √(3β/2)."""
    from scipy import special

    k = np.arange(1, most_degrees(beta))
    bessel = special.ive(k, abs(beta)) ** 2
    return float(np.sqrt((k**4 * bessel).sum() / (k**2 * bessel).sum()))


def most_degrees(beta: float) -> int:
    """Comfortably more degrees than √(2β), around which the fastest mode lies."""
    return int(4 * np.sqrt(2 * abs(beta))) + 12
