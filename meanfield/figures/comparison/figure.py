"""Figure of a comparison: distances over time above, states at the first, middle and last time below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis.comparison import Comparison, units
from meanfield.analysis.comparison_text import SIDES, describe_run
from meanfield.analysis.text import format_time
from meanfield.domains.table import kind_of
from meanfield.figures.axes import (
    annotate,
    inches_up,
    is_early,
    is_single,
    label_decades,
    label_linear,
    panels_across,
    panels_down,
    positive,
    row_of_axes,
    set_time,
)
from meanfield.figures.captions import set_heading, wrap_text
from meanfield.figures.comparison.pairs import draw_means, draw_pairs_beside
from meanfield.figures.comparison.states import draw_lines, draw_maps, maps_height
from meanfield.figures.figure import WIDTH
from meanfield.figures.run_data import BLACK, BLUE, GREEN, ORANGE, VERMILION
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

SPREAD = 30.0  # ratio of largest to smallest distance for a log axis
FLOOR = 1e-6  # fraction of the largest distance: smaller values may be rounding
_DRAWN = ("S1", "S2", "R1", "R2", "R3")
_CURVES = (("l1", "L¹", GREEN), ("w1", "W₁", BLUE), ("w2", "W₂", VERMILION), ("centroid", "centroid", ORANGE))


def size_of(comparison: Comparison) -> tuple[float, float]:
    """Return the width and height in inches of the figure of a comparison."""
    return WIDTH, sum(_heights(comparison)) + 0.9


def _heights(comparison: Comparison) -> list[float]:
    """Return the heights in inches of the rows of the figure: distances, and states if there are any."""
    return [2.9, *_states_height(comparison)]


def draw_comparison(comparison: Comparison, figure: Figure | SubFigure) -> None:
    """Draw a comparison of runs on an empty ``figure``."""
    if is_single(figure):
        _draw_distances(figure, comparison)
        return
    heights = _heights(comparison) if panels_across(figure) > 1 else _rows_in_a_column(figure, comparison)
    lines = [describe_run(run) for run in comparison.runs]
    lines = [f"{SIDES[i]}  {line}" for i, line in enumerate(lines)] if len(lines) > 1 else lines
    lines = [line.replace("$", r"\$") for line in lines]
    set_heading(figure, lines, part=0.9)
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _draw_distances(parts[0], comparison)
    if len(parts) > 1:
        draw = draw_maps if comparison.space == "S2" else draw_lines if _is_narrow(comparison) else draw_pairs_beside
        draw(parts[1], comparison, drawn_rows(comparison))


def _rows_in_a_column(figure: Figure | SubFigure, comparison: Comparison) -> list[float]:
    """Return the numbers of rows of the distances and of the states in a narrow figure, the latter only if they fit."""
    room, distances = panels_down(figure), 2
    if comparison.space == "S2":
        states = 2 * len(comparison.runs)
        return [distances, states] if room >= distances + states else [distances]
    states = min(len(drawn_rows(comparison)), room - distances) if _states_height(comparison) else 0
    return [distances, states] if states > 0 else [distances]


def drawn_rows(comparison: Comparison) -> list[int]:
    """Return the rows of a comparison whose states are drawn: first, middle and last, each once."""
    last = len(comparison.times) - 1
    return sorted({0, last // 2, last})


def _states_height(comparison: Comparison) -> list[float]:
    """Return a list with the height in inches of the drawn states of compared runs, empty if none are drawn."""
    if comparison.space == "S2":
        return [maps_height(comparison, drawn_rows(comparison))]
    return [2.9] if _is_narrow(comparison) or _has_pairs(comparison) else []


def _is_narrow(comparison: Comparison) -> bool:
    """Return whether the states of the compared runs are drawn as lines over one coordinate, not as maps."""
    return comparison.space in ("S1", "R1") or comparison.space.startswith("polar")


def _has_pairs(comparison: Comparison) -> bool:
    """Return whether both runs are of tokens whose states are not drawn, so that angles of pairs are drawn instead.

    These are tokens in four or more dimensions.
    """
    particles = all(kind_of(run.manifold).has_tokens for run in comparison.runs)
    counts = [len(run.weights) for run in comparison.runs if kind_of(run.manifold).has_tokens]
    return particles and len(comparison.runs) == 2 and min(counts) > 1 and comparison.space not in _DRAWN


def _draw_distances(figure: Figure | SubFigure, comparison: Comparison) -> None:
    """Draw the distances between two runs and their numbers of clusters over time.

    For tokens in many dimensions, in which clusters have no common scale, mean inner products replace the numbers of
    clusters. The snapshots of a single run are compared with the previous one and with the last one.
    """
    if len(comparison.runs) == 1:
        kinds = ("step_", "from the snapshot before"), ("last_", "to the last snapshot")
        for ax, (kind, title) in zip(row_of_axes(figure, 2), kinds, strict=False):
            _draw_curves(ax, comparison, kind, title)
        return
    has_counts = not np.isnan([comparison.columns[f"clusters_{side}"] for side in "ab"]).all()
    beside = draw_means if _has_pairs(comparison) else _draw_counts if has_counts else None
    left, *right = row_of_axes(figure, 1) if beside is None else row_of_axes(figure, 2, (1.5, 1))
    _draw_curves(left, comparison, "", "distance of A from B")
    if beside is not None:
        for ax in right:
            beside(ax, comparison)
            _set_times(ax, comparison)


def _draw_counts(ax: Axes, comparison: Comparison) -> None:
    """Draw the numbers of clusters of two runs over time."""
    from matplotlib.ticker import MaxNLocator

    counts = [comparison.columns[f"clusters_{side}"] for side in "ab"]
    for side, values, color, style in zip(SIDES, counts, (BLACK, BLUE), ("-", "--"), strict=True):
        if not np.isnan(values).all():
            ax.step(comparison.times, values, where="post", label=side, color=color, lw=1.4, ls=style)
    ax.set_title("clusters")
    ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    top = max(float(np.nanmax(counts)), 1.0)
    ax.set(ylim=(-0.05 * top, 1.1 * top), ylabel="number of clusters")
    ax.legend(frameon=False)


def _draw_curves(ax: Axes, comparison: Comparison, kind: str, title: str) -> None:
    """Draw the distances of snapshots over time: L¹, W₁, W₂, and that of the mean tokens, where these are defined.

    ``kind`` is the prefix of their columns: "" for two runs, "step_" or "last_" for the snapshots of one run.
    """
    columns = {name: comparison.columns[kind + name] for name, _, _ in _CURVES}
    drawn = np.concatenate(list(columns.values()))
    drawn = drawn[np.isfinite(drawn)]
    log = _reads_better_by_decades(drawn)
    for name, label, color in _CURVES:
        if not np.isnan(columns[name]).all():
            values = positive(columns[name]) if log else columns[name]
            marker = "o" if np.isfinite(values).sum() < 25 else ""
            width = 2.6 if name == "w1" else 1.3  # visible beside W₂, which may coincide
            ax.plot(comparison.times, values, color=color, lw=width, marker=marker, markersize=3.5, label=label)
    ax.set_title(title)
    label = f"W in {units(comparison.space)}" + ", L¹ from 0 to 2" * (not np.isnan(columns["l1"]).all())
    label = wrap_text(label, inches_up(ax))
    if log:
        limits = max(float(drawn[drawn > 0].min()), FLOOR * float(drawn.max())) / 1.5, float(drawn.max()) * 1.5
        ax.set(yscale="log", ylim=limits, ylabel=label)
        label_decades(ax.yaxis, *limits)
    else:
        label_linear(ax.yaxis, label, float(np.abs(drawn).max(initial=0.0)))
        ax.set_ylim(bottom=0)
    if not len(drawn):
        annotate(ax, "one snapshot: nothing to compare")
    else:
        ax.legend(frameon=False, ncols=2)
    _set_times(ax, comparison)


def _reads_better_by_decades(values: Floats) -> bool:
    """Return whether values span a factor of more than SPREAD, so that a log axis suits them."""
    found = values[values > FLOOR * values.max(initial=0.0)]
    return len(found) > 2 and float(found.max()) > SPREAD * float(found.min())


def _set_times(ax: Axes, comparison: Comparison) -> None:
    """Set the time axis of a panel of a comparison."""
    times = comparison.times
    if len(times) == 1:
        ax.set_xticks(times, [format_time(times[0])])
        ax.set_xlabel("time t")
        return
    first, last = float(times[times > 0].min()), float(times[-1])
    log = len(times) > 2 and is_early(times, np.ones(len(times)), first, last)
    set_time(ax, "time t", (first if log else float(times[0]), last), log=log)
