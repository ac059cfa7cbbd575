"""Exact predictions that a case implies: the variance of a Gaussian that blows up without layer norm."""

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
