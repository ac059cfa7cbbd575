"""Figure of an entry: curves of runs, and dashed curves of formulas."""

from __future__ import annotations

from typing import Any

import numpy as np

from meanfield.figures.figure import STYLE
from meanfield.figures.run_data import BLUE, VERMILION
from solvers.mesh.mesh import Floats

COLORS = (BLUE, VERMILION, "#009E73", "#CC79A7", "#E69F00")  # Okabe and Ito: distinguishable with color blindness
MAX_MARKED = 20  # maximum number of points of a curve with markers
SIZE, DPI = (4.2, 2.9), 150  # inches, dots per inch: the text is readable in a thumbnail, too
SMALL_NUMBERS = {"axes.formatter.limits": (-3, 5), "axes.formatter.use_mathtext": True}  # powers of ten beside an axis


def draw_growth(time: Floats, power: Floats, rate: float) -> None:
    """Draw the amplitude of a mode, the square root of its ``power``, and e^{rate t}."""
    amplitude = np.sqrt(power)
    draw(
        "time",
        "amplitude of the mode",
        logy=True,
        run=(time, amplitude),
        formula=(time, amplitude[0] * np.exp(rate * time)),
    )


def draw(x: str, y: str, *, logx: bool = False, logy: bool = False, **curves: tuple[Any, Any]) -> None:
    """Draw curves ``name=(abscissas, ordinates)``; names beginning with formula are dashed.

    Underscores in names are drawn as spaces. The label ``y`` of the ordinates stands above their axis.
    """
    import matplotlib
    from matplotlib import pyplot

    with matplotlib.rc_context(STYLE | SMALL_NUMBERS):
        _, ax = pyplot.subplots(figsize=SIZE, dpi=DPI, layout="constrained")
        colors = iter(COLORS)
        # A single curve is a band, in which the dashed curve of a formula that agrees with it is visible.
        width = 5.0 if sum(not name.startswith("formula") for name in curves) == 1 else 2.5
        for name, (abscissas, ordinates) in curves.items():
            style: dict[str, Any]
            if name.startswith("formula"):
                style = {"linestyle": "--", "color": "black", "linewidth": 1.4, "zorder": 3}
            else:
                marker = "o" if len(abscissas) <= MAX_MARKED else ""
                style = {"color": next(colors), "marker": marker, "linewidth": 2.5 if marker else width}
            ax.plot(abscissas, ordinates, label=name.replace("_", " "), **style)
        ax.set_title(y, loc="left")
        ax.set(xlabel=x, xscale="log" if logx else "linear", yscale="log" if logy else "linear")
        if len(curves) > 1:
            ax.legend(frameon=False)
