"""Panels of the diagnostics over time: which are drawn, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.figures.axes import ink, mark_time, panels_across, set_time
from meanfield.figures.panels.curves import NO_LENGTH, PANELS, draw_component, is_worth, time_range
from meanfield.figures.run_data import SNAPSHOTS, RunData, snapshots_chosen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

MAX_PANELS = 4
NO_CHANGE = 1e-12  # of a mass, relative: what rounding leaves of one that is kept
ATOMS = "atoms from here"


def panels(run_data: RunData) -> list[str]:
    """Names of at most four panels that the recorded diagnostics fill; none for fewer than two samples.

    Those that have a prediction come first, and those of a user's own.
    """
    if len(run_data.diagnostics.get("time", ())) < 2:
        return []
    names = [name for name in recorded_panels(run_data) if not _is_conserved(run_data, name)]
    first = {*run_data.predictions, *run_data.components}
    return sorted(names, key=lambda name: name not in first)[:MAX_PANELS]


def _is_conserved(run_data: RunData, name: str) -> bool:
    """Whether a panel would show the rounding of a mass that is kept, or of a centroid at the origin."""
    if name not in ("mass", "centroid"):
        return False
    values = run_data.diagnostics[name]
    return bool(
        np.ptp(values) < NO_CHANGE * np.abs(values).max() if name == "mass" else np.abs(values).max() < NO_LENGTH
    )


def recorded_panels(run_data: RunData) -> list[str]:
    """Names of all panels that the recorded diagnostics fill."""
    known = [name for name, (needs, _) in PANELS.items() if any(is_worth(run_data, need) for need in needs)]
    return known + [name for name in run_data.components if is_worth(run_data, name)]


def draw_panel(ax: Axes, run_data: RunData, name: str, note: str = "") -> None:
    """One panel over time, with a ``note`` at the label of that axis."""
    if name in PANELS:
        PANELS[name][1](ax, run_data)
    else:
        draw_component(ax, run_data, name)
    set_time(ax, run_data.time_label + note, time_range(run_data, name), log=run_data.log_time)
    mark_time(ax, run_data.hand_over, ATOMS)
    if (predicted := run_data.predictions.get(name)) is not None:
        mark_time(ax, predicted.moment, f"{predicted.event} at {run_data.moment(float(f'{predicted.moment:.4g}'))}")


def draw_diagnostics(figure: Figure | SubFigure, run_data: RunData) -> None:
    """Fill ``figure`` with the panels below snapshots, two to a row if there is room, an odd last one across."""
    names, across = panels(run_data), panels_across(figure)
    rows = [names[i : i + across] for i in range(0, len(names), across)]
    layout: list[Any] = [list(row) * (across // len(row)) for row in rows]
    axes = figure.subplot_mosaic(layout)
    times = [t for t in run_data.times[snapshots_chosen(run_data, SNAPSHOTS)] if t > 0 or not run_data.log_time]
    for name, ax in axes.items():
        draw_panel(ax, run_data, name, "  (grey: snapshots above)")
        if name not in rows[-1] and time_range(run_data, name) == run_data.sample_range:
            ax.tick_params(axis="x", labelbottom=False)
            ax.set_xlabel("")
        for t in times:
            ax.axvline(t, color=ink(0.85), lw=0.8, zorder=0)
