"""Figure of `meanfield convergence`: estimated errors over the resolution, with the observed order."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from meanfield.figures.figure import write_figure
from solvers.analysis.convergence import ConvergenceStudy

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_convergence(study: ConvergenceStudy, over: str, of: str, figure: str | Path) -> Path:
    """Draw a convergence study of a case to ``figure`` (.png, .pdf or .svg) and return the path."""

    def draw(drawing: Figure) -> None:
        ax = study.plot(drawing.add_subplot())
        ax.set(xlabel=over, ylabel=f"estimated error of {of} at the end")
        ax.set_xticks(study.resolutions, [f"{value:g}" for value in study.resolutions])
        ax.minorticks_off()

    return write_figure(figure, draw, figsize=(4.8, 3.6), layout="constrained")
