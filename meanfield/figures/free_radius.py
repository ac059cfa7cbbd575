"""Panels of tokens with a radius: directions as on circle or sphere, the distribution of log r, tokens on the plane."""

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
from meanfield.figures.trim import trimmed
from meanfield.sections.section import tag_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import SubFigure

PLANES, PLANE_HEIGHT = 4, 2.9  # pictures of the plane, and the inches that they need
SHOWN_MASS = 0.995  # of the mass: how far a picture of the plane reaches
COMMON = 5.0  # times the least reach: up to it pictures of the plane have one scale, which shows growth at a glance
PLANE_DECADES = 1e-4  # of the highest density, below which the plane is empty


def directions_of(run_data: RunData) -> RunData:
    """The marginal on directions, ∫ρ d log r, as run data on the circle or sphere."""
    widths = _widths(run_data)
    return replace(
        run_data,
        manifold=tag_of(run_data.kind.directions),
        density=lambda k: widths @ _by_radius(run_data, k),
        edges=None,
    )


def radii_of(run_data: RunData) -> RunData:
    """The distribution of log r, ∫ρ dω, on those radii where tokens are."""
    areas = _areas(run_data)
    return trimmed(
        replace(
            run_data,
            manifold="radius",
            ring_cells=np.array([len(_widths(run_data))]),
            density=lambda k: _by_radius(run_data, k) @ areas,
        )
    )


def quantiles(run_data: RunData, snapshots: Iterable[int], parts: Floats) -> Floats:
    """(snapshots, parts) the radii within which these parts of the mass of each of the snapshots are."""
    assert run_data.edges is not None
    areas, widths, log_edges = _areas(run_data), _widths(run_data), np.log(run_data.edges)
    found = []
    for k in snapshots:
        cumulative = np.concatenate([[0.0], np.cumsum(_by_radius(run_data, k) @ areas * widths)])
        growth = run_data.expansion * run_data.times[k]
        found.append(np.exp(growth + np.interp(parts * cumulative[-1], cumulative, log_edges)))
    return np.array(found)


def _widths(run_data: RunData) -> Floats:
    """(radii,) of the cells in log r."""
    assert run_data.edges is not None
    return np.diff(np.log(run_data.edges))


def _areas(run_data: RunData) -> Floats:
    """(directions,) angles of the circle's cells, or areas of the sphere's."""
    cells = int(run_data.ring_cells.sum())
    if len(run_data.ring_cells) == 1:
        return np.full(cells, 2 * np.pi / cells)
    return cell_angles(run_data.ring_cells)[2]


def _by_radius(run_data: RunData, k: int) -> Floats:
    """(radii, directions) of snapshot k."""
    return run_data.density(k).reshape(len(_widths(run_data)), -1)


def free_radius_height(run_data: RunData) -> float:
    """Inches that the pictures need."""
    return sum(_heights(run_data))


def _heights(run_data: RunData, across: int = 2) -> list[float]:
    """Of each part, where so many panels stand beside each other."""
    profiles = profiles_height(run_data) * (2 // across)
    return [sphere_height(run_data), profiles] if run_data.kind.shows_rings else [profiles, profiles, PLANE_HEIGHT]


def draw_free_radius(figure: SubFigure, run_data: RunData) -> None:
    """Fill ``figure`` with the directions, below them the radii, and on the plane the tokens at a few times."""
    heights = _heights(run_data, panels_across(figure))
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    (draw_sphere if run_data.kind.shows_rings else draw_profiles)(parts[0], directions_of(run_data))
    draw_profiles(parts[1], radii_of(run_data))
    if len(parts) > 2:
        _draw_planes(parts[2], run_data)


def _draw_planes(figure: SubFigure, run_data: RunData) -> None:
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
    """Half widths of pictures of the plane with tokens within these radii: one, or each its own where far apart."""
    reaches = 1.15 * np.where(extents > 0, extents, extents.max() or 1.0)
    return np.full_like(reaches, reaches.max()) if reaches.max() <= COMMON * reaches.min() else reaches


def draw_plane(ax: Axes, run_data: RunData, k: int, reach: float) -> QuadMesh:
    """The density of tokens x = rω with respect to area, ρ/r², in units of its highest value; returns the picture.

    The picture is of |x_i| ≤ ``reach``.
    """
    from matplotlib.colors import LogNorm

    radius, angle, values = _plane(run_data, k)
    x, y = radius[:, None] * np.cos(angle), radius[:, None] * np.sin(angle)
    image = ax.pcolormesh(x, y, values, norm=LogNorm(PLANE_DECADES, 1.0), cmap=color_map(), rasterized=True)
    # What is emptier than the scale shows is as dark as its lowest colour.
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal", facecolor=image.cmap(0))
    label_linear(ax.xaxis, "$x_1$", reach)
    label_linear(ax.yaxis, "$x_2$" if ax.get_subplotspec().is_first_col() else "", reach)  # type: ignore[union-attr]
    ax.locator_params(nbins=3)
    return image


def _plane(run_data: RunData, k: int) -> tuple[Floats, Floats, Floats]:
    """Radii (radii + 1,) and angles (directions + 1,) of the cells' corners, and the values (radii, directions)."""
    assert run_data.edges is not None
    inner, outer = run_data.edges[:-1], run_data.edges[1:]
    per_area = _by_radius(run_data, k) * (_widths(run_data) / ((outer**2 - inner**2) / 2))[:, None]
    angle = np.linspace(0, 2 * np.pi, per_area.shape[1] + 1)
    radius = run_data.edges * np.exp(run_data.expansion * run_data.times[k])
    return radius, angle, (per_area / per_area.max()).clip(PLANE_DECADES)
