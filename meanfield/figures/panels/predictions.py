"""Exact predictions that a case implies: a Gaussian that blows up without layer norm, two tokens that merge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.axes import Floats

if TYPE_CHECKING:
    from meanfield.case.case import Case


@dataclass(frozen=True)
class BlowUp:
    """E|x − x̄|² = ds, ds/dt = 2βs², of N(x̄, sI) in R^d under softmax attention with Q = K = V = I."""

    beta: float
    variance: float  # s at time 0
    dimension: int

    @property
    def time(self) -> float:
        """1/(2βs₀), at which the variance is infinite."""
        return 1 / (2 * self.beta * self.variance)

    def trace(self, times: Floats) -> Floats:
        """ds₀/(1 − t/T) before the time T of blow-up, NaN from then on."""
        left = 1 - times / self.time
        return np.where(left > 0, self.dimension * self.variance / np.where(left > 0, left, 1.0), np.nan)


def blow_up_of(case: Case) -> BlowUp | None:
    """The blow-up of a density without layer norm that starts as a round Gaussian; None for all other cases."""
    from meanfield.sections.attention import Attention
    from meanfield.sections.evolution import Stabilizers
    from meanfield.sections.initial import Gaussian

    start, beta = case.initial, case.attention.beta
    if not isinstance(start, Gaussian) or not isinstance(start.variance, float) or case.domain.has_tokens:
        return None
    plain = case.attention == Attention(beta=beta) and case.stabilizers == Stabilizers(layer_norm="none")
    alone = case.feed_forward is None and case.reaction is None and case.time.method != "layers"
    return BlowUp(beta, start.variance, case.domain.d) if plain and alone and beta > 0 else None


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


def pair_of(case: Case) -> Pair | None:
    """The merger of two equal tokens or atoms on a sphere; None for all other cases."""
    from meanfield.sections.attention import Attention
    from meanfield.sections.evolution import Stabilizers
    from meanfield.sections.initial import Points

    start, beta = case.initial, case.attention.beta
    if not isinstance(start, Points) or len(start.points) != 2 or not 0 < beta <= MAX_BETA:
        return None
    plain = case.attention == Attention(beta=beta) and case.stabilizers == Stabilizers()
    alone = case.feed_forward is None and case.reaction is None and case.time.method != "layers"
    equal = start.masses is None or start.masses[0] == start.masses[1]
    if not (plain and alone and equal and case.sequence is None):
        return None
    a, b = (np.asarray(point) / np.linalg.norm(point) for point in start.points)
    return Pair(beta, float(a @ b)) if abs(a @ b) < 1 - 1e-9 else None
