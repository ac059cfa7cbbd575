"""Options of a figure: panels, size, resolution, color map and style."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from meanfield.figures.axes import panels_across
from meanfield.figures.color_scale import COLOR_MAP
from meanfield.figures.saving import DPI

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

MAX_PIXELS = 2**16  # largest number along a side in Matplotlib
SCREEN: Any = {  # Any: matplotlib types the keys as literals since 3.11
    "font.size": 10.5,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "legend.handlelength": 1.4,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
    "image.cmap": COLOR_MAP,
}
PAPER = SCREEN | {  # for printing at full size
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
}
_LIGHT, _DARK = "#e6e6e6", "#16181d"
DARK = SCREEN | {
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), _LIGHT),
    **dict.fromkeys(("axes.facecolor", "figure.facecolor", "savefig.facecolor"), _DARK),
}
STYLES = {"paper": PAPER, "screen": SCREEN, "dark": DARK}


def style_of(figure: Figure | SubFigure) -> Any:
    """Return the style of text of a figure: "paper" if it is as narrow as a column of a paper, else "screen"."""
    return SCREEN if panels_across(figure) > 1 else PAPER


@dataclass(frozen=True)
class FigureOptions:
    """Options of a figure. Raises ValueError for an invalid value.

    panels  names of the panels to draw, None for the whole page
    size    width and height in inches, None for the size that the panels need
    dpi     pixels per inch of a .png, and of the images within a .pdf or .svg
    cmap    name of a color map of Matplotlib
    times   times whose nearest snapshots are drawn, None to choose snapshots by the changes of the run
    title   text above the figure; True for the title and the facts of the run above the page, False for none
    caption text below the figure; True for explanations below the page and its pictures, False for none
    style   "paper" (8 points, for printing at full size), "screen" or "dark"
    """

    panels: tuple[str, ...] | None = None
    size: tuple[float, float] | None = None
    dpi: int = DPI
    cmap: str = COLOR_MAP
    style: str = "screen"
    times: tuple[float, ...] | None = None
    title: bool | str = True
    caption: bool | str = True

    def __post_init__(self) -> None:
        from matplotlib import colormaps

        if self.style not in STYLES:
            raise ValueError(f"style = {self.style!r}: expected {', '.join(STYLES)}")
        if self.cmap not in colormaps:
            raise ValueError(f"cmap = {self.cmap!r}: expected a color map of Matplotlib, for example {COLOR_MAP}")
        for name, text in (("title", self.title), ("caption", self.caption)):
            if not isinstance(text, bool | str):
                raise ValueError(f"{name} = {text!r}: expected a text, True or False")
        if not 1 <= self.dpi <= MAX_PIXELS:
            raise ValueError(f"dpi = {self.dpi}: expected 1 to {MAX_PIXELS} pixels per inch")
        if self.size is not None and not _is_size(self.size, self.dpi):
            raise ValueError(
                f"size = {self.size}: expected a width and a height in inches, > 0 and below {MAX_PIXELS} pixels each"
            )

    @property
    def context(self) -> Any:
        """Return the Matplotlib settings for these options of a figure, such as font sizes and colors."""
        return STYLES[self.style] | {"image.cmap": self.cmap}


def _is_size(size: tuple[float, ...], dpi: int) -> bool:
    """Return whether ``size`` is a width and a height in inches that Matplotlib can draw."""
    return len(size) == 2 and all(math.isfinite(side) and 1 <= side * dpi < MAX_PIXELS for side in size)
