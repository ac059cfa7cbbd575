"""Doubly stochastic attention among tokens: as :mod:`meanfield.sinkhorn`, with scalings as logarithms.

P_ij = f_i k_ij f_j ,   Σ_j P_ij m_j = Σ_i P_ij m_i = 1        for a symmetric kernel k
"""

from __future__ import annotations

import numpy as np

from meanfield.particle_pairs import Sums
from meanfield.particle_sums import TokenSums
from solvers.mesh import Floats

_ROUNDS = 1000


def doubly_stochastic(sums: TokenSums, masses: Floats) -> Sums:
    """s, Z e^{−s} of k itself, (n,) each, and Σ_j P_ij m_j x_j (n, d), for masses (n,).

    The marginals are right to the sums' own rounding. Raises ArithmeticError where the iteration has not converged
    after 1000 rounds.
    """
    held = masses > 0
    log_scale, unscaled, vectors = sums.apply(masses)
    scale, normalizer, log_factor = log_scale, unscaled, np.zeros_like(log_scale)
    for _ in range(_ROUNDS):
        log_row = scale + np.log(np.maximum(normalizer, np.finfo(normalizer.dtype).tiny))
        defect = float(np.where(held, np.abs(np.expm1(log_factor + log_row)), 0.0).max())
        if defect <= sums.rounding:
            return log_scale, unscaled, vectors / normalizer[:, None]
        log_factor = (log_factor - log_row) / 2
        scale, normalizer, vectors = sums.apply(masses, log_factor)
    raise ArithmeticError(f"sinkhorn attention: marginals are off by {defect:.1e}")
