"""Tokens as particles: the same law as the density's, for n tokens with masses.

    x_i = r_i θ_i ,   θ̇_i = P_θ (A_i + F_i) / s ,   ṙ_i = g − γ r_i           s and g by the layer norm
    A_i = Σ_h w_h V_h Σ_j m_j y_j e^{β⟨Q_h y_i, K_h y_j⟩} / Z_hi ,   F_i = F(y_i)

y = θ, but y = x without layer norm. softmax: Z_hi = Σ_j m_j e^{β⟨Q_h y_i, K_h y_j⟩}; unnormalized: Z = 1; under a
causal mask j ≤ i. Geshkovski, Letrouit, Polyanskiy, Rigollet (2312.10794), whose tokens have masses 1/n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from meanfield.heads import Head, matrix_of
from meanfield.layer_norm import LAYER_NORMS, LayerNorm
from solvers.mesh import Floats
from solvers.pairwise import exponential_sums


@dataclass(frozen=True, eq=False)
class ParticleLaw:
    """How n tokens in R^d move, d ≥ 1.

    beta            inverse temperature β
    normalization   "softmax" or "unnormalized"
    heads           matrices and weights; one head of identities by default
    masses          (n,) m ≥ 0; None for 1/n each
    norm            the layer norm
    feed_forward    F, from (n, d) to (n, d); None for none
    gate            γ; only where tokens have a radius
    causal          whether token i sees tokens j ≤ i only

    Times are depth, directions θ (n, d) unit vectors, radii r (n,). Raises ValueError for another normalization, and
    for a gate where layer norm keeps the radius.
    """

    beta: float
    normalization: str = "softmax"
    heads: tuple[Head, ...] = (Head(),)
    masses: Floats | None = None
    norm: LayerNorm = field(default_factory=LayerNorm)
    feed_forward: Callable[[Floats], Floats] | None = None
    gate: float = 0.0
    causal: bool = False

    def __post_init__(self) -> None:
        if self.normalization not in ("softmax", "unnormalized"):
            raise ValueError(f"normalization = {self.normalization!r}: expected 'softmax' or 'unnormalized'")
        if self.gate and not self.norm.carries_radius:
            raise ValueError(f"gate = {self.gate}: expected 0 where layer_norm = {self.norm.name!r} keeps the radius")

    @property
    def sees_positions(self) -> bool:
        """Whether tokens see each other's x and not θ."""
        return self.norm.name == "none"

    def output(self, time: float, directions: Floats, radii: Floats) -> Floats:
        """A + F of all tokens, (n, d); ``time`` is not used."""
        return self.output_at(radii[:, None] * directions if self.sees_positions else directions)

    def output_at(self, points: Floats) -> Floats:
        """A + F of all tokens, (n, d), where they see each other at ``points`` y (n, d)."""
        masses = np.full(len(points), 1.0 / len(points)) if self.masses is None else self.masses
        output = np.zeros_like(points) if self.feed_forward is None else self.feed_forward(points)
        for head in self.heads:
            output = output + self._attend(head, points, masses)
        return output

    def rates(self, time: float, directions: Floats, radii: Floats) -> tuple[Floats, Floats]:
        """θ̇ (n, d), tangent, and ṙ (n,)."""
        output = self.output(time, directions, radii)
        turn = self.norm.turn(time, radii, directions, output)
        return turn, self.norm.growth(time, directions, output) - self.gate * radii

    def _attend(self, head: Head, points: Floats, masses: Floats) -> Floats:
        """w V Σ_j m_j y_j e^{⟨b_i, y_j⟩} / Z_i with b = β Kᵀ Q y, (n, d)."""
        query, key = (matrix_of(matrix, points.shape[1]) for matrix in (head.query, head.key))
        towards = self.beta * points @ (query.T @ key)
        log_scale, normalizer, sums = exponential_sums(towards, points, masses, causal=self.causal)
        size = 1.0 / normalizer if self.normalization == "softmax" else np.exp(log_scale)
        return head.values(sums, head.weight * size)


def layer_map(law: ParticleLaw, positions: Floats, step: float, *, residual: bool = True, time: float = 0.0) -> Floats:
    """x ← N(αx + Δt (A + F)/s) for positions (n, d): one layer of depth Δt = ``step``.

    α = 1 − γΔt, or 0 without the residual; s is the layer norm's at radius 1; N gives x back the length that it had,
    or is the identity where the layer norm lets the radius grow. The flow is its limit, with an error of order Δt.
    """
    lengths = np.linalg.norm(positions, axis=1)[:, None]
    output = law.output_at(positions if law.sees_positions else positions / lengths)
    sizes = np.maximum(np.linalg.norm(output, axis=1), np.finfo(float).tiny)
    pace = LAYER_NORMS[law.norm.name].pace(law.norm, time, 1.0, sizes)
    moved = step * output / np.reshape(pace, (-1, 1))
    if residual:
        moved += (1.0 - step * law.gate) * positions
    if law.norm.carries_radius and not (law.norm.name == "mix" and time < law.norm.switch):
        return np.asarray(moved)
    return np.asarray(moved * lengths / np.linalg.norm(moved, axis=1)[:, None])
