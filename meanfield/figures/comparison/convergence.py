"""Figure of `meanfield convergence`: estimated errors over the resolution, with the observed order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from meanfield.figures.axes import inches_up
from meanfield.figures.captions import wrap_text
from meanfield.figures.figure import write_figure
from solvers.analysis.convergence import ConvergenceStudy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_convergence(study: ConvergenceStudy, over: str, of: str, figure: str | Path) -> Path:
    """Draw a convergence study of a case to ``figure`` (.png, .pdf or .svg) and return the path.

    The errors are those of the quantity ``of`` at the end, over the key ``over``, which is the resolution.
    """
    return write_figure(
        figure, lambda drawing: draw_convergence(study, over, of, drawing), figsize=(4.8, 3.6), layout="constrained"
    )


def draw_convergence(study: ConvergenceStudy, over: str, of: str, figure: Figure) -> None:
    """Draw a convergence study on an empty ``figure``: errors of the quantity ``of`` over the key ``over``."""
    ax = study.plot(figure.add_subplot())
    ax.set(xlabel=over, ylabel=wrap_text(f"estimated error of {of} at the end", inches_up(ax)))
    ax.set_xticks(study.resolutions, [f"{value:g}" for value in study.resolutions])
    ax.minorticks_off()
