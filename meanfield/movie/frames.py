"""Frames of a movie: a page is laid out once in pixels, and each snapshot updates only what changes.

Heading, pictures and time line have fixed positions, and all frames share one scale.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield.domains.domain import load
from meanfield.figures.axes import draw_change, mark_time, positive, set_decades
from meanfield.figures.captions import fitting_size, heading
from meanfield.figures.run_data import RunData
from meanfield.movie.page import DPI, HEIGHT, LINES, WIDTH, Moving, place
from meanfield.movie.pictures import MAP_LEFT, MAP_TOP

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEADING_SIZE, LINE_HEIGHT = 10.0, 17.4  # font size of the heading in points, and distance of lines in pixels
CLOCK_HEIGHT = 24
TIME_LINES = {  # candidates for the time line: the first that was recorded is shown
    "energy": "energy",
    "radius": "radius of the tokens",
    "clusters": "clusters",
    "centroid": "length of the centroid",
}


class Frames:
    """Frames of a movie of a run: ``show(k)`` draws snapshot k on ``figure``, which must have no layout engine.

    Snapshots are read twice and not kept, since a movie may exceed the memory. Raises FileError if a snapshot cannot be
    read.
    """

    def __init__(self, run_data: RunData, figure: Figure) -> None:
        figure.set_dpi(DPI)
        figure.set_size_inches(WIDTH / DPI, HEIGHT / DPI)
        self._run_data = run_data
        clock_place = _write_heading(figure, run_data)
        self._clock, self._count = (
            figure.text(x / WIDTH, clock_place, "", fontsize=12, weight="bold", va="center") for x in (MAP_LEFT, 180)
        )
        density, moving = load(run_data.kind.movie)(figure, run_data)
        time, marker = _draw_time_line(figure, run_data)
        self._updates = (density, time)
        _freeze(figure, [self._clock, self._count, *moving, *marker])

    def show(self, k: int) -> None:
        """Draw snapshot k: clock, number of clusters, picture, and marker on the time line."""
        time = self._run_data.times[k]
        self._clock.set_text(self._run_data.moment(time))
        self._count.set_text(self._run_data.counted_at(k))
        for update in self._updates:
            update(k)


def _write_heading(figure: Figure, run_data: RunData) -> float:
    """Write the heading of a movie and return the height of the clock, as a fraction of the page.

    The remaining height above the picture is divided equally: above the heading, below it, and below the clock.
    """
    lines = heading(run_data)
    room = (MAP_TOP - CLOCK_HEIGHT - LINE_HEIGHT * len(lines)) / 3
    size = fitting_size(lines, 0.97 * WIDTH / DPI, HEADING_SIZE)
    y = 1 - max(room, 4) / HEIGHT
    figure.text(0.5, y, "\n".join(lines), ha="center", va="top", fontsize=size, linespacing=1.25)
    return 1 - (MAP_TOP - max(room, 0) - CLOCK_HEIGHT / 2) / HEIGHT


def _freeze(figure: Figure, moving: list[Artist]) -> None:
    """Draw all artists of a movie except ``moving`` once into a background image.

    Ticks and text are slow to draw, and the same in all frames.
    """
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


def _draw_time_line(figure: Figure, run_data: RunData) -> Moving:
    """Draw the time line of a movie: a diagnostic over time, or an empty time axis, with a marker at the current time.

    Return the function that moves the marker to snapshot k, and the marker.
    """
    ax = place(figure, 78, 510, 612, 62)
    recorded = [name for name in TIME_LINES if _is_finite(run_data, name) and len(run_data.diagnostics["time"]) > 1]
    if recorded:
        _draw_recorded(ax, run_data, recorded[0])
    else:
        ax.set_yticks([])
    ax.set_xlabel(run_data.time_label)
    first, last = run_data.times[0], run_data.times[-1]
    if run_data.log_time:
        first = run_data.times[run_data.times > 0][0]
        ax.set_xscale("log")
    if first < last:
        ax.set_xlim(first, last)
    mark_time(ax, run_data.handover, "atoms")
    marker = ax.axvline(first, color=LINES[1], lw=2, clip_on=False, zorder=3)

    def update(k: int) -> None:
        """Draw the marker at the time of snapshot k."""
        marker.set_xdata([max(run_data.times[k], first)] * 2)

    return update, [marker]


def _is_finite(run_data: RunData, name: str) -> bool:
    """Return whether a diagnostic was recorded and has only finite values."""
    return name in run_data.diagnostics and bool(np.isfinite(run_data.diagnostics[name]).all())


def _draw_recorded(ax: Axes, run_data: RunData, name: str) -> None:
    """Draw the diagnostic ``name`` over time on the time line of a movie."""
    time, values, label = run_data.diagnostics["time"], run_data.diagnostics[name], TIME_LINES[name]
    if name == "radius":  # growth at a constant rate is a straight line
        ax.plot(time, positive(values), color=LINES[0], lw=1.4)
        set_decades(ax, values)
        ax.set_ylabel(label)
    else:
        values = np.linalg.norm(values, axis=1) if name == "centroid" else values
        style = "steps-post" if name == "clusters" else "default"
        draw_change(ax, time, values, label, color=LINES[0], drawstyle=style)
        ax.locator_params(axis="y", nbins=3)
    ax.set_title(ax.get_ylabel(), loc="left", fontsize=9, pad=3)  # the panel is too low for a label beside it
    ax.set_ylabel("")
