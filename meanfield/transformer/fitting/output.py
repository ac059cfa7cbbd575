"""Table and figure of a fit."""

from __future__ import annotations

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from meanfield.analysis.text import table
from meanfield.transformer.labelled import Outcome


def summary(found: Outcome) -> str:
    """Return the mean error of each law over layers."""
    rows = [
        [law, *(f"{part.mean():.3g}" for part in errors)]
        for law, errors in zip(found["law"], found["error"], strict=True)
    ]
    return table(["law", *found["set"]], rows)


def draw(figure: Figure, found: Outcome) -> None:
    """Draw the errors by layer of texts held back, and β and v of the law with numbers by layer."""
    figure.set_size_inches(11.0, 4.2)
    axes = figure.subplots(1, 2, width_ratios=(2, 1))
    layers, laws, errors = found["layer"], found["law"], found["error"]
    shown = len(laws) - 1  # the whole model's error is rounding
    for k, color in enumerate(matplotlib.colormaps["viridis"](np.linspace(0, 0.9, shown))):
        axes[0].plot(layers, errors[k, 1], "o-", ms=3, color=color, label=laws[k])
        axes[0].plot(layers, errors[k, 0], ":", lw=1, color=color)
    axes[0].set(xlabel="layer", ylabel="error by that of standing still", ylim=(0, None))
    axes[0].set_title(f"{found.title}: texts held back (dotted: fitted to)", fontsize=9)
    axes[0].legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes[1].plot(layers, found["beta"][2], "o-", ms=3, label="β")
    axes[1].plot(layers, found["value"][2], "s-", ms=3, label="v")
    axes[1].set(xlabel="layer", title=laws[2])
    axes[1].legend(fontsize=8, frameon=False)
    for ax in axes:
        ax.set_xticks(layers)
    figure.tight_layout()
