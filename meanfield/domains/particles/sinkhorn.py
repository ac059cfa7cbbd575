"""Doubly stochastic attention among tokens, as :mod:`meanfield.model.sinkhorn` has it for densities.

P_ij = f_i k_ij g_j ,   Σ_j P_ij m_j = Σ_i P_ij m_i = 1
"""

from __future__ import annotations

from meanfield.domains.particles.pair_sums import Sums
from meanfield.domains.particles.sums import TokenSums
from meanfield.model.sinkhorn import balanced
from solvers.mesh.mesh import Floats


def doubly_stochastic(sums: TokenSums, back: TokenSums | None, masses: Floats) -> Sums:
    """s, Z e^{−s} of k itself, (n,) each, and Σ_j P_ij m_j x_j (n, d), for masses (n,).

    ``back`` are the sums of the `meanfield.model.sinkhorn.transposed` head. The marginals are right to the sums' own
    rounding. Raises Unbalanced where the iteration has not converged after 1000 rounds.
    """
    log_scale, unscaled, _ = sums.apply(masses)
    there = None if back is None else lambda logs: back.apply(masses, logs)
    normalizer, vectors = balanced(lambda logs: sums.apply(masses, logs), there, masses, sums.rounding)
    return log_scale, unscaled, vectors / normalizer[:, None]
