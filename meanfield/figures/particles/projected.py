"""Tokens in many dimensions: angles between tokens over time, and projections on two principal axes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from meanfield.figures.axes import Floats, inches_across, label_decades, label_linear, set_time
from meanfield.figures.captions import wrap_text
from meanfield.figures.color_scale import color_map
from meanfield.figures.particles.tokens import (
    directions,
    dot_areas,
    merge_points,
    principal_axes,
    tokens_of,
)
from meanfield.figures.profiles import COLUMNS, time_edges
from meanfield.figures.run_data import (
    BLUE,
    SNAPSHOTS,
    VERMILION,
    Integers,
    RunData,
    describe_snapshot,
    snapshots_chosen,
)
from meanfield.figures.sphere_map import maps_across

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import SubFigure

BINS = 60  # bins of 3° for the angle between two tokens
DECADES = 1e-4  # lower bound of the shares drawn, relative to the largest
SEVERAL, RING = (
    1.001,
    60.0,
)  # least mass of a cluster of several, by that of the heaviest token; area of a ring beyond its dot, in points²
TICKS = (np.linspace(0, np.pi, 5), ["0", "π/4", "π/2", "3π/4", "π"])


def draw_pairs(ax: Axes, run_data: RunData) -> None:
    """Draw the share of pairs of tokens at each angle over time, with a color bar."""
    image = draw_pairs_picture(ax, run_data)
    ax.set_title("angle between two tokens, arccos ⟨θ, θ′⟩")
    bar = ax.figure.colorbar(image, ax=ax, extend="min")
    label_decades(bar.ax.yaxis, *image.get_clim())
    bar.set_label("share of the pairs, per 3°")


def draw_pairs_picture(ax: Axes, run_data: RunData) -> QuadMesh:
    """Draw the share of pairs of tokens at each angle over time, without title and color bar, and return the image."""
    from matplotlib.colors import LogNorm

    times, shares = pair_shares(run_data)
    high = float(shares.max())
    low = min(max(DECADES * high, float(shares[shares > 0].min())), 0.1 * high)
    edges, places = time_edges(times, run_data.log_time), np.linspace(0, np.pi, BINS + 1)
    image = ax.pcolormesh(edges, places, shares.T.clip(low), norm=LogNorm(low, high), cmap=color_map(), rasterized=True)
    set_time(ax, run_data.time_label, (times[0], times[-1]), log=run_data.log_time)
    ax.set_yticks(*TICKS)
    ax.set(ylabel="angle (rad)", ylim=(0, np.pi))
    return image


def has_pairs(run_data: RunData) -> bool:
    """Return whether angles between tokens were recorded at two or more times on the axis."""
    return "pairs" in run_data.diagnostics and len(_samples_with_pairs(run_data)) > 1


def _samples_with_pairs(run_data: RunData) -> Integers:
    """Return the indices of samples on the time axis in which the shares of pairs of tokens by angle are finite."""
    on_axis = (run_data.diagnostics["time"] > 0) | (not run_data.log_time)
    return np.flatnonzero(on_axis & np.isfinite(run_data.diagnostics["pairs"]).all(axis=1))


def pair_shares(run_data: RunData) -> tuple[Floats, Floats]:
    """Return times (samples,) on the axis, and shares (samples, 60) of pairs of tokens in 3° bins of their angle."""
    time, shown = run_data.diagnostics["time"], _samples_with_pairs(run_data)
    shown = shown[np.unique(np.linspace(0, len(shown) - 1, COLUMNS).astype(int))]
    return time[shown], angle_shares(run_data.diagnostics["pairs"][shown])


def angle_shares(pairs: Floats) -> Floats:
    """Return shares (samples, 60) of pairs of tokens in bins of 3° of their angle, in increasing order.

    ``pairs`` are shares in the bins of meanfield.clusters.pairs, which are finer at small angles.
    """
    # These bins go from π down to 3°, and continue with smaller ones.
    shares = np.concatenate([pairs[:, : BINS - 1], pairs[:, BINS - 1 :].sum(axis=1, keepdims=True)], axis=1)
    return shares[:, ::-1]


def projections_height(run_data: RunData) -> float:
    """Return the height in inches of the projections of directions, with their caption."""
    return 3.0 * _rows(run_data) + 0.4


def _rows(run_data: RunData) -> int:
    """Return the number of rows of maps on which tokens are shown, three maps a row."""
    return -(-len(snapshots_chosen(run_data, SNAPSHOTS)) // 3)


def draw_projections(figure: SubFigure, run_data: RunData) -> None:
    """Draw the directions of tokens projected on two principal axes, at up to six times."""
    across = min(3, maps_across(figure))
    rows = SNAPSHOTS if run_data.shown is not None else 2
    chosen = snapshots_chosen(run_data, min(SNAPSHOTS, rows * across))
    spread, axes, share = principal_axes(run_data)
    places = [directions(run_data, k) @ axes for k in chosen]
    reach = reach_of(places)
    panels = figure.subplots(-(-len(chosen) // across), across, squeeze=False, sharex=True, sharey=True)
    for ax in panels.flat[len(chosen) :]:
        ax.set_axis_off()
    for ax, k, place in zip(panels.flat, chosen, places, strict=False):
        points, masses = merge_points(place, tokens_of(run_data).weights, 2 * reach)
        ax.scatter(*points.T, s=dot_areas(masses), color=BLUE, alpha=0.6, linewidths=0, rasterized=True)
        _ring_clusters(ax, run_data, k, axes)
        ax.set_title(describe_snapshot(run_data, k))
        set_reach(ax, reach)
    for ax in panels[-1]:
        ax.set_xlabel("first axis")
    for ax in panels[:, 0]:
        ax.set_ylabel("second axis")
    rings = "; rings: clusters of several" if run_data.clusters is not None else ""
    figure.supxlabel(wrap_text(caption(run_data, spread, share) + rings, inches_across(figure)), fontsize="medium")


def _ring_clusters(ax: Axes, run_data: RunData, k: int, axes: Floats) -> None:
    """Draw rings on a projection around the clusters of snapshot k that consist of several tokens."""
    if run_data.clusters is None:
        return
    _, masses, places = run_data.clusters(k)
    several = masses > SEVERAL * tokens_of(run_data).weights.max()
    across, up = (places[several] @ axes).T
    areas = dot_areas(masses[several]) + RING
    ax.scatter(across, up, s=areas, facecolors="none", edgecolors=VERMILION, linewidths=1.2)


def reach_of(places: Iterable[Floats]) -> float:
    """Return half the side of a square around the origin that contains all positions (n, 2), with a margin."""
    return 1.1 * max(float(np.abs(place).max(initial=0.0)) for place in places) or 1.0


def set_reach(ax: Axes, reach: float) -> None:
    """Set equal axes from −``reach`` to ``reach``."""
    ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    for axis in (ax.xaxis, ax.yaxis):
        label_linear(axis, axis.get_label_text(), reach)
    ax.locator_params(nbins=5)


def caption(run_data: RunData, spread: int, share: float) -> str:
    """Return the caption of projections of tokens on the principal axes of a snapshot.

    spread   number of this snapshot
    share    fraction of the variance of its directions along these axes
    """
    when = run_data.moment(run_data.times[spread])
    return f"directions on the two principal axes of the tokens at {when}: {share:.0%} of their variance; area: mass"
