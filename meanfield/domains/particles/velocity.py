"""Velocity of tokens as particles: the mean-field velocity of n tokens with masses.

    x_i = r_i θ_i ,   θ̇_i = P_θ (A_i + F_i) / s ,   ṙ_i = g − γ r_i           s and g by the layer norm
    A_i = Σ_h w_h V_h Σ_j m_j y_j e^{β⟨Q_h y_i, K_h y_j⟩} / Z_hi ,   F_i = F(y_i)

y = θ, but y = x without layer norm. softmax: Z_hi = Σ_j m_j e^{β⟨Q_h y_i, K_h y_j⟩}; unnormalized: Z = 1; under a
causal mask j ≤ i, with a pattern those j to which i attends. Geshkovski, Letrouit, Polyanskiy, Rigollet (2312.10794),
whose tokens have masses 1/n. The other kernels and normalizations are those of
:class:`meanfield.model.attention.Attention`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from meanfield.domains.particles.sums import TokenSums, token_sums
from meanfield.model.heads import Head, log_bound, steepness
from meanfield.model.kernel import Kernel, kernel_of
from meanfield.model.layer_norm import LayerNorm
from meanfield.model.normalization import Normalization, Sums, normalization_of
from meanfield.model.pattern import TokenPattern
from meanfield.model.sinkhorn import MAX_ROUNDS, Weighted, doubly_stochastic, transposed
from solvers.backends import backend_for
from solvers.mesh.mesh import Floats


@dataclass(frozen=True, eq=False)
class ParticleVelocity:
    """Velocity of n tokens in R^d, d ≥ 1, by attention, feed-forward network and layer norm.

    beta            inverse temperature β
    normalization   "softmax", "unnormalized" or "sinkhorn"
    heads           matrices and weights; one head of identities by default
    masses          (n,) m ≥ 0; None for 1/n each
    norm            the layer norm
    feed_forward    F, from (n, d) to (n, d); None for none
    gate            γ of the decay −γx; only where tokens have a radius
    causal          whether token i attends to tokens j ≤ i only
    kernel          "exponential"; "gaussian": e^{−β|Qx−Ky|²/2}; "windowed": e^{β⟨x,y⟩} for tokens within ``window``
    window          angle (radians) at which the windowed kernel has fallen to half
    rescaled        unnormalized attention with k·e^{−log_bound} for all heads: the same flow by e^{log_bound} t
    pattern         tokens to which each token attends, combined with ``causal``; None for all
    rounds          maximum number of rounds of the sinkhorn iteration

    In the methods time is the depth, directions θ (n, d) are unit vectors, and radii r have the shape (n,). Attention
    of many tokens on the circle and the sphere uses a transform; else pairs are summed, in the number format of the
    tokens. Raises ValueError for another normalization or kernel; Unbalanced where the iteration of sinkhorn does not
    converge. Windowed and sinkhorn attention require unit vectors, and no pattern.
    """

    beta: float
    normalization: str = "softmax"
    heads: tuple[Head, ...] = (Head(),)
    masses: Floats | None = None
    norm: LayerNorm = field(default_factory=LayerNorm)
    feed_forward: Callable[[Floats], Floats] | None = None
    gate: float = 0.0
    causal: bool = False
    kernel: str | Kernel = "exponential"
    window: float | None = None
    rescaled: bool = False
    rounds: int = MAX_ROUNDS
    pattern: TokenPattern | None = None

    def __post_init__(self) -> None:
        self._normalization.check_range(self.beta, self.log_bound, self.rescaled)

    @cached_property
    def _normalization(self) -> Normalization:
        """Return the record of the normalization from its table."""
        return normalization_of(self.normalization)

    @cached_property
    def kernel_record(self) -> Kernel:
        """Return the record of the attention kernel from the table of kernels, with the angle of its window."""
        return kernel_of(self.kernel, self.window)

    @property
    def sees_positions(self) -> bool:
        """Return whether attention depends on the positions x of tokens, not only on their directions."""
        return self.norm.scheme.sees_positions

    def output(self, time: float, directions: Floats, radii: Floats) -> Floats:
        """Return attention plus feed-forward network, A + F (n, d), of tokens x = rθ.

        r = ``radii`` (n,) and θ = ``directions`` (n, d); ``time`` is not used.
        """
        return self.output_at(radii[:, None] * directions if self.sees_positions else directions)

    @cached_property
    def log_bound(self) -> float:
        """Return the logarithm of the largest value of the kernels of all heads between unit vectors."""
        return max((log_bound(self.beta, head, self.kernel_record) for head in self.heads), default=0.0)

    def output_at(self, points: Floats) -> Floats:
        """Return attention plus feed-forward network, A + F (n, d), of tokens at ``points`` y (n, d).

        The points are directions of the tokens, or their positions without layer norm.
        """
        output = None if self.feed_forward is None else self.feed_forward(points)
        for head in self.heads:
            part = self._attend(head, points)[2]
            output = part if output is None else output + part
        if output is None:
            output = backend_for(points).xp.zeros_like(points)
        return output

    def normalizer_and_output(self, points: Floats) -> tuple[Floats, Floats]:
        """Return kernel sums (n,) and attention A (n, d) without feed-forward network, of tokens at ``points`` y.

        The kernel sums are Σ_h w_h Σ_j m_j k_h(y_i, y_j) · e^{−log_bound}, over heads h with weights w and tokens j
        with masses m.
        """
        zeros_like = backend_for(points).xp.zeros_like
        total, output = zeros_like(points[:, 0]), zeros_like(points)
        for head in self.heads:
            log_scale, normalizer, part = self._attend(head, points)
            total += head.weight * normalizer * np.exp(log_scale - self.log_bound)
            output += part
        return total, output

    def rates(self, time: float, directions: Floats, radii: Floats) -> tuple[Floats, Floats]:
        """Return the angular velocity θ̇ (n, d), tangent, and the radial velocity ṙ (n,) of tokens x = rθ."""
        output = self.output(time, directions, radii)
        return self.norm.rates(time, radii, directions, output, self.gate)

    def _sums(self, head: Head, points: Floats) -> Sums:
        """Return the kernel sums s, Z e^{−s} (n,) and N e^{−s} (n, d) of one head at ``points`` (n, d).

        Z and N are the sums of the kernel k and of y k over the tokens y; for sinkhorn, attention itself replaces N.
        The logarithmic scale s of each token prevents overflow.
        """
        masses = self.masses
        if masses is None:
            masses = backend_for(points).xp.full_like(points[:, 0], 1.0 / len(points))
        sums = token_sums(points, self.beta, head, self.kernel_record, self.causal, self.pattern)
        if not self._normalization.is_two_sided:
            return sums.apply(masses)
        other = transposed(head, self.kernel_record)
        back = None if other is None else token_sums(points, self.beta, other, self.kernel_record)

        def by(side: TokenSums) -> Weighted:
            return lambda logs: side.apply(masses, logs)

        back_sums = None if back is None else by(back)
        return doubly_stochastic(sums.apply(masses), by(sums), back_sums, masses, sums.rounding, self.rounds)

    def _attend(self, head: Head, points: Floats) -> Sums:
        """Return s, Z e^{−s} (n,) and the weighted attention w V Σ_j m_j y_j k(y_i, y_j) / Z_i (n, d) of one head.

        Z are the sums of the kernel k over the tokens, s logarithmic scales, and y = ``points`` (n, d).
        """
        log_scale, normalizer, numerator = self._sums(head, points)
        sums = log_scale, normalizer, numerator.astype(points.dtype, copy=False)
        output = self._normalization(sums, self.log_bound if self.rescaled else 0.0)
        return log_scale, normalizer, head.values(output, head.weight)


def steepest_of(velocity: ParticleVelocity) -> float:
    """Return the largest steepness |β|‖QᵀK‖ of the kernels of the heads."""
    return max((abs(steepness(velocity.beta, head)) for head in velocity.heads), default=0.0)


def layer_map(
    velocity: ParticleVelocity, positions: Floats, step: float, *, residual: bool = True, time: float = 0.0
) -> Floats:
    """Return the positions (n, d) of tokens after one discrete layer of duration Δt = ``step``.

    The layer is ``LayerNorm.layer_map``. ``residual`` is whether the layer adds the positions before it, and ``time``
    the time before the layer.
    """
    lengths = backend_for(positions).xp.linalg.norm(positions, axis=1)[:, None]
    output = velocity.output_at(positions if velocity.sees_positions else positions / lengths)
    return velocity.norm.layer_map(time, positions, output, step, residual=residual, gate=velocity.gate)
