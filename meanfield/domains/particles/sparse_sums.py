"""Sums of the kernel of one head over the pairs of a sparse pattern: cost and memory are linear in the number of
tokens.
"""

from __future__ import annotations

import numpy as np

from meanfield.domains.particles.pair_sums import EXPONENTIAL, PairSums, Sums, sum_of
from meanfield.model.heads import Head
from meanfield.model.kernel import Kernel
from meanfield.model.pattern import TokenPattern
from solvers.backends import backend_for
from solvers.mesh.mesh import Floats, Integers
from solvers.transforms.pairwise import exponential_sums

_CHUNK = 1 << 20  # numbers of gathered tokens at once


class SparseSums:
    """Sums of the kernel k = e^{β⟨Qx,Ky⟩} f(Qx) f(Ky) of one head over the pairs of tokens of a sparse pattern.

    The tokens are points (n, d); f is a factor of the kernel.
    """

    def __init__(
        self, points: Floats, beta: float, head: Head, pattern: TokenPattern, kernel: Kernel = EXPONENTIAL
    ) -> None:
        self._all = PairSums(points, beta, head, kernel)
        self.rounding = self._all.rounding
        self._lists = backend_for(points).to_device(pattern.lists(len(points)))
        self._first, self._causal = len(points) - len(self._lists), pattern.causal

    def apply(self, masses: Floats, log_weights: Floats | None = None) -> Sums:
        """Return the kernel sums s, Z e^{−s} (n,) and N e^{−s} (n, d) of each token over the tokens that it attends to.

        Z = Σ_j w_j k(x, y_j) and N = Σ_j w_j y_j k(x, y_j), with weights w = masses · e^{log_weights}. s = −∞ and sums
        are 0 for a token that attends to no mass.
        """
        points, number = self._all.points, self._all.points.dtype
        with np.errstate(divide="ignore"):
            logs = sum_of(np.log(masses.astype(number, copy=False)), sum_of(log_weights, self._all.key_factors))
        assert logs is not None
        n, d, k = *points.shape, self._lists.shape[1]
        backend = backend_for(points)
        scale, sums = backend.empty((n,), number), backend.empty((n, 1 + d), number)
        step = max(_CHUNK // (k * d), 1)
        for start in range(self._first, n, step):
            rows = slice(start, min(start + step, n))
            scale[rows], sums[rows] = self._sums_over_list(rows, self._lists[rows.start - self._first :][:step], logs)
        if self._first:
            self._fill_global_rows(scale, sums, masses, log_weights)
        return scale + self._all.query_factors, sums[:, 0], sums[:, 1:]

    def _sums_over_list(self, rows: slice, seen: Integers, logs: Floats) -> tuple[Floats, Floats]:
        """Return the kernel sums s (rows,) and Z, N (rows, 1 + d) of the tokens ``rows`` over listed tokens.

        The list ``seen`` (rows, k) is padded with −1. ``logs`` (n,) are the logarithmic weights of all tokens.
        """
        xp = backend_for(logs).xp
        points = self._all.points[seen]  # index −1 gathers the last token, with weight 0
        exponents = xp.einsum("id,ikd->ik", self._all.kernel_vectors[rows], points) + logs[seen]
        exponents = xp.where(seen < 0, -np.inf, exponents)
        scale = exponents.max(axis=1)
        weights = np.exp(exponents - xp.where(np.isfinite(scale), scale, 0)[:, None])
        numerator = xp.einsum("ik,ikd->id", weights, points)
        return scale, xp.concatenate([weights.sum(axis=1)[:, None], numerator], axis=1)

    def _fill_global_rows(self, scale: Floats, sums: Floats, masses: Floats, log_weights: Floats | None) -> None:
        """Fill in the kernel sums of the global tokens, the first ones, which attend to all tokens.

        Under a causal mask they attend to all preceding tokens.
        """
        first, number = self._first, self._all.points.dtype
        seen = first if self._causal else len(masses)
        logs = sum_of(log_weights, self._all.key_factors)
        totals = exponential_sums(
            self._all.kernel_vectors[:first], self._all.points[:seen], masses[:seen].astype(number, copy=False),
            log_weights=None if logs is None else logs[:seen].astype(number, copy=False), causal=self._causal,
        )  # fmt: skip
        scale[:first], sums[:first, 0], sums[:first, 1:] = totals
