"""The figure of `meanfield convergence`: estimated errors over the resolution, with the observed order."""

from __future__ import annotations

from pathlib import Path

from meanfield.figures.figure import STYLE
from meanfield.figures.saving import figure_target, save
from solvers.analysis.convergence import ConvergenceStudy


def plot_convergence(study: ConvergenceStudy, over: str, of: str, figure: str | Path) -> Path:
    """Draw a study to ``figure`` (.png, .pdf or .svg) and return where it was written."""
    target = figure_target(Path(figure))
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        drawing = Figure(figsize=(4.8, 3.6), layout="constrained")
        ax = study.plot(drawing.add_subplot())
        ax.set(xlabel=over, ylabel=f"estimated error of {of} at the end")
        ax.set_xticks(study.resolutions, [f"{value:g}" for value in study.resolutions])
        ax.minorticks_off()
        return save(drawing, target)
