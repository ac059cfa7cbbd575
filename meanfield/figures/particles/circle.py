"""Tokens on the circle: the angle of each over time, and positions at selected times."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis.text import format_time
from meanfield.figures.axes import Floats, ink, set_time
from meanfield.figures.color_scale import shades
from meanfield.figures.panels.cut import with_cut
from meanfield.figures.particles.tokens import angles, as_density, directions, dot_areas, merge_points, tokens_of
from meanfield.figures.profiles import coordinate, shown_snapshots
from meanfield.figures.run_data import BLUE, SNAPSHOTS, RunData, snapshots_chosen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import LineCollection

WIDTHS = (0.5, 4.0)  # smallest and largest width of a line in points: √mass, 1 for the mean
TWO_PI = 2 * np.pi
MARGIN = 0.35  # radians beyond the ends of an axis, for dots at angle 0
EQUAL = 1e-9  # relative rounding error of equal masses


def draw_angles(ax: Axes, run_data: RunData) -> None:
    """Draw the angles of tokens on the circle over time, a line for each token."""
    shown = shown_snapshots(run_data)
    cut_open = with_cut(as_density(run_data), shown)
    draw_angle_lines(ax, run_data, cut_open.cut)
    weights = tokens_of(run_data).weights
    equal = np.ptp(weights) < EQUAL * weights.max()
    ax.set_title("tokens over time" if equal else "tokens over time; width: mass")
    set_time(ax, run_data.time_label, (run_data.times[shown[0]], run_data.times[shown[-1]]), log=run_data.log_time)
    coordinate(cut_open).draw_on(ax.yaxis)
    ax.set_ylim(cut_open.cut - MARGIN / 3, cut_open.cut + TWO_PI + MARGIN / 3)


def draw_angle_lines(ax: Axes, run_data: RunData, cut: float = 0.0) -> LineCollection:
    """Draw the angles of tokens on the circle over time and return the lines, without setting the axes.

    The axis begins at the angle ``cut``; a line that leaves there continues on the other side.
    """
    from matplotlib.collections import LineCollection

    shown, weights = shown_snapshots(run_data), tokens_of(run_data).weights
    turned = np.unwrap(np.stack([angles(directions(run_data, k)) for k in shown]), axis=0)
    widths = np.clip(np.sqrt(weights / weights.mean()), *WIDTHS)
    lines, of_token = [], []
    for token, values in enumerate(turned.T):
        for line in copies(values - cut):
            lines.append(np.column_stack([run_data.times[shown], line + cut]))
            of_token.append(token)
    drawn = LineCollection(lines, colors=BLUE, alpha=0.6, linewidths=list(widths[of_token]))
    ax.add_collection(drawn, autolim=False)
    return drawn


def copies(turned: Floats) -> list[Floats]:
    """Return copies of a continuous angle shifted by multiples of 2π that together cover it between 0 and 2π."""
    first, last = np.floor((turned.min() - MARGIN) / TWO_PI), np.floor((turned.max() + MARGIN) / TWO_PI)
    return [turned - turn * TWO_PI for turn in np.arange(first, last + 1)]


def draw_strips(ax: Axes, run_data: RunData) -> None:
    """Draw tokens on the circle as dots over their angle, a row for each of at most SNAPSHOTS snapshots, from the top.

    Coinciding tokens are one dot of their mass.
    """
    chosen = snapshots_chosen(run_data, SNAPSHOTS)
    cut_open = with_cut(as_density(run_data), shown_snapshots(run_data))
    for row, (k, shade) in enumerate(zip(chosen, shades(len(chosen)), strict=True)):
        shown_angles = (angles(directions(run_data, k)) - cut_open.cut) % TWO_PI + cut_open.cut
        points, masses = merge_points(
            np.column_stack([shown_angles, np.zeros(len(shown_angles))]), tokens_of(run_data).weights, TWO_PI
        )
        ax.axhline(row, color=ink(0.85), lw=0.8, zorder=0)
        style = {"color": shade, "alpha": 0.75, "linewidths": 0}
        ax.scatter(points[:, 0], np.full(len(points), row), s=dot_areas(masses), **style)
    ax.set_yticks(range(len(chosen)), [format_time(run_data.times[k]) for k in chosen])
    ax.set(ylim=(len(chosen) - 0.5, -0.5), ylabel=run_data.time_label, title="tokens at these times; area: mass")
    coordinate(cut_open).draw_on(ax.xaxis)
    ax.set_xlim(cut_open.cut - MARGIN, cut_open.cut + TWO_PI + MARGIN)
