"""Field of a sequence over depth: u(x, t)/|u| along two principal axes, token position against time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.axes import Floats, label_linear, set_time
from meanfield.figures.particles.tokens import directions, tokens_of
from meanfield.figures.profiles import ROWS, average_rows, shown_snapshots, time_edges
from meanfield.figures.run_data import RunData

if TYPE_CHECKING:
    from matplotlib.figure import SubFigure

FIELD_HEIGHT = 3.0
COLORS = "RdBu_r"  # two hues that are distinguishable with every kind of color vision, white at zero
MAX_SAMPLED = 4096  # largest number of vectors for the principal axes


def draw_field(figure: SubFigure, run_data: RunData) -> None:
    """Draw a field u of a token sequence over time and position, along its two principal axes e.

    The values are ⟨u/|u| − ū, e⟩, ū the mean of all directions u/|u| shown.
    """
    shown = shown_snapshots(run_data)
    length = tokens_of(run_data).length
    assert length is not None
    times = time_edges(run_data.times[shown], run_data.log_time)
    axes, parts = figure.subplots(1, 2, sharey=True), field_parts(run_data, shown, ROWS)
    largest = float(np.abs(parts).max()) or 1.0
    for number, (ax, part) in enumerate(zip(axes, parts, strict=True), start=1):
        positions = np.linspace(0.0, length, part.shape[1] + 1)
        image = ax.pcolormesh(times, positions, part.T, cmap=COLORS, vmin=-largest, vmax=largest, rasterized=True)
        ax.set_title(f"field u/|u| along principal axis {number}")
        set_time(ax, run_data.time_label, (times[0], times[-1]), log=run_data.log_time)
    label_linear(axes[0].yaxis, "token position x", length)
    bar = figure.colorbar(image, ax=axes)
    label_linear(bar.ax.yaxis, "deviation from the mean", largest)


def field_parts(run_data: RunData, shown: Sequence[int], rows: int) -> Floats:
    """Return ⟨u/|u| − ū, e⟩ (2, snapshots, positions) of a token sequence for its two principal axes e.

    u are the tokens of the snapshots ``shown`` and ū the mean of all their directions. Neighbors are averaged to at
    most ``rows`` positions.
    """
    fields = np.stack([directions(run_data, k) for k in shown])
    fields -= fields.mean(axis=(0, 1))
    parts = np.einsum("tnd,ad->atn", fields, _principal(fields))
    return np.array([[average_rows(values, rows) for values in part] for part in parts])


def _principal(fields: Floats) -> Floats:
    """Return the two axes (2, d) along which vectors (times, n, d) have the largest mean square.

    The largest entry of each axis is positive.
    """
    vectors = fields.reshape(-1, fields.shape[-1])
    vectors = vectors[np.unique(np.linspace(0, len(vectors) - 1, MAX_SAMPLED).astype(int))]
    two = np.linalg.svd(vectors, full_matrices=False)[2][:2]
    return np.asarray(two * np.sign(two[np.arange(2), np.abs(two).argmax(axis=1)])[:, None])
