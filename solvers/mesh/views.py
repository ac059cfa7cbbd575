"""Views of fields on a mesh over time: xarray Datasets, Matplotlib axes and animations."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .coordinates import layout, middle_layer, unit_vectors
from .mesh import Floats, Mesh
from .rings import sphere_cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from xarray import Dataset

BAR_GAP, BAR_WIDTH = 0.02, 0.03  # of the figure's width, the second at most
CURVES = 6  # curves of a field on a line, at equal steps in the list of times
MAP_POINTS = 360  # points of the map of a surface, from south to north
MAX_RATIO = 5  # of the ranges of two coordinates that are drawn on one scale


def dataset(t: Floats, u: Floats, mesh: Mesh, fields: Sequence[str] | None = None) -> Dataset:
    """Return an xarray Dataset of fields (time, …) by name, with the mesh's coordinates and the volume of each cell.

    t        (n,) times
    u        (n, cells) or (n, fields, cells) values
    fields   names of the fields; by default "u", or "u0", "u1", …
    Raises ValueError unless there is one name per field, each different and none already in use.
    """
    from xarray import Dataset as New

    values = u[:, None] if u.ndim == 2 else u
    names = list(fields) if fields is not None else ["u"] if u.ndim == 2 else [f"u{k}" for k in range(u.shape[1])]
    dimensions, shape, coordinates = layout(mesh)
    taken = {"time", "volume", *dimensions, *coordinates}
    if len(set(names) - taken) != values.shape[1] or len(names) != values.shape[1]:
        raise ValueError(f"fields = {names}: expected {values.shape[1]} names, each once, none of {sorted(taken)}")
    variables: dict[str, Any] = {
        name: (("time", *dimensions), values[:, k].reshape(len(t), *shape)) for k, name in enumerate(names)
    }
    variables["volume"] = dimensions, mesh.volumes.reshape(shape), {"long_name": "volume of each cell"}
    return New(variables, coords={"time": t, **coordinates})


def draw(
    t: Floats, u: Floats, mesh: Mesh, ax: Axes | None = None, time: float | None = None, field: int = 0, **style: Any
) -> Axes:
    """Draw a field into Matplotlib axes: curves over a line, or colors over a surface; return the axes.

    Of a complex field the modulus is drawn, and in a new figure the phase in a second panel.

    t, u    (n,) times, and (n, cells) or (n, fields, cells) values
    ax      by default the current axes of pyplot if a figure of it is open and they are empty, else a new figure's
    time    time that is drawn, or the nearest one; by default several times on a line, the last one on a surface
    field   index of the field; style   options of Matplotlib's plot, pcolormesh, imshow, tripcolor or scatter
    """
    parts, ax = _parts(u), _current_axes() if ax is None else ax
    if ax is None:
        from matplotlib.figure import Figure

        size = None if len(parts) == 1 else (12.8, 4.8)
        axes = Figure(size, layout="constrained").subplots(1, len(parts), squeeze=False)[0]
    else:
        axes = np.array([ax])
    for one, (name, values) in zip(axes, parts.items(), strict=False):
        _draw_part(t, _of_field(values, field), mesh, one, time, name, _label(values, field), style)
    first: Axes = axes[0]
    return first


def _current_axes() -> Axes | None:
    """Return the current axes of pyplot if a figure of pyplot is open in which they are empty, else None."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None or not pyplot.get_fignums():
        return None
    ax: Axes = pyplot.gca()
    return None if ax.has_data() else ax


def _parts(u: Floats) -> dict[str, Floats]:
    """Return the real fields that are drawn of a field, by their titles: modulus and phase of a complex one."""
    return {"modulus": np.abs(u), "phase": np.angle(u)} if np.iscomplexobj(u) else {"": u}


def _of_field(u: Floats, field: int) -> Floats:
    """Return the values (n, cells) of one of the fields (n, cells) or (n, fields, cells)."""
    return u[:, field] if u.ndim == 3 else u


def _label(u: Floats, field: int) -> str:
    """Return the name of a field: that of :func:`dataset`."""
    return f"u{field % u.shape[1]}" if u.ndim == 3 else "u"


def _draw_part(
    t: Floats, values: Floats, mesh: Mesh, ax: Axes, time: float | None, name: str, label: str, style: dict[str, Any]
) -> None:
    """Draw real values (n, cells) named ``label`` with the title ``name`` into axes, as :func:`draw`."""
    dimensions, shape, coordinates = layout(mesh)
    _validate_dimension(len(shape))
    axis = [coordinates[name][1] for name in dimensions if name in coordinates]
    if len(shape) == 1 and axis:
        _curves(ax, t, values, axis[0], time, style)
        ax.set(xlabel=dimensions[0], ylabel=label)
        if name:
            ax.set_title(name)
        return
    if name == "phase":
        style = {"cmap": "twilight", "vmin": -np.pi, "vmax": np.pi, **style}
    k = len(t) - 1 if time is None else int(np.abs(t - time).argmin())
    if len(shape) == 2:
        (across, up), (x, y) = dimensions, axis
        drawn: Any = ax.pcolormesh(x, y, values[k].reshape(shape).T, **style)
    elif mesh.manifold == "triangles" and mesh.ambient_dimension == 2:
        from matplotlib.tri import Triangulation

        from .simplices.triangulation import triangles_of

        (across, up), (x, y) = "xy", mesh.centers.T
        drawn = ax.tripcolor(Triangulation(x, y, triangles_of(mesh)), values[k], **{"shading": "gouraud", **style})
    elif "latitude" in coordinates:
        (across, up), x, y = ("longitude", "latitude"), np.array([-180.0, 180.0]), np.array([-90.0, 90.0])
        drawn = ax.imshow(values[k][cells_of_map(mesh)], extent=(*x, *y), **{"interpolation": "nearest", **style})
    else:
        if mesh.ambient_dimension == 4:
            across, up = "first angle (degrees)", "second angle (degrees)"
            x, y = np.degrees(np.arctan2(mesh.centers[:, 1::2], mesh.centers[:, ::2])).T
        else:
            (across, up), (x, y) = "xy", mesh.centers[:, :2].T
        shown = middle_layer(mesh.centers, mesh.width) if mesh.dimension == 3 else np.ones(mesh.cells, dtype=bool)
        x, y = x[shown], y[shown]
        drawn = ax.scatter(x, y, c=values[k][shown], **{"s": 4e4 / len(x), "marker": "s", "linewidths": 0, **style})
    ax.set(xlabel=across, ylabel=up)
    use_one_scale(ax, x, y)
    add_color_bar([ax], drawn, label)
    ax.set_title(f"{name}, t = {t[k]:.4g}".removeprefix(", "))


@lru_cache(maxsize=1)  # for the frames of a movie
def cells_of_map(mesh: Mesh) -> NDArray[np.int64]:
    """Return the cell (latitudes, longitudes) of a surface in R³ at each point of a map, from north-west to south-east.

    On a sphere of rings a cell contains the point; on other surfaces it is the cell of the nearest direction.
    """
    polar = (np.arange(MAP_POINTS) + 0.5)[:, None] * (np.pi / MAP_POINTS)
    azimuth = (np.arange(2 * MAP_POINTS) + 0.5) * (np.pi / MAP_POINTS) - np.pi
    if mesh.manifold == "sphere":
        return sphere_cells(mesh.ring_cells, *np.broadcast_arrays(polar, azimuth))
    from scipy.spatial import KDTree

    points = np.sin(polar) * np.cos(azimuth), np.sin(polar) * np.sin(azimuth), np.cos(polar) * np.ones_like(azimuth)
    nearest: NDArray[np.int64] = KDTree(unit_vectors(mesh.centers)).query(np.stack(points, axis=-1))[1]
    return nearest


def add_color_bar(row: Sequence[Axes], drawn: ScalarMappable, label: str = "") -> None:
    """Add a color bar on the right of a row of axes, as high as the last of them, whose aspect may be fixed."""
    from matplotlib.transforms import Bbox

    last = row[-1]
    bar = last.figure.colorbar(drawn, ax=row, label=label, panchor=False)

    def beside(own: Any, _: object) -> Bbox:
        own.set_box_aspect(None)  # which the layout sets at each drawing
        at, width = last.get_position(), min(own.get_position(original=True).width, BAR_WIDTH)
        return Bbox.from_bounds(at.x1 + BAR_GAP, at.y0, width, at.height)

    bar.ax.set_axes_locator(beside)


def use_one_scale(ax: Axes, across: Floats, up: Floats) -> None:
    """Draw two coordinates of the cells on one scale, unless the range of one is above MAX_RATIO times the other's.

    Labels of the ticks of narrow axes are small and vertical, so that they do not overlap.
    """
    width, height = np.ptp(across), np.ptp(up)
    if max(width, height) <= MAX_RATIO * min(width, height):
        ax.set_aspect("equal")
        if 2 * width < height:
            ax.tick_params(axis="x", labelrotation=90, labelsize="x-small")


def film(t: Floats, u: Floats, mesh: Mesh, path: str | Path, field: int = 0, fps: int = 10, **style: Any) -> Path:
    """Draw a field at each time into a GIF or a video, with the same range of values throughout; return the path.

    t, u    (n,) times, and (n, cells) or (n, fields, cells) values
    path    file to write: a GIF if the suffix is .gif, else a video by ffmpeg
    field   index of the field
    fps     pictures per second
    style   options of :func:`draw`
    Raises ValueError for a box of three dimensions, RuntimeError without ffmpeg where it is needed.
    """
    from matplotlib.animation import FFMpegWriter, PillowWriter
    from matplotlib.figure import Figure

    axes = len(layout(mesh)[1])
    _validate_dimension(axes)
    is_gif = Path(path).suffix.lower() == ".gif"
    if not is_gif and not FFMpegWriter.isAvailable():
        raise RuntimeError(f"{path}: needs ffmpeg, which is not on the PATH; .gif works without it")
    parts = {name: _of_field(values, field) for name, values in _parts(u).items()}
    ranges = {name: (float(values.min()), float(values.max())) for name, values in parts.items()}
    label, figure = _label(u, field), Figure(figsize=(6.4 * len(parts), 4.8), layout="constrained")
    writer: Any = (PillowWriter if is_gif else FFMpegWriter)(fps=fps)
    with writer.saving(figure, str(path), dpi=100):
        for k in range(len(t)):
            figure.clear()
            for ax, (name, values) in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts.items(), strict=True):
                low, high = ranges[name]
                if axes == 1 and mesh.dimension == 1:
                    margin = 0.05 * (high - low) or 1.0
                    _draw_part(t, values, mesh, ax, t[k], name, label, style)
                    ax.set_ylim(low - margin, high + margin)
                else:
                    _draw_part(t, values, mesh, ax, t[k], name, label, {"vmin": low, "vmax": high, **style})
            writer.grab_frame()
    return Path(path)


def _validate_dimension(axes: int) -> None:
    """Raise ValueError for a box of more than two dimensions, which cannot be drawn."""
    if axes > 2:
        raise ValueError(f"a box of {axes} dimensions: to_xarray() returns slices to draw")


def _curves(ax: Axes, t: Floats, values: Floats, x: Floats, time: float | None, style: dict[str, Any]) -> None:
    """Draw a field on a line as curves over x: at the time nearest to ``time``, or at CURVES times if that is None."""
    if time is None:
        rows = np.unique(np.linspace(0, len(t) - 1, min(CURVES, len(t))).astype(int))
    else:
        rows = np.array([np.abs(t - time).argmin()])
    order = np.argsort(x, kind="stable")
    for k in rows:
        ax.plot(x[order], values[k, order], label=f"t = {t[k]:.4g}", **style)
    ax.legend(frameon=False, fontsize="small")
