"""Brownian motion of tokens, ∂ₜρ = κ Δρ: steps along geodesics, each with separate random numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.domains.particles.heat_kernel import draw_distances
from meanfield.domains.particles.motion import lengths
from meanfield.model.layer_norm import tangential_part
from solvers.backends import backend_for
from solvers.mesh.mesh import Floats


@dataclass(frozen=True)
class Brownian:
    """Brownian step of length Δt: x ← r exp_θ(φ u) for x = rθ, u uniform among unit tangent vectors at θ, r constant.

    noise    κ ≥ 0
    seed     seed of the random numbers
    curved   True for steps on the sphere as above; False for steps x ← x + √(2κΔt) ξ in R^d, ξ Gaussian

    The distance φ has the distribution of the heat kernel of S^{d−1} at κΔt, so that steps of any length are exact up
    to the accuracy of :func:`meanfield.domains.particles.heat_kernel.draw_distances`. The mean of a harmonic of
    degree l decays at the rate κ l(l + d − 2).
    """

    noise: float
    seed: int = 0
    curved: bool = True

    def step(self, dt: float, number: int, positions: Floats) -> None:
        """Move the positions (n, d) of tokens in place by Brownian motion over the time ``dt``.

        The random numbers depend only on the seed and on ``number``, the number of the step. The counter of Philox
        has 256 bits, of which the upper 128 are the number of the step.
        """
        random = np.random.Generator(np.random.Philox(key=self.seed, counter=number << 128))
        to_device = backend_for(positions).to_device
        moves = to_device(random.standard_normal(positions.shape))
        if not self.curved:
            positions += np.sqrt(2 * self.noise * dt) * moves
            return
        count, d = positions.shape
        if d == 1:
            return  # the sphere S⁰ is two points, between which nothing moves
        distances = to_device(draw_distances(random, count, d, self.noise * dt))[:, None]
        radii = lengths(positions)[:, None]
        directions = positions / radii
        moves = tangential_part(directions, moves)
        moves /= np.maximum(lengths(moves), np.finfo(float).tiny)[:, None]
        positions[...] = radii * (np.cos(distances) * directions + np.sin(distances) * moves)
