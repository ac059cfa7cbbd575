"""Densities in one dimension: space-time image, and profiles of snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis.text import format_time
from meanfield.figures.axes import Floats, annotate, ink, mark_time, panels_across, set_time
from meanfield.figures.color_scale import UNIFORM_TEXT, Scale, color_map, scale_of, shades
from meanfield.figures.panels.cut import with_cut
from meanfield.figures.run_data import SNAPSHOTS, RunData, snapshots_chosen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

    from meanfield.figures.coordinate import Coordinate

COLUMNS, ROWS = 800, 720  # largest numbers of snapshots and cells in the image, about the resolution of a page


def profiles_height(run_data: RunData) -> float:
    """Return the height in inches of the panels of a density in one dimension."""
    return 3.3


def draw_profiles(figure: SubFigure, run_data: RunData) -> None:
    """Draw a density in one dimension: over time, omitted for a single snapshot, and up to six profiles."""
    if len(shown_snapshots(run_data)) < 2:
        draw_profile_lines(figure.subplots(), run_data)
        return
    if panels_across(figure) == 1:
        first, second = figure.subplots(2, 1)
    else:
        first, second = figure.subplots(1, 2, width_ratios=(1.25, 1))
    draw_space_time(first, run_data)
    draw_profile_lines(second, run_data)


def draw_space_time(ax: Axes, run_data: RunData) -> None:
    """Draw a density in one dimension as colors over time and its coordinate, with a color bar."""
    run_data = with_cut(run_data, shown_snapshots(run_data))
    scale = scale_of(run_data, snapshots_chosen(run_data, SNAPSHOTS))
    times, edges, picture = space_time(run_data, shown_snapshots(run_data))
    image = ax.pcolormesh(
        times,
        edges,
        scale.values(picture),
        norm=scale.norm,
        cmap=color_map(),
        rasterized=True,  # otherwise a PDF would contain each cell as a path
    )
    ax.set_title("density over time")
    set_time(ax, run_data.time_label, (times[0], times[-1]), log=run_data.log_time)
    mark_time(ax, run_data.handover, "point masses")
    coordinate(run_data).draw_on(ax.yaxis)
    bar = ax.figure.colorbar(image, ax=ax, extend=scale.extend([picture]))
    scale.draw_on(bar.ax.yaxis, scale.symbol)


def draw_profile_lines(ax: Axes, run_data: RunData) -> None:
    """Draw a density in one dimension along its coordinate, a line for each of up to six snapshots."""
    run_data = with_cut(run_data, shown_snapshots(run_data))
    chosen = snapshots_chosen(run_data, SNAPSHOTS)
    _draw_lines(ax, run_data, chosen, scale_of(run_data, chosen))


def coordinate(run_data: RunData) -> Coordinate:
    """Return the coordinate along the cells of a density in one dimension."""
    assert run_data.coordinate is not None
    return run_data.coordinate


def shown_snapshots(run_data: RunData) -> list[int]:
    """Return the snapshots that are the columns of an image of a density over time, at most COLUMNS."""
    shown = [k for k in range(len(run_data.times)) if run_data.times[k] > 0 or not run_data.log_time]
    return [shown[i] for i in np.unique(np.linspace(0, len(shown) - 1, COLUMNS).astype(int))] if shown else []


def space_time(run_data: RunData, shown: list[int]) -> tuple[Floats, Floats, Floats]:
    """Return the edges of columns and rows, and the values (rows, columns), of an image of a density over time.

    Columns are the snapshots ``shown``, and rows are along the coordinate.
    """
    edges = coordinate(run_data).edges
    picture = np.stack([average_rows(run_data.ratio(k), ROWS, np.diff(edges)) for k in shown], axis=1)
    return time_edges(run_data.times[shown], run_data.log_time), row_edges(edges, ROWS), picture


def average_rows(values: Floats, rows: int, sizes: Floats | None = None) -> Floats:
    """Return averages of the values (cells,) over equally many neighboring cells, so that at most ``rows`` remain.

    The averages are weighted by the ``sizes`` of the cells, by default equal. A cell may be divided between two rows.
    """
    ends = _row_ends(len(values), rows)
    weights = np.ones(len(values)) if sizes is None else sizes
    if len(values) % (len(ends) - 1) == 0:
        by_row = len(ends) - 1, -1
        return np.asarray(np.average(values.reshape(by_row), axis=1, weights=weights.reshape(by_row)))
    pieces = np.union1d(np.arange(len(values) + 1), ends)
    middles = (pieces[1:] + pieces[:-1]) / 2
    cell, row = middles.astype(int), np.searchsorted(ends, middles) - 1
    shares = np.diff(pieces) * weights[cell]
    return np.bincount(row, shares * values[cell]) / np.bincount(row, shares)


def row_edges(edges: Floats, rows: int) -> Floats:
    """Return the edges of the rows of ``average_rows``, given those of the cells (cells + 1,)."""
    return np.interp(_row_ends(len(edges) - 1, rows), np.arange(len(edges)), edges)


def _row_ends(cells: int, rows: int) -> Floats:
    """Return the ends of at most ``rows`` rows of equally many cells, counted in cells from the first."""
    return np.linspace(0, cells, cells // -(-cells // rows) + 1)


def time_edges(times: Floats, log: bool) -> Floats:
    """Return the edges (snapshots + 1,) of the columns of an image over time, midway between snapshots.

    On a log axis they are midway in the logarithm.
    """
    t = np.log(times) if log else times
    between = (t[1:] + t[:-1]) / 2
    edges = np.concatenate([[t[0]], between, [t[-1]]])
    return np.exp(edges) if log else edges


def set_density_axis(ax: Axes, run_data: RunData, scale: Scale) -> None:
    """Set the axes of the profile of a density, and draw the uniform density if there is one."""
    if not scale.deviation:
        ax.set_yscale("log")
    ax.set_ylim(*scale.limits)
    coordinate(run_data).draw_on(ax.xaxis)
    if run_data.uniform is not None:
        edges = coordinate(run_data).edges
        ax.stairs(
            run_data.uniform.clip(scale.low / 10), edges, baseline=None, color=ink(0.4), lw=0.9, ls=":", label="uniform"
        )
    elif not scale.density_name:
        ax.axhline(0 if scale.deviation else 1, color=ink(0.6), lw=0.8, ls=":")


def _draw_lines(ax: Axes, run_data: RunData, chosen: list[int], scale: Scale) -> None:
    """Draw the profiles of the snapshots ``chosen``, with axes and legend."""
    for k, shade in zip(chosen, shades(len(chosen)), strict=True):
        heights, edges = scale.heights(run_data.ratio(k)), coordinate(run_data).edges
        ax.stairs(heights, edges, baseline=None, color=shade, lw=1.3, label=format_time(run_data.times[k]))
    set_density_axis(ax, run_data, scale)
    scale.draw_on(ax.yaxis, scale.label)
    if scale.is_uniform:
        annotate(ax, f"uniform, within {UNIFORM_TEXT}", height=0.75)
    if len(chosen) == 1:
        ax.set_title(f"profile at {run_data.moment(run_data.times[chosen[0]])}")
        return
    ax.set_title("profiles")
    ax.legend(title=run_data.time_label, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
