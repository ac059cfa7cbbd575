"""Page of a movie: size and colors, positions in pixels, and the scale of all frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from meanfield.figures.axes import Floats
from meanfield.figures.color_scale import COLOR_MAP, Scale
from meanfield.figures.run_data import BLUE, VERMILION

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

WIDTH, HEIGHT, DPI = 800, 620, 100  # pixels, even numbers as required by video codecs
SHADES = 160  # colors of the map, which leave room for text and lines within the 256 of a GIF
LINES = (BLUE, VERMILION)  # the curve of the time line, and the marker of the current time
Update = Callable[[int], None]
Moving = tuple[Update, "list[Artist]"]  # function that draws snapshot k, and the artists that change


def shades() -> Colormap:
    """Return the color map of the densities in a movie, in ``SHADES`` steps."""
    from matplotlib import colormaps

    return colormaps[COLOR_MAP].resampled(SHADES)


def palette() -> NDArray[np.uint8]:
    """Return the colors (256, 3) of a movie: color map, color map mixed with white, grays, and tints of the curves.

    The mixed colors are those of white lines on a density.
    """
    from matplotlib.colors import to_rgb

    density = shades()(np.arange(SHADES), bytes=True)[:, :3]
    lined = 0.65 * density[::5] + 0.35 * 255.0
    grays = np.repeat(np.linspace(0, 255, 40).round()[:, None], 3, axis=1)
    strength = np.linspace(1, 0.15, 12)[:, None]
    tints = [255 * (strength * np.array(to_rgb(color)) + 1 - strength) for color in LINES]
    return np.concatenate([density, lined, grays, *tints]).round().astype(np.uint8)


def place(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Add axes at a position in pixels from the top left of the page of a movie, and return them."""
    ax = figure.add_axes((left / WIDTH, 1 - (top + height) / HEIGHT, width / WIDTH, height / HEIGHT))
    ax.spines["right"].set_visible(False)
    return ax


def draw_scale(figure: Figure, scale: Scale, left: float, top: float, height: float) -> None:
    """Draw the color bar of a movie at a position in pixels from the top left."""
    from matplotlib.cm import ScalarMappable

    ax = place(figure, left, top, 12, height)
    figure.colorbar(ScalarMappable(scale.norm, shades()), cax=ax, extend="min" if scale.is_cut else "neither")
    label_density(ax, scale, scale.symbol)


def label_density(ax: Axes, scale: Scale, title: str) -> None:
    """Set small ticks of a vertical axis of densities, and a ``title`` above with the common factor of the ticks."""
    scale.draw_on(ax.yaxis, title)
    ax.set_title(ax.get_ylabel(), pad=10)
    ax.set_ylabel("")
    ax.tick_params(axis="y", which="both", labelsize=8, pad=2)


def join_pictures(one: Moving, other: Moving) -> Moving:
    """Return two pictures of a movie as one.

    A picture is the function that draws snapshot k, and the artists that change.
    """

    def update(k: int) -> None:
        """Draw snapshot k in both pictures."""
        one[0](k)
        other[0](k)

    return update, [*one[1], *other[1]]


def cover_later_times(ax: Axes, times: Floats, first: float, last: float) -> Moving:
    """Draw a white cover over the times after the current snapshot on a panel, and a line at the current time.

    ``first`` and ``last`` are the ends of the time axis. Return the function that moves the cover to snapshot k, and
    the artists that change.
    """
    cover = ax.axvspan(first, last, color="white")
    present = ax.axvline(first, color=LINES[1], lw=1.5, zorder=3)

    def update(k: int) -> None:
        """Move the cover and the line to the time of snapshot k."""
        now = float(np.clip(times[k], first, last))
        cover.set_bounds(now, 0, last - now, 1)
        present.set_xdata([now, now])

    return update, [cover, present, ax.spines["left"], ax.spines["bottom"]]  # redrawn above the cover
