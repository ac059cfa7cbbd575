"""Scalar of a sweep as a map over two keys, or a diagnostic over time and a key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from meanfield.case.load import parse
from meanfield.figures.axes import Floats, label_decades
from meanfield.figures.color_scale import color_map
from meanfield.figures.sweep.curve import abscissas, axis_name, scalar, short
from meanfield.figures.sweep.theory import theory_of_map
from meanfield.sweeping.results import SweepResults
from meanfield.sweeping.scalars import lengths, long_name
from solvers.io.repair import FileError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import Collection
    from matplotlib.figure import Figure

Integers = NDArray[np.intp]
_CURVE = 60  # points of a theoretical curve


def draw_maps(
    figure: Figure, axes: list[Axes], found: SweepResults, x: str, y: str, value: str, panels: str | None
) -> None:
    """Draw maps of the mean of a scalar result ``value`` of a sweep, over ``x`` and ``y``.

    ``y`` is a key of the case that varies between runs, ``x`` another such key or "time". There is a map for each value
    of the key ``panels``.
    """
    names = [None] if panels is None else list(dict.fromkeys(found.parameters[panels].tolist()))
    drawn: list[tuple[Collection, Axes]] = []
    for ax, name in zip(axes, names, strict=False):
        group = found.done if panels is None else found.done[found.parameters[panels][found.done] == name]
        if panels is not None:
            ax.set_title(short(name, panels))
        if len(group):
            draw = _draw_over_time if x == "time" else _draw_points if found.is_random else _draw_cells
            drawn.append((draw(ax, found, group, x, y, value), ax))
            _set_axes(ax, found, x, y)
            _draw_theory(ax, found, x, y, value)
    _leave_outer_labels(axes)
    if axes[0].lines:
        axes[0].legend(loc="upper right", framealpha=0.9)
    _share_colors(figure, drawn, long_name(value) if x != "time" else axis_name(value))


def _draw_cells(ax: Axes, found: SweepResults, group: Integers, x: str, y: str, value: str) -> Collection:
    """Draw a map of a scalar result over two varied keys of a sweep, with a cell for each pair of their values.

    The runs are those with the numbers ``group``. Cells without such a run stay empty.
    """
    values, at = scalar(found, value)[group], [abscissas(found, key)[group] for key in (x, y)]
    axes = [np.unique(abscissas(found, key)) for key in (x, y)]
    columns, rows = (np.searchsorted(axis, a) for axis, a in zip(axes, at, strict=True))
    cells = _means(values, rows, columns, (len(axes[1]), len(axes[0])))
    edges = [cell_edges(axis, log=_is_log(found, key)) for axis, key in zip(axes, (x, y), strict=True)]
    return ax.pcolormesh(*edges, cells, cmap=color_map())


def _draw_points(ax: Axes, found: SweepResults, group: Integers, x: str, y: str, value: str) -> Collection:
    """Draw a scalar result of the runs with the numbers ``group``, as a colored dot for each run.

    The position of a dot is the run's values of the keys ``x`` and ``y``, which are random in this sweep.
    """
    values = scalar(found, value)[group]
    return ax.scatter(abscissas(found, x)[group], abscissas(found, y)[group], c=values, s=30, cmap=color_map())


def _draw_over_time(ax: Axes, found: SweepResults, group: Integers, x: str, y: str, value: str) -> Collection:
    """Draw a map of a diagnostic over time, with a row for each value of the varied key ``y`` of a sweep.

    A row is the mean of the runs with this value among those with the numbers ``group``. The times are those of the
    run that ends last.
    """
    series = [_series(found, int(k), value) for k in group]
    times = max((times for times, _ in series), key=lambda times: float(times[-1]))
    rows = np.unique(abscissas(found, y))
    row_of_point = np.searchsorted(rows, abscissas(found, y)[group])
    values = np.array([np.interp(times, *one, right=np.nan) for one in series])
    cells = np.full((len(rows), len(times)), np.nan)
    for row in np.unique(row_of_point):
        cells[row] = values[row_of_point == row].mean(axis=0)
    return ax.pcolormesh(cell_edges(times, log=False), cell_edges(rows, log=_is_log(found, y)), cells, cmap=color_map())


def _series(found: SweepResults, number: int, value: str) -> tuple[Floats, Floats]:
    """Return times and values of a scalar diagnostic of run ``number`` of a sweep. Raises FileError for an array."""
    if value == "centroid_length":
        times, centroids = found.time_series(number, "centroid")
        return times, lengths(centroids)
    times, values = found.time_series(number, value)
    if values.ndim > 1:
        raise FileError(f"{found.path}: {value} is an array at each time; a map requires a scalar")
    return times, values


def _means(values: Floats, rows: Integers, columns: Integers, shape: tuple[int, int]) -> Floats:
    """Return the mean (shape) of the finite values (n,) in each cell of a map, given rows and columns; NaN if none."""
    sums, counts, good = np.zeros(shape), np.zeros(shape), np.isfinite(values)
    np.add.at(sums, (rows[good], columns[good]), values[good])
    np.add.at(counts, (rows[good], columns[good]), 1)
    return np.asarray(np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0))


def cell_edges(centers: Floats, *, log: bool) -> Floats:
    """Return edges (n + 1,) halfway between increasing ``centers`` (n,); on a log axis halfway in the logarithm."""
    if log:
        return np.exp(cell_edges(np.log(centers), log=False))
    if len(centers) == 1:
        return np.asarray(centers[0] + np.array([-0.5, 0.5]))
    inner = (centers[1:] + centers[:-1]) / 2
    return np.concatenate([[2 * centers[0] - inner[0]], inner, [2 * centers[-1] - inner[-1]]])


def _is_log(found: SweepResults, key: str) -> bool:
    """Return whether the values of a varied key of a sweep have logarithmic spacing."""
    return found.spacings[key] == "log"


def _set_axes(ax: Axes, found: SweepResults, x: str, y: str) -> None:
    """Set names, scales and ticks of the axes of a map over the varied keys ``x`` and ``y`` of a sweep."""
    for key, axis in ((x, ax.xaxis), (y, ax.yaxis)):
        axis.set_label_text(axis_name(key))
        if key != "time" and _is_log(found, key):
            (ax.set_xscale if axis is ax.xaxis else ax.set_yscale)("log")
            values = found.parameters[key]
            label_decades(axis, float(values.min()), float(values.max()))
        elif key != "time" and found.parameters[key].dtype == object:
            texts = list(dict.fromkeys(found.parameters[key].tolist()))
            axis.set_ticks(range(len(texts)), [short(text, key) for text in texts])
    ax.autoscale_view()  # immediately, before the theoretical curve is drawn
    ax.autoscale(False)
    if x == "time":
        ax.set_xlim(0, None)


def _leave_outer_labels(axes: list[Axes]) -> None:
    """Keep the labels of axes only where no panel is below or to the left; the last row may be incomplete."""
    for k, ax in enumerate(axes):
        subplot = ax.get_subplotspec()
        assert subplot is not None
        below, before = k + subplot.get_gridspec().ncols < len(axes), not subplot.is_first_col()
        ax.tick_params(labelbottom=not below, labelleft=not before)
        ax.set(**({"xlabel": ""} if below else {}), **({"ylabel": ""} if before else {}))


def _draw_theory(ax: Axes, found: SweepResults, x: str, y: str, value: str) -> None:
    """Draw the theoretical curve, such as the critical noise, on a map of a sweep, if there is one."""
    curve = theory_of_map(parse(found.attributes["case"]), x, y, value, found.parameters.keys() - {x, y})
    if curve is None:
        return
    name, function = curve
    low, high = ax.get_ylim() if x == "time" else ax.get_xlim()
    is_log = (ax.get_yscale() if x == "time" else ax.get_xscale()) == "log"
    grid = np.geomspace(low, high, _CURVE) if is_log else np.linspace(max(low, 0.0), high, _CURVE)
    line = (function(grid), grid) if x == "time" else (grid, function(grid))
    ax.plot(*line, color="white", lw=3.0)
    ax.plot(*line, color="#D55E00", ls="--", lw=1.6, label=name)


def _share_colors(figure: Figure, drawn: list[tuple[Collection, Axes]], label: str) -> None:
    """Set one color scale for all maps ``drawn``, and draw its color bar."""
    values = np.concatenate([np.ma.masked_array(mesh.get_array()).filled(np.nan).ravel() for mesh, _ in drawn])
    for mesh, _ in drawn:
        mesh.set_clim(float(np.nanmin(values)), float(np.nanmax(values)))
    figure.colorbar(drawn[0][0], ax=[ax for _, ax in drawn], label=label)
