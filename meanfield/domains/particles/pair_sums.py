"""Sums of the kernel of one head over all pairs of tokens: of any length, in any dimension, masked or not."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from meanfield.model.heads import Head, log_factors, matrix_of, multiple
from meanfield.model.kernel import KERNELS, Kernel
from solvers.backends import backend_for
from solvers.mesh.mesh import Floats, Integers
from solvers.transforms.pairwise import exponential_sums
from solvers.transforms.patches import gathered_sums

Sums = tuple[Floats, Floats, Floats]

EXPONENTIAL = KERNELS["exponential"]
_CHUNK = 1 << 21  # number of pairs at once, where there are no tiled kernels


class PairSums:
    """Sums of the kernel k = e^{β⟨Qx,Ky⟩} f(Qx) f(Ky) of one head over all pairs of tokens (n, d); f is a factor of k.

    The number format is that of ``points``, float32 or float64. ``query_factors`` and ``key_factors`` (n,) are the
    logarithms of f(Qx) and f(Ky); ``key_factors`` is None where f = 1.
    """

    def __init__(
        self, points: Floats, beta: float, head: Head, kernel: Kernel = EXPONENTIAL, causal: bool = False
    ) -> None:
        self.rounding = 500 * float(np.finfo(points.dtype).eps)
        self.points, self._beta, self._head, self._causal = points, beta, head, causal
        query_factors = log_factors(kernel, points, beta, head.query)
        zeros_like = backend_for(points).xp.zeros_like
        self.query_factors = zeros_like(points[:, 0]) if query_factors is None else query_factors
        self.key_factors = log_factors(kernel, points, beta, head.key)

    @cached_property
    def kernel_vectors(self) -> Floats:
        """Return the vectors b = β KᵀQx (n, d) of the tokens x, with which the exponential kernel is e^{⟨b,y⟩}."""
        points, beta, head = self.points, self._beta, self._head
        number, (_, d), to_device = points.dtype, points.shape, backend_for(points).to_device
        query, key = multiple(head.query), multiple(head.key)
        if query is not None and key is not None:
            return points * number.type(beta * query * key)
        first, second = (matrix_of(factor, d) for factor in (beta * head.query, head.key))
        if len(first) < d:  # two thin products are cheaper than a square one
            return points @ to_device(first.T.astype(number)) @ to_device(second.astype(number))
        return points @ to_device((first.T @ second).astype(number))

    def apply(self, masses: Floats, log_weights: Floats | None = None) -> Sums:
        number = self.points.dtype
        logs = sum_of(log_weights, self.key_factors)
        log_scale, normalizer, sums = exponential_sums(
            self.kernel_vectors, self.points, masses.astype(number, copy=False),
            log_weights=None if logs is None else logs.astype(number, copy=False), causal=self._causal,
        )  # fmt: skip
        return log_scale + self.query_factors, normalizer, sums

    def at(self, targets: Integers, masses: Floats, log_weights: Floats | None = None) -> Sums:
        """Return kernel sums s, Z e^{−s} and N e^{−s} at the tokens numbered ``targets``, unit vectors in R² or R³.

        Z = Σ_j w_j k(x, y_j) and N = Σ_j w_j y_j k(x, y_j) over all tokens y_j, with weights w = masses ·
        e^{log_weights}. s is a scale that prevents overflow. A causal mask is not taken into account.
        """
        highest, weights = apply_log_weights(masses, sum_of(log_weights, self.key_factors))
        log_scale, normalizer, sums = gathered_sums(self.kernel_vectors[targets], self.points, weights)
        return log_scale + highest + self.query_factors[targets], normalizer, sums


class ZonalPairSums:
    """Sums of a zonal kernel k(⟨x,y⟩) over all pairs of tokens, unit vectors (n, d).

    The scale of the sums is e^{|β|} times the largest weight.
    """

    def __init__(self, points: Floats, beta: float, kernel: Kernel, causal: bool = False) -> None:
        self.rounding = 500 * float(np.finfo(points.dtype).eps)
        self._points, self._beta, self._zonal, self._causal = points, beta, kernel, causal
        self._order = backend_for(points).to_device(np.arange(len(points), dtype=np.int32))

    def apply(self, masses: Floats, log_weights: Floats | None = None) -> Sums:
        return self.at(self._order, masses, log_weights)

    def at(self, targets: Integers, masses: Floats, log_weights: Floats | None = None) -> Sums:
        """Return kernel sums s, Z e^{−s} and N e^{−s} at the tokens numbered ``targets``.

        Z = Σ_j w_j k(x, y_j) and N = Σ_j w_j y_j k(x, y_j) over all tokens y_j, with weights w = masses ·
        e^{log_weights}. s is a scale that prevents overflow.
        """
        highest, weights = apply_log_weights(masses, log_weights)
        backend = backend_for(weights)
        xp = backend.xp
        moments = xp.column_stack([weights, weights[:, None] * self._points])
        sums = backend.empty((len(targets), moments.shape[1]), self._points.dtype)
        step = max(_CHUNK // len(self._points), 1)
        for start in range(0, len(targets), step):
            some = targets[start : start + step]
            kernel = self._zonal.values(self._points[some] @ self._points.T, self._beta)
            if self._causal:
                kernel = xp.where(some[:, None] < self._order, 0.0, kernel)
            sums[start : start + step] = kernel @ moments
        return xp.zeros_like(sums[:, 0]) + (abs(self._beta) + highest), sums[:, 0], sums[:, 1:]


def sum_of(first: Floats | None, second: Floats | None) -> Floats | None:
    """Return the sum of two arrays of logarithmic weights (n,), None counting as zeros; None where both are None."""
    if first is None or second is None:
        return second if first is None else first
    return first + second


def apply_log_weights(masses: Floats, log_weights: Floats | None) -> tuple[float | Floats, Floats]:
    """Return the largest of the logarithmic weights (n,), and the masses (n,) times e^{log_weights − largest}."""
    if log_weights is None:
        return 0.0, masses
    highest = log_weights.max()
    return highest, masses * np.exp(log_weights - highest)
