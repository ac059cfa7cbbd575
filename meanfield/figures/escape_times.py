"""Figure of `meanfield escape`: mean times of escape over the number of tokens, simulated and predicted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.captions import set_title
from meanfield.figures.run_data import BLUE, GREEN, VERMILION

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

    from meanfield.results.escapes import Escape

_HIGHEST = 4.0  # barrier nΔF/κ at the end of the axis without simulations


def draw_escape(found: Escape, figure: Figure | SubFigure) -> None:
    """Draw on an empty ``figure`` the predicted mean times over the number n of tokens, and the simulated ones.

    The simulated times have intervals.
    """
    ax = figure.add_subplot()
    last = max((one.n for one in found.times), default=_HIGHEST / found.barrier)
    n = np.linspace(last / 20, 1.1 * last, 60)
    ax.plot(n, [found.predicted(count) for count in n], color=BLUE, label="one-dimensional reduction")
    ax.plot(n, [found.asymptotic(count) for count in n], "--", color=GREEN, label="n → ∞ (Eyring, Kramers)")
    shown = [one for one in found.times if one.escaped]
    if shown:
        means = np.array([one.mean for one in shown])
        ends = np.array([one.interval for one in shown])
        errors = [means - ends[:, 0], ends[:, 1] - means]
        ax.errorbar(
            [one.n for one in shown], means, errors, fmt="o", color=VERMILION, capsize=3, label="simulated, 95 %"
        )
    ax.set(xlabel="number n of tokens", ylabel="mean time of escape", yscale="log")
    case = found.case
    space = case.domain.space or f"S{case.domain.d - 1}"
    title = f"{space}, β = {case.attention.beta:g}, κ = {case.stabilizers.noise:g}: "
    title += f"from the {found.start} density, ΔF/κ = {found.barrier:.4g}"
    set_title(ax, title)
    ax.legend(frameon=False)
