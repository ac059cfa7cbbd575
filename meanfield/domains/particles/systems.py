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
    """Return one system of ``count`` tokens, to evaluate many states at once; None for attention that is not
    batched.
    """
    plain = velocity.kernel == "exponential" and velocity.pattern is None and all(h.out is None for h in velocity.heads)
    if not plain or count > MAX_TOKENS or NORMALIZATIONS[velocity.normalization].is_two_sided:
        return None
    masses = np.full(count, 1.0 / count) if velocity.masses is None else np.asarray(velocity.masses, dtype=float)
    return RatesOfSystems([velocity], masses[None], d)


class RatesOfSystems:
    """ẋ of many systems of tokens, (k, n, d): for each, that of :class:`meanfield.domains.particles.motion.Motion`."""

    def __init__(self, velocities: Sequence[ParticleVelocity], masses: Floats, d: int) -> None:
        self._velocity, self._masses = velocities[0], masses
        self._heads = [_HeadOfAll(velocities, number, d) for number in range(len(velocities[0].heads))]
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
        """Return ``ParticleVelocity.normalizer_and_output`` of each system, (k, n) and (k, n, d)."""
        total, output = np.zeros(points.shape[:2]), np.zeros_like(points)
        for head in self._heads:
            sums = self._sums(head, which, points)
            total += head.weights[which] * sums[1] * np.exp(sums[0] - self._log_bounds[which])
            output += self._attended(head, which, sums)
        return total, output

    def _output(self, which: Indices, points: Floats) -> Floats:
        """Return A + F."""
        velocity, shape = self._velocity, points.shape
        output = np.zeros_like(points)
        if velocity.feed_forward is not None:
            output += velocity.feed_forward(points.reshape(-1, shape[2])).reshape(shape)
        for head in self._heads:
            output += self._attended(head, which, self._sums(head, which, points))
        return output

    def _sums(self, head: _HeadOfAll, which: Indices, points: Floats) -> tuple[Floats, Floats, Floats]:
        return sums_of_systems(head.towards(which, points), points, self._masses[which], causal=self._velocity.causal)

    def _attended(self, head: _HeadOfAll, which: Indices, sums: tuple[Floats, Floats, Floats]) -> Floats:
        """Return w V Σ_j m_j y_j k / Z of one head."""
        bounds = self._log_bounds[which] if self._velocity.rescaled else np.zeros((1, 1))
        return head.values(which, NORMALIZATIONS[self._velocity.normalization](sums, bounds))


class _HeadOfAll:
    """Head of every system: β QᵀK and w V, as numbers (systems, 1, 1) where all are multiples of the identity."""

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

    def towards(self, which: Indices, points: Floats) -> Floats:
        """Return b of e^{⟨b, y⟩}, (k, n, d)."""
        return _times(points, self._towards[which])

    def values(self, which: Indices, output: Floats) -> Floats:
        """Return w V y of vectors y (k, n, d)."""
        return _times(output, self._values[which])


def _times(vectors: Floats, factors: Floats) -> Floats:
    """Return vectors (k, n, d), as rows, times a number or a matrix for each system."""
    return np.asarray(vectors @ factors if factors.shape[1] > 1 else vectors * factors)
