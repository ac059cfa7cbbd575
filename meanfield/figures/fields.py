"""Figure of a recorded solution: snapshots of each field above, diagnostics over time below."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from meanfield.figures.axes import is_single, panels_across, panels_down, row_of_axes
from meanfield.figures.captions import set_heading
from meanfield.figures.saving import figure_target, save
from solvers.io.run_file import FileError, Run
from solvers.mesh.coordinates import middle_layer
from solvers.mesh.views import add_color_bar, use_one_scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure
    from matplotlib.tri import Triangulation

    from meanfield.figures.panels.options import FigureOptions
    from solvers.mesh.mesh import Floats, Integers

SNAPSHOTS = 4  # columns
UNIT = 1e-6  # tolerance of |x| − 1 for points on a circle or sphere


def plot_fields(run: Run, figure: Path, options: FigureOptions) -> Path:
    """Draw the recorded solution of a PDE (a file of `solvers.record`) to ``figure`` and return the path.

    Raises FileError for a file without snapshots, for options that a solution does not have, or too small a size.
    """
    target = figure_target(figure)
    try:
        return save(page_of_fields(run, options), target, options.dpi)
    except ValueError as error:  # of the options or the size
        raise FileError(f"{run.path}: {error}") from None


def page_of_fields(run: Run, options: FigureOptions, figure: Figure | SubFigure | None = None) -> Figure:
    """Return the figure of a recorded solution for notebooks, drawn into ``figure`` if it is given.

    Raises FileError for a file without snapshots, and ValueError for options that a solution does not have.
    """
    import matplotlib

    from meanfield.figures.figure import empty_page

    if options.panels is not None or options.times is not None or isinstance(options.caption, str):
        raise ValueError("a recorded solution of a PDE is drawn without panels, times and caption")
    with matplotlib.rc_context(options.context):
        drawn = empty_page(options, size_of_fields(run)) if figure is None else figure
        compose_fields(run, drawn, options.title)
    return drawn.figure


def size_of_fields(run: Run) -> tuple[float, float]:
    """Return the size of the figure of a solution in inches: a row for each field, one for the diagnostics."""
    return 10.0, 2.7 * _rows(run) + 0.5


def _rows(run: Run) -> int:
    """Return the number of rows of the figure of a solution."""
    return len(run.real_fields) + bool(run.diagnostics)


def compose_fields(run: Run, figure: Figure | SubFigure, title: bool | str = True) -> None:
    """Draw the fields and diagnostics of a recorded solution on an empty ``figure``, as many as fit.

    ``title`` is the text above them, by default the name of the file and its fields, or False.

    Raises FileError for a file without snapshots.
    """
    if run.snapshots == 0:
        raise FileError(f"{run.path}: holds no snapshot yet")
    from matplotlib import rcParams

    places, labels = chart(run.cell_centers)
    shown = np.unique(np.linspace(0, run.snapshots - 1, SNAPSHOTS).round().astype(int))
    shown = shown if panels_across(figure) > 1 else shown[-1:]
    rows = min(_rows(run), panels_down(figure))
    parts = figure.subfigures(rows, 1, squeeze=False)[:, 0]
    for name, part in zip(run.real_fields, parts, strict=False):
        draw = _draw_lines if places.shape[1] == 1 else _draw_maps
        draw(part, run, name, shown, places, labels)
    if run.diagnostics and rows > len(run.real_fields):
        axes = row_of_axes(parts[-1], len(run.diagnostics))
        for ax, (name, values) in zip(axes, run.diagnostics.items(), strict=False):
            ax.plot(run.sample_times, values)
            ax.set(title=name, xlabel="time")
    if isinstance(title, str) or (title and not is_single(figure)):
        heading = f"{run.path.name}: {', '.join(run.fields)} ({run.manifold}, {run.cells} cells)"
        set_heading(figure, [heading if title is True else title], rcParams["font.size"])


def chart(centers: Floats) -> tuple[Floats, list[str]]:
    """Return coordinates (cells, 1 or 2) of the cells on the page, and their names.

    Cells of a three-dimensional body are projected along z.
    """
    d = centers.shape[1]
    on_unit = bool(np.abs(np.linalg.norm(centers, axis=1) - 1).max() < UNIT)
    if d == 1:
        return centers, ["x"]
    if on_unit and d == 2:
        return _angle(centers[:, :2]) % 360.0, ["angle (degrees)"]
    if on_unit and d == 3:
        latitude = np.degrees(np.arcsin(centers[:, 2].clip(-1, 1)))[:, None]
        return np.hstack([_angle(centers[:, :2]), latitude]), ["longitude (degrees)", "latitude (degrees)"]
    if d == 4:
        angles = np.hstack([_angle(centers[:, :2]), _angle(centers[:, 2:])])
        return angles, ["first angle (degrees)", "second angle (degrees)"]
    return centers[:, :2], ["x", "y"]


def shown_cells(run: Run) -> NDArray[np.bool_]:
    """Return which cells (cells,) a figure shows, as booleans.

    Of a three-dimensional body these are the cells of the layer nearest to the middle height z, or of tetrahedra those
    in a layer as thick as a cell. Of other meshes all cells are shown.
    """
    centers = run.cell_centers
    if chart(centers)[1][0] != "x" or centers.shape[1] != 3:
        return np.ones(len(centers), dtype=bool)
    return middle_layer(centers, run.cell_areas.mean() ** (1 / 3) if run.manifold == "tetrahedra" else 0.0)


def triangulation(run: Run) -> Triangulation:
    """Return the triangles of a map of the cells: those of the mesh in the plane, else Delaunay's on the page."""
    from matplotlib.tri import Triangulation

    x, y = chart(run.cell_centers)[0][shown_cells(run)].T
    return Triangulation(x, y, run.triangles if run.cell_centers.shape[1] == 2 else None)


def _angle(vectors: Floats) -> Floats:
    """Return the angles (n, 1) of vectors (n, 2) in degrees."""
    return np.degrees(np.arctan2(vectors[:, 1:2], vectors[:, :1]))


def _draw_lines(
    part: Figure | SubFigure, run: Run, name: str, shown: Integers, places: Floats, labels: list[str]
) -> None:
    """Draw the field ``name`` in one dimension, a curve for each of the snapshots ``shown``.

    ``places`` (cells, 1) are the coordinates of the cells, and ``labels`` the names of the coordinates.
    """
    ax, order = part.subplots(), np.argsort(places[:, 0])
    for k in shown:
        ax.plot(places[order, 0], run.field(name, int(k))[order], label=f"t = {run.times[k]:.4g}")
    ax.set(xlabel=labels[0], ylabel=name)
    ax.legend()


def _draw_maps(
    part: Figure | SubFigure, run: Run, name: str, shown: Integers, places: Floats, labels: list[str]
) -> None:
    """Draw the field ``name`` over two coordinates named ``labels``, a map for each of the snapshots ``shown``."""
    layer = shown_cells(run)
    values = [run.field(name, int(k))[layer] for k in shown]
    finite = np.concatenate([value[np.isfinite(value)] for value in values])
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    axes = part.subplots(1, len(shown), squeeze=False, sharey=True)[0]
    for ax, k, value in zip(axes, shown, values, strict=True):
        image = ax.tripcolor(triangulation(run), np.zeros(len(value)), shading="gouraud", vmin=low, vmax=high)
        image.set_array(np.ma.masked_invalid(value))  # a solution that has blown up is drawn where it is finite
        ax.set(title=f"{name}, t = {run.times[k]:.4g}", xlabel=labels[0])
        use_one_scale(ax, *places.T)
    axes[0].set_ylabel(labels[1])
    add_color_bar(list(axes), image)
