"""Axes that are readable at half size: few ticks, no separate offset or factor, no empty panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure

Floats = NDArray[np.float64]

PLAIN = (1e-3, 1e5)  # numbers in this range are written out, others as powers of ten
PANEL_WIDTH = 3.0  # inches that a panel needs, including labels
LABEL_PART = 0.9  # of the height of a panel, for the label beside it
LOW_PANEL = 1.2  # inches: height of the lowest panel, including labels
SMALL_CHANGE = 0.01  # relative change below which a panel shows the change instead of the quantity
LINE_SPACING = 1.3  # heights of a text
EARLY = 0.1  # fraction of the time shown: a log axis is for earlier events


def panels_across(figure: Figure | SubFigure) -> int:
    """Return the number of panels in a row that fit into the width of a figure: one or two."""
    return 2 if inches_across(figure) >= 2 * PANEL_WIDTH else 1


def inches_across(figure: Figure | SubFigure) -> float:
    """Return the width of a figure or subfigure in inches."""
    return float(figure.bbox.width / figure.figure.dpi)


def panels_down(figure: Figure | SubFigure) -> int:
    """Return the number of rows of panels that fit into the height of a figure, at least one."""
    return max(1, int(figure.bbox.height / figure.figure.dpi / LOW_PANEL))


def is_single(figure: Figure | SubFigure) -> bool:
    """Return whether a figure has room for one panel only, which is then drawn without a heading."""
    return panels_across(figure) == 1 and panels_down(figure) == 1


def row_of_axes(figure: Figure | SubFigure, count: int, width_ratios: Sequence[float] | None = None) -> list[Axes]:
    """Return at most ``count`` new axes: in a row, or below each other in a narrow figure, as many as fit."""
    if panels_across(figure) > 1:
        return list(figure.subplots(1, count, squeeze=False, width_ratios=width_ratios)[0])
    return list(figure.subplots(min(count, panels_down(figure)), 1, squeeze=False)[:, 0])


def inches_up(ax: Axes) -> float:
    """Return the largest length in inches of a label along the vertical axis of a panel.

    The layout of the figure, which is not done yet, may shrink the panel.
    """
    return LABEL_PART * float(ax.bbox.height / ax.figure.dpi)


def label_decades(axis: Axis, low: float, high: float) -> None:
    """Set the tick labels of a logarithmic axis from ``low`` to ``high``: decades, and their multiples by 2 and 5.

    The multiples are labeled on axes of less than two decades, if there is room.
    """
    plain, few = low >= PLAIN[0] and high < PLAIN[1], high < 100 * low

    def text(value: float) -> str:
        if plain:
            return f"{value:g}"
        digit, exponent = f"{value:.0e}".split("e")
        times = "" if digit == "1" else rf"{digit} \times "
        return f"${times}10^{{{int(exponent)}}}$"

    axis.set_major_formatter(lambda value, _: text(value))
    axis.set_minor_formatter(
        lambda value, _: text(value) if few and f"{value:e}"[0] in "25" and _has_room(axis) else ""
    )


def _has_room(axis: Axis) -> bool:
    """Return whether a logarithmic axis has room for labels at 2 and 5: horizontal axes have."""
    from matplotlib import rcParams

    low, high = axis.get_view_interval()
    points = 72 * axis.axes.bbox.height / axis.axes.figure.dpi
    between = points * np.log10(2) / max(np.log10(high / low), 1e-9)  # from 5 to 10
    return axis is axis.axes.xaxis or bool(between > LINE_SPACING * rcParams["font.size"])


def label_linear(axis: Axis, label: str, largest: float) -> None:
    """Set ticks of a linear axis for numbers up to ``largest``; the ``label`` includes their common factor 10ⁿ."""
    from matplotlib.ticker import MaxNLocator

    exponent = 0 if largest == 0 or 1e-2 <= largest < PLAIN[1] else int(np.floor(np.log10(largest) + 1e-9))
    axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(lambda value, _: f"{value / 10.0**exponent:.6g}".replace("-", "−"))
    axis.set_label_text(label + (rf"  ($10^{{{exponent}}}$)" if exponent else ""))


def is_early(moments: Floats, amounts: Floats, first: float, last: float) -> bool:
    """Return whether half of the total of ``amounts`` (n,) at ``moments`` (n,) occurs in the first tenth of the time.

    first   start of a log axis; earlier changes would be hidden, so they are no reason for one
    last    end of the time shown
    """
    if not amounts.sum() > 0:
        return False
    order = np.argsort(moments)
    cumulative = np.cumsum(amounts[order])
    half = float(moments[order][np.searchsorted(cumulative, cumulative[-1] / 2)])
    return first <= half < EARLY * last


def set_time(ax: Axes, label: str, limits: tuple[float, float], *, log: bool) -> None:
    """Set the time axis of a panel, linear or logarithmic, between the first and the last time."""
    if limits[0] < limits[1]:  # a run that was stopped at once has one time
        ax.set_xlim(*limits)
    if log:
        ax.set_xscale("log")
        label_decades(ax.xaxis, *limits)
        ax.set_xlabel(label)
    else:
        label_linear(ax.xaxis, label, limits[1])


def draw_change(ax: Axes, time: Floats, values: Floats, name: str, **line: Any) -> bool:
    """Draw a curve over time, or its change since the start if this is small; return whether the change is drawn.

    A change is small if the range of the values is below SMALL_CHANGE of the largest modulus.
    """
    values = np.where(np.isfinite(values), values, np.nan)
    change, size = float(np.nanmax(values) - np.nanmin(values)), float(np.nanmax(np.abs(values)))
    small = change < SMALL_CHANGE * size
    if small:
        # The axis spans at least 1e-12 of the quantity, so that rounding looks flat.
        first = values[np.isfinite(values)][0]
        values, name, size = values - first, f"change of {name}", max(change, 1e-12 * size)
        lowest = min(float(np.nanmin(values)), 0.0)
        ax.set_ylim(lowest - 0.05 * size, lowest + 1.05 * size)
    ax.plot(time, values, lw=1.4, **line)
    label_linear(ax.yaxis, name, size)
    return small


def ink(level: float) -> tuple[float, ...]:
    """Return a color between the text color, at 0, and the background color, at 1."""
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb

    text, background = (np.array(to_rgb(rcParams[key])) for key in ("text.color", "axes.facecolor"))
    return tuple(((1 - level) * text + level * background).tolist())


def annotate(ax: Axes, text: str, height: float = 0.5) -> None:
    """Write an explanation in an empty panel; ``height`` is a fraction of the height of the panel."""
    ax.text(0.5, height, text, transform=ax.transAxes, ha="center", va="center", color=ink(0.35))


def set_decades(ax: Axes, values: Floats, floor: float = 0.0, decades: float = 20.0) -> None:
    """Set a log axis that spans the positive ``values`` with a margin, at most ``decades`` and not below ``floor``.

    A panel without positive values is marked as zero at all times.
    """
    shown = values[(values > 0) & np.isfinite(values)]
    if not len(shown):
        ax.set_yticks([])
        annotate(ax, "zero at all times")
        return
    high = 3 * float(shown.max())
    low = max(float(shown.min()) / 3, high * 10.0**-decades, floor)
    ax.set(yscale="log", ylim=(low, high))
    label_decades(ax.yaxis, low, high)


def mark_time(ax: Axes, time: float, text: str) -> None:
    """Draw a thin vertical line with a text at a time within the panel; nothing for another time or NaN."""
    from matplotlib.patheffects import withStroke

    low, high = ax.get_xlim()
    if not low <= time <= high:
        return
    halo = [withStroke(linewidth=2.5, foreground=ink(1), alpha=0.8)]  # legible above curves and colors
    ax.axvline(time, color=ink(0.25), lw=1.0, ls=(0, (4, 2)), zorder=2.5, path_effects=halo)
    to_left = ax.transData.transform((time, 0))[0] > ax.transAxes.transform((0.85, 0))[0]
    ax.annotate(
        text,
        (time, 0),
        (-3 if to_left else 3, 4),
        xycoords=ax.get_xaxis_transform(),
        textcoords="offset points",
        rotation=90,
        va="bottom",
        ha="right" if to_left else "left",
        fontsize="small",
        color=ink(0.15),
        path_effects=halo,
        zorder=5,
    )


def positive(values: Floats) -> Floats:
    """Return the values that a log axis can show, with NaN in place of values ≤ 0."""
    return np.where(values > 0, values, np.nan)
