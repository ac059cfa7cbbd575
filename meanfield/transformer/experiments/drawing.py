"""Curves of means over seeds, and colors and names of the networks."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from meanfield.figures.run_data import BLUE, ORANGE, SKY, VERMILION
from meanfield.transformer.experiments.statistics import mean_and_half_width
from meanfield.transformer.experiments.subjects import NO_ATTENTION
from solvers.mesh.mesh import Floats

NAMES = {"transformer": "Transformer", "pde": "PDE network"}
COLORS = {"transformer": BLUE, "pde": VERMILION, f"transformer{NO_ATTENTION}": SKY, f"pde{NO_ATTENTION}": ORANGE}
STYLES = {"untrained": "--", "trained": "-"}


def label_of(name: str) -> str:
    """Return the label of a network in figures, such as "PDE network, no attention" for "pde, no attention"."""
    kind = name.partition(",")[0]
    return NAMES[kind] + name[len(kind) :]


def curve(ax: Axes, x: Floats, values: Floats, geometric: bool = False, **style: Any) -> None:
    """Draw the mean over seeds of values (seeds, x), with a band that is the 95 % interval of the mean.

    ``geometric``: whether mean and interval are those of the logarithms of positive values.
    """
    mean, half_width = mean_and_half_width(np.log(values) if geometric else values, axis=0)
    middle, low, high = (np.exp(y) if geometric else y for y in (mean, mean - half_width, mean + half_width))
    lines = ax.plot(x, middle, **style)
    ax.fill_between(x, low, high, color=lines[0].get_color(), alpha=0.15, lw=0)


def curves(ax: Axes, x: Floats, values: Floats, geometric: bool = False) -> None:
    """Draw a curve of values (network, state, seed, x) for each network, untrained and trained.

    Networks without attention are drawn after training only.
    """
    for name, of_name in zip(COLORS, values, strict=False):
        for state, of_state in zip(STYLES, of_name, strict=True):
            if state == "trained" or not name.endswith(NO_ATTENTION):
                style = {"color": COLORS[name], "ls": STYLES[state], "label": f"{label_of(name)}, {state}"}
                curve(ax, x, of_state, geometric, **style)
