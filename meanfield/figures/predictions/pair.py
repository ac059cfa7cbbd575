"""Merger of two equal tokens or atoms on a sphere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.axes import Floats
from meanfield.figures.predictions.prediction import Prediction

if TYPE_CHECKING:
    from meanfield.case.case import Case

MAX_BETA = 300.0  # e^{2β} is a number


@dataclass(frozen=True)
class Pair:
    """ċ = 2(1 − c²)/(1 + e^{β(1 − c)}) of the cosine c of two equal tokens under softmax attention, Q = K = V = I.

    Geshkovski, Letrouit, Polyanskiy, Rigollet, arXiv:2312.10794. The mean token has length √((1 + c)/2).
    """

    beta: float
    cosine: float  # at time 0, above −1 and below 1

    def time(self, cosine: Floats | float) -> Floats:
        """At which the cosine is c: artanh(c)/2 + (e^{2β} Ei(−β(1 + c)) − Ei(β(1 − c)))/4, less that of time 0."""
        return self._clock(np.asarray(cosine)) - self._clock(np.asarray(self.cosine))

    def trace(self, times: Floats) -> Floats:
        """|∫xρ| at times from 0 on, by interpolation in a table of :meth:`time`, even in artanh c."""
        start = np.arctanh(self.cosine)
        cosines = np.tanh(np.linspace(start, max(start, 0.0) + 12.0, 4000))
        return np.interp(times, self.time(cosines), np.sqrt((1 + cosines) / 2))

    def _clock(self, c: Floats) -> Floats:
        from scipy.special import exp1, expi

        tails = np.exp(2 * self.beta) * exp1(self.beta * (1 + c)) + expi(self.beta * (1 - c))
        clock: Floats = np.arctanh(c) / 2 - tails / 4
        return clock


def centroid_of_pair(case: Case) -> Prediction | None:
    """The length of the mean of two equal tokens, and when their angle is 60°; None for all other cases."""
    pair = pair_of(case)
    return None if pair is None else Prediction(pair.trace, moment=float(pair.time(0.5)), event="angle 60°")


def pair_of(case: Case) -> Pair | None:
    """The two equal tokens or atoms of a case; None where it has others."""
    from meanfield.figures.predictions.flows import is_plain

    beta, cosine = case.attention.beta, cosine_of_pair(case)
    if cosine is None or not is_plain(case) or not 0 < beta <= MAX_BETA:
        return None
    return Pair(beta, cosine) if abs(cosine) < 1 - 1e-9 else None


def cosine_of_pair(case: Case) -> float | None:
    """Cosine of the two tokens that a case begins with; None where it begins with others, or their masses differ."""
    from meanfield.sections.initial import Points

    start = case.initial
    if not isinstance(start, Points) or len(start.points) != 2 or case.domain.d < 2:
        return None
    if start.masses is not None and start.masses[0] != start.masses[1]:
        return None
    a, b = (np.asarray(point) / np.linalg.norm(point) for point in start.points)
    return float(a @ b)
