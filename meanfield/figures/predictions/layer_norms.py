"""Two equal tokens with any layer norm: their angle and their radius by two ordinary differential equations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.axes import Floats
from meanfield.figures.predictions.pair import cosine_of_pair
from meanfield.figures.predictions.prediction import Prediction
from meanfield.model.layer_norm import LayerNorm

if TYPE_CHECKING:
    from meanfield.case.case import Case

SIXTY = np.pi / 3


def centroid_of_two(case: Case) -> Prediction | None:
    """r cos(φ/2), the length of the mean of two equal tokens at an angle φ, and when that is 60°; None for others."""
    if not _are_two(case):
        return None

    def trace(times: Floats) -> Floats:
        angle, radius = _solved(case, times)
        return np.asarray(radius * np.cos(angle / 2))

    times = np.linspace(0.0, case.time.end, 2001)
    angle = _solved(case, times)[0]
    reached = bool(angle.min() < SIXTY < angle[0])
    moment = float(np.interp(-SIXTY, -angle, times)) if reached else np.nan
    return Prediction(trace, "two tokens", moment, "angle 60°")


def radius_of_two(case: Case) -> Prediction | None:
    """r of two equal tokens."""
    if not _are_two(case) or not case.tokens_have_radius:
        return None
    return Prediction(lambda times: _solved(case, times)[1], "two tokens")


def _are_two(case: Case) -> bool:
    """Whether a case is two equal tokens under softmax attention with Q = K = V = I and a layer norm, in time."""
    from meanfield.sections.attention import Attention
    from meanfield.sections.evolution import Stabilizers

    norm, attention = case.stabilizers, case.attention
    plain = attention == Attention(beta=attention.beta) and norm == Stabilizers(
        layer_norm=norm.layer_norm, alpha=norm.alpha, switch=norm.switch
    )
    alone = case.feed_forward is None and case.reaction is None and case.sequence is None and case.hand_over is None
    sees_directions = norm.layer_norm != "none" and case.time.method != "layers"
    return plain and alone and sees_directions and cosine_of_pair(case) is not None


def _solved(case: Case, times: Floats) -> tuple[Floats, Floats]:
    """Angle and radius (times,) at increasing times from 0 on, tokens at ±φ/2: φ̇ = 2 θ̇, see model/layer_norm.py."""
    cosine, start = cosine_of_pair(case), getattr(case.initial, "radius", None)
    assert cosine is not None
    norm = LayerNorm(case.stabilizers.layer_norm, case.stabilizers.alpha or 1.0, case.stabilizers.switch or 0.0)
    state = np.array([np.arccos(np.clip(cosine, -1, 1)), 1.0 if start is None else float(np.max(start))])
    corner = norm.switch if norm.scheme.parameter == "switch" else np.inf
    early, late = times[times < corner], times[times >= corner]
    before, after = norm, norm
    if np.isfinite(corner):
        before, after = LayerNorm(norm.name, switch=np.inf), LayerNorm(norm.name, switch=0.0)
    parts = [_segment(case.attention.beta, before, state, 0.0, early, min(corner, float(times[-1])))]
    if len(late):
        parts.append(_segment(case.attention.beta, after, parts[0][:, -1], corner, late, float(times[-1])))
    angle, radius = np.concatenate([part[:, :-1] for part in parts], axis=1)
    return angle, radius


def _segment(beta: float, norm: LayerNorm, state: Floats, start: float, times: Floats, end: float) -> Floats:
    """(2, times + 1) angle and radius at ``times`` and at ``end``, of a segment in which the layer norm is smooth."""
    from scipy.integrate import solve_ivp

    def rate(time: float, state: Floats) -> list[float]:
        half = state[0] / 2
        direction = np.array([[np.cos(half), np.sin(half)]])
        other = np.exp(beta * (np.cos(state[0]) - 1))
        output = (direction + other * direction * [1, -1]) / (1 + other)
        turned, grown = norm.rates(time, state[1:], direction, output)
        return [2 * float(turned[0] @ [-np.sin(half), np.cos(half)]), float(grown[0])]

    if end <= start:
        return np.tile(state[:, None], len(times) + 1)
    found = solve_ivp(rate, (start, end), state, "LSODA", dense_output=True, rtol=1e-9, atol=1e-12)
    return np.asarray(found.sol(np.append(times, end)))
