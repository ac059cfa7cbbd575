"""Linear theory of the uniform density: growth rates of its modes, the fastest one, critical noise.

Funk–Hecke with ν = d/2 − 1: a degree-l perturbation of the uniform density on S^{d−1} grows as e^{λ_l t},

    softmax       λ_l = l(l+d−2) (v I_{l+ν}(β) / (β I_ν(β)) − κ)
    unnormalized  λ_l = l(l+d−2) (v c_l/β − κ),   c_l = Γ(d/2) (2/β)^ν I_{l+ν}(β)

(Geshkovski, Letrouit, Polyanskiy, Rigollet 2312.10794; Mun and Rosenzweig 2606.05140 for the noise.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from solvers.mesh import Floats

if TYPE_CHECKING:
    from meanfield.case import Case, CaseError


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
    l = np.arange(1, _most_degrees(beta))
    rates = growth_rates(dimension, beta, l, normalization, value=value)
    return max(float((rates / (l * (l + dimension - 2))).max()), 0.0)


def fastest_degree(dimension: int, beta: float, value: float = 1.0) -> int:
    """Degree of the fastest mode without noise, the same for both normalizations; l(l+d−2) ≈ 2β for large β."""
    l = np.arange(1, _most_degrees(beta))
    return int(l[growth_rates(dimension, beta, l, value=value).argmax()])


def expected_clusters_from_tokens(beta: float) -> float:
    """Expected modes of the kernel density of many uniform random tokens on S¹, √(Σk⁴I_k²/Σk²I_k²) ≈ √(3β/2)."""
    from scipy import special

    k = np.arange(1, _most_degrees(beta))
    bessel = special.ive(k, abs(beta)) ** 2
    return float(np.sqrt((k**4 * bessel).sum() / (k**2 * bessel).sum()))


def _most_degrees(beta: float) -> int:
    """Comfortably more degrees than √(2β), around which the fastest mode lies."""
    return int(4 * np.sqrt(2 * abs(beta))) + 12


def refusal_of_theory(case: Case) -> CaseError | None:
    """Why linear theory says nothing about a case, None where it does: for kernels e^{β⟨x,y⟩} and layer norm post."""
    from meanfield.case_errors import refusal

    attention, manifold = case.attention, case.domain.manifold
    if manifold not in ("circle", "sphere", "axisymmetric"):
        return refusal("domain.manifold", manifold, "circle, sphere or axisymmetric, which have a uniform density")
    if attention.file is not None or not attention.is_scalar:
        return refusal("attention", "its matrices", "one head of multiples of the identity, for linear theory")
    for key, value, only in (
        ("attention.kernel", attention.kernel, "exponential"),
        ("attention.mask", attention.mask, "none"),
        ("stabilizers.layer_norm", case.stabilizers.layer_norm, "post"),
    ):
        if value != only:
            return refusal(key, value, f'"{only}", for linear theory')
    if attention.normalization == "sinkhorn":
        return refusal("attention.normalization", "sinkhorn", '"softmax" or "unnormalized", for linear theory')
    for key in ("feed_forward", "reaction"):
        if getattr(case, key) is not None:
            return refusal(key, "given", "no such section, for linear theory")
    if case.time.method == "layers":
        return refusal("time.method", "layers", "ssprk3 or ssprk2, for linear theory")
    return None


def rates_of(case: Case, degrees: ArrayLike) -> Floats:
    """Growth rates of a case that linear theory applies to, noise included, per unit of its time."""
    attention, stabilizers = case.attention, case.stabilizers
    return growth_rates(
        case.domain.d,
        attention.beta_effective * stabilizers.scale**2,
        degrees,
        attention.normalization,
        stabilizers.noise,
        attention.value_scale,
        attention.rescaled,
    )


def report(case: Case) -> str:
    """What linear theory says about a case, as text: growth rates, fastest mode, clusters, critical noise.

    Raises CaseError where it says nothing.
    """
    if (refused := refusal_of_theory(case)) is not None:
        raise refused
    attention, noise, dimension = case.attention, case.stabilizers.noise, case.domain.d
    beta, value = attention.beta_effective * case.stabilizers.scale**2, attention.value_scale
    l = np.arange(1, _most_degrees(beta))
    rates = rates_of(case, l)
    fastest = int(l[rates.argmax()])
    shown = l[: max(8, fastest + 3)]
    lines = [
        f"uniform density on the {case.domain.manifold}: beta = {attention.beta:g}, {attention.normalization}, "
        f"noise = {noise:g}",
        "",
        "degree   growth rate     e-folding time",
        *(
            f"{degree:6d}   {rate:+.8f}   {f'{1 / rate:.4g}' if rate > 0 else 'decays'}"
            for degree, rate in zip(shown, rates, strict=False)
        ),
        "",
    ]
    if rates.max() > 0:
        lines.append(f"fastest mode: degree {fastest}, growth rate {rates.max():.6g}")
        if case.domain.manifold == "circle":
            lines.append(f"expected clusters from a small random perturbation: {fastest}")
            lines.append(
                f"expected clusters from many uniform random tokens: {expected_clusters_from_tokens(beta):.2f}"
            )
    else:
        lines.append("stable: every mode decays")
    critical = critical_noise(dimension, beta, attention.normalization, value)
    scale = np.exp(-abs(beta)) if attention.rescaled else 1.0
    lines.append(f"critical noise: {critical * scale:.8g} (below it the uniform density is unstable)")
    return "\n".join(lines)
