"""Tokens on the sphere: dots on equal-area maps with rings around clusters; many tokens as a density."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.axes import Floats, inches_across
from meanfield.figures.captions import wrap_text
from meanfield.figures.color_scale import color_map
from meanfield.figures.particles.tokens import (
    MAX_DOTS,
    as_density,
    directions,
    tokens_of,
)
from meanfield.figures.run_data import RunData, describe_snapshot
from meanfield.figures.sphere_map import (
    HALF_HEIGHT,
    HALF_WIDTH,
    RINGS,
    draw_clusters,
    draw_graticule,
    draw_sphere,
    hammer,
    map_grid,
    maps_across,
    polar_and_azimuth,
    snapshots_on_maps,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PathCollection
    from matplotlib.figure import SubFigure

DOT, DOT_AREAS = 2500.0, (1.5, 40.0)  # points²: total area of all dots, and smallest and largest area of one


def draw_maps(figure: SubFigure, run_data: RunData) -> None:
    """Draw tokens on equal-area maps of the sphere, at up to six times; many tokens as a density."""
    if len(tokens_of(run_data).weights) > MAX_DOTS:
        draw_sphere(figure, as_density(run_data))
        return
    chosen = snapshots_on_maps(figure, run_data)
    axes = figure.subplots(*map_grid(len(chosen), maps_across(figure)), squeeze=False)
    for ax in axes.flat[len(chosen) :]:
        ax.remove()
    for ax, k in zip(axes.flat, chosen, strict=False):
        draw_ground(ax)
        draw_dots(ax, run_data).set_offsets(map_places(directions(run_data, k)))
        draw_graticule(ax)
        draw_clusters(ax, run_data, k)
        ax.set_title(describe_snapshot(run_data, k))
    figure.supxlabel(wrap_text(caption(run_data, len(chosen)), inches_across(figure)), fontsize="medium")


def caption(run_data: RunData, maps: int) -> str:
    """Return the caption of ``maps`` maps of tokens on the sphere."""
    rings = "" if run_data.clusters is None else RINGS
    shown = "an equal-area map" if maps == 1 else "equal-area maps"
    return f"tokens on {shown}; azimuth 0 at the center, lines every 30°{rings}"


def draw_ground(ax: Axes) -> None:
    """Draw the background of a map of tokens in the darkest color of densities."""
    from matplotlib.patches import Ellipse

    size = {"width": 2 * HALF_WIDTH, "height": 2 * HALF_HEIGHT}
    ax.add_patch(Ellipse((0, 0), **size, facecolor=color_map()(0.0), edgecolor="none", zorder=0))
    ax.set_aspect("equal")


def draw_dots(ax: Axes, run_data: RunData) -> PathCollection:
    """Draw a dot for each token on a map, with area ∝ mass, and return the dots.

    Their positions are set later.
    """
    weights = tokens_of(run_data).weights
    areas = np.clip(DOT * weights / weights.sum(), *DOT_AREAS)
    nowhere, color = np.full(len(weights), np.nan), color_map()(0.95)
    return ax.scatter(nowhere, nowhere, s=areas, color=color, alpha=0.8, linewidths=0, rasterized=True)


def map_places(points: Floats) -> Floats:
    """Return the positions (n, 2) on the equal-area map of unit vectors (n, 3)."""
    return np.column_stack(hammer(*polar_and_azimuth(points)))
