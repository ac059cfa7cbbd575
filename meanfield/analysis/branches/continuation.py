"""Continuation of stationary densities as κ or β changes, through folds: pseudo-arclength (Keller 1977).

The state is (u, log p) with u = log f and p the parameter; a fold is where d(log p)/ds = 0 along the branch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from meanfield.analysis.branches.equilibria import Equilibria, Equilibrium
from meanfield.analysis.branches.varied import Varied
from solvers.mesh.mesh import Floats

_FIRST_STEP, _MAX_STEP = 0.02, 0.1  # arclength of steps, in u by L²(μ) and log p; the longest relative to u
_NEWTON = 8  # iterations, of which a step that is short enough takes three or four
_MIN_STEP = 1e-6  # arclength of a step where Newton's iteration fails: the branch is followed no further
_ROUNDING = 1e-12  # of u, in the largest node, beside that of h, of which u is the difference of two values


@dataclass(frozen=True)
class Bifurcation:
    """A stationary density where a rate of perturbations of an order about the axis changes its sign, at no fold."""

    order: int
    state: Equilibrium


@dataclass(frozen=True)
class Branch:
    """Stationary densities along a curve, from the uniform one on, and the folds where the parameter turns back.

    critical      parameter at which the branch leaves the uniform density
    bifurcations  where other branches leave it
    end           why it is followed no further
    """

    degree: int
    critical: float
    equilibria: tuple[Equilibrium, ...]
    folds: tuple[Equilibrium, ...]
    bifurcations: tuple[Bifurcation, ...]
    end: str


def follow(varied: Varied, degree: int = 1, min_ratio: float = 0.3, steps: int = 400, negative: bool = False) -> Branch:
    """The branch that leaves the uniform density with more of the harmonic of ``degree``, positive at the axis.

    ``negative``: with less of it, which is another branch for even degrees and d ≥ 3. It ends where the
    parameter is below ``min_ratio`` of the critical one or beyond 1/``min_ratio`` times it, the nodes do not
    resolve the density, or after ``steps`` steps. Raises ValueError where the uniform density is nowhere neutral to
    this degree.
    """
    critical = varied.critical(degree)
    nodes = varied.equilibria(critical)
    points = [varied.equilibrium(np.zeros_like(nodes.nodes), critical)]
    folds: list[Equilibrium] = []
    bifurcations: list[Bifurcation] = []
    end = "no step is short enough for Newton's iteration"
    mode = -nodes.mode(degree) if negative else nodes.mode(degree)
    for before, after in _steps(varied, nodes, mode, critical, steps):
        if not nodes.is_resolved(after.state[:-1]):
            end = f"{len(nodes.nodes)} nodes do not resolve the density beyond it"
            break
        points.append(_equilibrium(varied, after.state))
        if folded := before.tangent[-1] * after.tangent[-1] < 0:
            folds.append(_equilibrium(varied, _fold(varied, nodes, before, after)))
        if len(points) > 2:  # at the first, the uniform density, all orders of the degree are neutral
            for order, index in _crossings(points[-2], points[-1], folded):
                bifurcations.append(Bifurcation(order, _bifurcation(varied, nodes, before, after, order, index)))
        ratio = varied.parameter(points[-1]) / critical
        if ratio < min_ratio or (min_ratio > 0 and ratio > 1 / min_ratio):
            side = f"below {min_ratio:g} of" if ratio < 1 else f"beyond {1 / min_ratio:.3g} times"
            end = f"{varied.name} {side} the critical one"
            break
        if len(points) > steps:
            end = f"{steps} steps"
    return Branch(degree, critical, tuple(points), tuple(folds), tuple(bifurcations), end)


@dataclass(frozen=True)
class _Point:
    """(u, log p), the unit tangent of the branch there, and the step that led to it."""

    state: Floats
    tangent: Floats
    length: float


def _steps(
    varied: Varied, nodes: Equilibria, mode: Floats, critical: float, steps: int
) -> Iterator[tuple[_Point, _Point]]:
    start = np.append(np.zeros_like(nodes.nodes), np.log(critical))
    point, length = _Point(start, np.append(mode, 0.0), 0.0), _FIRST_STEP
    for _ in range(steps):
        while (found := _next(varied, nodes, point, length)) is None:
            length /= 2
            if length < _MIN_STEP:
                return
        yield point, found[0]
        point = found[0]
        size = float(np.sqrt(nodes.weights @ point.state[:-1] ** 2))
        length = min(_MAX_STEP * max(1.0, size), length * (1.5 if found[1] <= 4 else 0.7))


def _next(varied: Varied, nodes: Equilibria, point: _Point, length: float) -> tuple[_Point, int] | None:
    """The point of the branch at this arclength along the tangent and its iterations; None where Newton fails."""
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
        if np.abs(change).max() < _ROUNDING * max(1.0, np.abs(state).max()) + rounding:
            tangent = np.linalg.solve(matrix, np.append(np.zeros(len(state) - 1), 1.0))
            return _Point(state, tangent / np.sqrt(metric @ tangent**2), length), iteration + 1
    return None


def _fold(varied: Varied, nodes: Equilibria, before: _Point, after: _Point) -> Floats:
    """The state between two points where log p has an extremum along the branch."""
    from scipy.optimize import brentq

    def slope(length: float) -> float:
        return float(_between(varied, nodes, before, length).tangent[-1])

    length = float(brentq(slope, 1e-3 * after.length, after.length, xtol=1e-12, rtol=1e-12))
    return _between(varied, nodes, before, length).state


def _crossings(before: Equilibrium, after: Equilibrium, folded: bool) -> Iterator[tuple[int, int]]:
    """Orders and places among their rates, largest first, of those that change their sign; but for that of a fold."""
    for order in range(len(before.rates)):
        fewer, more = sorted((before.unstable_of(order), after.unstable_of(order)))
        yield from ((order, index) for index in range(fewer + (folded and order == 0), more))


def _bifurcation(
    varied: Varied, nodes: Equilibria, before: _Point, after: _Point, order: int, index: int
) -> Equilibrium:
    """The state between two points where a rate is zero."""
    from scipy.optimize import brentq

    def rate(length: float) -> float:
        state = _between(varied, nodes, before, length).state if length > 0 else before.state
        return float(_equilibrium(varied, state).rates[order][index])

    length = float(brentq(rate, 0.0, after.length, xtol=1e-11, rtol=1e-10))
    return _equilibrium(varied, _between(varied, nodes, before, length).state)


def _between(varied: Varied, nodes: Equilibria, before: _Point, length: float) -> _Point:
    """The point of the branch at an arclength below that of a step that succeeded."""
    found = _next(varied, nodes, before, length)
    if found is None:
        raise ValueError(f"no point of the branch at arclength {length:g} within a step")
    return found[0]


def _equilibrium(varied: Varied, state: Floats) -> Equilibrium:
    return varied.equilibrium(state[:-1], float(np.exp(state[-1])))
