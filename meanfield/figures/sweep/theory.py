"""Theoretical curves for sweeps: √β scaling, critical noise, and tokens at equal angles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis.stability_report import critical_noise_of, refusal_of_theory
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from meanfield.case.case import Case

CLOSE = 1e-3  # δ of the diagnostic pairs_close, P(⟨x, y⟩ ≥ 1 − δ)
_NODES = 100  # quadrature nodes for the meeting time: nine digits for 1000 tokens
_HARMLESS = (  # keys that no theory depends on
    "initial", "output", "title", "time.end", "time.cfl", "time.tolerance", "time.stop", "domain.resolution",
    "domain.seed", "domain.precision",
)  # fmt: skip
Curve = tuple[str, Callable[[Floats], Floats]]  # description, and function of the abscissas


def fastest_mode(dimension: int, beta: Floats) -> Floats:
    """Return the real l ≥ 0 with l(l + d − 2) = 2β, near the degree of the fastest mode for large β.

    Modes are those of the uniform density. On the circle, d = 2, l = √(2β).
    """
    half = (dimension - 2) / 2
    return np.asarray(np.sqrt(half**2 + 2 * beta) - half)


def meeting_time(beta: Floats, tokens: int, normalization: str = "softmax", close: float = CLOSE) -> Floats:
    """Return the time, for each β, at which orthogonal tokens with equal cosines g of all pairs reach g = 1 − δ.

    δ = ``close`` and n = ``tokens``. With softmax ġ = 2e^{βg}(1 − g)((n − 1)g + 1)/(e^β + (n − 1)e^{βg}); unnormalized
    ġ = (2/n)e^{βg}(1 − g)((n − 1)g + 1) (2312.10794, version 4, section 6, where such tokens represent those in a high
    dimension). t = ∫₀^{1−δ} dg/ġ, in the variable s = −log(1 − g), by Gauss–Legendre quadrature.
    """
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    last = -np.log(close)
    s = last * (1 + nodes[:, None]) / 2
    g, n, beta = 1.0 - np.exp(-s), tokens, np.asarray(beta, float)[None]
    growth = 2 * ((n - 1) * g + 1)  # rate of s divided by the weight of another token
    weight = 1.0 / (np.exp(beta * (1 - g)) + n - 1) if normalization == "softmax" else np.exp(beta * g) / n
    return np.asarray(last / 2 * weights @ (1.0 / (growth * weight)))


def theory_of_curve(case: Case, x: str, value: str, others: Iterable[str] = ()) -> Curve | None:
    """Return the theoretical curve of the scalar ``value`` over the key ``x`` of a sweep, or None.

    ``case`` is that of the first run. None if one of the ``others``, the keys that vary too, would change the curve.
    """
    if _matters(others, "stabilizers.noise", "domain.count") or x != "attention.beta":
        return None
    if value not in ("clusters", "most_clusters") or not _is_plain(case) or case.domain.space != "S1":
        return None
    return r"fastest mode without noise, $\sqrt{2\beta}$", lambda beta: fastest_mode(2, beta)


def theory_of_map(case: Case, x: str, y: str, value: str, others: Iterable[str] = ()) -> Curve | None:
    """Return the theoretical curve for a map of ``value`` over the keys ``x`` and ``y`` of a sweep, or None.

    The curve is ``y`` over ``x``, or time over ``y`` if x is "time". ``case`` is that of the first run. None if one of
    the ``others``, the keys that vary too, would change the curve.
    """
    others = list(others)
    if (x, y) == ("attention.beta", "stabilizers.noise") and _has_theory(case):
        if _matters(others, "domain.count"):
            return None
        return r"critical noise $\kappa_\#$", lambda beta: _critical_noises(case, beta)
    if (x, y, value) == ("time", "attention.beta", "pairs_close") and _is_plain(case):
        if _matters(others, "domain.dimension"):
            return None
        tokens, normalization = case.domain.count, case.attention.normalization
        other = case.attention.rescaled or case.stabilizers.noise or normalization not in ("softmax", "unnormalized")
        if tokens is not None and not other:
            return "tokens at equal angles", lambda beta: meeting_time(beta, tokens, normalization)
    return None


def critical_line(case: Case, x: str, others: Iterable[str] = ()) -> float | None:
    """Return the noise of a case above which the uniform density is stable.

    None unless ``x``, the varied key of a sweep, is the noise and linear theory applies. None, too, if one of the
    ``others``, the keys that vary too, would change the critical noise.
    """
    if x != "stabilizers.noise" or _matters(others, "domain.count") or not _has_theory(case):
        return None
    return critical_noise_of(case)


def _matters(keys: Iterable[str], *harmless: str) -> bool:
    """Return whether one of the ``keys`` of a case, other than ``harmless`` ones, may change the theory of the case."""
    return not all(key.startswith((*_HARMLESS, *harmless)) for key in keys)


def _critical_noises(case: Case, betas: Floats) -> Floats:
    """Return the critical noise of a case with linear theory for each value ``betas`` of attention.beta."""
    from msgspec.structs import replace

    cases = (replace(case, attention=replace(case.attention, beta=float(beta))) for beta in betas)
    return np.array([critical_noise_of(each) for each in cases])


def _is_plain(case: Case) -> bool:
    """Return whether linear theory applies with Q = K = V = I on the unit sphere, so that β is attention.beta."""
    given = case.attention.beta_effective, case.stabilizers.scale, case.attention.value_scale
    return _has_theory(case) and given == (case.attention.beta, 1.0, 1.0)


def _has_theory(case: Case) -> bool:
    """Return whether linear theory about the uniform density applies to a case."""
    return refusal_of_theory(case) is None
