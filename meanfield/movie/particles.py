"""Pictures of particles in successive frames: on the circle, on a map of the sphere, or projected."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from meanfield.domains.domain import load
from meanfield.figures.axes import Floats
from meanfield.figures.particles.circle import draw_angles
from meanfield.figures.particles.projected import caption as axes_in_words
from meanfield.figures.particles.projected import draw_pairs_picture, has_pairs, pair_shares, reach_of, set_reach
from meanfield.figures.particles.sphere import (
    caption,
    draw_dots,
    draw_ground,
    map_places,
)
from meanfield.figures.particles.tokens import (
    MAX_DOTS,
    MAX_LINES,
    as_density,
    directions,
    dot_areas,
    merge_points,
    principal_axes,
    tokens_of,
)
from meanfield.figures.profiles import shown_snapshots
from meanfield.figures.run_data import RunData
from meanfield.figures.sphere_map import draw_clusters, draw_graticule
from meanfield.movie.page import HEIGHT, LINES, WIDTH, Moving, cover_later_times, join_pictures, place

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEFT, TOP, SIDE = 66, 122, 310  # pixels of a square picture
LOWER_SIDE = 285  # with a line of text below
RIGHT, RIGHT_WIDTH = 460, 300  # the panel on the right
MAP_BOX = (8, 104, 780, 374)


def draw_tokens(figure: Figure, run_data: RunData) -> Moving:
    """Draw tokens as dots on the page of a movie; large numbers on a circle or sphere are drawn as a density.

    Return the function that draws snapshot k, and the artists that change.
    """
    dots = {2: _draw_circle, 3: _draw_map}.get(run_data.dimension or 0, _draw_projection)
    if run_data.dimension in (2, 3) and len(tokens_of(run_data).weights) > MAX_DOTS:
        density = as_density(run_data)
        moving: Moving = load(density.kind.movie)(figure, density)
        return moving
    return dots(figure, run_data)


def _draw_circle(figure: Figure, run_data: RunData) -> Moving:
    """Draw tokens on a circle for a movie, with coinciding ones as one dot.

    For few tokens the angles over time are drawn on the right. Return the function that draws snapshot k, and the
    artists that change.
    """
    few = len(tokens_of(run_data).weights) <= MAX_LINES and len(shown_snapshots(run_data)) > 1
    ax = place(figure, LEFT if few else (WIDTH - SIDE) // 2, TOP, SIDE, SIDE)
    full_circle = np.linspace(0, 2 * np.pi, 361)
    ax.plot(np.cos(full_circle), np.sin(full_circle), color="0.8", lw=1, zorder=0)
    ax.set(xlim=(-1.15, 1.15), ylim=(-1.15, 1.15), title="tokens; area: mass")
    ax.set_axis_off()
    shown = _moving_dots(ax, run_data, lambda k: directions(run_data, k), 2.3)
    if not few:
        return shown
    ax = place(figure, RIGHT, TOP, RIGHT_WIDTH, SIDE)
    draw_angles(ax, run_data)
    ax.set_title("history")
    times = run_data.times[shown_snapshots(run_data)]
    return join_pictures(shown, cover_later_times(ax, run_data.times, float(times[0]), float(times[-1])))


def _draw_map(figure: Figure, run_data: RunData) -> Moving:
    """Draw tokens as dots on an equal-area map of the sphere for a movie, with rings around clusters.

    Return the function that draws snapshot k, and the artists that change.
    """
    ax = place(figure, *MAP_BOX)
    draw_ground(ax)
    dots = draw_dots(ax, run_data)
    draw_graticule(ax)
    left, top, width, height = MAP_BOX
    figure.text(
        (left + width / 2) / WIDTH, 1 - (top + height + 8) / HEIGHT, caption(run_data, 1), ha="center", fontsize=9
    )
    constant = len(ax.lines)

    def update(k: int) -> None:
        """Draw the tokens of snapshot k."""
        dots.set_offsets(map_places(directions(run_data, k)))
        for artist in [*ax.lines[constant:], *ax.texts]:
            artist.remove()
        draw_clusters(ax, run_data, k)

    return update, [dots, *ax.lines]


def _draw_projection(figure: Figure, run_data: RunData) -> Moving:
    """Draw directions of tokens on two principal axes for a movie.

    The angles between tokens over time are drawn beside them if recorded. Return the function that draws snapshot k,
    and the artists that change.
    """
    spread, axes, share = principal_axes(run_data)
    recorded = has_pairs(run_data)
    ax = place(figure, LEFT if recorded else (WIDTH - LOWER_SIDE) // 2, TOP, LOWER_SIDE, LOWER_SIDE)
    set_reach(ax, reach := reach_of(directions(run_data, k) @ axes for k in range(len(run_data.times))))
    ax.set(xlabel="first axis", ylabel="second axis")
    text = axes_in_words(run_data, spread, share)
    figure.text(0.5, 1 - (TOP + LOWER_SIDE + 58) / HEIGHT, text, ha="center", fontsize=9)
    shown = _moving_dots(ax, run_data, lambda k: directions(run_data, k) @ axes, 2 * reach)
    if not recorded:
        return shown
    ax = place(figure, RIGHT, TOP, RIGHT_WIDTH, LOWER_SIDE)
    draw_pairs_picture(ax, run_data)
    ax.set_title("history of angles between tokens")
    times, _ = pair_shares(run_data)
    return join_pictures(shown, cover_later_times(ax, run_data.times, float(times[0]), float(times[-1])))


def _moving_dots(ax: Axes, run_data: RunData, positions: Callable[[int], Floats], size: float) -> Moving:
    """Draw dots at ``positions(k)`` (n, 2) for each snapshot k of a movie, with coinciding ones merged.

    ``size`` is the width of the picture in the units of the positions. Return the function that draws snapshot k, and
    the dots.
    """
    dots = ax.scatter([], [], color=LINES[0], alpha=0.7, linewidths=0)

    def update(k: int) -> None:
        """Draw the tokens of snapshot k."""
        points, masses = merge_points(positions(k), tokens_of(run_data).weights, size)
        dots.set_offsets(points)
        dots.set_sizes(dot_areas(masses))

    return update, [dots]
