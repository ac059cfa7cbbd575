"""Merger of two equal tokens or atoms on a sphere, for any layer norm, by two ordinary differential equations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.axes import Floats
from meanfield.figures.predictions.prediction import Prediction
from meanfield.model.layer_norm import LayerNorm

if TYPE_CHECKING:
    from meanfield.case.case import Case


SIXTY = np.pi / 3


def centroid_of_two(case: Case) -> Prediction | None:
    """Return the length r cos(φ/2) of the mean of two equal tokens at angle φ and radius r, predicted at all times.

    The prediction marks the time at which φ = 60°. The result is None for a case without two equal tokens.
    """
    if not _are_two(case):
        return None

    def trace(times: Floats) -> Floats:
        """Return the length (times,) of the mean of the two tokens."""
        angle, radius = _solve_pair(case, times)
        return np.asarray(radius * np.cos(angle / 2))

    times = np.linspace(0.0, case.time.end, 2001)
    angle = _solve_pair(case, times)[0]
    reached = bool(angle.min() < SIXTY < angle[0])
    moment = float(np.interp(-SIXTY, -angle, times)) if reached else np.nan
    return Prediction(trace, "two tokens", moment, "angle 60°")


def radius_of_two(case: Case) -> Prediction | None:
    """Return the predicted radius r of two equal tokens without a fixed radius; None for all other cases."""
    if not _are_two(case) or not case.tokens_have_radius:
        return None
    return Prediction(lambda times: _solve_pair(case, times)[1], "two tokens")


def _are_two(case: Case) -> bool:
    """Return whether a case has two equal tokens, softmax attention, Q = K = V = I, layer norm, and continuous time.

    Equal tokens have the same mass and the same radius.
    """
    from meanfield.sections.attention import Attention
    from meanfield.sections.evolution import Stabilizers

    norm, attention = case.stabilizers, case.attention
    plain = attention == Attention(beta=attention.beta) and norm == Stabilizers(
        layer_norm=norm.layer_norm, alpha=norm.alpha, switch=norm.switch
    )
    alone = case.feed_forward is None and case.reaction is None and case.sequence is None and case.handover is None
    sees_directions = norm.layer_norm != "none" and case.time.method != "layers"
    if not (plain and alone and sees_directions) or cosine_of_pair(case) is None:
        return False
    return _radius_of_pair(case) is not None


def _radius_of_pair(case: Case) -> float | None:
    """Return the initial radius of the two tokens of a case; None where their radii are different."""
    from meanfield.sections.initial import Points

    start = case.initial
    assert isinstance(start, Points)
    if start.radius is not None or not case.tokens_have_radius:
        return 1.0 if start.radius is None else start.radius
    lengths = np.linalg.norm(start.points, axis=1)
    return float(lengths[0]) if np.isclose(lengths[0], lengths[1], rtol=1e-9) else None


def _solve_pair(case: Case, times: Floats) -> tuple[Floats, Floats]:
    """Return the angle φ and the radius (times,) of two equal tokens at ±φ/2, at increasing times from 0 on.

    The equation is φ̇ = 2 θ̇ with the rates of model/layer_norm.py.
    """
    cosine, radius, stabilizers = cosine_of_pair(case), _radius_of_pair(case), case.stabilizers
    assert cosine is not None
    assert radius is not None
    norm = LayerNorm(stabilizers.layer_norm, stabilizers.alpha, stabilizers.switch_time)
    state = np.array([np.arccos(np.clip(cosine, -1, 1)), radius])
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
    """Return angle and radius (2, times + 1) of two equal tokens at ``times`` and at ``end``, given both at ``start``.

    In this interval the layer norm is smooth in time.
    """
    from scipy.integrate import solve_ivp

    def rate(time: float, state: Floats) -> list[float]:
        """Return the rates of change of the angle between the tokens and of their radius."""
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


MAX_BETA = 300.0  # e^{2β} is representable


@dataclass(frozen=True)
class Pair:
    """Pair of equal tokens with cosine c under softmax attention, Q = K = V = I: ċ = 2(1 − c²)/(1 + e^{β(1 − c)}).

    Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2312.10794. The mean token has length √((1 + c)/2).
    """

    beta: float
    cosine: float  # at time 0, above −1 and below 1

    def time(self, cosine: Floats | float) -> Floats:
        """Return the time at which the cosine of the pair is c.

        It is artanh(c)/2 + (e^{2β} Ei(−β(1 + c)) − Ei(β(1 − c)))/4 minus its initial value, Ei the exponential
        integral.
        """
        return self._antiderivative(np.asarray(cosine)) - self._antiderivative(np.asarray(self.cosine))

    def trace(self, times: Floats) -> Floats:
        """Return the length |∫xρ| of the mean of the two tokens at times from 0 on.

        It is interpolated in a table of :meth:`time`, uniform in artanh c.
        """
        start = np.arctanh(self.cosine)
        cosines = np.tanh(np.linspace(start, max(start, 0.0) + 12.0, 4000))
        return np.interp(times, self.time(cosines), np.sqrt((1 + cosines) / 2))

    def _antiderivative(self, c: Floats) -> Floats:
        """Return the time t, up to a constant, at which the cosine of the pair is c: the antiderivative of dt/dc."""
        from scipy.special import exp1, expi

        tails = np.exp(2 * self.beta) * exp1(self.beta * (1 + c)) + expi(self.beta * (1 - c))
        return np.asarray(np.arctanh(c) / 2 - tails / 4)


def centroid_of_pair(case: Case) -> Prediction | None:
    """Return the predicted length of the mean of two equal tokens that move by softmax attention alone, Q = K = V = I.

    The predicted event is the time at which their angle is 60°. None for other cases.
    """
    pair = pair_of(case)
    return None if pair is None else Prediction(pair.trace, moment=float(pair.time(0.5)), event="angle 60°")


def pair_of(case: Case) -> Pair | None:
    """Return the two equal tokens of a case that move by softmax attention alone, Q = K = V = I, else None."""
    from meanfield.figures.predictions.flows import is_plain

    beta, cosine = case.attention.beta, cosine_of_pair(case)
    if cosine is None or not is_plain(case) or not 0 < beta <= MAX_BETA:
        return None
    return Pair(beta, cosine) if abs(cosine) < 1 - 1e-9 else None


def cosine_of_pair(case: Case) -> float | None:
    """Return the initial cosine of the two tokens of a case, or None unless there are two of equal mass."""
    from meanfield.sections.initial import Points

    start = case.initial
    if not isinstance(start, Points) or len(start.points) != 2 or case.domain.d < 2:
        return None
    if start.masses is not None and start.masses[0] != start.masses[1]:
        return None
    a, b = (np.asarray(point) / np.linalg.norm(point) for point in start.points)
    return float(a @ b)
