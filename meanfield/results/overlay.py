"""Diagnostics of several results in one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from meanfield.figures.axes import label_decades, panels_across
from meanfield.figures.figure import empty_page, load
from meanfield.figures.panels.options import FigureOptions
from meanfield.figures.panels.selected import PANEL_HEIGHT
from meanfield.figures.saving import DPI
from meanfield.results.result import Result
from meanfield.sweeping.grid import flatten_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from meanfield.figures.run_data import RunData
    from solvers.mesh.mesh import Floats

MAX_KEYS = 3  # keys of a case in a label


def plot(
    results: Result | Sequence[Result] | Mapping[str, Result],
    diagnostics: str | Sequence[str] = "energy",
    *,
    labels: Sequence[str] | None = None,
    ax: Axes | None = None,
    size: tuple[float, float] | None = None,
    dpi: int | None = None,
    style: str = "screen",
) -> Figure:
    """Draw diagnostics of several results over time, a curve for each result.

    Parameters
    ----------
    results : Result, sequence of Result or mapping of str to Result
        Results, or results by label.
    diagnostics : str or sequence of str
        Names of diagnostics, a panel each: numbers such as "energy", or vectors such as "centroid", whose lengths are
        drawn.
    labels : sequence of str, optional
        Labels of the results. None: the keys by which their cases differ, such as "beta = 4".
    ax : matplotlib.axes.Axes, optional
        Axes for one diagnostic. None: a new figure.
    size : tuple of two floats, optional
        Width and height of a new figure in inches. None: the size that the panels need.
    dpi : int, optional
        Pixels per inch of a new figure.
    style : {"screen", "paper", "dark"}
        Sizes and colors of text; "paper" is for printing at full size.

    Returns
    -------
    matplotlib.figure.Figure
        The whole figure.

    Raises
    ------
    ValueError
        If a result lacks a diagnostic, if the number of labels differs from that of the results, or if ``ax`` is given
        for several diagnostics or with a size, or if a size or style is not valid.

    Examples
    --------
    >>> import meanfield as mf
    >>> runs = [mf.simulate("growth_circle", resolution=32, beta=beta, end=1) for beta in (2, 4)]
    >>> figure = mf.plot(runs, "energy")
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['beta = 2', 'beta = 4']
    """
    import matplotlib

    options = FigureOptions(None, size, DPI if dpi is None else dpi, style=style)
    if ax is not None and (size is not None or dpi is not None):
        raise ValueError(f"size = {size}, dpi = {dpi}: expected none with ax, whose figure has its own")
    if isinstance(results, Mapping):
        shown, labels = list(results.values()), list(results) if labels is None else labels
    else:
        shown = [results] if isinstance(results, Result) else list(results)
    names = [diagnostics] if isinstance(diagnostics, str) else list(diagnostics)
    labels = _labels(shown) if labels is None else labels
    if len(labels) != len(shown):
        raise ValueError(f"labels = {list(labels)}: expected {len(shown)}, one for each result")
    if not names or (ax is not None and len(names) > 1):
        raise ValueError(f"diagnostics = {names}: expected one name for one ax")
    runs = [load(result._run) for result in shown]
    with matplotlib.rc_context(options.context):
        if ax is not None:
            axes = [ax]
        else:
            columns = min(len(names), 2)
            figure = empty_page(options, (5.0 * columns, (PANEL_HEIGHT + 0.6) * -(-len(names) // columns)))
            columns = min(columns, panels_across(figure))
            axes = list(figure.subplots(-(-len(names) // columns), columns, squeeze=False).flat)
        for name, panel in zip(names, axes, strict=False):
            _draw(panel, name, shown, runs, labels)
        for panel in axes[len(names) :]:
            panel.remove()
    whole = axes[0].get_figure(root=True)
    assert whole is not None
    return whole


def _draw(ax: Axes, name: str, results: Sequence[Result], runs: Sequence[RunData], labels: Sequence[str]) -> None:
    """Draw one diagnostic of all results over time."""
    for result, label in zip(results, labels, strict=True):
        ax.plot(result.diagnostics.time, _numbers(result, name), lw=1.4, label=label)
    if all(run.log_time for run in runs):
        ax.set_xscale("log")
        label_decades(ax.xaxis, *ax.get_xlim())
    ax.set(xlabel=runs[0].time_label, ylabel=name)
    if len(results) > 1:
        ax.legend(frameon=False)


def _numbers(result: Result, name: str) -> Floats:
    """Return a diagnostic (samples,) of a result: numbers, or the lengths of vectors. Raises ValueError."""
    found = {key: values for key, values in result.diagnostics.items() if values.ndim == 1 or key == "centroid"}
    if name not in found:
        raise ValueError(f"diagnostics = {name!r}: expected one or more of {', '.join(found)}")
    values = found[name]
    return np.asarray(values if values.ndim == 1 else np.linalg.norm(values, axis=1))


def _labels(results: Sequence[Result]) -> list[str]:
    """Return labels of results: the keys by which their cases differ, else their numbers."""
    cases = [flatten_table(msgspec.to_builtins(result.case)) for result in results]
    names = [name for name in dict.fromkeys(name for case in cases for name in case) if not name.startswith("output.")]
    differ = [name for name in names if any(case.get(name) != cases[0].get(name) for case in cases)]
    short = {name: name.rpartition(".")[2] for name in differ if name != "title"}
    if not 0 < len(short) <= MAX_KEYS:
        return [result.case.title if "title" in differ else f"run {k + 1}" for k, result in enumerate(results)]
    return [", ".join(f"{word} = {_text(case.get(name))}" for name, word in short.items()) for case in cases]


def _text(value: Any) -> str:
    """Return a value as text, a float in short form."""
    return f"{value:g}" if isinstance(value, float) else str(value)
