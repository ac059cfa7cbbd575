"""What linear theory says about a case: where it applies, and as text."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from meanfield.case import Case, CaseError
from meanfield.case_errors import refusal
from meanfield.stability import critical_noise, expected_clusters_from_tokens, growth_rates, most_degrees
from solvers.mesh import Floats


def refusal_of_theory(case: Case) -> CaseError | None:
    """Why linear theory says nothing about a case, None where it does: for kernels e^{β⟨x,y⟩} and layer norm post."""
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
    l = np.arange(1, most_degrees(beta))
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
