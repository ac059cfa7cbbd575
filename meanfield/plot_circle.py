"""Densities on the circle: angle against time, and the profiles of chosen snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield.plot_axes import say, set_time
from meanfield.plot_story import COLOR_MAP, SNAPSHOTS, UNIFORM_TEXT, Floats, Scale, Story, format_time, snapshots_chosen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

COLUMNS, ROWS = 800, 720  # at most so many snapshots and arcs in the picture: what a page shows


def circle_height(story: Story) -> float:
    """Inches that the pictures need."""
    return 3.3


def draw_circle(figure: SubFigure, story: Story) -> None:
    """Fill ``figure`` with the space-time picture (left out for a single snapshot) and up to six profiles."""
    chosen = snapshots_chosen(story, SNAPSHOTS)
    ratios = [story.ratio(k) for k in chosen]
    scale = Scale.of(ratios)
    shown = [k for k in range(len(story.times)) if story.times[k] > 0 or not story.log_time]
    if len(shown) < 2:
        _draw_profiles(figure.subplots(), story, chosen, ratios, scale)
        return
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    shown = [shown[i] for i in np.unique(np.linspace(0, len(shown) - 1, COLUMNS).astype(int))]
    picture = np.stack([merged(story.ratio(k), ROWS) for k in shown], axis=1)
    edges = time_edges(story.times[shown], story.log_time)
    image = left.pcolormesh(
        edges,
        np.linspace(0, 2 * np.pi, len(picture) + 1),
        scale.values(picture),
        norm=scale.norm,
        cmap=COLOR_MAP,
        rasterized=True,  # else a PDF would hold each cell as a path
    )
    left.set(ylabel="angle φ (rad)", title="density over time")
    set_time(left, "time t", (edges[0], edges[-1]), log=story.log_time)
    mark_angles(left.yaxis)
    extend = "min" if not scale.deviation and picture.min() < scale.low else "neither"
    bar = figure.colorbar(image, ax=left, extend=extend)
    scale.draw_on(bar.ax.yaxis, scale.symbol)
    _draw_profiles(right, story, chosen, ratios, scale)


def merged(values: Floats, rows: int) -> Floats:
    """Cell averages over groups of neighbouring cells, equal ones, so that at most ``rows`` are left."""
    size = next(n for n in range(-(-len(values) // rows), len(values) + 1) if len(values) % n == 0)
    return values.reshape(-1, size).mean(axis=1)


def time_edges(times: Floats, log: bool) -> Floats:
    """(snapshots + 1,) edges of the columns that stand for each snapshot, midway between them on the axis."""
    t = np.log(times) if log else times
    between = (t[1:] + t[:-1]) / 2
    edges = np.concatenate([[t[0]], between, [t[-1]]])
    return np.exp(edges) if log else edges


def _draw_profiles(ax: Axes, story: Story, chosen: list[int], ratios: list[Floats], scale: Scale) -> None:
    from matplotlib import colormaps

    shades = colormaps[COLOR_MAP](np.linspace(0, 0.8, len(chosen)))
    for k, ratio, shade in zip(chosen, ratios, shades, strict=True):
        edges = np.linspace(0, 2 * np.pi, len(ratio) + 1)
        # Below the scale the line leaves the picture, instead of running along its floor.
        height = ratio - 1 if scale.deviation else ratio.clip(scale.low / 10)
        ax.stairs(height, edges, baseline=None, color=shade, lw=1.3, label=format_time(story.times[k]))
    ax.axhline(0 if scale.deviation else 1, color="0.6", lw=0.8, ls=":")
    ax.set(xlabel="angle φ (rad)", xlim=(0, 2 * np.pi), ylim=(1.1 * scale.low, 1.1 * scale.high))
    if not scale.deviation:
        ax.set(yscale="log", ylim=(scale.low, 1.5 * scale.high))
    scale.draw_on(ax.yaxis, scale.label)
    mark_angles(ax.xaxis)
    if scale.is_uniform:
        say(ax, f"uniform, within {UNIFORM_TEXT}", height=0.75)
    if len(chosen) == 1:
        ax.set_title(f"profile at t = {format_time(story.times[chosen[0]])}")
        return
    ax.set_title("profiles")
    ax.legend(title="time t", loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)


def mark_angles(axis: object) -> None:
    axis.set_ticks(np.arange(5) * np.pi / 2, ["0", "π/2", "π", "3π/2", "2π"])  # type: ignore[attr-defined]
