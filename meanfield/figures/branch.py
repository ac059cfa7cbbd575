"""The figure of `meanfield branch`: length of the mean token over noise, unstable states dashed."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from meanfield.analysis.branch import BranchOfCase
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
    """Mean token over noise on ``ax``; the uniform density, whose mean token is zero, along the bottom."""
    branch, unit = found.branch, found.unit
    critical = unit * branch.critical
    points = branch.equilibria
    right = 1.1 * unit * max(point.noise for point in points)
    ax.plot([unit * points[-1].noise, critical], [0, 0], "--", color=BLUE)
    ax.plot([critical, right], [0, 0], color=BLUE)
    named = set()
    for unstable, group in groupby(range(1, len(points)), lambda k: points[k].unstable > 0):
        part = [points[k] for k in group]
        before = [points[max(points.index(part[0]) - 1, 0)]]
        kind = "unstable" if unstable else "stable"
        ax.plot(
            [unit * point.noise for point in before + part],
            [abs(point.order) for point in before + part],
            "--" if unstable else "-",
            color=BLUE,
            label=None if kind in named else kind,
        )
        named.add(kind)
    ax.plot(critical, 0, "o", color=VERMILION, label=f"critical noise {critical:.5g}")
    for fold in branch.folds:
        noise = unit * fold.noise
        ax.plot(noise, abs(fold.order), "s", color=VERMILION, label=f"fold at {noise / critical:.5f} of it")
    attention = found.case.attention
    ax.set(xlabel="noise κ", ylabel="length of the mean token ∫xρ", xlim=(0, right), ylim=(-0.03, 1.03))
    ax.set_title(f"{found.case.domain.space}, {attention.normalization} attention, β = {attention.beta:g}")
    ax.legend(loc="center left", frameon=False)
