"""Optimal transport on the line and on the circle, exact for atoms and for cells of constant density.

On the line W_p = (∫₀¹ |F⁻¹ − G⁻¹|^p dq)^{1/p}, F and G the cumulative distributions. On the circle one of them is
shifted:

    W₁ = min_α ∫ |F − G − α| dx ,   W_p^p = min_α ∫₀¹ |F⁻¹(q) − G⁻¹(q + α)|^p dq

F and G over one period, G⁻¹(q + 1) = G⁻¹(q) + 2π; both are convex in α (Delon, Salomon, Sobolevski 2010, SIAM J. Appl.
Math. 70, 2239). A distribution is a curve through knots (x, mass to the left): a jump at an atom and linear across a
cell, so that all integrals are sums of closed forms. POT's ``wasserstein_circle`` supports atoms only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from solvers.mesh.mesh import Floats

TWO_PI = 2 * np.pi
_GOLDEN = (np.sqrt(5.0) - 1.0) / 2
_XTOL = 4e-16  # tolerance of α: rounding of the masses
_FLAT = 1e-14  # relative tolerance of the cost: rounding of its sums


class Curve(NamedTuple):
    """Cumulative distribution as a line through knots: nondecreasing positions, and the share of mass up to each."""

    places: Floats
    shares: Floats


def cumulative_curve(places: Floats, widths: Floats, masses: Floats) -> Curve:
    """Return the cumulative distribution of ``masses`` (n), uniform on cells of ``widths`` (n) around ``places`` (n).

    A width of 0 is an atom. Masses are scaled to a sum of 1. Cells must not overlap, nor contain atoms.
    """
    order = np.argsort(places, kind="stable")
    half = widths[order] / 2
    ends = np.stack([places[order] - half, places[order] + half], axis=1).reshape(-1)
    sums = np.concatenate([[0.0], np.cumsum(masses[order])])
    shares = np.stack([sums[:-1], sums[1:]], axis=1).reshape(-1) / sums[-1]
    return Curve(np.maximum.accumulate(ends), shares)  # ends of neighbors are equal up to rounding


def wasserstein_line(a: Curve, b: Curve, order: int) -> float:
    """Return the Wasserstein distance of ``order`` 1 or 2 between two distributions on the line."""
    return float(_quantile_cost(a, b, 0.0, order) ** (1 / order))


def wasserstein_circle(a: Curve, b: Curve, order: int) -> float:
    """Return the Wasserstein distance of ``order`` 1 or 2 between two distributions on the circle.

    Positions are angles within 2π of each other. W₂ of equal distributions is up to about π√ε, some 1e-8, because the
    rounding error ε of their masses is transported over a distance of at most π.
    """
    if order == 1:
        return _lowest(*_cumulative_cost(a, b))
    turning = _periodic_distribution(b)
    return float(np.sqrt(_lowest(lambda shift: _quantile_cost(a, turning, shift, order), -1.0, 1.0)))


def _quantile_cost(a: Curve, b: Curve, shift: float, order: int) -> float:
    """Return ∫₀¹ |F⁻¹(q) − G⁻¹(q + shift)|^order dq for the cumulative distributions F of a and G of b."""
    ends = _merge_knots(a.shares, b.shares - shift, 0.0, 1.0)
    start_a, end_a = _values_along_pieces(a.shares, a.places, ends)
    start_b, end_b = _values_along_pieces(b.shares - shift, b.places, ends)
    return _integral(np.diff(ends), start_a - start_b, end_a - end_b, order)


def _cumulative_cost(a: Curve, b: Curve) -> tuple[Callable[[float], float], float, float]:
    """Return α ↦ ∫ |F − G − α| dx over one period of the circle, and two bounds of the minimizing α.

    F and G are the cumulative distributions of a and b.
    """
    unrolled_a, unrolled_b = _periodic_distribution(a), _periodic_distribution(b)
    ends = _merge_knots(unrolled_a.places, unrolled_b.places, 0.0, TWO_PI)
    start_a, end_a = _values_along_pieces(*unrolled_a, ends)
    start_b, end_b = _values_along_pieces(*unrolled_b, ends)
    start, end, lengths = start_a - start_b, end_a - end_b, np.diff(ends)
    bounds = np.concatenate([start, end])
    return lambda shift: _integral(lengths, start - shift, end - shift, 1), float(bounds.min()), float(bounds.max())


def _periodic_distribution(curve: Curve) -> Curve:
    """Return the cumulative distribution on the circle continued to three periods, one before and one after."""
    turns = np.array([-1.0, 0.0, 1.0])[:, None]
    return Curve((curve.places + TWO_PI * turns).reshape(-1), (curve.shares + turns).reshape(-1))


def _merge_knots(a: Floats, b: Floats, low: float, high: float) -> Floats:
    """Return the distinct knots of two sorted arrays between ``low`` and ``high``, with these two."""
    inside = [knots[np.searchsorted(knots, low) : np.searchsorted(knots, high)] for knots in (a, b)]
    knots = np.sort(np.concatenate([[low], *inside, [high]]), kind="stable")  # fast for sorted parts
    return np.asarray(knots[np.concatenate([[True], np.diff(knots) > 0])])


def _values_along_pieces(knots: Floats, values: Floats, ends: Floats) -> tuple[Floats, Floats]:
    """Return the values of a piecewise linear curve just after the start and just before the end of each piece.

    The pieces are those between ``ends`` (pieces + 1); within each of them the curve has no knot.
    """
    piece = np.searchsorted(knots, (ends[:-1] + ends[1:]) / 2, side="right").clip(1, len(knots) - 1)
    before, rise = knots[piece - 1], values[piece] - values[piece - 1]
    run = knots[piece] - before
    run[run == 0] = 1.0
    start, end = (((at - before) / run).clip(0.0, 1.0) for at in (ends[:-1], ends[1:]))  # a slope could overflow
    return values[piece - 1] + start * rise, values[piece - 1] + end * rise


def _integral(lengths: Floats, start: Floats, end: Floats, order: int) -> float:
    """Return Σ ∫ |f|^order over pieces on which f is linear from ``start`` to ``end``, for order 1 or 2."""
    if order == 2:
        return float(lengths @ (start * start + start * end + end * end)) / 3
    sizes = np.abs(start) + np.abs(end)
    squares = np.divide(start * start + end * end, sizes, out=np.zeros_like(sizes), where=sizes > 0)
    return float(lengths @ np.where(start * end >= 0, sizes, squares)) / 2


def _lowest(cost: Callable[[float], float], low: float, high: float) -> float:
    """Return the minimum of a convex function by golden-section search, until the function is flat.

    The function may have kinks.
    """
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    costs = [cost(low), cost(left), cost(right), cost(high)]
    while high - low > _XTOL and max(costs) - min(costs) > _FLAT * min(costs):
        if costs[1] <= costs[2]:
            high, right, left = right, left, right - _GOLDEN * (right - low)
            costs = [costs[0], cost(left), costs[1], costs[2]]
        else:
            low, left, right = left, right, left + _GOLDEN * (high - left)
            costs = [costs[1], costs[2], cost(right), costs[3]]
    return min(costs)
