"""Attention and rates of change of many small systems of tokens at once; each system is independent of the others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from meanfield.domains.particles.motion import lengths
from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.model.heads import matrix_of, multiple, values_of_rows
from meanfield.model.normalization import NORMALIZATIONS
from solvers.mesh.mesh import Floats
from solvers.timestepping.systems import Indices
from solvers.transforms.systems import sums_of_systems

MAX_TOKENS = 256  # of a system: with more, sums over pairs dominate the cost, also one system at a time


@lru_cache(maxsize=4)
def system_of(velocity: ParticleVelocity, count: int, d: int) -> RatesOfSystems | None:
    """Return the rates of one system of ``count`` tokens, to evaluate many of its states at once.

    The result is None for attention that is not computed for many systems at once.
    """
    plain = velocity.kernel == "exponential" and velocity.pattern is None and all(h.out is None for h in velocity.heads)
    if not plain or count > MAX_TOKENS or NORMALIZATIONS[velocity.normalization].is_two_sided:
        return None
    masses = np.full(count, 1.0 / count) if velocity.masses is None else np.asarray(velocity.masses, dtype=float)
    return RatesOfSystems([velocity], masses[None], d)


class RatesOfSystems:
    """Rates of change ẋ of many small systems of tokens at once: positions (k, n, d) of k systems.

    The rates of each system are those of :class:`meanfield.domains.particles.motion.Motion`. An argument ``which`` (k,)
    has the numbers of the systems.
    """

    def __init__(self, velocities: Sequence[ParticleVelocity], masses: Floats, d: int) -> None:
        self._velocity, self._masses = velocities[0], masses
        self._heads = [_StackedHead(velocities, number, d) for number in range(len(velocities[0].heads))]
        self._log_bounds = np.array([velocity.log_bound for velocity in velocities])[:, None]

    def __call__(self, which: Indices, times: Floats, positions: Floats) -> Floats:
        velocity = self._velocity
        if velocity.sees_positions:
            return self._output(which, positions) - velocity.gate * positions
        shape, n = positions.shape, positions.shape[1]
        radii = lengths(positions)
        directions = positions / radii[:, :, None]
        output = self._output(which, directions)
        flat = directions.reshape(-1, shape[2]), output.reshape(-1, shape[2])
        return velocity.norm.velocity(np.repeat(times, n), radii.reshape(-1), *flat, velocity.gate).reshape(shape)

    def normalizer_and_output(self, which: Indices, points: Floats) -> tuple[Floats, Floats]:
        """Return kernel sums (k, n) and attention A (k, n, d) of k systems of tokens at ``points`` (k, n, d).

        ``ParticleVelocity.normalizer_and_output`` defines them; ``which`` (k,) are the numbers of the systems.
        """
        total, output = np.zeros(points.shape[:2]), np.zeros_like(points)
        for head in self._heads:
            sums = self._sums(head, which, points)
            total += head.weights[which] * sums[1] * np.exp(sums[0] - self._log_bounds[which])
            output += self._head_output(head, which, sums)
        return total, output

    def _output(self, which: Indices, points: Floats) -> Floats:
        """Return attention plus feed-forward network (k, n, d) of k systems of tokens at ``points`` (k, n, d)."""
        velocity, shape = self._velocity, points.shape
        output = np.zeros_like(points)
        if velocity.feed_forward is not None:
            output += velocity.feed_forward(points.reshape(-1, shape[2])).reshape(shape)
        for head in self._heads:
            output += self._head_output(head, which, self._sums(head, which, points))
        return output

    def _sums(self, head: _StackedHead, which: Indices, points: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the attention sums (log_scale, Z, N) of a head among the tokens of each of the systems ``which``."""
        return sums_of_systems(
            head.kernel_vectors(which, points), points, self._masses[which], causal=self._velocity.causal
        )

    def _head_output(self, head: _StackedHead, which: Indices, sums: tuple[Floats, Floats, Floats]) -> Floats:
        """Return the attention w V Σ_j m_j y_j K_ij / Z_i (k, n, d) of one head in k systems, from kernel sums."""
        bounds = self._log_bounds[which] if self._velocity.rescaled else np.zeros((1, 1))
        return head.values(which, NORMALIZATIONS[self._velocity.normalization](sums, bounds))


class _StackedHead:
    """Matrices β QᵀK and w V of one head in every system.

    The matrices are numbers (systems, 1, 1) where all are multiples of the identity, else (systems, d, d).
    """

    def __init__(self, velocities: Sequence[ParticleVelocity], number: int, d: int) -> None:
        heads = [velocity.heads[number] for velocity in velocities]
        pairs = [(multiple(head.query), multiple(head.key)) for head in heads]
        betas = [velocity.beta for velocity in velocities]
        self.weights = np.array([head.weight for head in heads])[:, None]
        self._towards = (
            np.array([beta * q * k for beta, (q, k) in zip(betas, pairs, strict=True)])[:, None, None]  # type: ignore[operator]
            if all(q is not None and k is not None for q, k in pairs)
            else np.stack(
                [(b * matrix_of(h.query, d)).T @ matrix_of(h.key, d) for b, h in zip(betas, heads, strict=True)]
            )
        )
        self._values = values_of_rows(heads, d)

    def kernel_vectors(self, which: Indices, points: Floats) -> Floats:
        """Return the vectors b of the kernel e^{⟨b, y⟩} of this head at ``points`` (k, n, d) of k systems."""
        return _times(points, self._towards[which])

    def values(self, which: Indices, output: Floats) -> Floats:
        """Return the products w V y of this head with vectors y (k, n, d) of the systems ``which``."""
        return _times(output, self._values[which])


def _times(vectors: Floats, factors: Floats) -> Floats:
    """Return row vectors (k, n, d) times a number or a matrix for each of k systems."""
    return np.asarray(vectors @ factors if factors.shape[1] > 1 else vectors * factors)
