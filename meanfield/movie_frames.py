"""Frames of a movie: a page laid out once in pixels, on which only what a snapshot changes is set anew.

Heading, map or profile, and a time line keep their places from frame to frame, and all frames share one scale.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from meanfield.plot_circle import COLUMNS, ROWS, mark_angles, merged, time_edges
from meanfield.plot_sphere import (
    HALF_HEIGHT,
    HALF_WIDTH,
    PEAK,
    draw_graticule,
    draw_peaks,
    pixel_cells,
)
from meanfield.plot_story import BLUE, COLOR_MAP, VERMILION, Scale, Story, format_time
from meanfield.plots import heading

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

WIDTH, HEIGHT, DPI = 800, 620, 100  # pixels, even in both directions as video codecs want them
SHADES = 160  # colours of the map: they fit the 256 of a GIF together with text and lines
MAP_WIDTH, MARGIN = 700, 4  # pixels across the map of the sphere, one for each pixel of the page, and around it
MAP_LEFT, MAP_TOP = 8, 102
LINES = (BLUE, VERMILION)  # the curve of the time line, and what marks the present
_Update = Callable[[int], None]
_Moving = tuple[_Update, "list[Artist]"]  # what sets the artists of snapshot k, and those that are drawn anew


class Frames:
    """The page of a movie: ``show(k)`` puts snapshot k on ``figure``. Draw it in plots.STYLE, without layout engine.

    Raises solvers.output.FileError where a snapshot cannot be read.
    """

    def __init__(self, story: Story, figure: Figure) -> None:
        figure.set_dpi(DPI)
        figure.set_size_inches(WIDTH / DPI, HEIGHT / DPI)
        # Read twice and not kept: a movie may have more snapshots than fit into memory.
        self.scale = shared_scale(story)
        self._story = story
        y = 1 - 90 / HEIGHT
        self._clock, self._count = (
            figure.text(x / WIDTH, y, "", fontsize=12, weight="bold", va="center") for x in (MAP_LEFT, 180)
        )
        figure.text(0.5, 1 - 8 / HEIGHT, heading(story), ha="center", va="top", fontsize=10, linespacing=1.25)
        draw = {"circle": _draw_circle, "sphere": _draw_sphere}[story.manifold]
        density, moving = draw(figure, story, self.scale)
        time, marker = _draw_time_line(figure, story)
        self._updates = (density, time)
        _freeze(figure, [self._clock, self._count, *moving, *marker])

    def show(self, k: int) -> None:
        """Put snapshot k on the page."""
        time, clusters = self._story.times[k], self._story.clusters_at(self._story.times[k])
        self._clock.set_text(f"t = {format_time(time)}")
        self._count.set_text("" if clusters is None else f"{clusters} cluster{'' if clusters == 1 else 's'}")
        for update in self._updates:
            update(k)


def shared_scale(story: Story) -> Scale:
    """The one scale of all snapshots."""
    ratios = (story.ratio(k) for k in range(len(story.times)))
    return Scale.of([np.array([ratio.min(), ratio.max()]) for ratio in ratios])


def shades() -> Colormap:
    """The colour map of a movie, in ``SHADES`` steps."""
    from matplotlib import colormaps

    return colormaps[COLOR_MAP].resampled(SHADES)


def palette() -> NDArray[np.uint8]:
    """(256, 3) the colours that frames use: the map's, those under white lines, greys, and tints of the curves."""
    from matplotlib.colors import to_rgb

    density = shades()(np.arange(SHADES), bytes=True)[:, :3]
    lined = 0.65 * density[::5] + 0.35 * 255.0
    greys = np.repeat(np.linspace(0, 255, 40).round()[:, None], 3, axis=1)
    strength = np.linspace(1, 0.15, 12)[:, None]
    tints = [255 * (strength * np.array(to_rgb(color)) + 1 - strength) for color in LINES]
    return np.concatenate([density, lined, greys, *tints]).round().astype(np.uint8)


def _freeze(figure: Figure, moving: list[Artist]) -> None:
    """Draw all but ``moving`` for good, as a picture behind it: ticks and text take most of a frame's time."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    parts = [part for ax in figure.axes for part in ax.get_children()] + list(figure.texts)
    constant = [part for part in parts if part.get_visible() and part not in moving]
    for part in moving:
        part.set_visible(False)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    behind = np.array(canvas.buffer_rgba())
    for part in constant:
        part.set_visible(False)
    for part in moving:
        part.set_visible(True)
    figure.figimage(behind, zorder=-1)


def _place(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at a place given in pixels from the top left."""
    ax = figure.add_axes((left / WIDTH, 1 - (top + height) / HEIGHT, width / WIDTH, height / HEIGHT))
    ax.spines["right"].set_visible(False)
    return ax


def _draw_scale(figure: Figure, scale: Scale, top: float, height: float) -> None:
    from matplotlib.cm import ScalarMappable

    ax = _place(figure, MAP_LEFT + MAP_WIDTH + 2 * MARGIN + 4, top, 12, height)
    extend = "min" if not scale.deviation and scale.low <= 1e-2 else "neither"  # where Scale cuts, emptier cells are
    figure.colorbar(ScalarMappable(scale.norm, shades()), cax=ax, extend=extend)
    _label_density(ax, scale)
    ax.set_title(scale.symbol, pad=10)


def _label_density(ax: Axes, scale: Scale) -> None:
    """Two digits, small: at most eight characters have room. Below two decades 2 and 5 are labelled too."""
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:.2g}")
    few = not scale.deviation and scale.high < 100 * scale.low
    ax.yaxis.set_minor_formatter(lambda value, _: f"{value:.2g}" if few and f"{value:e}"[0] in "25" else "")
    ax.tick_params(axis="y", which="both", labelsize=8, pad=2)


def _draw_sphere(figure: Figure, story: Story, scale: Scale) -> _Moving:
    """An equal-area map whose pixels are those of the page, with the clusters ringed."""
    ax = _place(figure, MAP_LEFT, MAP_TOP, MAP_WIDTH + 2 * MARGIN, MAP_WIDTH // 2 + 2 * MARGIN)
    cell = pixel_cells(story.ring_cells, MAP_WIDTH)
    color, norm = shades(), scale.norm
    picture = np.zeros((*cell.shape, 4), dtype=np.uint8)
    extent = (-HALF_WIDTH, HALF_WIDTH, -HALF_HEIGHT, HALF_HEIGHT)
    image = ax.imshow(picture, extent=extent, interpolation="nearest", aspect="auto")
    draw_graticule(ax)
    margin = 1 + 2 * MARGIN / MAP_WIDTH
    ax.set(xlim=(-HALF_WIDTH * margin, HALF_WIDTH * margin))
    margin = 1 + 4 * MARGIN / MAP_WIDTH
    ax.set(ylim=(-HALF_HEIGHT * margin, HALF_HEIGHT * margin))
    _draw_scale(figure, scale, MAP_TOP + 45, MAP_WIDTH // 2 - 80)
    marks = f"; rings: peaks above {PEAK}, with their mass" if scale.high > PEAK else ""
    figure.text(
        (MAP_LEFT + MAP_WIDTH / 2) / WIDTH,
        1 - (MAP_TOP + MAP_WIDTH / 2 + 22) / HEIGHT,
        f"equal-area map; azimuth 0 at the centre, lines every 30°{marks}",
        ha="center",
        va="center",
        fontsize=9,
    )
    constant = len(ax.lines)

    def update(k: int) -> None:
        ratio = story.ratio(k)
        colors = color(norm(scale.values(ratio)), bytes=True)  # of each cell: there are fewer than pixels
        image.set_data(np.where(cell[..., None] < 0, picture, colors[cell]))
        for artist in [*ax.lines[constant:], *ax.texts]:
            artist.remove()
        draw_peaks(ax, story, ratio)

    return update, [image, *ax.lines]


def _draw_circle(figure: Figure, story: Story, scale: Scale) -> _Moving:
    """The profile on the left; on the right its history, uncovered as time goes on."""
    top, height = MAP_TOP + 20, 310
    ax = _place(figure, 66, top, 290, height)
    edges = np.linspace(0, 2 * np.pi, int(story.ring_cells[0]) + 1)
    profile = ax.stairs(np.ones(len(edges) - 1), edges, baseline=None, color=LINES[0], lw=1.5)
    ax.axhline(0 if scale.deviation else 1, color="0.6", lw=0.8, ls=":")
    ax.set(xlabel="angle φ (rad)", title=f"profile: {scale.label}", xlim=(0, 2 * np.pi))
    if scale.deviation:
        ax.set(ylim=(1.1 * scale.low, 1.1 * scale.high))
    else:
        ax.set(yscale="log", ylim=(scale.low, 1.5 * scale.high))
    _label_density(ax, scale)
    mark_angles(ax.xaxis)
    uncover, history = _draw_history(_place(figure, 420, top, 270, height), story, scale)
    _draw_scale(figure, scale, top, height)

    def update(k: int) -> None:
        ratio = story.ratio(k)
        # Below the scale the line leaves the picture, instead of running along its floor.
        profile.set_data(ratio - 1 if scale.deviation else ratio.clip(scale.low / 10))
        uncover(k)

    return update, [profile, *history]


def _draw_history(ax: Axes, story: Story, scale: Scale) -> _Moving:
    """Angle against time up to the present. Nothing where there are fewer than two snapshots on the axis."""
    shown = [k for k in range(len(story.times)) if story.times[k] > 0 or not story.log_time]
    ax.set(xlabel="time t", title="so far", ylim=(0, 2 * np.pi))
    mark_angles(ax.yaxis)
    if len(shown) < 2:
        return lambda k: None, []
    shown = [shown[i] for i in np.unique(np.linspace(0, len(shown) - 1, COLUMNS).astype(int))]
    picture = np.stack([merged(story.ratio(k), ROWS) for k in shown], axis=1)
    ends = time_edges(story.times[shown], story.log_time)
    angles = np.linspace(0, 2 * np.pi, len(picture) + 1)
    ax.pcolormesh(ends, angles, scale.values(picture), norm=scale.norm, cmap=shades(), rasterized=True)
    if story.log_time:
        ax.set_xscale("log")
    ax.set_xlim(ends[0], ends[-1])
    cover = ax.axvspan(ends[0], ends[-1], color="white")
    present = ax.axvline(ends[0], color=LINES[1], lw=1.5, zorder=3)

    def update(k: int) -> None:
        now = float(np.clip(story.times[k], ends[0], ends[-1]))
        cover.set_bounds(now, 0, ends[-1] - now, 1)
        present.set_xdata([now, now])

    frame = [ax.spines["left"], ax.spines["bottom"]]  # else the cover would lie on it
    return update, [cover, present, *frame]


def _draw_time_line(figure: Figure, story: Story) -> _Moving:
    """Energy over time, else the number of clusters, else time alone, with the present marked."""
    ax = _place(figure, 66, 510, 624, 62)
    time = story.diagnostics.get("time", np.empty(0))
    recorded = [name for name in ("energy", "clusters") if name in story.diagnostics and len(time) > 1]
    if recorded:
        ax.plot(time, story.diagnostics[recorded[0]], color=LINES[0], lw=1.4, drawstyle="steps-post")
    else:
        ax.set_yticks([])
    ax.set(xlabel="time t", ylabel=recorded[0] if recorded else "")
    ax.locator_params(axis="y", nbins=3)
    first, last = story.times[0], story.times[-1]
    if story.log_time:
        first = story.times[story.times > 0][0]
        ax.set_xscale("log")
    if first < last:
        ax.set_xlim(first, last)
    marker = ax.axvline(first, color=LINES[1], lw=2, clip_on=False, zorder=3)

    def update(k: int) -> None:
        marker.set_xdata([max(story.times[k], first)] * 2)

    return update, [marker]
