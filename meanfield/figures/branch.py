"""The figure of `meanfield branch`: length of the mean token over noise or β, unstable states dashed."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from meanfield.analysis.branches.branch import BranchOfCase
from meanfield.figures.figure import STYLE
from meanfield.figures.run_data import BLUE, VERMILION
from meanfield.figures.saving import figure_target, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_branch(found: BranchOfCase, figure: str | Path) -> Path:
    """Draw a branch to ``figure`` (.png, .pdf or .svg) and return where it was written."""
    target = figure_target(Path(figure))
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        drawing = Figure(figsize=(6.4, 4.2), layout="constrained")
        draw_branch(found, drawing.add_subplot())
        return save(drawing, target)


def draw_branch(found: BranchOfCase, ax: Axes) -> None:
    """Mean token over noise or β on ``ax``; the uniform density, whose mean token is zero, along the bottom."""
    branch, critical = found.branch, found.critical
    points = branch.equilibria
    right = 1.1 * max(found.parameter(point) for point in points)
    for side in (0.0, right):  # sides of the critical value, on which the uniform density is stable or not
        stable = found.uniform_is_stable(below=side < critical)
        ax.plot([critical, side], [0, 0], "-" if stable else "--", color=BLUE)
    named = set()
    for unstable, group in groupby(range(1, len(points)), lambda k: points[k].unstable + points[k].unstable_across > 0):
        part = [points[k] for k in group]
        before = [points[max(points.index(part[0]) - 1, 0)]]
        kind = "unstable" if unstable else "stable"
        ax.plot(
            [found.parameter(point) for point in before + part],
            [abs(point.order) for point in before + part],
            "--" if unstable else "-",
            color=BLUE,
            label=None if kind in named else kind,
        )
        named.add(kind)
    ax.plot(critical, 0, "o", color=VERMILION, label=f"critical {found.name} {critical:.5g}")
    for fold in branch.folds:
        at = found.parameter(fold)
        ax.plot(at, abs(fold.order), "s", color=VERMILION, label=f"fold at {at / critical:.5f} of it")
    case, attention = found.case, found.case.attention
    is_noise = found.name == "noise"
    ax.set(
        xlabel="noise κ" if is_noise else "β",
        ylabel="length of the mean token ∫xρ",
        xlim=(0, right),
        ylim=(-0.03, 1.03),
    )
    other = f"β = {attention.beta:g}" if is_noise else f"κ = {case.stabilizers.noise:g}"
    ax.set_title(f"{case.domain.space}, {attention.normalization} attention, {other}")
    ax.legend(loc="center left", frameon=False)
