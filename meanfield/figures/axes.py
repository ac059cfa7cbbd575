"""Axes that can be read at half size: few ticks, no offset or factor in a corner of its own, nothing left empty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure

Floats = NDArray[np.float64]

PLAIN = (1e-3, 1e5)  # numbers in between are written out, others as a power of ten
PANEL_WIDTH = 3.0  # inches that a panel needs, its labels included
SMALL_CHANGE = 0.01  # of a quantity's size: a smaller change is shown as a change
EARLY = 0.1  # of the time shown: a log axis is for what happens sooner


def panels_across(figure: Figure | SubFigure) -> int:
    """How many panels stand beside each other, one or two."""
    return 2 if inches_across(figure) >= 2 * PANEL_WIDTH else 1


def inches_across(figure: Figure | SubFigure) -> float:
    """The width of a figure or a part of one."""
    return float(figure.bbox.width / figure.figure.dpi)


def label_decades(axis: Axis, low: float, high: float) -> None:
    """Ticks of a logarithmic axis from ``low`` to ``high``: its decades, and 2 and 5 where there are but two."""
    plain, few = low >= PLAIN[0] and high < PLAIN[1], high < 100 * low

    def text(value: float) -> str:
        if plain:
            return f"{value:g}"
        digit, exponent = f"{value:.0e}".split("e")
        times = "" if digit == "1" else rf"{digit} \times "
        return f"${times}10^{{{int(exponent)}}}$"

    axis.set_major_formatter(lambda value, _: text(value))
    axis.set_minor_formatter(lambda value, _: text(value) if few and f"{value:e}"[0] in "25" else "")


def label_linear(axis: Axis, label: str, largest: float) -> None:
    """Ticks of a linear axis for numbers up to ``largest``, their common factor 10ⁿ within the axis' ``label``."""
    from matplotlib.ticker import MaxNLocator

    exponent = 0 if largest == 0 or 1e-2 <= largest < PLAIN[1] else int(np.floor(np.log10(largest) + 1e-9))
    axis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(lambda value, _: f"{value / 10.0**exponent:.6g}".replace("-", "−"))
    axis.set_label_text(label + (rf"  ($10^{{{exponent}}}$)" if exponent else ""))


def is_early(moments: Floats, amounts: Floats, first: float, last: float) -> bool:
    """Whether half of what happens, ``amounts`` (n,) at ``moments`` (n,), is over in the first tenth of the time shown.

    first   where a log axis would begin: what happened before is lost there, and no reason to choose it
    """
    if not amounts.sum() > 0:
        return False
    order = np.argsort(moments)
    cumulative = np.cumsum(amounts[order])
    half = float(moments[order][np.searchsorted(cumulative, cumulative[-1] / 2)])
    return first <= half < EARLY * last


def set_time(ax: Axes, label: str, limits: tuple[float, float], *, log: bool) -> None:
    """The time axis, linear or logarithmic, between the first and the last time."""
    if limits[0] < limits[1]:  # a run that was stopped at once has one time
        ax.set_xlim(*limits)
    if log:
        ax.set_xscale("log")
        label_decades(ax.xaxis, *limits)
        ax.set_xlabel(label)
    else:
        label_linear(ax.xaxis, label, limits[1])


def draw_change(ax: Axes, time: Floats, values: Floats, name: str, **line: Any) -> bool:
    """A curve over time; what it gained since the start, where that is so little that all ticks would look alike.

    Returns whether that was so.
    """
    values = np.where(np.isfinite(values), values, np.nan)
    change, size = float(np.nanmax(values) - np.nanmin(values)), float(np.nanmax(np.abs(values)))
    small = change < SMALL_CHANGE * size
    if small:
        # No closer look than at 1e-12 of the quantity: rounding should look flat.
        first = values[np.isfinite(values)][0]
        values, name, size = values - first, f"gain in {name}", max(change, 1e-12 * size)
        lowest = min(float(np.nanmin(values)), 0.0)
        ax.set_ylim(lowest - 0.05 * size, lowest + 1.05 * size)
    ax.plot(time, values, lw=1.4, **line)
    label_linear(ax.yaxis, name, size)
    return small


def ink(level: float) -> tuple[float, ...]:
    """A colour between that of text, at 0, and the background's, at 1: black to white unless the style is dark."""
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb

    text, background = (np.array(to_rgb(rcParams[key])) for key in ("text.color", "axes.facecolor"))
    return tuple(((1 - level) * text + level * background).tolist())


def annotate(ax: Axes, text: str, height: float = 0.5) -> None:
    """Explain a panel in which there is nothing to see; ``height`` is a fraction of the panel's."""
    ax.text(0.5, height, text, transform=ax.transAxes, ha="center", va="center", color=ink(0.35))


def set_decades(ax: Axes, values: Floats, floor: float = 0.0, decades: float = 20.0) -> None:
    """A log axis for what was recorded and a little more, at most ``decades`` down and not below ``floor``."""
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
    """A thin line at a time within the panel, and along it what happens there; nothing where ``time`` is NaN."""
    from matplotlib.patheffects import withStroke

    low, high = ax.get_xlim()
    if not low <= time <= high:
        return
    halo = [withStroke(linewidth=2.5, foreground=ink(1), alpha=0.8)]  # above curves and colours
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
    """The values that a log axis can show; the others leave a gap."""
    return np.where(values > 0, values, np.nan)
