"""Pictures of a density in successive frames: map, profile and history, directions and radii."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.color_scale import Scale, scale_of
from meanfield.figures.free_radius import directions_of, radii_of
from meanfield.figures.profiles import coordinate, set_density_axis, shown_snapshots, space_time
from meanfield.figures.run_data import RunData
from meanfield.figures.sphere_map import HALF_HEIGHT, HALF_WIDTH, RINGS, draw_clusters, draw_graticule, pixel_cells
from meanfield.movie.page import (
    HEIGHT,
    LINES,
    WIDTH,
    Moving,
    cover_later_times,
    draw_scale,
    join_pictures,
    label_density,
    place,
    shades,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAP_WIDTH, MARGIN = 700, 4  # pixels across the map of the sphere, equal to pixels of the frame, and margin
SMALL_MAP_WIDTH = 430  # beside the distribution of the radius
MAP_LEFT, MAP_TOP = 8, 102
PROFILE_TOP, PROFILE_HEIGHT = 122, 310


def draw_sphere(figure: Figure, run_data: RunData, width: int = MAP_WIDTH) -> Moving:
    """Draw a density on an equal-area map ``width`` pixels wide for a movie, with rings around clusters.

    A pixel of the map is a pixel of the frame. Return the function that draws snapshot k, and the artists that change.
    """
    scale, top = scale_of(run_data, range(len(run_data.times))), MAP_TOP + (MAP_WIDTH - width) // 4
    ax = place(figure, MAP_LEFT, top, width + 2 * MARGIN, width // 2 + 2 * MARGIN)
    cell = pixel_cells(run_data.ring_cells, width)
    color, norm = shades(), scale.norm
    picture = np.zeros((*cell.shape, 4), dtype=np.uint8)
    extent = (-HALF_WIDTH, HALF_WIDTH, -HALF_HEIGHT, HALF_HEIGHT)
    image = ax.imshow(picture, extent=extent, interpolation="nearest", aspect="auto")
    draw_graticule(ax)
    margin = 1 + 2 * MARGIN / width
    ax.set(xlim=(-HALF_WIDTH * margin, HALF_WIDTH * margin))
    margin = 1 + 4 * MARGIN / width
    ax.set(ylim=(-HALF_HEIGHT * margin, HALF_HEIGHT * margin))
    draw_scale(figure, scale, MAP_LEFT + width + 2 * MARGIN + 4, top + 45, width // 2 - 80)
    _caption(figure, run_data, MAP_LEFT + width / 2, top + width / 2 + 22, whole=width == MAP_WIDTH)
    constant = len(ax.lines)

    def update(k: int) -> None:
        """Draw the density of snapshot k."""
        ratio = run_data.ratio(k)
        colors = color(norm(scale.values(ratio)), bytes=True)  # colors of cells, which are fewer than pixels
        image.set_data(np.where(cell[..., None] < 0, picture, colors[cell]))
        for artist in [*ax.lines[constant:], *ax.texts]:
            artist.remove()
        draw_clusters(ax, run_data, k)

    return update, [image, *ax.lines]


def _caption(figure: Figure, run_data: RunData, x: float, y: float, *, whole: bool) -> None:
    """Write the caption of the map of a movie at (x, y) in pixels; ``whole`` for a map across the page."""
    marks = "" if run_data.clusters is None else RINGS
    shown = f"equal-area map; azimuth 0 at the center, lines every 30°{marks}"
    text = shown if whole else f"directions, on an {shown}".replace("; ", "\n")
    figure.text(x / WIDTH, 1 - y / HEIGHT, text, ha="center", va="center" if whole else "top", fontsize=9)


def draw_profile_and_history(figure: Figure, run_data: RunData) -> Moving:
    """Draw a density in one dimension for a movie: its profile on the left, and on the right its past over time.

    Return the function that draws snapshot k, and the artists that change.
    """
    scale = scale_of(run_data, range(len(run_data.times)))
    show, profile = _draw_profile(place(figure, 66, PROFILE_TOP, 290, PROFILE_HEIGHT), run_data, scale, "profile: ")
    uncover, history = _draw_history(place(figure, 430, PROFILE_TOP, 262, PROFILE_HEIGHT), run_data, scale)
    draw_scale(figure, scale, 720, PROFILE_TOP, PROFILE_HEIGHT)
    return join_pictures((show, profile), (uncover, history))


def draw_directions_and_radii(figure: Figure, run_data: RunData) -> Moving:
    """Draw a density over direction and radius r for a movie: directions on the left, log r on the right.

    Return the function that draws snapshot k, and the artists that change.
    """
    directions, radii = directions_of(run_data), radii_of(run_data)
    if directions.kind.shows_rings:
        left = draw_sphere(figure, directions, SMALL_MAP_WIDTH)
        ax = place(figure, 560, PROFILE_TOP, 220, PROFILE_HEIGHT)
    else:
        scale = scale_of(directions, range(len(run_data.times)))
        left = _draw_profile(place(figure, 66, PROFILE_TOP, 300, PROFILE_HEIGHT), directions, scale, "directions: ")
        ax = place(figure, 460, PROFILE_TOP, 300, PROFILE_HEIGHT)
    return join_pictures(left, _draw_profile(ax, radii, scale_of(radii, range(len(run_data.times))), ""))


def _draw_profile(ax: Axes, run_data: RunData, scale: Scale, title: str) -> Moving:
    """Draw the profile of a density, and return the function that draws snapshot k, and the artist that changes."""
    edges = coordinate(run_data).edges
    profile = ax.stairs(np.ones(len(edges) - 1), edges, baseline=None, color=LINES[0], lw=1.5)
    set_density_axis(ax, run_data, scale)
    label_density(ax, scale, title + scale.label)

    def update(k: int) -> None:
        """Draw the density of snapshot k."""
        profile.set_data(scale.heights(run_data.ratio(k)))

    return update, [profile]


def _draw_history(ax: Axes, run_data: RunData, scale: Scale) -> Moving:
    """Draw a density over time and its coordinate, of which a movie shows the times up to the current one.

    Nothing is drawn for fewer than two snapshots. Return the function that draws snapshot k, and the artists that
    change.
    """
    shown = shown_snapshots(run_data)
    ax.set(xlabel=run_data.time_label, title="history")
    coordinate(run_data).draw_on(ax.yaxis)
    if len(shown) < 2:
        return lambda k: None, []
    ends, edges, picture = space_time(run_data, shown)
    ax.pcolormesh(ends, edges, scale.values(picture), norm=scale.norm, cmap=shades(), rasterized=True)
    if run_data.log_time:
        ax.set_xscale("log")
    ax.set_xlim(ends[0], ends[-1])
    return cover_later_times(ax, run_data.times, float(ends[0]), float(ends[-1]))
