"""Sinkhorn normalization of attention: the kernel scaled from both sides until rows and columns have mean 1.

    P(x,y) = f(x) k(x,y) g(y) ,   ∫ P(x,y) ρ(y) dy = 1 ,   ∫ P(x,y) ρ(x) dx = 1

Sander, Ablin, Blondel and Peyré, "Sinkformers" (2110.11773), section 3. The iteration alternates f = 1/∫ k g ρ dy and g
= 1/∫ k f ρ dx (Sinkhorn and Knopp 1967) in logarithms, with Anderson mixing: where clusters attend little to each
other, the plain iteration needs thousands of rounds. For a symmetric kernel f = g, and f ← √(f / ∫ k f ρ) needs one sum
a round and at least halves the error, if k has no negative eigenvalue (Knight, Ruiz and Uçar 2014).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from meanfield.model.heads import Head, matrix_of, multiple
from meanfield.model.kernel import Kernel
from meanfield.model.kernel_sums import HeadSums
from meanfield.model.normalization import Sums, weighted_mean
from solvers.analysis.anderson import Mixing
from solvers.backends import backend_for
from solvers.mesh.mesh import Floats
from solvers.timestepping.state import NonFinite
from solvers.transforms.lost_sums import Empty


class Unbalanced(NonFinite):
    """Error of a Sinkhorn iteration that has not converged, or whose scalings exceed the range of numbers."""

    what = "Sinkhorn iteration did not converge"


# sums as a function of log weights, for masses m e^{log weights}
Weighted: TypeAlias = "Callable[[Floats], tuple[Floats | float, Floats, Floats]]"

_TOLERANCE = 1e-12  # relative tolerance of the marginals
MAX_ROUNDS = 1000  # of the iteration: for β‖QᵀK‖ up to 10, 10 to 40 rounds suffice
_MIN_DENSITY = 1e-12  # relative to the mean; cells with less are left out of the marginals
_NEAR, _REACH = 0.5, 2.0  # distances of logarithms; over distances of about 1 the iteration is nearly linear
_MAX_RANGE = 650.0  # range of logarithms of scalings; e^−708 is the smallest number, densities range over e^28
_SYMMETRIC = 1e-14  # relative to ‖QᵀK‖


def transposed(head: Head, kernel: Kernel) -> Head | None:
    """Return the head of the transposed kernel k(y,x), with Q and K exchanged; None where k is symmetric and positive.

    Such a kernel, without negative eigenvalues, does not need the transposed one.
    """
    query, key = multiple(head.query), multiple(head.key)
    if query is not None and key is not None:
        positive = query * key >= 0
    else:
        d = max(len(np.atleast_2d(matrix)) for matrix in (head.query, head.key))
        left, right = matrix_of(head.query, d), matrix_of(head.key, d)
        positive = np.array_equal(left, right) if kernel.log_factor is not None else _is_positive(left.T @ right)
    return None if positive else Head(head.key, head.query, head.value, head.weight)


def _is_positive(matrix: Floats) -> bool:
    """Return whether a matrix is symmetric and has no negative eigenvalue."""
    rounding = _SYMMETRIC * float(np.linalg.norm(matrix, 2))
    is_symmetric = np.abs(matrix - matrix.T).max() <= rounding
    return bool(is_symmetric and np.linalg.eigvalsh(matrix).min() >= -rounding)


def doubly_stochastic_density(sums: HeadSums, back: HeadSums | None, density: Floats, empty: Empty = "bounded") -> Sums:
    """Return the sums of Sinkhorn attention over a density ρ: s, Z e^{−s} (cells,) and ∫ y P ρ dy (cells, d).

    Z is the sum of the kernel k, and P(x,y) = f(x) k(x,y) g(y) is doubly stochastic: its integrals with ρ over x and
    over y are 1. Cells with almost no mass are left out of these integrals. At such cells x, ``empty`` selects the
    values of ∫ y P ρ dy; exact values have the f(x) with ∫ P(x,y) ρ(y) dy = 1.

    sums   operator of sums over y with the kernel k(x,y)
    back   operator of sums with k(y,x); None if k is symmetric
    """

    def sums_of(side: HeadSums, cells: Empty = "bounded") -> Callable[[Floats], Sums]:
        """Return the function from the logarithm of weights to the sums over the density on one side of the kernel."""

        def apply(log_weights: Floats) -> Sums:
            """Return log_scale s, Z e^{−s} and N e^{−s} of the density times weights."""
            highest = log_weights.max()
            weighted = significant * np.exp(log_weights - highest)
            log_scale, normalizer, vectors = side.apply(weighted, significant, cells)
            return log_scale + highest, normalizer, vectors

        return apply

    significant = backend_for(density).xp.where(density > _MIN_DENSITY * density.mean(), density, 0.0)
    back_sums = None if back is None else sums_of(back)
    last = None if empty == "bounded" else sums_of(sums, empty)
    own = sums.apply(density, empty=empty)
    return doubly_stochastic(own, sums_of(sums), back_sums, significant, _TOLERANCE, last=last)


def doubly_stochastic(
    sums: Sums,
    forth: Weighted,
    back: Weighted | None,
    masses: Floats,
    tolerance: float,
    rounds: int = MAX_ROUNDS,
    last: Weighted | None = None,
) -> Sums:
    """Return the sums of Sinkhorn attention: s and Z e^{−s} (n,) of the kernel k itself, and ∫ y P(x,y) ρ(y) dy (n, d).

    P(x,y) = f(x) k(x,y) g(y) is doubly stochastic: its integrals with ρ over x and over y are 1. ``forth`` and
    ``back`` are sums of k(x,y) over y and over x, see :func:`balance_kernel`; ``last`` replaces ``forth`` after the
    last round. ``sums`` supplies s and Z e^{−s}. Raises Unbalanced where the iteration has not converged after
    ``rounds`` rounds.
    """
    log_g, normalizer, vectors = balance_kernel(forth, back, masses, tolerance, rounds)
    if last is not None:
        _, normalizer, vectors = last(log_g)
    return sums[0], sums[1], weighted_mean(normalizer, vectors, reach=1.0)


def balance_kernel(
    forth: Weighted, back: Weighted | None, masses: Floats, tolerance: float, rounds: int = MAX_ROUNDS
) -> tuple[Floats, Floats, Floats]:
    """Return the scaling log g (n,) of the doubly stochastic kernel P = f(x) k(x,y) g(y), and the sums Z and N of k g.

    log g is −∞ at points without mass. Z (n,) and N (n, d), the sums of k g and of y k g, have a common factor at each
    point.

    forth       sums of k(x,y) over y with masses m e^{log weights}, for log weights (n,)
    back        sums of k(x,y) over x; None where k is symmetric
    masses      (n,) m ≥ 0, up to a common factor; points without mass have no part in P
    tolerance   of the marginals, larger by (mean mass)/(mass of the point) at points with less than the mean mass
    rounds      number of rounds after which Unbalanced is raised
    """
    xp, occupied = backend_for(masses).xp, masses > 0
    mixing = Mixing(masses / masses.sum(), _NEAR, _REACH)
    log_g = xp.zeros_like(masses)
    defect = np.inf
    weight = np.minimum(masses / masses.mean(), 1.0)  # sums at points with little mass may have fewer digits
    for _ in range(rounds):
        logs = xp.where(occupied, log_g, -np.inf)
        scale, normalizer, vectors = forth(logs)
        log_f = target = -scale - _log(normalizer)
        if back is not None:
            scale, sums, _ = back(xp.where(occupied, log_f, -np.inf))
            target = -scale - _log(sums)
        correction = xp.where(occupied, target - log_g, 0.0)
        defect = float((weight * np.abs(correction)).max())
        if defect <= tolerance:
            _check_range(log_g, occupied)
            _check_range(log_f, occupied)
            return logs, normalizer, vectors
        log_g = mixing.next(log_g, correction / 2 if back is None else correction)
    with np.errstate(over="ignore"):
        raise Unbalanced(f"sinkhorn attention: marginals are off by {np.expm1(defect):.1e} after {rounds} rounds")


def _check_range(logs: Floats, occupied: np.ndarray) -> None:
    """Raise Unbalanced if the ratio of two scalings of the Sinkhorn iteration at occupied points exceeds e^650.

    The smallest scaling would underflow to zero.
    """
    where = backend_for(logs).xp.where
    range_ = float(where(occupied, logs, -np.inf).max() - where(occupied, logs, np.inf).min())
    if range_ > _MAX_RANGE:
        raise Unbalanced(f"sinkhorn attention: scalings range over a factor of e^{range_:.0f}")


def _log(sums: Floats) -> Floats:
    """Return the logarithms of sums ≥ 0, bounded below by the logarithm of the least positive normal number."""
    return np.log(np.maximum(sums, np.finfo(sums.dtype).tiny))
