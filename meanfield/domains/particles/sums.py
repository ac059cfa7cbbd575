"""Sums of the kernel of one head over tokens: by a transform where that is cheaper, else over all pairs.

    Z_i = Σ_j m_j k(x_i, x_j) ,    N_i = Σ_j m_j x_j k(x_i, x_j)

A transform needs unit vectors in R² or R³ and no mask: zonal kernels use harmonics at the tokens, kernels of general
matrices `bilinear.Bilinear`. The error is relative to the largest Z, so tokens with small Z are summed again, over all
other tokens or over equivalent patches: N_i/Z_i is accurate to 1e-9 at isolated tokens too.
"""

from __future__ import annotations

import numpy as np

from meanfield.domains.particles.pair_sums import EXPONENTIAL, PairSums, Sums, ZonalPairSums, apply_log_weights, sum_of
from meanfield.domains.particles.sparse_sums import SparseSums
from meanfield.model.heads import MAX_LOG_RANGE, Head, log_bound, log_factors, matrix_of, multiple, steepness
from meanfield.model.kernel import Kernel
from meanfield.model.pattern import TokenPattern
from meanfield.model.zonal_multipliers import zonal_multipliers
from solvers.backends import backend_for
from solvers.mesh.mesh import Floats
from solvers.transforms.anisotropic.bilinear import Bilinear
from solvers.transforms.exponential import exponential_degree, exponential_gradient_multipliers, exponential_multipliers
from solvers.transforms.harmonics_points import MANIFOLDS, PointHarmonics
from solvers.transforms.zonal import gradient_multipliers, radial_multipliers, zonal_operator

_MIN_NORMALIZER = 1e-5  # relative to the mass: above, measured errors are below 1e-10 of Z, mostly 1e-12
# Costs relative to one pair of the exponential kernel
_TOKEN = 700  # one token in a transform
_DEGREE = 20_000  # one degree, for all work that is done once
_MODE = 6  # one of the degree³ coefficients of harmonics of the sphere
_BETWEEN = 4  # one of the degree⁴ terms of the sum between grids, with general matrices
_ZONAL = 20  # one pair of a zonal kernel


class ZonalPointSums:
    """Sums of a zonal kernel k(⟨x,y⟩) over tokens, unit vectors (n, 2) or (n, 3), by multipliers of harmonics.

    multipliers   (degrees) of e^{−log_bound} k
    gradient      (degrees) results of :func:`solvers.transforms.zonal.gradient_multipliers` for this kernel
    exact         sums over pairs, for tokens where the sum of the kernel is lost to rounding
    """

    rounding = 1e-10

    def __init__(
        self,
        points: Floats,
        multipliers: Floats,
        gradient: Floats,
        log_bound: float,
        exact: PairSums | ZonalPairSums,
    ) -> None:
        self._transform = PointHarmonics(points, len(multipliers))
        radial = radial_multipliers(points.shape[1], multipliers)
        self._operator = zonal_operator(self._transform.grid, multipliers, gradient, radial)
        self._log_bound, self._exact = log_bound, exact

    def apply(self, masses: Floats, log_weights: Floats | None = None) -> Sums:
        """Return the kernel sums s (n,), Z e^{−s} (n,) and N e^{−s} (n, d) at each of n tokens.

        Z = Σ_j w_j k(x, y_j) and N = Σ_j w_j y_j k(x, y_j) over tokens y_j, with weights w = masses · e^{log_weights},
        (n,) each.
        """
        highest, weights = apply_log_weights(masses, log_weights)
        values, vectors = self._operator.apply(self._transform.equivalent_weights(weights))
        rows = self._transform.interpolate(np.vstack([values, vectors.T]))
        sums = np.full(len(masses), self._log_bound + highest), rows[0], np.ascontiguousarray(rows[1:].T)
        lost = np.flatnonzero(rows[0] < _MIN_NORMALIZER * weights.sum()).astype(np.int32)
        if len(lost):
            for whole, part in zip(sums, self._exact.at(lost, masses, log_weights), strict=True):
                whole[lost] = part
        return sums


class BilinearPointSums:
    """Sums of the kernel k = e^{β⟨Qx,Ky⟩} f(Qx) f(Ky) over tokens, for any matrices Q and K.

    The tokens are unit vectors (n, 2) or (n, 3); f is a factor of the kernel.
    """

    rounding = 1e-10

    def __init__(self, points: Floats, beta: float, head: Head, kernel: Kernel = EXPONENTIAL) -> None:
        query, key = (matrix_of(matrix, points.shape[1]) for matrix in (head.query, head.key))
        self._operator = Bilinear(points, beta * query.T @ key)
        query_factors = log_factors(kernel, points, beta, query)
        self._query_factors: Floats | float = 0.0 if query_factors is None else query_factors
        self._key_factors = log_factors(kernel, points, beta, key)

    def apply(self, masses: Floats, log_weights: Floats | None = None) -> Sums:
        highest, weights = apply_log_weights(masses, sum_of(log_weights, self._key_factors))
        log_scale, normalizer, vectors = self._operator.apply(weights)
        return log_scale + highest + self._query_factors, normalizer, vectors


TokenSums = PairSums | ZonalPairSums | SparseSums | ZonalPointSums | BilinearPointSums


def token_sums(
    points: Floats,
    beta: float,
    head: Head,
    kernel: Kernel = EXPONENTIAL,
    causal: bool = False,
    pattern: TokenPattern | None = None,
) -> TokenSums:
    """Return the cheapest operator that sums the kernel of a head over tokens (n, d).

    With a pattern the sums are over the pairs of tokens in the pattern.
    """
    if pattern is not None:
        return SparseSums(points, beta, head, pattern, kernel)
    pairs_only = causal or backend_for(points).PAIRS_ONLY
    n, d = points.shape
    pair = 1 if kernel.zonal is None else _ZONAL
    transforms = not pairs_only and d in MANIFOLDS and pays(n, d, 1, pair=pair) and _are_unit(points)
    if kernel.zonal is not None:
        return _zonal_sums(points, steepness(beta, head), kernel, causal, transforms)
    pairs = PairSums(points, beta, head, kernel, causal)
    return _exponential_sums(points, beta, head, kernel, pairs) if transforms else pairs


def _exponential_sums(points: Floats, beta: float, head: Head, kernel: Kernel, pairs: PairSums) -> TokenSums:
    """Return the faster sums of the exponential kernel over tokens: a transform, or sums over ``pairs``."""
    n, d = points.shape
    size = steepness(beta, head)
    degrees = exponential_degree(d, size) + 1
    query, key = multiple(head.query), multiple(head.key)
    if not pays(n, d, degrees, zonal=query is not None and key is not None):
        return pairs
    wide = points.astype(float, copy=False)
    if query is None or key is None:
        largest = float(np.linalg.norm(matrix_of(head.key, d), 2)) ** 2
        spread = 0.0 if kernel.log_factor is None else abs(float(kernel.log_factor(beta, largest)))
        return pairs if spread > MAX_LOG_RANGE else BilinearPointSums(wide, beta, head, kernel)
    multipliers = exponential_multipliers(d, size, degrees)
    gradient = exponential_gradient_multipliers(d, size, degrees)
    return ZonalPointSums(wide, multipliers, gradient, log_bound(beta, head, kernel), pairs)


def _zonal_sums(points: Floats, beta: float, kernel: Kernel, causal: bool, transforms: bool) -> TokenSums:
    """Return the faster sums of a zonal kernel over tokens: a transform, or sums over all pairs."""
    n, d = points.shape
    pairs = ZonalPairSums(points, beta, kernel, causal)
    if not transforms:
        return pairs
    multipliers = zonal_multipliers(d, kernel, beta)
    if multipliers is None or not pays(n, d, len(multipliers), pair=_ZONAL):
        return pairs
    gradient = gradient_multipliers(d, multipliers)
    return ZonalPointSums(points.astype(float, copy=False), multipliers, gradient, abs(beta), pairs)


def pays(count: int, dimension: int, degrees: int, *, zonal: bool = True, pair: int = 1) -> bool:
    """Return whether kernel sums of ``count`` tokens cost less by a transform than over all pairs.

    ``pair`` is the cost of a pair, 1 for the exponential kernel, and ``degrees`` the number of degrees of the
    transform.
    """
    once = _DEGREE * degrees
    if dimension == 3:
        once += _MODE * degrees**3 + (0 if zonal else _BETWEEN * degrees**4)
    return count * (pair * count - _TOKEN) > once


def _are_unit(points: Floats) -> bool:
    """Return whether all points (n, d) have length 1 to rounding; False where a number is not finite."""
    error = np.abs(np.einsum("nc,nc->n", points, points) - 1.0).max(initial=0.0)
    return bool(error <= 100 * np.finfo(points.dtype).eps)
