"""Panels of compared states: superposed lines or histograms, or maps of the sphere side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.analysis.comparison import Comparison
from meanfield.analysis.comparison_text import SIDES
from meanfield.analysis.measure import run_edges
from meanfield.analysis.text import format_time
from meanfield.domains.table import kind_of
from meanfield.figures.axes import label_linear, panels_across, row_of_axes
from meanfield.figures.color_scale import Scale, color_map
from meanfield.figures.coordinate import fraction_of_pi
from meanfield.figures.panels.cut import emptiest
from meanfield.figures.particles.sphere import draw_ground, map_places
from meanfield.figures.run_data import BLACK, BLUE
from meanfield.figures.sphere_map import draw_graticule, draw_map, pixel_cells, pixel_columns
from solvers.io.run_file import Run
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

BINS = 48  # of a histogram of particles
TAIL_MASS = 1e-3  # fraction of the mass on either side of a line that the axis may omit
DOTS = 20_000  # largest number of particles on a map; the first ones are drawn
_STYLES: tuple[dict[str, Any], ...] = ({"color": BLACK, "lw": 1.4}, {"color": BLUE, "lw": 1.4, "ls": (0, (4, 1.5))})


def draw_lines(figure: SubFigure, comparison: Comparison, rows: list[int]) -> None:
    """Draw the densities or histograms of compared runs in one dimension, one panel for each of ``rows``.

    In a narrow figure the panels are below each other, as many of the last ``rows`` as fit.
    """
    axes = row_of_axes(figure, len(rows))
    cut = _cut(comparison, rows) if comparison.space == "S1" else 0.0
    for ax, row in zip(axes, rows[-len(axes) :], strict=True):
        snapshots = _snapshots(comparison, row)
        span = _span([_profile(run, k) for run, k in snapshots], comparison.space, cut)
        for (run, k), side, style in zip(snapshots, SIDES, _STYLES, strict=False):
            edges, density = _histogram(run, k, span) if kind_of(run.manifold).has_tokens else _profile(run, k, cut)
            ax.stairs(density, edges, baseline=None, label=side, **style)
        ax.set_title(f"t = {format_time(comparison.times[row])}")
        _draw_axes(ax, comparison.space, span)
    axes[0].set_ylabel("density" if comparison.space == "R1" else "density, per radian")
    if len(comparison.runs) > 1:
        axes[0].legend(frameon=False)


def _draw_axes(ax: Axes, space: str, span: tuple[float, float]) -> None:
    """Set the axes of a panel of compared states."""
    label_linear(ax.yaxis, "", ax.get_ylim()[1])
    ax.set(xlim=span, ylim=(0, None), xlabel="token x" if space == "R1" else "polar angle θ (rad)")
    if space == "S1":
        ax.set_xlabel("angle φ (rad)")
    if space != "R1":
        quarters = np.linspace(*span, 3) / np.pi * 4
        ax.set_xticks(np.linspace(*span, 3), [fraction_of_pi(round(n), 4) for n in quarters])


def _cut(comparison: Comparison, rows: list[int]) -> float:
    """Return the angle at which the axis of the circle begins: where all states shown have the least mass."""
    shown = [place for row in rows for place in _snapshots(comparison, row)]
    around = (0.0, 2 * np.pi)
    return emptiest(
        _histogram(run, k, around)[1] if kind_of(run.manifold).has_tokens else run.density(k) for run, k in shown
    )


def maps_height(comparison: Comparison, rows: list[int]) -> float:
    """Return the height in inches of the maps of compared states on a page ten inches wide."""
    return len(comparison.runs) * (8.6 / max(len(rows), 2) / 2 + 0.35) + 0.2


def draw_maps(figure: SubFigure, comparison: Comparison, rows: list[int]) -> None:
    """Draw compared states as equal-area maps, a row for each run: densities on one scale, tokens as dots.

    A narrow figure has the last state only.
    """
    rows = rows if panels_across(figure) > 1 else rows[-1:]
    axes = figure.subplots(len(comparison.runs), len(rows), squeeze=False)
    table = [_snapshots(comparison, row) for row in rows]
    densities = {
        at: 4 * np.pi * at[0].density(at[1])
        for place in table
        for at in place
        if not kind_of(at[0].manifold).has_tokens
    }
    scale = Scale.of(list(densities.values())) if densities else None
    image = None
    for column, place in enumerate(table):
        for line, (run, k) in enumerate(place):
            ax = axes[line, column]
            if scale is not None and (run, k) in densities:
                cell = pixel_cells(run.ring_cells, pixel_columns(run.ring_cells))
                image = draw_map(ax, cell, densities[run, k], scale)
            else:
                _draw_particles(ax, run, k)
            draw_graticule(ax)
            side = f"{SIDES[line]} · " if len(comparison.runs) > 1 else ""
            ax.set_title(f"{side}t = {format_time(run.times[k])}")
    if image is not None and scale is not None:
        drawn = [ax for line, ax in np.ndenumerate(axes)]
        extend = scale.extend(list(densities.values()))
        bar = figure.colorbar(image, ax=drawn, extend=extend, shrink=0.9, aspect=30)
        scale.draw_on(bar.ax.yaxis, scale.label)


def _snapshots(comparison: Comparison, row: int) -> list[tuple[Run, int]]:
    """Return each run of a comparison with the number of its snapshot that the given row compares."""
    return list(zip(comparison.runs, comparison.pairs[row], strict=False))


def _draw_particles(ax: Axes, run: Run, k: int) -> None:
    """Draw tokens on a map as dots, on a background in the darkest color of the scale."""
    draw_ground(ax)
    points = unit_vectors(run.positions(k)[:DOTS])
    area = float(np.clip(4000 / len(points), 0.4, 12))
    x, y = map_places(points).T
    ax.scatter(x, y, s=area, color=color_map()(0.95), alpha=0.7, linewidths=0, rasterized=True)


def _profile(run: Run, k: int, cut: float = 0.0) -> tuple[Floats, Floats]:
    """Return the cell edges and the density of a run in one dimension; on the circle the edge nearest ``cut`` is first.

    For tokens, return the sorted positions and their weights.
    """
    if kind_of(run.manifold).has_tokens:
        places = _places(run, k)
        order = np.argsort(places)
        return places[order], run.weights[order]
    density = run.density(k)
    shift = round(cut * len(density) / (2 * np.pi))
    return run_edges(run) + shift * 2 * np.pi / len(density), np.roll(density, -shift)


def _places(run: Run, k: int) -> Floats:
    """Return angles (n,) of tokens in the plane, from 0 to 2π, or positions (n,) on the line."""
    points = run.positions(k)
    return np.mod(np.arctan2(points[:, 1], points[:, 0]), 2 * np.pi) if points.shape[1] == 2 else points[:, 0]


def _span(profiles: list[tuple[Floats, Floats]], space: str, cut: float = 0.0) -> tuple[float, float]:
    """Return the limits of the axis: the whole circle or meridian, or the part of a line with nearly all mass."""
    if space != "R1":
        return cut, cut + (2 if space == "S1" else 1) * np.pi
    lows, highs = [], []
    for places, values in profiles:
        masses = values * np.diff(places) if len(places) > len(values) else values
        first, last = np.searchsorted(np.cumsum(masses) / masses.sum(), (TAIL_MASS, 1 - TAIL_MASS))
        lows.append(float(places[first]))
        highs.append(float(places[min(last + 1, len(places) - 1)]))
    low, high = min(lows), max(highs)
    room = 0.05 * (high - low) or 1.0
    return low - room, high + room


def _histogram(run: Run, k: int, span: tuple[float, float]) -> tuple[Floats, Floats]:
    """Return the edges and the density of a histogram of tokens with BINS bins over the interval ``span``."""
    places = _places(run, k)
    if run.positions(k).shape[1] == 2:
        places = np.mod(places - span[0], 2 * np.pi) + span[0]
    counts, edges = np.histogram(places, BINS, span, weights=run.weights, density=True)
    return edges, counts
