"""Figure of `meanfield branch`: a moment over noise or β. Unstable states are dashed; unknown stability is dotted."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from meanfield.analysis.branches.branch import BranchOfCase
from meanfield.analysis.branches.equilibria import Equilibrium
from meanfield.figures.axes import inches_up
from meanfield.figures.captions import set_title, wrap_text
from meanfield.figures.run_data import BLUE, GREEN, VERMILION

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure


_LINES = {"stable": "-", "unstable": "--", "stability unknown": ":"}


def stability(point: Equilibrium) -> str:
    """Return "stable", "unstable" or "stability unknown" for a stationary density."""
    if point.unstable + point.unstable_across:
        return "unstable"
    return "stability unknown" if point.unknown + point.unknown_across else "stable"


def draw_branch(found: BranchOfCase, figure: Figure | SubFigure) -> None:
    """Draw the moment of a branch of stationary densities over the varied parameter on an empty ``figure``.

    The moment measures the departure from the uniform density, where it is zero and which is drawn too. Folds and
    bifurcations are marked.
    """
    ax, branch, critical = figure.add_subplot(), found.branch, found.critical
    points = branch.equilibria
    right = 1.1 * max(found.parameter(point) for point in points)
    for side in (0.0, right):  # the stability of the uniform density changes at the critical value
        stable = found.uniform_is_stable(below=side < critical)
        ax.plot([critical, side], [0, 0], "-" if stable else "--", color=BLUE)
    named = set()
    for kind, group in groupby(range(1, len(points)), lambda k: stability(points[k])):
        indices = list(group)
        part = points[indices[0] - 1 : indices[-1] + 1]  # includes the point before, so that the curve has no gap
        ax.plot(
            [found.parameter(point) for point in part],
            [found.moment(point) for point in part],
            _LINES[kind],
            color=BLUE,
            label=None if kind in named else kind,
        )
        named.add(kind)
    ax.plot(critical, 0, "o", color=VERMILION, label=f"critical {found.name} {critical:.5g}")
    for fold in branch.folds:
        at = found.parameter(fold)
        ax.plot(at, found.moment(fold), "s", color=VERMILION, label=f"fold at {at / critical:.5f} of critical")
    for one in branch.bifurcations:
        at = found.parameter(one.state)
        ax.plot(
            at, found.moment(one.state), "D", color=GREEN, label=f"order {one.order} at {at / critical:.5f} of critical"
        )
    case, attention = found.case, found.case.attention
    ax.set(
        xlabel={"noise": "noise κ", "beta": "β", "value": "v of V = vI"}[found.name],
        ylabel=wrap_text("length of the mean token ∫xρ" if branch.degree == 1 else found.measure, inches_up(ax)),
        xlim=(0, right),
        ylim=(-0.03, 1.03) if min(map(found.moment, points)) > -0.01 else None,
    )
    fixed = {"noise": f"κ = {case.stabilizers.noise:g}", "beta": f"β = {attention.beta:g}"}
    others = ", ".join(text for name, text in fixed.items() if name != found.name)
    space = case.domain.space or f"S{case.domain.d - 1}"
    set_title(ax, f"{space}, {attention.normalization} attention, {others}")
    ax.legend(loc="center right" if found.grows_above else "center left", frameon=False)
