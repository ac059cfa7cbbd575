"""Doubly stochastic attention: the kernel scaled from both sides until rows and columns have mean 1.

    P(x,y) = f(x) k(x,y) g(y) ,   ∫ P(x,y) ρ(y) dy = 1 ,   ∫ P(x,y) ρ(x) dx = 1

Sander, Ablin, Blondel and Peyré, "Sinkformers" (2110.11773), section 3. For a symmetric kernel f = g, and the
iteration f ← √(f / ∫ k f ρ) has the scaling as its limit (Knight, Ruiz and Uçar 2014).
"""

from __future__ import annotations

import numpy as np

from meanfield.heads import HeadSums
from solvers.mesh import Floats

_TOLERANCE = 1e-13  # of the marginals
_ROUNDS = 1000


def doubly_stochastic(sums: HeadSums, density: Floats) -> tuple[Floats | float, Floats, Floats]:
    """log_scale, Z e^{−log_scale} (cells,) of k itself, and ∫ y P(x,y) ρ(y) dy (cells, d), for a density (cells).

    The kernel has to be symmetric. Raises ArithmeticError where the iteration has not converged after 1000 rounds.
    """
    scaling = np.ones_like(density)
    held = density > 0
    log_scale, unscaled, vectors = sums.apply(density)
    normalizer = unscaled
    for _ in range(_ROUNDS):
        normalizer = np.maximum(normalizer, np.finfo(float).tiny)
        defect = np.abs(np.where(held, scaling * normalizer - 1.0, 0.0)).max()
        if defect <= _TOLERANCE:
            size = np.sqrt((vectors**2).sum(axis=1))
            return log_scale, unscaled, vectors / np.maximum(normalizer, size)[:, None]
        scaling = np.sqrt(scaling / normalizer)
        _, normalizer, vectors = sums.apply(scaling * density)
    raise ArithmeticError(f"sinkhorn attention: marginals are off by {float(defect):.1e}")
