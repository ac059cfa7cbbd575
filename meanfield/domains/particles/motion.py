"""Rate of change of tokens as positions x = rθ, (n, d), and the stability limit of explicit steps.

ẋ = r θ̇ + ṙ θ ,   without layer norm ẋ = A + F − γx         θ̇, ṙ, A, F, γ: meanfield/domains/particles/velocity.py
"""

from __future__ import annotations

import numpy as np

from meanfield.domains.particles.velocity import ParticleVelocity, steepest_of
from solvers.backends import backend_for
from solvers.mesh.mesh import Floats
from solvers.terms.term import Step


class Motion:
    """Rate of change ẋ of tokens under one velocity, as a term of an equation whose state is positions x (n, d).

    The stable time step is that of a rate (1 + ‖β QᵀK‖L²) max_i(max(‖V‖L, |A_i + F_i|)/s_i)/L + γ + (d − 1)κ, where A +
    F is attention plus feed-forward network, s the speed scale, γ the gate and κ the noise. L is 1; without layer norm
    L is the largest |x|, and s is then 1. The bound by ‖V‖ applies where A is temporarily small.
    """

    def __init__(self, velocity: ParticleVelocity, noise: float = 0.0) -> None:
        self.velocity, self._noise = velocity, 0.0 if velocity.sees_positions else noise
        self._rate = np.empty((0, 0))
        self._norms: tuple[float, float] | None = None  # the largest ‖β QᵀK‖ of a head, and Σ_h |w_h| ‖V_h‖

    def prepare(self, time: float, values: Floats) -> Step:
        """Evaluate the rate of change ẋ of tokens at positions x (n, d), and return the largest stable time step."""
        radii = lengths(values)
        output, self._rate = self._output_and_rate(time, values, radii)
        if self._norms is None:
            heads = self.velocity.heads
            self._norms = steepest_of(self.velocity), sum(abs(head.weight * head.value_norm) for head in heads)
        steepest, value = self._norms
        free = self.velocity.sees_positions
        scale = np.maximum(radii.max(), np.finfo(float).tiny) if free else 1.0
        sizes = np.maximum(lengths(output), np.finfo(float).tiny)
        slowing = 1.0 if free else self.velocity.norm.speed_scale(time, radii, output)
        fastest = (np.maximum(value * scale, sizes) / slowing).max() / scale
        rate = (1 + steepest * scale**2) * fastest + self.velocity.gate + (values.shape[1] - 1) * self._noise
        with np.errstate(divide="ignore", over="ignore"):
            step: Step = np.divide(1.0, rate)
            return step

    def rate(self, dt: float, rate: Floats) -> None:
        """Add the rate of change ẋ at the prepared positions to ``rate`` (n, d) in place."""
        rate += self._rate

    def rate_at(self, time: float, positions: Floats) -> Floats:
        """Return the rate of change ẋ (n, d) of tokens at positions x (n, d) and a time."""
        return self._output_and_rate(time, positions, lengths(positions))[1]

    def _output_and_rate(self, time: float, positions: Floats, radii: Floats) -> tuple[Floats, Floats]:
        """Return A + F (n, d), attention plus feed-forward network, and the rate of change ẋ (n, d) of tokens x."""
        velocity = self.velocity
        if velocity.sees_positions:
            output = velocity.output_at(positions)
            return output, output - velocity.gate * positions
        directions = positions / radii[:, None]
        output = velocity.output_at(directions)
        return output, velocity.norm.velocity(time, radii, directions, output, velocity.gate)


def to_unit_length(positions: Floats) -> None:
    """Normalize positions (..., d) in place: x ← x/|x|."""
    positions /= lengths(positions)[..., None]


def lengths(vectors: Floats) -> Floats:
    """Return the lengths (...) of vectors (..., d)."""
    found: Floats = np.sqrt(backend_for(vectors).xp.einsum("...d,...d->...", vectors, vectors))
    return found
