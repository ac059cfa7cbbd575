"""Figure of tokens at several numbers n beside their density: distances, exponent, fluctuations, final clusters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.analysis.token_numbers.statistics import mean_half_width
from meanfield.figures.axes import label_decades, panels_across, row_of_axes
from meanfield.figures.run_data import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from meanfield.results.token_numbers import Limit

COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
MAX_OBSERVABLES = 3  # panels of fluctuations in a row


def compose(found: Limit, figure: Figure | SubFigure) -> None:
    """Draw tokens beside their density into an empty figure: two rows, or one column of as many panels as fit."""
    draws: list[Callable[[Axes, Limit], None]] = [_draw_distances, _draw_exponent, _draw_clusters]
    more: list[Callable[[Axes, Limit], None]] = [
        partial(_draw_fluctuations, k=k) for k in range(min(len(found.observables), MAX_OBSERVABLES))
    ]
    if panels_across(figure) > 1:
        above, below = figure.subfigures(2, 1, squeeze=False)[:, 0]
        axes = row_of_axes(above, len(draws), (1.3, 1, 1)) + row_of_axes(below, len(more))
    else:
        axes = row_of_axes(figure, len(draws) + len(more))
    for draw, ax in zip(draws + more, axes, strict=False):
        draw(ax, found)


def _style(k: int) -> dict[str, Any]:
    """Return the style of the curves of the k-th number of tokens."""
    return {"color": COLORS[k % len(COLORS)]}


def _draw_distances(ax: Axes, found: Limit) -> None:
    """Draw the mean distance over time for each n, with its interval, and the tolerance."""
    for k, count in enumerate(found.n):
        mean, half = found.mean_distance[k], found.distance_half_width[k]
        ax.plot(found.time, mean, label=f"n = {count}", **_style(k))
        ax.fill_between(found.time, np.maximum(mean - half, 0), mean + half, alpha=0.2, lw=0, **_style(k))
    ax.axhline(found.tolerance, color=BLACK, ls=":", lw=1)
    for k, until in enumerate(found.predicted_followed):
        if until <= found.time[-1]:
            ax.axvline(until, ls="--", lw=1, **_style(k))
    lines = "; dashed: log(n)/2λ" if np.isfinite(found.rate) else ""
    ax.set_title(f"W{found.order} to the density (rad){lines}", loc="left")
    ax.set(xlabel="time t", xlim=(0, found.time[-1]), ylim=(0, None))
    ax.legend(frameon=False)


def _draw_exponent(ax: Axes, found: Limit) -> None:
    """Draw the distance, averaged over the times at which all n follow the density, over n, beside n^{−1/2}.

    The bars are the intervals of the means over seeds.
    """
    of_seeds = found.distance[..., found.following].mean(axis=2)
    mean, n = of_seeds.mean(axis=1), found.n.astype(float)
    ax.errorbar(
        n,
        mean,
        mean_half_width(of_seeds, axis=1),
        fmt="o",
        ms=5,
        label=f"up to t = {found.all_follow_until:.3g}",
        color=BLACK,
    )
    middle = np.exp(np.log(mean).mean()) * np.sqrt(np.exp(np.log(n).mean()))
    ax.plot(n, middle / np.sqrt(n), "--", color=BLUE, label="∝ n^(−1/2)")
    ax.set_title(f"exponent {found.exponent}".replace("-", "−"), loc="left")
    ax.set(xlabel="number n of tokens", ylabel=f"mean W{found.order} (rad)", xscale="log", yscale="log")
    label_decades(ax.xaxis, n.min(), n.max())
    label_decades(ax.yaxis, mean.min(), mean.max())
    ax.legend(frameon=False)


def _draw_clusters(ax: Axes, found: Limit) -> None:
    """Draw the shares of the seeds by final number of clusters, as bars for each n, with the number of the density."""
    from matplotlib.ticker import MaxNLocator

    counts, density = np.arange(found.configurations.shape[1]), found.density_clusters
    width = 0.8 / len(found.n)
    for k, shares in enumerate(found.configurations):
        ax.bar(counts + (k - (len(found.n) - 1) / 2) * width, shares, width, **_style(k))
    if density >= 0:
        ax.axvline(density, color=BLACK, ls="--", lw=1, label="density")
        ax.legend(frameon=False)
    present = [*np.flatnonzero(found.configurations.any(axis=0)), *([density] if density >= 0 else [])]
    ax.set_title("share of the seeds", loc="left")
    ax.set(xlabel="final number of clusters", xlim=(min(present) - 0.6, max(present) + 0.6), ylim=(0, 1))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_fluctuations(ax: Axes, found: Limit, k: int) -> None:
    """Draw n Var of observable k over time for each n, with its interval, and the prediction."""
    low, high = found.fluctuations_interval[..., k]
    for size in range(len(found.n)):
        ax.plot(found.time, found.fluctuations[size, :, k], **_style(size))
        ax.fill_between(found.time, low[size], high[size], alpha=0.15, lw=0, **_style(size))
    if not found.not_predicted:
        ax.plot(found.time, found.predicted[:, k], "--", color=BLACK, label="prediction for n → ∞")
        ax.legend(frameon=False)
    ax.set_title(f"n Var of the mean of {found.observables[k]}", loc="left")
    ax.set(xlabel="time t", xlim=(0, found.time[-1]), ylim=(0, None))
