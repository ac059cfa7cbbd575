"""Brownian motion of tokens, ∂ₜρ = κ Δρ: steps along geodesics, each with its own random numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.model.layer_norm import projected
from solvers.backends import backend_for
from solvers.mesh.mesh import Floats


@dataclass(frozen=True)
class Brownian:
    """One step of length Δt: x ← r exp_θ(√(2κΔt) ξ) for x = rθ, ξ Gaussian in the tangent space at θ; r stays.

    noise    κ ≥ 0
    seed     of the random numbers
    curved   whether directions are moved; else x ← x + √(2κΔt) ξ in R^d

    On S^{d−1} a mean of degree l decays at κ l(l + d − 2), to first order in Δt; good values: (d − 1)κΔt below 0.1.
    """

    noise: float
    seed: int = 0
    curved: bool = True

    def step(self, dt: float, number: int, positions: Floats) -> None:
        """Move positions (n, d) in place. The random numbers depend on the seed and on ``number`` alone.

        Philox's counter is 256 bits long: each number has the 2^128 blocks above it for its own.
        """
        bits = np.random.Philox(key=self.seed, counter=number << 128)
        moves = backend_for(positions).to_device(np.random.Generator(bits).standard_normal(positions.shape))
        moves *= np.sqrt(2 * self.noise * dt)
        if not self.curved:
            positions += moves
            return
        radii = _lengths(positions)
        directions = positions / radii
        moves = projected(directions, moves)
        angles = _lengths(moves)
        positions[...] = radii * (np.cos(angles) * directions + np.sinc(angles / np.pi) * moves)


def _lengths(vectors: Floats) -> Floats:
    lengths: Floats = np.sqrt(np.einsum("nd,nd->n", vectors, vectors))[:, None]
    return lengths
