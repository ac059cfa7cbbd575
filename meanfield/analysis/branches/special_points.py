"""Folds and bifurcations of a branch of stationary densities, located between two of its points.

At a fold the parameter turns back: log p has an extremum along the branch, and one margin of order 0 changes its sign.
At a bifurcation a margin of some order changes its sign elsewhere. The equations that continue a branch are singular at
bifurcations of order 0. Points in between are therefore found from the cubic through the two ends, with corrections
along the directions in which the equations are regular. The search is then repeated between two nearer points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from meanfield.analysis.branches.equilibria import Equilibrium
from meanfield.analysis.branches.varied import ContinuationParameter
from solvers.mesh.mesh import Floats

_ROUNDING = 1e-12  # rounding of u at the largest node, besides that of h; u is the difference of two values of h
_RESIDUAL = 32 * float(np.finfo(float).eps)  # rounding of u − log f[u] relative to u: ten times the largest found
MAX_ROUNDING_CHANGE = 1e-6  # of u, along a direction in which the equations are nearly singular


def has_converged(residual: Floats, change: Floats, state: Floats, rounding: float) -> bool:
    """Return whether Newton's iteration for a stationary density has converged after a change of the state.

    The change is below rounding, or the residual is below rounding and the change is small.

    residual  (nodes,) u − log f[u] before the change
    change    (nodes + 1,) of the state (u, log p)
    state     (nodes + 1,) after the change
    rounding  error of h, the logarithm of the density up to a constant, see `Equilibria.rounding`
    """
    size, moved = max(1.0, float(np.abs(state).max())), float(np.abs(change).max())
    if moved < _ROUNDING * size + rounding:
        return True
    return moved < MAX_ROUNDING_CHANGE and float(np.abs(residual).max()) < _RESIDUAL * size + rounding


_NEWTON = 8  # iterations; a start on the cubic takes two or three
_REGULAR = 1e-6  # relative to the largest singular value: directions with smaller ones are not corrected
_FAR = 2.0  # change of u or log p from which the iteration does not recover
_SOLVED = 1e-8  # largest u − log f[u] of a solution, without corrections along singular directions
_NEARER = 0.02  # half the distance of the nearer ends, relative to that of the first ends
_HALVINGS = 12  # halvings of a step with a fold and other changes of sign


@dataclass(frozen=True)
class Fold:
    """Stationary density where the parameter turns back along the branch."""

    state: Equilibrium


@dataclass(frozen=True)
class Bifurcation:
    """Stationary density, not a fold, where a rate of perturbations of an order about the axis changes its sign.

    Attributes
    ----------
    order : int
        Order m about the axis of these perturbations; 0 for axisymmetric ones.
    state : Equilibrium
        The stationary density.
    """

    order: int
    state: Equilibrium


@dataclass(frozen=True)
class UnlocatedPoint:
    """Pair of states between which the branch has a fold or a bifurcation that was not located.

    Attributes
    ----------
    order : int
        Order m about the axis of the perturbations whose growth rate changes its sign; 0 for axisymmetric ones.
    between : (Equilibrium, Equilibrium)
        States before and after.
    reason : str
        Reason why the fold or bifurcation was not located.
    """

    order: int
    between: tuple[Equilibrium, Equilibrium]
    reason: str


@dataclass(frozen=True)
class BranchPoint:
    """Point of a branch: state (u, log p), unit tangent there, and the stationary density with its linear stability.

    u is the logarithm of the density at the nodes, p the varied parameter.
    """

    state: Floats
    tangent: Floats
    equilibrium: Equilibrium


class _NotConverged(Exception):
    """Failure of Newton's iteration between two points of the branch."""


def special_points(
    varied: ContinuationParameter, before: BranchPoint, after: BranchPoint
) -> Iterator[Fold | Bifurcation | UnlocatedPoint]:
    """Yield the folds and bifurcations of a branch between two of its points, one step apart.

    They are found where a growth rate has opposite signs at both points, beyond rounding. Where Newton's iteration
    fails, each order with such a rate, or else order 0, yields an UnlocatedPoint.
    """
    try:
        yield from _split(varied, before, after, _HALVINGS)
    except _NotConverged:
        reason = "Newton's iteration does not converge between them"
        for order in sorted({order for order, _ in _changes(before, after)} or {0}):
            yield UnlocatedPoint(order, (before.equilibrium, after.equilibrium), reason)


def _split(
    varied: ContinuationParameter, before: BranchPoint, after: BranchPoint, halvings: int
) -> list[Fold | Bifurcation | UnlocatedPoint]:
    """Return the folds and bifurcations of a branch between two of its points.

    The step is halved, at most ``halvings`` times, to separate a fold from other sign changes of rates of axisymmetric
    perturbations.
    """
    changes = _changes(before, after)
    if before.tangent[-1] * after.tangent[-1] >= 0:
        return [_bifurcation(varied, before, after, order, index) for order, index in changes]
    of_fold = [index for order, index in changes if order == 0]
    if len(of_fold) == 1 or halvings == 0 or before.equilibrium.unknown or after.equilibrium.unknown:
        fold = _locate(varied, before, after, lambda place: float(place.tangent[-1]))
        others = [_bifurcation(varied, before, after, order, index) for order, index in changes if order > 0]
        return [Fold(fold.equilibrium), *others]
    middle = _point_between(varied, before, after, 0.5)
    return _split(varied, before, middle, halvings - 1) + _split(varied, middle, after, halvings - 1)


def _changes(before: BranchPoint, after: BranchPoint) -> list[tuple[int, int]]:
    """Return (order, index) of each growth rate whose signs at two points of a branch are opposite, beyond rounding.

    The rates are those of perturbations of an order about the axis; their signs are those of the stored margins.
    """
    pairs = zip(before.equilibrium.spectra, after.equilibrium.spectra, strict=True)
    return [
        (order, int(index))
        for order, (one, other) in enumerate(pairs)
        for index in np.flatnonzero(one.signs * other.signs < 0)
    ]


def _bifurcation(
    varied: ContinuationParameter, before: BranchPoint, after: BranchPoint, order: int, index: int
) -> Bifurcation:
    """Return the bifurcation between two points of a branch at which a growth rate is zero.

    The rate is that of perturbations of ``order`` about the axis, with the number ``index``.
    """

    def margin(place: BranchPoint) -> float:
        return float(place.equilibrium.spectra[order].margins[index])

    return Bifurcation(order, _locate(varied, before, after, margin).equilibrium)


def _locate(
    varied: ContinuationParameter, before: BranchPoint, after: BranchPoint, function: Callable[[BranchPoint], float]
) -> BranchPoint:
    """Return the point between two points of a branch at which a function with opposite signs at both is zero.

    The search is repeated between two points near the zero, if the function has opposite signs there.
    """
    root, found = _root(varied, before, after, function)
    ends = [_point_between(varied, before, after, t) for t in (max(root - _NEARER, 0.0), min(root + _NEARER, 1.0))]
    if function(ends[0]) * function(ends[1]) < 0:
        found = _root(varied, ends[0], ends[1], function)[1]
    return found


def _root(
    varied: ContinuationParameter, before: BranchPoint, after: BranchPoint, function: Callable[[BranchPoint], float]
) -> tuple[float, BranchPoint]:
    """Return the fraction of the way between two points of a branch where a function is zero, and the point there."""
    from scipy.optimize import brentq

    places = {0.0: before, 1.0: after}

    def value(fraction: float) -> float:
        if fraction not in places:
            places[fraction] = _point_between(varied, before, after, fraction)
        return function(places[fraction])

    root = float(brentq(value, 0.0, 1.0, xtol=1e-10, rtol=1e-10))
    value(root)
    return root, places[root]


def _point_between(
    varied: ContinuationParameter, before: BranchPoint, after: BranchPoint, fraction: float
) -> BranchPoint:
    """Return the point of a branch at this fraction of the chord between two of its points.

    Raises _NotConverged where Newton's iteration fails.
    """
    if fraction in (0.0, 1.0):
        return after if fraction else before
    for regular in (_REGULAR, 0.0):
        if (found := _correct_point(varied, before, after, fraction, regular)) is not None:
            state, tangent = found
            return BranchPoint(state, tangent, varied.equilibrium(state[:-1], float(np.exp(state[-1]))))
    raise _NotConverged


def _correct_point(
    varied: ContinuationParameter, before: BranchPoint, after: BranchPoint, fraction: float, regular: float
) -> tuple[Floats, Floats] | None:
    """Return a state (u, log p) of the branch between two of its points and the unit tangent; None without convergence.

    Newton's iteration starts from the cubic through both points. It corrects the state along directions whose singular
    value, relative to the largest, is above ``regular``.
    """
    weights = np.append(varied.equilibria(float(np.exp(before.state[-1]))).weights, 1.0)
    chord = after.state - before.state
    length = float(np.sqrt(weights @ chord**2))
    state, row = _cubic(before, after, length, fraction), weights * chord / length
    for _ in range(_NEWTON):
        p = float(np.exp(state[-1]))
        residual, by_u, by_log = varied.residual(state[:-1], p)
        inverse = np.linalg.pinv(np.block([[by_u, by_log[:, None]], [row[None, :]]]), rcond=regular)
        change = inverse @ np.append(residual, row @ (state - before.state) - fraction * length)
        state = state - change
        if not np.abs(change).max() < _FAR:
            return None
        if has_converged(residual, change, state, varied.rounding(p)):
            tangent = inverse[:, -1]
            solved = np.abs(residual).max() < _SOLVED + varied.rounding(p)
            return (state, tangent / np.sqrt(weights @ tangent**2)) if solved else None
    return None


def _cubic(before: BranchPoint, after: BranchPoint, length: float, t: float) -> Floats:
    """Return the state at the fraction ``t`` of the cubic through two points of a branch with their tangents."""
    change = after.state - before.state
    slopes = t * (1 - t) ** 2 * before.tangent - t**2 * (1 - t) * after.tangent
    return np.asarray(before.state + t**2 * (3 - 2 * t) * change + length * slopes)
