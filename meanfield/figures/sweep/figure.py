"""Figure of a sweep: a scalar over one key, or a map over two keys, with theoretical curves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from meanfield.figures.captions import set_heading
from meanfield.figures.sweep.curve import draw_curves
from meanfield.figures.sweep.map import draw_maps
from meanfield.sweeping.point import FAILED
from meanfield.sweeping.results import SweepResults, read_sweep
from solvers.io.repair import FileError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH, _HEIGHT = 8.0, 5.0  # inches of one panel
MAX_COLUMNS = 3
_MAP_VALUES = 4  # number of values of a second numeric key, above which a map is drawn instead of lines


@dataclass(frozen=True)
class SweepAxes:
    """Choice of what a figure of a sweep shows: ``value`` over the key ``x``, a line for each value of ``lines``.

    With a second key ``y`` it is a map over both, a panel for each value of ``lines``.
    """

    x: str
    value: str
    y: str | None = None
    lines: str | None = None


def plot_sweep(path: str | Path, figure: str | Path) -> Path:
    """Draw the sweep whose index is ``path`` to ``figure`` (.png, .pdf or .svg) and return the path.

    The view is the [figure] of the sweep, or follows from its keys: a line or a map of the number of clusters or the
    order parameter |∫xρ|. The sweep may be in progress. Raises FileError if no point (run of the sweep) is done, and as
    :func:`meanfield.figures.figure.plot`.
    """
    from meanfield.figures.figure import write_figure

    def draw(drawing: Figure) -> None:
        found = read_sweep(path)
        if not len(found.done):
            raise FileError(f"{path}: no point is done yet")
        compose(found, axes_of_sweep(found), drawing)

    return write_figure(figure, draw)


def compose(found: SweepResults, view: SweepAxes, figure: Figure) -> Figure:
    """Draw the results of a sweep on an empty ``figure``, set its size, and return the figure."""
    columns = min(panels := _panels(found, view), MAX_COLUMNS)
    rows = -(-panels // columns)
    width = _WIDTH if columns == 1 else 3.8 * columns + 1.0
    figure.set_size_inches(width, _HEIGHT if rows == columns == 1 else 3.2 * rows + 0.8)
    draw_sweep(found, view, figure)
    return figure


def _panels(found: SweepResults, view: SweepAxes) -> int:
    """Return the number of panels of the figure of a sweep."""
    return len(set(found.parameters[view.lines].tolist())) if view.y and view.lines else 1


def draw_sweep(found: SweepResults, view: SweepAxes, figure: Figure) -> None:
    """Draw the results of a sweep on an empty ``figure``."""
    panels = _panels(found, view)
    columns = min(panels, MAX_COLUMNS)
    rows = -(-panels // columns)
    lines = [str(found.attributes["title"]) or found.path.stem, _describe_state(found)]
    set_heading(figure, lines)
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for ax in axes[panels:]:
        ax.remove()
    if view.y is None:
        draw_curves(axes[0], found, view.x, view.value, view.lines)
    else:
        draw_maps(figure, list(axes[:panels]), found, view.x, view.y, view.value, view.lines)


def _describe_state(found: SweepResults) -> str:
    """Return a text on the numbers of all runs of a sweep, of those that are done, and of failed ones."""
    done, count, failed = len(found.done), len(found.status), int((found.status == FAILED).sum())
    points = f"{count} points" if done == count else f"{done} of {count} points"
    return points + (f", {failed} failed" if failed else "")


def axes_of_sweep(found: SweepResults) -> SweepAxes:
    """Return the axes and the scalar for the figure of a sweep: those that its file names, else keys that vary.

    Raises FileError if the x axis is time and no key is left for the y axis.
    """
    requested = found.figure
    varying = [key for key, values in found.parameters.items() if len(set(values.tolist())) > 1]
    varying = [key for key in varying if found.spacings[key] != "seeds"] or list(found.parameters)
    free = [key for key in varying if key not in (requested.x, requested.y, requested.lines)]
    numeric = [key for key in free if found.parameters[key].dtype != object]
    x = requested.x or (numeric.pop(0) if numeric else (free or varying)[0])
    texts = [key for key in free if found.parameters[key].dtype == object and key != x]
    y, lines = requested.y, requested.lines or (texts[0] if texts else None)
    rest = [key for key in numeric if key not in (x, y, lines)]
    if y is None and rest and (x == "time" or len(set(found.parameters[rest[0]].tolist())) > _MAP_VALUES):
        y = rest.pop(0)
    if lines is None and rest:
        lines = rest[0]
    if x == "time" and y is None:
        raise FileError(f'{found.path}: figure.x = "time" needs figure.y, a key for the other axis of the map')
    return SweepAxes(x, requested.value or _value(found, x, y), y, lines)


def _value(found: SweepResults, x: str, y: str | None) -> str:
    """Return the scalar to draw: the order parameter if noise varies, else the number of clusters if recorded."""
    order = ["clusters", "centroid_length"] if "stabilizers.noise" not in (x, y) else ["centroid_length", "clusters"]
    order += [name for name, values in found.scalars.items() if values.ndim == 1 and name != "mass"]
    if (name := next((name for name in order if name in found.scalars), None)) is None:
        raise FileError(f"{found.path}: has no scalar result")
    return name
