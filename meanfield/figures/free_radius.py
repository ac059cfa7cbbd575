"""Panels of tokens with a radius: directions on circle or sphere, distribution of log r, tokens on the plane."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.axes import Floats, label_linear, panels_across
from meanfield.figures.color_scale import color_map
from meanfield.figures.profiles import draw_profiles, profiles_height
from meanfield.figures.run_data import RunData, snapshots_chosen
from meanfield.figures.sphere_map import cell_angles, draw_sphere, maps_across, sphere_height
from meanfield.figures.trim import trim_cells
from meanfield.sections.section import tag_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import SubFigure

PLANES, PLANE_HEIGHT = 4, 2.9  # number of panels of the plane, and their height in inches
SHOWN_MASS = 0.995  # fraction of the mass within a panel of the plane
COMMON = 5.0  # ratio of extents up to which all panels of the plane have one scale, so that growth is visible
PLANE_DECADES = 1e-4  # lower bound of the densities shown, relative to the highest density


def directions_of(run_data: RunData) -> RunData:
    """Return the marginal ∫ρ d log r over directions of a density over direction and radius r, as data of a run.

    The result is on the circle or the sphere.
    """
    widths = _widths(run_data)
    return replace(
        run_data,
        manifold=tag_of(run_data.kind.directions),
        density=lambda k: widths @ _density_by_radius(run_data, k),
        edges=None,
    )


def radii_of(run_data: RunData) -> RunData:
    """Return the distribution of log r of a density over direction and radius r, ∫ρ dω, as data of a run.

    It is restricted to the radii with visible density.
    """
    areas = _areas(run_data)
    return trim_cells(
        replace(
            run_data,
            manifold="radius",
            ring_cells=np.array([len(_widths(run_data))]),
            density=lambda k: _density_by_radius(run_data, k) @ areas,
        )
    )


def quantiles(run_data: RunData, snapshots: Iterable[int], parts: Floats) -> Floats:
    """Return quantiles (snapshots, parts) of the radius of a density over direction and radius.

    ``parts`` are the fractions of the mass within these radii.
    """
    assert run_data.edges is not None
    areas, widths, log_edges = _areas(run_data), _widths(run_data), np.log(run_data.edges)
    found = []
    for k in snapshots:
        cumulative = np.concatenate([[0.0], np.cumsum(_density_by_radius(run_data, k) @ areas * widths)])
        growth = run_data.expansion * run_data.times[k]
        found.append(np.exp(growth + np.interp(parts * cumulative[-1], cumulative, log_edges)))
    return np.array(found)


def _widths(run_data: RunData) -> Floats:
    """Return the widths (radii,) of the cells in log r."""
    assert run_data.edges is not None
    return np.diff(np.log(run_data.edges))


def _areas(run_data: RunData) -> Floats:
    """Return the angle or area (directions,) of each cell of the circle or the sphere of directions."""
    cells = int(run_data.ring_cells.sum())
    if len(run_data.ring_cells) == 1:
        return np.full(cells, 2 * np.pi / cells)
    return cell_angles(run_data.ring_cells)[2]


def _density_by_radius(run_data: RunData, k: int) -> Floats:
    """Return the density of snapshot k as an array (radii, directions)."""
    return run_data.density(k).reshape(len(_widths(run_data)), -1)


def free_radius_height(run_data: RunData) -> float:
    """Return the height in inches of the panels of a density over direction and radius."""
    return sum(_heights(run_data))


def _heights(run_data: RunData, across: int = 2) -> list[float]:
    """Return the heights in inches of the rows of panels: directions, radii and, for tokens in the plane, the plane.

    ``across``, 1 or 2, is the number of panels side by side.
    """
    profiles = profiles_height(run_data) * (2 // across)
    return [sphere_height(run_data), profiles] if run_data.kind.shows_rings else [profiles, profiles, PLANE_HEIGHT]


def draw_free_radius(figure: SubFigure, run_data: RunData) -> None:
    """Draw a density over direction and radius: the directions, and below them the distribution of the radius.

    In the plane, the tokens at several times are drawn too.
    """
    heights = _heights(run_data, panels_across(figure))
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    (draw_sphere if run_data.kind.shows_rings else draw_profiles)(parts[0], directions_of(run_data))
    draw_profiles(parts[1], radii_of(run_data))
    if len(parts) > 2:
        _draw_planes(parts[2], run_data)


def _draw_planes(figure: SubFigure, run_data: RunData) -> None:
    """Draw the density of tokens in the plane at several times, with a color bar."""
    planes = min(PLANES, maps_across(figure))
    chosen = snapshots_chosen(run_data, planes)
    axes = figure.subplots(1, planes, squeeze=False)[0]
    for ax in axes[len(chosen) :]:
        ax.set_axis_off()
    drawn = list(axes[: len(chosen)])
    reaches = plane_reaches(quantiles(run_data, chosen, np.array([SHOWN_MASS]))[:, 0])
    for ax, k, reach in zip(drawn, chosen, reaches, strict=True):
        image = draw_plane(ax, run_data, k, reach)
        ax.set_title(f"tokens at {run_data.moment(run_data.times[k])}")
    bar = figure.colorbar(image, ax=drawn, extend="min")
    bar.set_label("density on the plane,\nhighest = 1")


def plane_reaches(extents: Floats) -> Floats:
    """Return half the width of each panel of the plane, given the radius within which its tokens lie.

    All panels share one width if the radii differ by at most a factor COMMON.
    """
    reaches = 1.15 * np.where(extents > 0, extents, extents.max() or 1.0)
    return np.full_like(reaches, reaches.max()) if reaches.max() <= COMMON * reaches.min() else reaches


def draw_plane(ax: Axes, run_data: RunData, k: int, reach: float) -> QuadMesh:
    """Draw the density ρ/r² of tokens x = rω in the plane, relative to its maximum, and return the image.

    ρ is the density over direction and log r. The panel covers |x_i| ≤ ``reach``.
    """
    from matplotlib.colors import LogNorm

    radius, angle, values = _plane(run_data, k)
    x, y = radius[:, None] * np.cos(angle), radius[:, None] * np.sin(angle)
    image = ax.pcolormesh(x, y, values, norm=LogNorm(PLANE_DECADES, 1.0), cmap=color_map(), rasterized=True)
    # The background has the lowest color of the scale, like cells below its range.
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", facecolor=image.cmap(0))
    label_linear(ax.xaxis, "$x_1$", reach)
    label_linear(ax.yaxis, "$x_2$" if ax.get_subplotspec().is_first_col() else "", reach)  # type: ignore[union-attr]
    ax.locator_params(nbins=3)
    return image


def _plane(run_data: RunData, k: int) -> tuple[Floats, Floats, Floats]:
    """Return the radii (radii + 1,) and angles (directions + 1,) of cell corners in the plane, and values of the cells.

    The values (radii, directions) are densities with respect to area, relative to the largest one.
    """
    assert run_data.edges is not None
    inner, outer = run_data.edges[:-1], run_data.edges[1:]
    per_area = _density_by_radius(run_data, k) * (_widths(run_data) / ((outer**2 - inner**2) / 2))[:, None]
    angle = np.linspace(0, 2 * np.pi, per_area.shape[1] + 1)
    radius = run_data.edges * np.exp(run_data.expansion * run_data.times[k])
    return radius, angle, (per_area / per_area.max()).clip(PLANE_DECADES)
