"""Figure of linear stability: growth rates by degree."""

from __future__ import annotations

from typing import TYPE_CHECKING

from meanfield.figures.axes import ink
from meanfield.figures.run_data import BLUE, VERMILION

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

    from meanfield.results.theory import Stability


def compose_rates(found: Stability, figure: Figure | SubFigure) -> None:
    """Draw the growth rates of the degrees from 1 on, the growing ones in another color, on an empty ``figure``."""
    from matplotlib.ticker import MaxNLocator

    ax = figure.add_subplot()
    degrees, rates = found.degrees[1:], found.rates[1:]
    for shown, color, label in ((rates > 0, VERMILION, "grows"), (rates <= 0, BLUE, "decays")):
        if shown.any():
            ax.plot(degrees[shown], rates[shown], "o", color=color, label=label)
    ax.plot(degrees, rates, color=ink(0.6), lw=1.0, zorder=1)
    ax.axhline(0, color=ink(0.4), lw=0.8, zorder=0)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel="degree l", ylabel="growth rate λ", title=f"critical noise {found.critical_noise:.5g}")
    ax.legend(frameon=False)
