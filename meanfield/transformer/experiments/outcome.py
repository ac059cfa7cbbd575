"""Outcome of an experiment: arrays with named dimensions, a summary and a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.figures.run_data import BLUE, VERMILION
from meanfield.transformer.labelled import Labelled
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLORS = {"transformer": BLUE, "pde": VERMILION}
NAMES = {"transformer": "Transformer", "pde": "PDE network"}
STYLES = {"untrained": "--", "trained": "-"}


@dataclass(frozen=True)
class Outcome:
    """Arrays for the file, a summary of a few lines, and a function that draws the figure."""

    arrays: Mapping[str, Labelled]
    summary: str
    draw: Callable[[Figure], None]


def mean_and_spread(values: Any) -> str:
    """Over the last axis, seeds."""
    values = np.asarray(values, dtype=float)
    return f"{values.mean():.3g} ± {values.std():.1g}"


def curve(ax: Any, x: Floats, values: Floats, **style: Any) -> None:
    """The mean of values (seeds, x), with a band from the least to the largest."""
    lines = ax.plot(x, values.mean(axis=0), **style)
    ax.fill_between(x, values.min(axis=0), values.max(axis=0), color=lines[0].get_color(), alpha=0.15, lw=0)
