"""Texts and curves of means over seeds, and colors and names of both networks."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from meanfield.figures.run_data import BLUE, VERMILION
from solvers.mesh.mesh import Floats

COLORS = {"transformer": BLUE, "pde": VERMILION}
NAMES = {"transformer": "Transformer", "pde": "PDE network"}
STYLES = {"untrained": "--", "trained": "-"}


def mean_and_spread(values: ArrayLike) -> str:
    """Return the mean and standard deviation of values, one for each seed, as a text."""
    values = np.asarray(values, dtype=float)
    return f"{values.mean():.3g} ± {values.std():.1g}"


def curve(ax: Axes, x: Floats, values: Floats, **style: Any) -> None:
    """Draw the mean over seeds of values (seeds, x), with a band from their least to their largest."""
    lines = ax.plot(x, values.mean(axis=0), **style)
    ax.fill_between(x, values.min(axis=0), values.max(axis=0), color=lines[0].get_color(), alpha=0.15, lw=0)


def curves(ax: Axes, x: Floats, values: Floats) -> None:
    """Draw a curve of values (network, state, seed, x) for each network, untrained and trained."""
    for kind, of_kind in zip(NAMES, values, strict=True):
        for state, of_state in zip(STYLES, of_kind, strict=True):
            curve(ax, x, of_state, color=COLORS[kind], ls=STYLES[state], label=f"{NAMES[kind]}, {state}")
