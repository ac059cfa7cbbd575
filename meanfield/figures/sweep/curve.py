"""Scalar of a sweep over one key: the median, and the quartiles over all other keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from meanfield.case.load import parse
from meanfield.figures.axes import Floats, label_decades
from meanfield.figures.run_data import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from meanfield.figures.sweep.theory import critical_line, theory_of_curve
from meanfield.sweeping.results import SweepResults
from meanfield.sweeping.scalars import long_name
from solvers.io.repair import FileError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
MARKERS = "osD^vPX"
_LOG_SPAN = 5.0  # ratio of largest to smallest value for a log axis of a positive scalar over a log key,
_DECADES = 1e3  # and over any key: exponential dependence is then a straight line
_TEXT = 32  # characters of a value in a legend


def draw_curves(ax: Axes, found: SweepResults, x: str, value: str, lines: str | None) -> None:
    """Draw the scalar result ``value`` of the runs of a sweep over ``x``, with a line for each value of ``lines``.

    ``x`` and ``lines`` are keys of the case that vary between runs. A theoretical curve is added if there is one.
    """
    values, positions = scalar(found, value), abscissas(found, x)
    groups = [found.done] if lines is None else _groups(found, lines)
    for k, group in enumerate(groups):
        name = None if lines is None else short(found.parameters[lines][group[0]], lines)
        style: dict[str, Any] = {"color": COLORS[k % len(COLORS)], "marker": MARKERS[k % len(MARKERS)]}
        _draw_spread(ax, positions[group], values[group], name, line=not found.is_random, style=style)
    _set_axes(ax, found, x, value, values[found.done])
    _draw_theory(ax, found, x, value, len(groups))
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False)


def _draw_spread(ax: Axes, x: Floats, values: Floats, name: str | None, *, line: bool, style: dict[str, Any]) -> None:
    """Draw the median of ``values`` for each x and, if some x has several values, a band of the quartiles.

    For counts, the means are drawn too. ``name`` is the label in the legend.

    line    whether the medians are connected
    style   color and marker
    """
    abscissas = np.unique(x)
    split = [values[(x == a) & np.isfinite(values)] for a in abscissas]
    present = [k for k, found in enumerate(split) if len(found)]
    low, middle, high = np.array([np.quantile(split[k], [0.25, 0.5, 0.75]) for k in present]).reshape(-1, 3).T
    max_repeats = max((len(found) for found in split), default=1)
    label = name or (f"median of {max_repeats}, and quartiles" if max_repeats > 1 else None)
    ax.plot(abscissas[present], middle, ls="-" if line else "", lw=1.4, ms=5, label=label, **style)
    if max_repeats > 1:
        ax.fill_between(abscissas[present], low, high, color=style["color"], alpha=0.2, lw=0)
    if max_repeats > 1 and (values == np.round(values)).all():  # the median of counts is a count and jumps
        means = [split[k].mean() for k in present]
        ax.plot(abscissas[present], means, ls="", ms=7, mfc="none", mew=1.4, label=None if name else "mean", **style)


def _set_axes(ax: Axes, found: SweepResults, x: str, value: str, values: Floats) -> None:
    """Set names, scales and ticks of the axes for the result ``value`` over the varied key ``x`` of a sweep."""
    from matplotlib.ticker import MaxNLocator

    ax.set(xlabel=axis_name(x), ylabel=long_name(value))
    if (values == np.round(values)).all():  # counts
        ax.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    positions = abscissas(found, x)
    if found.parameters[x].dtype == object:
        texts = list(dict.fromkeys(found.parameters[x].tolist()))
        ax.set_xticks(range(len(texts)), [short(text, x) for text in texts])
    elif found.spacings[x] == "log":
        ax.set_xscale("log")
        label_decades(ax.xaxis, positions.min(), positions.max())
    good, span = values[np.isfinite(values)], _LOG_SPAN if found.spacings[x] == "log" else _DECADES
    if len(good) and good.min() > 0 and good.max() > span * good.min():
        ax.set_yscale("log")
        label_decades(ax.yaxis, good.min(), good.max())


def _draw_theory(ax: Axes, found: SweepResults, x: str, value: str, groups: int) -> None:
    """Draw the theoretical curve of a result over the varied key ``x`` of a sweep, and the critical noise.

    Each is drawn only if a theory applies.
    """
    case, others = parse(found.attributes["case"]), found.parameters.keys() - {x}
    if (curve := theory_of_curve(case, x, value, others)) is not None:
        name, height = curve
        grid = np.geomspace(*ax.get_xlim(), 200) if ax.get_xscale() == "log" else np.linspace(*ax.get_xlim(), 200)
        ax.plot(grid, height(np.maximum(grid, 0.0)), color=BLACK, ls="--", lw=1.2, label=name, scalex=False)
    if (critical := critical_line(case, x, others)) is not None:
        ax.axvline(critical, color=BLACK, ls="--", lw=1.2, label=r"critical noise $\kappa_\#$")


def scalar(found: SweepResults, name: str) -> Floats:
    """Return a scalar result of each run of a sweep (points,). Raises FileError if there is none of this name."""
    known = [key for key, values in found.scalars.items() if values.ndim == 1]
    if name not in known:
        raise FileError(f"{found.path}: no scalar {name}; figure.value can be one of {', '.join(sorted(known))}")
    return found.scalars[name]


def abscissas(found: SweepResults, key: str) -> Floats:
    """Return the position of each run of a sweep on the axis of a key (points,).

    Positions are the numbers of the key, or the indices of its texts in order of appearance.
    """
    values = found.parameters[key]
    if values.dtype != object:
        return np.asarray(values, float)
    order = {text: index for index, text in enumerate(dict.fromkeys(values.tolist()))}
    return np.array([float(order[text]) for text in values])


def _groups(found: SweepResults, key: str) -> list[NDArray[np.intp]]:
    """Return the completed runs of a sweep in groups with equal values of a varied key."""
    values = found.parameters[key]
    groups = [found.done[values[found.done] == value] for value in dict.fromkeys(values.tolist())]
    return [group for group in groups if len(group)]


def short(value: Any, key: str) -> str:
    """Return the value of a key as a short text for a legend; for a whole section of a case, its kind."""
    if isinstance(value, str):
        kind = value.partition('kind = "')[2].partition('"')[0]
        text = f"{'from ' * (key == 'initial')}{kind.replace('_', ' ')}" if kind else value
        return text if len(text) <= _TEXT else text[: _TEXT - 1] + "…"
    return f"{axis_name(key)} = {value:.4g}"


def axis_name(key: str) -> str:
    """Return the name of a key of a case on an axis, as a symbol if the literature has one."""
    return _NAMES.get(key, key)


_NAMES = {
    "attention.beta": r"$\beta$",
    "stabilizers.noise": r"noise $\kappa$",
    "domain.dimension": "$d$",
    "time": "time $t$",
    "pairs_close": r"pairs with $\langle x, y\rangle \geq 1 - 10^{-3}$",
    "centroid_length": r"length of the mean token",
}
