"""Tokens of a run of particles: lines over time, dots at selected times, and maps on the sphere.

Directions are drawn, and radii if tokens have them. Large numbers of tokens are drawn as a density.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.axes import label_linear, positive, set_decades, set_time
from meanfield.figures.free_radius import PLANE_HEIGHT, PLANES, SHOWN_MASS, plane_reaches
from meanfield.figures.panels.curves import draw_prediction
from meanfield.figures.particles.circle import draw_angles, draw_strips
from meanfield.figures.particles.projected import draw_pairs, draw_projections, has_pairs, projections_height
from meanfield.figures.particles.sphere import draw_maps
from meanfield.figures.particles.tokens import (
    MAX_LINES,
    as_density,
    directions,
    dot_areas,
    merge_points,
    token_quantiles,
    token_radii,
    tokens_of,
)
from meanfield.figures.profiles import draw_profiles, profiles_height, shown_snapshots
from meanfield.figures.run_data import BLUE, ORANGE, SKY, RunData, snapshots_chosen
from meanfield.figures.sequence import FIELD_HEIGHT, draw_field
from meanfield.figures.sphere_map import sphere_height

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

OVER_TIME_HEIGHT = 3.0
PARTS = {0.05: SKY, 0.5: BLUE, 0.95: ORANGE}  # quantiles of the radius, and their colors
Draw = Callable[["SubFigure", RunData], None]
Panel = Callable[["Axes", RunData], None]


def particles_height(run_data: RunData) -> float:
    """Return the height in inches of the panels of tokens."""
    return sum(height for height, _ in _rows(run_data))


def draw_particles(figure: SubFigure, run_data: RunData) -> None:
    """Draw the panels of tokens of a run, with their radii if these are free."""
    rows = _rows(run_data)
    parts = figure.subfigures(len(rows), 1, height_ratios=[height for height, _ in rows], squeeze=False)[:, 0]
    for part, (_, draw) in zip(parts, rows, strict=True):
        draw(part, run_data)


def _rows(run_data: RunData) -> list[tuple[float, Draw]]:
    """Return the height and the drawing function of each row of panels of tokens."""
    several_times, few = len(shown_snapshots(run_data)) > 1, len(tokens_of(run_data).weights) <= MAX_LINES
    field = [(FIELD_HEIGHT, draw_field)] if tokens_of(run_data).length is not None and several_times else []
    return field + _rows_of_tokens(run_data, several_times, few)


def _rows_of_tokens(run_data: RunData, several_times: bool, few: bool) -> list[tuple[float, Draw]]:
    """Return the height and the drawing function of each row of panels for the dimension of the tokens.

    several_times   whether several snapshots are drawn
    few             whether tokens are few enough for a line each
    """
    radii: list[Panel] = [draw_radii] if tokens_of(run_data).has_radius and several_times else []
    if run_data.dimension == 1:
        return _panel_row([draw_positions])
    if run_data.dimension == 3:
        return [(sphere_height(run_data), draw_maps), *_panel_row(radii)]
    if run_data.dimension == 2:
        angles: list[Panel] = [draw_angles] if several_times else []
        few_rows = _panel_row(angles + (radii or [draw_strips]))
        rows = few_rows if few else [(profiles_height(run_data), _draw_density), *_panel_row(radii)]
        return rows + ([(PLANE_HEIGHT, _draw_planes)] if tokens_of(run_data).has_radius else [])
    pairs: list[Panel] = [draw_pairs] if has_pairs(run_data) else []
    return [*_panel_row(pairs + radii), (projections_height(run_data), draw_projections)]


def draw_positions(ax: Axes, run_data: RunData) -> None:
    """Draw tokens on the line over time."""
    shown = shown_snapshots(run_data)
    positions = np.array([directions(run_data, k)[:, 0] * token_radii(run_data, k) for k in shown])
    ax.plot(
        run_data.times[shown], positions, color=BLUE, alpha=0.6, linewidth=1.0, marker="" if len(shown) > 1 else "o"
    )
    ax.set(title="tokens over time", ylabel="x")
    set_time(ax, run_data.time_label, (run_data.times[shown[0]], run_data.times[shown[-1]]), log=run_data.log_time)


def _panel_row(panels: list[Panel]) -> list[tuple[float, Draw]]:
    """Return a list with one row of panels side by side, empty if there are no panels."""

    def draw(figure: SubFigure, run_data: RunData) -> None:
        for ax, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            panel(ax, run_data)

    return [(OVER_TIME_HEIGHT, draw)] if panels else []


def _draw_density(figure: SubFigure, run_data: RunData) -> None:
    """Draw many tokens on the circle as a density."""
    draw_profiles(figure, as_density(run_data))


def draw_radii(ax: Axes, run_data: RunData) -> None:
    """Draw the radius of each token over time or, for many tokens, its 5, 50 and 95% quantiles."""
    shown = shown_snapshots(run_data)
    times = run_data.times[shown]
    if len(tokens_of(run_data).weights) <= MAX_LINES:
        radii = np.stack([token_radii(run_data, k) for k in shown])
        ax.plot(times, positive(radii), color=BLUE, lw=0.8, alpha=0.6)
        ax.set_title("radius of each token")
    else:
        radii = token_quantiles(run_data, shown, np.array(list(PARTS)))
        for values, (part, color) in zip(radii.T, PARTS.items(), strict=True):
            ax.plot(times, positive(values), color=color, lw=1.4, label=f"{part:.0%}")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
        ax.set_title("radius quantiles of the tokens")
    ax.set_ylabel("radius r")
    set_decades(ax, radii)
    draw_prediction(ax, run_data, "radius")
    set_time(ax, run_data.time_label, (times[0], times[-1]), log=run_data.log_time)


def _draw_planes(figure: SubFigure, run_data: RunData) -> None:
    """Draw the tokens x = rθ in the plane at several times."""
    chosen = snapshots_chosen(run_data, PLANES)
    axes = figure.subplots(1, PLANES, squeeze=False)[0]
    for ax in axes[len(chosen) :]:
        ax.set_axis_off()
    reaches = plane_reaches(token_quantiles(run_data, chosen, np.array([SHOWN_MASS]))[:, 0])
    for ax, k, reach in zip(axes, chosen, reaches, strict=False):
        points, masses = merge_points(tokens_of(run_data).positions(k), tokens_of(run_data).weights, 2 * reach)
        ax.scatter(*points.T, s=dot_areas(masses), color=BLUE, alpha=0.7, linewidths=0, rasterized=True)
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        ax.set_title(f"tokens at {run_data.moment(run_data.times[k])}")
        label_linear(ax.xaxis, "$x_1$", reach)
        label_linear(ax.yaxis, "$x_2$" if k == chosen[0] else "", reach)
        ax.locator_params(nbins=3)
