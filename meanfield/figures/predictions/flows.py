"""Predicted length of the mean token in flows with exact solutions, or for d → ∞."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.axes import Floats
from meanfield.figures.predictions.prediction import Prediction
from meanfield.sections.attention import Attention, Replicator
from meanfield.sections.evolution import Stabilizers
from meanfield.sections.initial import Equiangular, Moebius, Uniform, Waves

if TYPE_CHECKING:
    from collections.abc import Callable

    from meanfield.case.case import Case

HIGH_DIMENSION = 64  # smallest dimension for which the limit d → ∞ is drawn


def is_plain(case: Case) -> bool:
    """Return whether tokens on a sphere move by softmax attention with Q = K = V = I alone, in continuous time."""
    plain = case.attention == Attention(beta=case.attention.beta) and case.stabilizers == Stabilizers()
    alone = case.feed_forward is None and case.reaction is None and case.sequence is None
    return plain and alone and case.time.method != "layers"


def centroid_of_moebius(case: Case) -> Prediction | None:
    """Return the predicted length of the mean token from a uniform density that the flow ẋ = Pₓ e has moved along e.

    It is exact for β = 0 and d = 2 or 3. For d ≥ HIGH_DIMENSION it is the limit d → ∞. None for other cases.
    """
    start, d = case.initial, case.domain.d
    if not isinstance(start, Moebius) or not is_plain(case):
        return None
    if case.attention.beta == 0 and d == 2:
        return Prediction(lambda times: _logistic_length(np.sinh(start.parameter / 2) ** 2, times))
    if case.attention.beta == 0 and d == 3:
        return Prediction(lambda times: _mean_cosine(_solve_ode(_mean_cosine, abs(start.parameter), times)))
    if d >= HIGH_DIMENSION:
        odds = np.sinh(start.parameter) ** 2
        return Prediction(lambda times: _logistic_length(odds, 2 * times), "as d → ∞")
    return None


def _logistic_length(odds: float, growth: Floats) -> Floats:
    """Return the length r of the mean token where r²/(1 − r²), at first ``odds``, has grown by the factor e^growth.

    On the circle from r(0) = tanh(s/2): ṙ = r(1 − r²)/2, and growth = t. In the limit d → ∞ from r(0) = tanh s, the
    components of tokens across the axis of the mean token are orthogonal: r² = g, ġ = 2g(1 − g), and growth = 2t.
    """
    later = odds * np.exp(np.minimum(growth, 700.0))
    return np.asarray(np.sqrt(later / (1 + later)))


def _mean_cosine(parameter: Floats) -> Floats:
    """Return coth s − s/sinh² s, the length of the mean token of the uniform density on S² moved along an axis.

    The flow ẋ = Pₓ e along the axis e has moved it for the time s = ``parameter``. It is also the rate ṡ at β = 0.
    """
    s = np.clip(parameter, 1e-6, 300.0)
    return np.asarray(np.where(parameter < 1e-6, 2 * parameter / 3, 1 / np.tanh(s) - s / np.sinh(s) ** 2))


def centroid_of_equiangular(case: Case) -> Prediction | None:
    """Return the predicted length √((1 + (n − 1)g)/n) of the mean token for n tokens with equal cosines g of all pairs.

    None for other cases. See arXiv:2312.10794v4, section 6.
    """
    start, beta, count = case.initial, case.attention.beta, case.domain.count
    if not isinstance(start, Equiangular) or not is_plain(case) or count is None or count < 2:
        return None

    def rate(g: Floats) -> Floats:
        others = (count - 1) * np.exp(-beta * (1 - g))
        return np.asarray(2 * (1 - g) * ((count - 1) * g + 1) * others / ((count - 1) * (1 + others)))

    return Prediction(lambda times: np.sqrt((1 + (count - 1) * _solve_ode(rate, start.cosine, times)) / count))


def centroid_of_selection(case: Case) -> Prediction | None:
    """Return the predicted length of the mean token for a uniform density that changes only by the fitness ⟨a, x⟩.

    It is I_{d/2}/I_{d/2−1} at rate·|a|·t, I the modified Bessel function. None for other cases.
    """
    reaction, value = case.reaction, case.attention.value
    if not isinstance(reaction, Replicator) or reaction.vector is None or reaction.matrix is not None:
        return None
    still = isinstance(value, tuple) and not np.any(value) and case.attention.heads is None
    alone = case.stabilizers == Stabilizers() and case.feed_forward is None and isinstance(case.initial, Uniform)
    if not still or not alone or case.time.method == "layers":
        return None
    growth, half = abs(reaction.rate) * float(np.linalg.norm(reaction.vector)), case.domain.d / 2

    def trace(times: Floats) -> Floats:
        """Return the predicted length of the mean token (times,)."""
        from scipy.special import ive

        return np.asarray(ive(half, growth * times) / ive(half - 1, growth * times))

    return Prediction(trace)


def radius_of_constant_field(case: Case) -> Prediction | None:
    """Return the predicted radius |c|e^{(1 − γ)t} of tokens that begin close to one common vector c, V = I.

    γ is the gate of the decay −γx, and there is no layer norm. None for other cases.
    """
    start, gate = case.initial, case.stabilizers.gate
    if not isinstance(start, Waves) or start.amplitude > 0.5 * np.linalg.norm(start.mean):
        return None
    plain = case.attention == Attention(beta=case.attention.beta) and case.feed_forward is None
    if not plain or case.stabilizers != Stabilizers(layer_norm="none", gate=gate) or case.time.method == "layers":
        return None
    size = float(np.linalg.norm(start.mean))
    return Prediction(lambda times: size * np.exp((1 - gate) * times), f"rate {1 - gate:g} of a constant field")


def _solve_ode(rate: Callable[[Floats], Floats], start: float, times: Floats) -> Floats:
    """Return the solution of ẏ = rate(y) with y = ``start`` at time 0, at increasing times (times,)."""
    from scipy.integrate import solve_ivp

    until = max(float(times[-1]), 1e-300)
    found = solve_ivp(lambda _, y: rate(y), (0, until), [start], "LSODA", times.clip(0, until), rtol=1e-10, atol=1e-12)
    return np.asarray(found.y[0])
