"""Frames of a recorded solution: a panel for each field, with a common scale for all snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.fields import chart, shown_cells, triangulation
from meanfield.movie.page import DPI, HEIGHT, WIDTH, shades
from solvers.io.run_file import FileError
from solvers.mesh.views import use_one_scale

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from solvers.io.run_file import Run
    from solvers.mesh.mesh import Floats

    Draw = Callable[[Floats], object]  # draws the values of another snapshot


class FieldFrames:
    """Frames of a movie of a recorded solution of a PDE, on an empty ``figure``; ``show`` draws snapshot k.

    Raises FileError for a file without snapshots, or for a field without finite values.
    """

    def __init__(self, run: Run, figure: Figure) -> None:
        if run.snapshots == 0:
            raise FileError(f"{run.path}: holds no snapshot yet")
        self._run, self._figure = run, figure
        figure.set_size_inches(WIDTH / DPI, HEIGHT / DPI)
        places, labels = chart(run.cell_centers)
        axes = figure.subplots(len(run.real_fields), 1, squeeze=False)[:, 0]
        figure.subplots_adjust(left=0.12, right=0.97, top=0.9, bottom=0.09, hspace=0.45)
        panel = _line if places.shape[1] == 1 else _map
        self._panels = [
            (name, panel(ax, run, name, places, _range(run, name)))
            for ax, name in zip(axes, run.real_fields, strict=True)
        ]
        axes[-1].set_xlabel(labels[0])
        if len(labels) > 1:
            axes[-1].set_ylabel(labels[1])

    def show(self, k: int) -> None:
        """Draw snapshot k in the panel of each field."""
        for name, draw in self._panels:
            draw(self._run.field(name, k))
        self._figure.suptitle(f"{self._run.path.name}: t = {self._run.times[k]:.4g}")


def _range(run: Run, name: str) -> tuple[float, float]:
    """Return the smallest and the largest finite value of a field in all snapshots.

    For a constant field c the result is c ∓ ½. Raises FileError if no value is finite.
    """
    low, high = np.inf, -np.inf
    for k in range(run.snapshots):
        values = run.field(name, k)
        finite = values[np.isfinite(values)]
        low, high = min(low, float(finite.min(initial=low))), max(high, float(finite.max(initial=high)))
    if low > high:
        raise FileError(f"{run.path}: no value of {name} is finite")
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _line(ax: Axes, run: Run, name: str, places: Floats, limits: tuple[float, float]) -> Draw:
    """Draw a field in one dimension as a curve, and return the function that draws other values."""
    order, margin = np.argsort(places[:, 0]), 0.05 * (limits[1] - limits[0])
    (curve,) = ax.plot(places[order, 0], run.field(name, 0)[order])
    ax.set(ylabel=name, ylim=(limits[0] - margin, limits[1] + margin))
    return lambda values: curve.set_ydata(values[order])


def _map(ax: Axes, run: Run, name: str, places: Floats, limits: tuple[float, float]) -> Draw:
    """Draw a field as a map with a color bar, and return the function that draws other values."""
    layer = shown_cells(run)
    zeros, (low, high) = np.zeros(np.count_nonzero(layer)), limits
    image = ax.tripcolor(triangulation(run), zeros, shading="gouraud", cmap=shades(), vmin=low, vmax=high)
    use_one_scale(ax, *places.T)
    ax.figure.colorbar(image, ax=ax)
    ax.set_title(name)
    return lambda values: image.set_array(np.ma.masked_invalid(values[layer]))
