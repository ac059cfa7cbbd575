"""Densities on the sphere: equal-area maps of selected snapshots, drawn cell by cell, with marked clusters.

The Hammer projection preserves areas, so equal colors on equal patches are equal masses. Its inverse has a closed form,
which gives the cell of each pixel. Azimuth 0 is at the center.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from meanfield.figures.axes import Floats, inches_across
from meanfield.figures.captions import wrap_text
from meanfield.figures.color_scale import UNIFORM_TEXT, Scale, color_map, scale_of
from meanfield.figures.run_data import SNAPSHOTS, Integers, RunData, describe_snapshot, snapshots_chosen
from solvers.mesh.rings import sphere_cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure
    from matplotlib.image import AxesImage

HALF_WIDTH, HALF_HEIGHT = 2 * np.sqrt(2), np.sqrt(2)
LABEL_SIZE, LABEL_OFFSET = (0.65, 0.28), (0.5, 0.32)  # of a mass label and from its peak, in map units
LABEL_MAP = 2.86 / 10.5  # for a map of this width in inches for each point of the font, as with three maps on a page
RINGS = "; rings: clusters, with their mass"
TITLE_HEIGHT, CAPTION_HEIGHT = 0.3, 0.4  # inches
MAP_WIDTH = 1.3  # inches that a map needs; a fifth of the figure is for the color bar
MIN_MASS = 0.005  # smaller masses would be written as 0.00


def sphere_height(run_data: RunData) -> float:
    """Return the height in inches of the maps of a run, on a page ten inches wide, with titles and caption."""
    rows, columns = map_grid(len(snapshots_chosen(run_data, SNAPSHOTS)))
    return rows * (8.6 / columns / 2 + TITLE_HEIGHT) + CAPTION_HEIGHT


def map_grid(maps: int, across: int = 3) -> tuple[int, int]:
    """Return the numbers of rows and columns of a grid of ``maps`` maps, at most ``across`` in a row."""
    columns = min(3 if maps > 4 else min(maps, 2), across)
    return -(-maps // columns), columns


def maps_across(figure: SubFigure) -> int:
    """Return the number of maps of the sphere that fit into a row of a figure."""
    return max(1, int(0.8 * inches_across(figure) / MAP_WIDTH))


def snapshots_on_maps(figure: SubFigure, run_data: RunData) -> list[int]:
    """Return the snapshots that are drawn as maps: at most six, fewer on a narrow figure if no times are given."""
    rows = SNAPSHOTS if run_data.shown is not None else 2
    return snapshots_chosen(run_data, min(SNAPSHOTS, rows * maps_across(figure)))


def draw_sphere(figure: SubFigure, run_data: RunData) -> None:
    """Draw a density on the sphere as equal-area maps of up to six snapshots, on one color scale."""
    chosen = snapshots_on_maps(figure, run_data)
    rows, columns = map_grid(len(chosen), maps_across(figure))
    axes = figure.subplots(rows, columns, squeeze=False)
    cell = pixel_cells(run_data.ring_cells, pixel_columns(run_data.ring_cells))
    ratios = [run_data.ratio(k) for k in chosen]
    scale = scale_of(run_data, chosen)
    for ax in axes.flat[len(chosen) :]:
        ax.remove()
    drawn = list(axes.flat[: len(chosen)])
    for ax, k, ratio in zip(drawn, chosen, ratios, strict=True):
        image = draw_map(ax, cell, ratio, scale)
        draw_graticule(ax)
        draw_clusters(ax, run_data, k)
        ax.set_title(describe_snapshot(run_data, k))
    bar = figure.colorbar(image, ax=drawn, extend=scale.extend(ratios), shrink=0.9, aspect=30)
    scale.draw_on(bar.ax.yaxis, scale.label)
    figure.supxlabel(wrap_text(_caption(run_data, len(chosen), scale), inches_across(figure)), fontsize="medium")


def draw_map(ax: Axes, cell: NDArray[np.int64], ratio: Floats, scale: Scale) -> AxesImage:
    """Draw ρ/ρ̄ (cells,) as a map of the sphere and return the image; ``cell`` is the cell of each pixel."""
    values, extent = (
        np.ma.masked_array(scale.values(ratio)[cell], cell < 0),
        (-HALF_WIDTH, HALF_WIDTH, -HALF_HEIGHT, HALF_HEIGHT),
    )
    return ax.imshow(values, norm=scale.norm, cmap=color_map(), extent=extent, interpolation="nearest")


def _caption(run_data: RunData, maps: int, scale: Scale) -> str:
    """Return the caption of the maps of a density."""
    marks = "" if run_data.clusters is None or scale.deviation else RINGS
    seen = f"; the density is uniform, within {UNIFORM_TEXT}" if scale.is_uniform else ""
    return f"equal-area map{'s' * (maps > 1)}; azimuth 0 at the center, lines every 30°{marks}{seen}"


def pixel_columns(ring_cells: Integers) -> int:
    """Return the pixels across a map: two for each cell on the equator, within limits of page and memory."""
    return 2 * int(np.clip(ring_cells.max(), 400, 1600))


def hammer(theta: Floats, phi: Floats) -> tuple[Floats, Floats]:
    """Return the equal-area Hammer projection of polar angles and azimuths: x in ±2√2 and y in ±√2."""
    half = (np.mod(phi + np.pi, 2 * np.pi) - np.pi) / 2
    root = np.sqrt(1 + np.sin(theta) * np.cos(half))
    return 2 * np.sqrt(2) * np.sin(theta) * np.sin(half) / root, np.sqrt(2) * np.cos(theta) / root


def hammer_inverse(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return the polar angle in [0, π] and azimuth in (−π, π] of points (x, y) on the Hammer map.

    NaN outside the ellipse of the map.
    """
    squared = 1 - (x / 4) ** 2 - (y / 2) ** 2
    z = np.sqrt(np.where(squared >= 0.5, squared, np.nan))
    return np.arccos(np.clip(y * z, -1, 1)), 2 * np.arctan2(z * x, 2 * (2 * z**2 - 1))


def pixel_cells(ring_cells: Integers, columns: int) -> NDArray[np.int64]:
    """Return the cell of the sphere at the center of each pixel of a map (columns / 2, columns), top row first.

    −1 outside the map.
    """
    x = HALF_WIDTH * (2 * (np.arange(columns) + 0.5) / columns - 1)
    y = HALF_HEIGHT * (1 - 2 * (np.arange(columns // 2) + 0.5) / (columns // 2))
    theta, phi = hammer_inverse(*np.meshgrid(x, y))
    inside = np.isfinite(theta)
    cell = np.full(theta.shape, -1, dtype=np.int64)
    cell[inside] = sphere_cells(ring_cells, theta[inside], phi[inside])
    return cell


def cell_angles(ring_cells: Integers) -> tuple[Floats, Floats, Floats]:
    """Return the polar angle and azimuth of the center of each cell of the sphere, and its area, each (cells,)."""
    rings = len(ring_cells)
    edge = np.linspace(0, np.pi, rings + 1)
    theta = np.repeat((edge[1:] + edge[:-1]) / 2, ring_cells)
    start = np.concatenate([[0], np.cumsum(ring_cells)])[:-1]
    index_in_ring = np.arange(len(theta)) - np.repeat(start, ring_cells)
    width = np.repeat(2 * np.pi / ring_cells, ring_cells)
    return theta, (index_in_ring + 0.5) * width, width * 2 * np.sin(theta) * np.sin(np.pi / rings / 2)


def polar_and_azimuth(points: Floats) -> tuple[Floats, Floats]:
    """Return the polar angle and the azimuth, each (n,), of unit vectors (n, 3)."""
    return np.arccos(np.clip(points[:, 2], -1, 1)), np.arctan2(points[:, 1], points[:, 0])


def draw_clusters(ax: Axes, run_data: RunData, k: int) -> None:
    """Draw rings on a map at the clusters of snapshot k, with their masses."""
    if run_data.clusters is not None:
        _, masses, places = run_data.clusters(k)
        draw_rings(ax, *polar_and_azimuth(places), masses)


def draw_rings(ax: Axes, polar: Floats, azimuth: Floats, masses: Floats) -> None:
    """Draw a ring at each position on the map, with its mass beside it unless an earlier label takes the space."""
    from matplotlib.patheffects import withStroke

    xs, ys = hammer(polar, azimuth)
    halo = [withStroke(linewidth=2, foreground="black")]
    # Rings may extend over the edge of the map; an empty line without clipping would disturb the layout.
    ring: dict[str, Any] = {"markerfacecolor": "none", "clip_on": False, "in_layout": False, "path_effects": halo}
    ax.plot(xs, ys, "o", markersize=8, markeredgecolor="white", **ring)
    labels: list[tuple[float, float]] = []
    scale = _label_scale(ax)
    for x, y, mass in zip(xs, ys, masses, strict=True):
        inward = -1 if x > 0 else 1  # keeps the text on the map
        for dx, dy in [(inward, 0), (-inward, 0), (0, 1), (0, -1)] if mass >= MIN_MASS else []:
            middle = (x + dx * scale * LABEL_OFFSET[0], y + dy * scale * LABEL_OFFSET[1])
            if _is_free(*middle, scale, labels, xs, ys):
                labels.append(middle)
                style: dict[str, Any] = {"color": "white", "fontsize": "small", "path_effects": halo}
                place: dict[str, Any] = {"xytext": (7 * dx, 11 * dy), "textcoords": "offset points", "va": "center"}
                ax.annotate(f"{mass:.2f}", (x, y), ha=("right", "center", "left")[dx + 1], **place, **style)
                break


def _label_scale(ax: Axes) -> float:
    """Return the size of labels on a map relative to a page with three maps in a row, at least 1."""
    from matplotlib import rcParams

    place, figure = ax.get_subplotspec(), ax.figure
    rows, columns = (1, 1) if place is None else place.get_gridspec().get_geometry()
    height = (float(figure.bbox.height / figure.figure.dpi) - CAPTION_HEIGHT) / rows - TITLE_HEIGHT
    width = min(0.86 * inches_across(figure) / columns, 2 * max(height, TITLE_HEIGHT))  # a map is half as high as wide
    return max(1.0, LABEL_MAP * float(rcParams["font.size"]) / width)


def _is_free(x: float, y: float, scale: float, labels: list[tuple[float, float]], xs: Floats, ys: Floats) -> bool:
    """Return whether a label at (x, y) stays on the map and overlaps no other labels and no clusters (xs, ys)."""
    width, height = scale * LABEL_SIZE[0], scale * LABEL_SIZE[1]
    on_map = abs(x) + width / 2 < HALF_WIDTH and abs(y) + height / 2 < HALF_HEIGHT  # also clear of the title
    off_labels = all(abs(x - a) > width or abs(y - b) > height for a, b in labels)
    off_peaks = np.all((np.abs(x - xs) > 0.7 * width) | (np.abs(y - ys) > 0.8 * height))
    return bool(on_map and off_labels and off_peaks)


def draw_graticule(ax: Axes) -> None:
    """Draw meridians and parallels every 30° and the edge of a map, without a frame."""
    line = np.linspace(1e-9, 1 - 1e-9, 181)  # slightly less than ±π, where the map is cut
    for degrees in range(-150, 180, 30):
        ax.plot(*hammer(np.pi * line, np.full(181, np.radians(degrees))), color="white", lw=0.4, alpha=0.35)
    for degrees in range(30, 180, 30):
        ax.plot(*hammer(np.full(181, np.radians(degrees)), np.pi * (2 * line - 1)), color="white", lw=0.4, alpha=0.35)
    full_circle = 2 * np.pi * line
    ax.plot(HALF_WIDTH * np.cos(full_circle), HALF_HEIGHT * np.sin(full_circle), color="black", lw=0.8)
    ax.set(xlim=(-1.01 * HALF_WIDTH, 1.01 * HALF_WIDTH), ylim=(-1.06 * HALF_HEIGHT, 1.06 * HALF_HEIGHT))
    ax.set_axis_off()
