"""Views of fields on a mesh over time: xarray Datasets, Matplotlib axes and animations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .coordinates import layout, middle_layer
from .mesh import Floats, Mesh

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset

CURVES = 6  # curves of a field on a line, at equal steps in the list of times
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

    Of a complex field the modulus is drawn, and without given axes the phase in a second panel.

    t, u    (n,) times, and (n, cells) or (n, fields, cells) values
    time    time that is drawn, or the nearest one; by default several times on a line, the last one on a surface
    field   index of the field; style   options of Matplotlib's plot, pcolormesh, tripcolor or scatter
    """
    parts = _parts(u)
    if ax is None:
        from matplotlib.figure import Figure

        size = None if len(parts) == 1 else (12.8, 4.8)
        axes = Figure(size, layout="constrained").subplots(1, len(parts), squeeze=False)[0]
    else:
        axes = np.array([ax])
    for one, (name, values) in zip(axes, parts.items(), strict=False):
        _draw_part(t, values, mesh, one, time, field, name, style)
    first: Axes = axes[0]
    return first


def _parts(u: Floats) -> dict[str, Floats]:
    """Return the real fields that are drawn of a field, by their titles: modulus and phase of a complex one."""
    return {"modulus": np.abs(u), "phase": np.angle(u)} if np.iscomplexobj(u) else {"": u}


def _draw_part(
    t: Floats, u: Floats, mesh: Mesh, ax: Axes, time: float | None, field: int, name: str, style: dict[str, Any]
) -> None:
    """Draw a real field with the title ``name`` into axes, as :func:`draw`."""
    values = u[:, field] if u.ndim == 3 else u
    dimensions, shape, coordinates = layout(mesh)
    _validate_dimension(len(shape))
    axis = [coordinates[name][1] for name in dimensions if name in coordinates]
    if len(shape) == 1 and axis:
        _curves(ax, t, values, axis[0], time, style)
        ax.set_xlabel(dimensions[0])
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
    else:
        if mesh.ambient_dimension == 4:
            across, up = "first angle (degrees)", "second angle (degrees)"
            x, y = np.degrees(np.arctan2(mesh.centers[:, 1::2], mesh.centers[:, ::2])).T
        else:
            across, up = ("longitude", "latitude") if "latitude" in coordinates else ("x", "y")
            x, y = coordinates[across][1], coordinates[up][1]
        shown = middle_layer(mesh.centers, mesh.width) if mesh.dimension == 3 else np.ones(mesh.cells, dtype=bool)
        x, y = x[shown], y[shown]
        drawn = ax.scatter(x, y, c=values[k][shown], **{"s": 4e4 / len(x), "marker": "s", "linewidths": 0, **style})
    ax.set(xlabel=across, ylabel=up)
    use_one_scale(ax, x, y)
    ax.figure.colorbar(drawn, ax=ax)
    ax.set_title(f"{name}, t = {t[k]:.4g}".removeprefix(", "))


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
    parts = {name: values[:, field] if values.ndim == 3 else values for name, values in _parts(u).items()}
    ranges = {name: (float(values.min()), float(values.max())) for name, values in parts.items()}
    figure = Figure(figsize=(6.4 * len(parts), 4.8), layout="constrained")
    writer: Any = (PillowWriter if is_gif else FFMpegWriter)(fps=fps)
    with writer.saving(figure, str(path), dpi=100):
        for k in range(len(t)):
            figure.clear()
            for ax, (name, values) in zip(figure.subplots(1, len(parts), squeeze=False)[0], parts.items(), strict=True):
                low, high = ranges[name]
                if axes == 1 and mesh.dimension == 1:
                    margin = 0.05 * (high - low) or 1.0
                    _draw_part(t, values, mesh, ax, t[k], 0, name, style)
                    ax.set_ylim(low - margin, high + margin)
                else:
                    _draw_part(t, values, mesh, ax, t[k], 0, name, {"vmin": low, "vmax": high, **style})
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
