"""The tokens of a run of particles: over time as lines, at chosen times as dots; on the sphere as maps.

Directions are drawn, and radii beside them where tokens have any. Too many tokens for that are drawn as a density.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis.text import format_time
from meanfield.figures.axes import label_linear, positive, set_decades, set_time
from meanfield.figures.free_radius import HELD, PLANE_HEIGHT, PLANES
from meanfield.figures.particles.circle import draw_angles, draw_strips
from meanfield.figures.particles.projected import draw_pairs, draw_projections, has_pairs, projections_height
from meanfield.figures.particles.sphere import draw_maps, maps_height
from meanfield.figures.particles.tokens import (
    MOST_LINES,
    as_density,
    dot_areas,
    gathered,
    token_quantiles,
    token_radii,
    tokens_of,
)
from meanfield.figures.profiles import columns, draw_profiles, profiles_height
from meanfield.figures.run_data import BLUE, ORANGE, SKY, Story, snapshots_chosen
from meanfield.figures.sequence import FIELD_HEIGHT, draw_field

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

OVER_TIME_HEIGHT = 3.0
PARTS = {0.05: SKY, 0.5: BLUE, 0.95: ORANGE}  # of the tokens, and the colours of their radii
Draw = Callable[["SubFigure", Story], None]
Panel = Callable[["Axes", Story], None]


def particles_height(story: Story) -> float:
    """Inches that the pictures need."""
    return sum(height for height, _ in _rows(story))


def draw_particles(figure: SubFigure, story: Story) -> None:
    """Fill ``figure`` with the tokens, and with their radii where they have any."""
    rows = _rows(story)
    parts = figure.subfigures(len(rows), 1, height_ratios=[height for height, _ in rows], squeeze=False)[:, 0]
    for part, (_, draw) in zip(parts, rows, strict=True):
        draw(part, story)


def _rows(story: Story) -> list[tuple[float, Draw]]:
    """Heights, and what is drawn in each row."""
    moves, few = len(columns(story)) > 1, len(tokens_of(story).weights) <= MOST_LINES
    field = [(FIELD_HEIGHT, draw_field)] if tokens_of(story).length is not None and moves else []
    return field + _rows_of_tokens(story, moves, few)


def _rows_of_tokens(story: Story, moves: bool, few: bool) -> list[tuple[float, Draw]]:
    radii: list[Panel] = [draw_radii] if tokens_of(story).has_radius and moves else []
    if story.dimension == 3:
        return [(maps_height(story), draw_maps), *_over_time(radii)]
    if story.dimension == 2:
        angles: list[Panel] = [draw_angles] if moves else []
        few_rows = _over_time(angles + (radii or [draw_strips]))
        rows = few_rows if few else [(profiles_height(story), _draw_density), *_over_time(radii)]
        return rows + ([(PLANE_HEIGHT, _draw_planes)] if tokens_of(story).has_radius else [])
    pairs: list[Panel] = [draw_pairs] if has_pairs(story) else []
    return [*_over_time(pairs + radii), (projections_height(story), draw_projections)]


def _over_time(panels: list[Panel]) -> list[tuple[float, Draw]]:
    """One row of panels side by side, none where there are none."""

    def draw(figure: SubFigure, story: Story) -> None:
        for ax, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
            panel(ax, story)

    return [(OVER_TIME_HEIGHT, draw)] if panels else []


def _draw_density(figure: SubFigure, story: Story) -> None:
    draw_profiles(figure, as_density(story))


def draw_radii(ax: Axes, story: Story) -> None:
    """The radius of each token over time, or of many within which 5, 50 and 95% of the mass are."""
    shown = columns(story)
    times = story.times[shown]
    if len(tokens_of(story).weights) <= MOST_LINES:
        radii = np.stack([token_radii(story, k) for k in shown])
        ax.plot(times, positive(radii), color=BLUE, lw=0.8, alpha=0.6)
    else:
        radii = token_quantiles(story, shown, np.array(list(PARTS)))
        for values, (part, color) in zip(radii.T, PARTS.items(), strict=True):
            ax.plot(times, positive(values), color=color, lw=1.4, label=f"{part:.0%}")
        ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    set_decades(ax, radii)
    ax.set(title="radius of each token" if not ax.get_legend() else "radius within which tokens are", ylabel="radius r")
    set_time(ax, "time t", (times[0], times[-1]), log=story.log_time)


def _draw_planes(figure: SubFigure, story: Story) -> None:
    """The tokens themselves, x = rθ, at a few times."""
    chosen = snapshots_chosen(story, PLANES)
    axes = figure.subplots(1, PLANES, squeeze=False)[0]
    for ax in axes[len(chosen) :]:
        ax.set_axis_off()
    for ax, k in zip(axes, chosen, strict=False):
        reach = 1.15 * float(token_quantiles(story, [k], np.array([HELD]))[0, 0]) or 1.0
        points, masses = gathered(tokens_of(story).positions(k), tokens_of(story).weights, 2 * reach)
        ax.scatter(*points.T, s=dot_areas(masses), color=BLUE, alpha=0.7, linewidths=0, rasterized=True)
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        ax.set_title(f"tokens at t = {format_time(story.times[k])}")
        label_linear(ax.xaxis, "$x_1$", reach)
        label_linear(ax.yaxis, "$x_2$" if k == chosen[0] else "", reach)
        ax.locator_params(nbins=3)
