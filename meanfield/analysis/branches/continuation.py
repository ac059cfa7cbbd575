"""Continuation of stationary densities in κ or β, through folds: pseudo-arclength (Keller 1977).

The state is (u, log p) with u = log f and p the parameter; at a fold d(log p)/ds = 0 along the branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from meanfield.analysis.branches.equilibria import Equilibria, Equilibrium
from meanfield.analysis.branches.special_points import (
    MAX_ROUNDING_CHANGE,
    Bifurcation,
    BranchPoint,
    Fold,
    UnlocatedPoint,
    has_converged,
    special_points,
)
from meanfield.analysis.branches.varied import ContinuationParameter
from solvers.mesh.mesh import Floats

_FIRST_STEP, _MAX_STEP = 0.02, 0.1  # arclengths of steps, in u by L²(μ) and log p; the longest relative to u
_NEWTON = 8  # iterations; a sufficiently short step takes three or four
_SINGULAR = 1e-6  # margin of order 0 below which Newton's iteration loses half of the digits
_CRITICAL = 1e-9  # error of a margin at the uniform density, where the margins of the degree are zero
_MIN_STEP = 1e-6  # arclength of the shortest step; the branch ends where Newton's iteration fails for this step


@dataclass(frozen=True)
class Branch:
    """Curve of stationary densities that starts at the uniform one, with the folds where the parameter turns back.

    Attributes
    ----------
    degree : int
        Degree of the harmonic with which the branch leaves the uniform density.
    critical : float
        Parameter at which the branch leaves the uniform density.
    equilibria : tuple of Equilibrium
        States in order along the branch, the uniform density first.
    folds : tuple of Equilibrium
        States at which the parameter turns back.
    bifurcations : tuple of Bifurcation
        States at which other branches leave this one.
    unlocated : tuple of UnlocatedPoint
        Steps within which a fold or a bifurcation was detected and not located.
    end : str
        Reason why the branch ends.
    """

    degree: int
    critical: float
    equilibria: tuple[Equilibrium, ...]
    folds: tuple[Equilibrium, ...]
    bifurcations: tuple[Bifurcation, ...]
    unlocated: tuple[UnlocatedPoint, ...]
    end: str


def follow(
    varied: ContinuationParameter, degree: int = 1, min_ratio: float = 0.3, steps: int = 400, negative: bool = False
) -> Branch:
    """Return the branch of stationary densities that leaves the uniform one in the zonal harmonic of ``degree``.

    The harmonic is positive at the axis; with ``negative`` it is negative there, which gives a different branch for
    even degrees and d ≥ 3. The branch ends where the parameter is below ``min_ratio`` times the critical one or beyond
    1/``min_ratio`` times it, where the nodes do not resolve the density, or after ``steps`` steps. Raises ValueError
    where the uniform density is neutral to this degree for no value of the parameter.
    """
    critical = varied.critical(degree)
    nodes = varied.equilibria(critical)
    points = [_uniform(varied, nodes, critical)]
    special: list[Fold | Bifurcation | UnlocatedPoint] = []
    end = ""
    mode = -nodes.mode(degree) if negative else nodes.mode(degree)
    before: BranchPoint | None = None
    for start, point in _steps(varied, nodes, mode, critical, steps):
        if not nodes.is_resolved(point.state[:-1]):
            end = f"{len(nodes.nodes)} nodes do not resolve the density beyond it"
            break
        after = BranchPoint(point.state, point.tangent, _equilibrium(varied, point.state))
        points.append(after.equilibrium)
        special += special_points(varied, before or BranchPoint(start.state, start.tangent, points[0]), after)
        before = after
        ratio = varied.parameter(points[-1]) / critical
        if ratio < min_ratio or (min_ratio > 0 and ratio > 1 / min_ratio):
            side = f"below {min_ratio:g} of" if ratio < 1 else f"beyond {1 / min_ratio:.3g} times"
            end = f"{varied.name} {side} the critical one"
            break
        if len(points) > steps:
            end = f"{steps} steps"
    end = end or _failure(varied, points[-1], len(points) == 1)
    folds = tuple(one.state for one in special if isinstance(one, Fold))
    bifurcations = tuple(one for one in special if isinstance(one, Bifurcation))
    unlocated = tuple(one for one in special if isinstance(one, UnlocatedPoint))
    return Branch(degree, critical, tuple(points), folds, bifurcations, unlocated, end)


def _uniform(varied: ContinuationParameter, nodes: Equilibria, critical: float) -> Equilibrium:
    """Return the uniform density at the critical parameter, the first state of a branch.

    Signs of growth rates within the error of the critical parameter are unknown.
    """
    found = varied.equilibrium(np.zeros_like(nodes.nodes), critical)
    spectra = tuple(replace(one, error=max(one.error, _CRITICAL)) for one in found.spectra)
    return replace(found, spectra=spectra)


def _failure(varied: ContinuationParameter, last: Equilibrium, is_uniform: bool) -> str:
    """Return the reason, as text, for which no further step from the stationary density ``last`` succeeds.

    The equations are always singular at the uniform density, where the branch begins.
    """
    parameter = varied.parameter(last)
    margin = float(np.abs(last.spectra[0].margins).min())
    rounding = varied.rounding(parameter)
    _, by_u, by_log = varied.residual(last.log_density, parameter)
    amplified = rounding / float(np.linalg.svd(np.column_stack((by_u, by_log)), compute_uv=False)[-1])
    reason = ""
    if is_uniform:
        reason = f": near the uniform density the equations are smaller than their rounding errors, {rounding:.1e}"
    elif margin < _SINGULAR:
        reason = f": there the equations are singular to {margin:.1e}"
    elif amplified > MAX_ROUNDING_CHANGE:
        reason = f": rounding errors of {rounding:.1e} in the equations change the density by {amplified:.1e}"
    return f"no step is short enough for Newton's iteration{reason}"


@dataclass(frozen=True)
class _Point:
    """Point of a branch: state (u, log p), and unit tangent there.

    u is the logarithm of the density at the nodes, p the varied parameter.
    """

    state: Floats
    tangent: Floats


def _steps(
    varied: ContinuationParameter, nodes: Equilibria, mode: Floats, critical: float, steps: int
) -> Iterator[tuple[_Point, _Point]]:
    """Yield pairs of successive points of a branch of stationary densities, from the uniform density on.

    The length of a step is adapted to the iterations of the step before, and halved where Newton's iteration fails.
    """
    start = np.append(np.zeros_like(nodes.nodes), np.log(critical))
    point, length = _Point(start, np.append(mode, 0.0)), _FIRST_STEP
    for _ in range(steps):
        while (found := _next_point(varied, nodes, point, length)) is None:
            length /= 2
            if length < _MIN_STEP:
                return
        yield point, found[0]
        point = found[0]
        size = float(np.sqrt(nodes.weights @ point.state[:-1] ** 2))
        length = min(_MAX_STEP * max(1.0, size), length * (1.5 if found[1] <= 4 else 0.7))


def _next_point(
    varied: ContinuationParameter, nodes: Equilibria, point: _Point, length: float
) -> tuple[_Point, int] | None:
    """Return the point of the branch at arclength ``length`` along the tangent from ``point``, and Newton's iterations.

    None where Newton's iteration fails.
    """
    metric = np.append(nodes.weights, 1.0)
    state = point.state + length * point.tangent
    row = metric * point.tangent
    rounding = varied.rounding(float(np.exp(state[-1])))
    for iteration in range(_NEWTON):
        residual, by_u, by_log = varied.residual(state[:-1], float(np.exp(state[-1])))
        matrix = np.block([[by_u, by_log[:, None]], [row[None, :]]])
        short = row @ (state - point.state) - length
        change = np.linalg.solve(matrix, np.append(residual, short))
        state = state - change
        if not np.isfinite(state).all() or np.abs(change).max() > 2:
            return None
        if has_converged(residual, change, state, rounding):
            tangent = np.linalg.solve(matrix, np.append(np.zeros(len(state) - 1), 1.0))
            return _Point(state, tangent / np.sqrt(metric @ tangent**2)), iteration + 1
    return None


def _equilibrium(varied: ContinuationParameter, state: Floats) -> Equilibrium:
    """Return the stationary density of a state (log density, log p), with its linear stability."""
    return varied.equilibrium(state[:-1], float(np.exp(state[-1])))
