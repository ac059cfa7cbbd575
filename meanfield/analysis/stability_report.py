"""Linear stability of a case: conditions of the theory, growth rates, and a report as text."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from meanfield.analysis.symmetry_breaking import AMPLITUDE, breaking_times, count_modes
from meanfield.case.case import Case
from meanfield.case.errors import CaseError, refusal
from meanfield.domains.table import DOMAINS
from meanfield.model.linear_stability import (
    continuous_up_to,
    critical_noise,
    degrees_to_search,
    expected_clusters_from_tokens,
    growth_rates,
    transition_coefficient,
)
from meanfield.model.metastability import equally_spaced_rates, lifetimes
from meanfield.model.normalization import normalization_of
from solvers.mesh.mesh import Floats

NEUTRAL = 1e-7  # relative to the damping of a mode by noise: the critical noise is printed to eight digits
QUANTILES = (0.05, 0.5, 0.95)
_SMALL = 1e-3  # rate below which eight decimals are fewer than six digits
_COLUMNS = "clusters   fastest rate    lifetime     unstable rates"


def refusal_of_theory(case: Case) -> CaseError | None:
    """Return an error with the reason why linear theory does not apply to a case, or None where it applies.

    The theory is that of small perturbations of the uniform density by one head with scalar matrices, the kernel
    e^{β⟨x,y⟩}, layer norm post and noise, in continuous time.
    """
    attention = case.attention
    if "linear stability" not in case.domain.features:
        possible = ", ".join(name for name, kind in DOMAINS.items() if "linear stability" in kind.features)
        return refusal("domain.manifold", case.domain.manifold, f"one of {possible}, which have a uniform density")
    if attention.file is not None or not attention.is_scalar:
        return CaseError("attention: expected one head whose matrices are multiples of the identity, for linear theory")
    for key, value, only in (
        ("attention.kernel", attention.kernel, "exponential"),
        ("attention.mask", attention.mask, "none"),
        ("stabilizers.layer_norm", case.stabilizers.layer_norm, "post"),
    ):
        if value != only:
            return refusal(key, value, f'"{only}", for linear theory')
    if attention.pattern is not None:
        return refusal("attention.pattern", "given", "not allowed for linear theory")
    for key in ("feed_forward", "reaction", "sequence"):
        if getattr(case, key) is not None:
            return refusal(key, "given", "not allowed for linear theory")
    if case.time.method == "layers":
        return refusal("time.method", "layers", "ssprk3 or ssprk2, for linear theory")
    return None


def rates_of(case: Case, degrees: ArrayLike) -> Floats:
    """Return the growth rates of harmonics of these degrees about the uniform density of a case.

    Linear theory must apply to the case. Rates include the damping by noise, and are per unit of the case's time.
    """
    attention = case.attention
    return growth_rates(
        case.domain.d,
        case.beta_on_unit_sphere,
        degrees,
        attention.normalization,
        case.noise_on_unit_sphere,
        attention.value_scale,
        attention.rescaled,
    )


def critical_noise_of(case: Case) -> float:
    """Return the noise below which the uniform density of a case is unstable.

    Linear theory must apply to the case.
    """
    attention, beta = case.attention, case.beta_on_unit_sphere
    scale = case.stabilizers.scale**2 * case.rescaling
    return scale * critical_noise(case.domain.d, beta, attention.normalization, attention.value_scale)


def breaking_times_of(case: Case, tokens: int) -> Floats:
    """Return a sorted sample (draws,) of the time at which ``tokens`` uniform tokens leave the uniform density.

    Linear theory must apply to the case. Raises CaseError where no mode grows.
    """
    d = case.domain.d
    l = np.arange(1, degrees_to_search(case.beta_on_unit_sphere))
    rates = rates_of(case, l)
    growing = rates > 0
    if not growing.any():
        raise refusal("tokens", tokens, "only allowed where a mode grows about the uniform density")
    l = l[growing]
    modes = np.array([count_modes(d, int(degree)) for degree in l])
    return breaking_times(
        rates[growing], np.asarray(case.noise_on_unit_sphere * l * (l + d - 2), dtype=float), modes, tokens
    )


def report_breaking(times: Floats, tokens: int) -> str:
    """Return a line on the distribution of the times at which ``tokens`` uniform tokens leave the uniform density."""
    low, median, high = np.quantile(times, QUANTILES)
    return (
        f"{tokens} independent uniform tokens: growing modes reach {AMPLITUDE:g} of the mean density at time"
        f" {median:.4g} (median; 5 %: {low:.4g}, 95 %: {high:.4g})"
    )


def report(case: Case) -> str:
    """Return a report on the linear stability of a case: growth rates, fastest mode, clusters, critical noise.

    Raises CaseError where linear theory does not apply.
    """
    if (refused := refusal_of_theory(case)) is not None:
        raise refused
    attention, noise, dimension = case.attention, case.stabilizers.noise, case.domain.d
    beta, value = case.beta_on_unit_sphere, attention.value_scale
    l = np.arange(1, degrees_to_search(beta))
    rates = rates_of(case, l)
    fastest = int(l[rates.argmax()])
    shown = l[: max(8, fastest + 3)]
    neutral = NEUTRAL * case.noise_on_unit_sphere * l * (l + dimension - 2)
    lines = [
        f"uniform density {_place(case)}: beta = {attention.beta:g}, {attention.normalization}, noise = {noise:g}",
        "",
        "degree   growth rate     e-folding time",
        *(f"{degree:6d}   {_rate(rates[k])}   {_e_folding(rates[k], neutral[k])}" for k, degree in enumerate(shown)),
        "",
    ]
    if rates.max() > 0:
        lines.append(f"fastest mode: degree {fastest}, growth rate {rates.max():.6g}")
        if case.domain.space == "S1":
            lines.append(f"expected clusters from a small random perturbation: {fastest}")
            lines.append(
                f"expected clusters from many uniform random tokens: {expected_clusters_from_tokens(beta):.2f}"
            )
    else:
        lines.append("stable: every mode decays")
    critical = critical_noise_of(case)
    text = (
        f"{critical:.8g} (below it the uniform density is unstable)" if critical else "none: stable without any noise"
    )
    lines.append(f"critical noise: {text}")
    if beta > 0 and value > 0 and not normalization_of(attention.normalization).is_two_sided:
        lines += [_transition(dimension, beta, attention.normalization), ""]
        lines += _metastable(dimension, beta, attention.normalization, value * case.rescaling, fastest)
    return "\n".join(lines)


def _rate(rate: float) -> str:
    """Return a growth rate as text with eight decimals, or with five digits if it is small."""
    return f"{rate:+.8f}" if rate == 0 or abs(rate) >= _SMALL else f"{rate:+.4e}"


def _e_folding(rate: float, neutral: float) -> str:
    """Return the e-folding time of a mode as text; "neutral" for a rate up to ``neutral``, "decays" if negative."""
    if abs(rate) <= neutral:
        return "neutral"
    return f"{1 / rate:.4g}" if rate > 0 else "decays"


def _place(case: Case) -> str:
    """Return words on the domain of a case, such as "in 5 dimensions"."""
    return case.domain.location if case.domain.is_closed else f"in {case.domain.d} dimensions"


def _transition(dimension: int, beta: float, normalization: str) -> str:
    """Return a line on the transition as noise falls below the critical value: continuous or discontinuous."""
    if transition_coefficient(dimension, beta, normalization) < 0:
        kind = "continuous: the order grows as the square root of the distance from it"
    else:
        kind = "discontinuous, with hysteresis: clusters persist above the critical noise"
    limit = f" (continuous up to beta = {continuous_up_to(dimension):.4f})" if normalization == "unnormalized" else ""
    return f"transition at the critical noise: {kind}{limit}"


def _metastable(dimension: int, beta: float, normalization: str, scale: float, fastest: int) -> list[str]:
    """Return lines on metastable states, equal clusters equally spaced on a great circle, for each number of clusters.

    A line has the fastest growth rate of perturbations of the clusters as point masses, its inverse, and the number of
    positive rates. ``scale`` multiplies the rates of V = I.
    """
    lines = ["metastable states, equal clusters equally spaced on a great circle, without noise:", "", _COLUMNS]
    for count in range(2, max(4, fastest + 2)):
        along, across = equally_spaced_rates(count, beta, normalization)
        lives = lifetimes(scale * np.concatenate([along, np.tile(across, dimension - 2)]))
        text = f"{1 / lives[0]:<13.6g}   {lives[0]:<10.4g}   {len(lives)}" if len(lives) else "stable"
        lines.append(f"{count:8d}   {text}")
    return lines
