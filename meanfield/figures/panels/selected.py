"""Panels by name: the density and the diagnostics, each on separate axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.domains import domain as domains
from meanfield.figures.axes import ink, mark_time, panels_across, set_time
from meanfield.figures.panels.curves import NO_LENGTH, PANELS, draw_component, draw_energy, is_worth, time_range
from meanfield.figures.profiles import draw_profile_lines, draw_space_time, shown_snapshots
from meanfield.figures.run_data import SNAPSHOTS, RunData, snapshots_chosen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    Draw = Callable[[Axes, RunData], None]


MAX_PANELS = 4
NO_CHANGE = 1e-12  # relative rounding error of a conserved mass
ATOMS = "point masses"
ENERGIES = ("entropy", "energy")  # on one panel of a page


def panels(run_data: RunData) -> list[str]:
    """Return the names of at most four panels with recorded diagnostics; none for fewer than two samples.

    Panels with a prediction and user-defined diagnostics come first.
    """
    if len(run_data.diagnostics.get("time", ())) < 2:
        return []
    names = [name for name in recorded_panels(run_data) if not _is_conserved(run_data, name)]
    first = {*run_data.predictions, *run_data.components}
    return sorted(names, key=lambda name: name not in first)[:MAX_PANELS]


def _is_conserved(run_data: RunData, name: str) -> bool:
    """Return whether a panel would show only the rounding of a conserved mass or of a centroid at the origin."""
    if name not in ("mass", "centroid"):
        return False
    values = run_data.diagnostics[name]
    return bool(
        np.ptp(values) < NO_CHANGE * np.abs(values).max() if name == "mass" else np.abs(values).max() < NO_LENGTH
    )


def recorded_panels(run_data: RunData) -> list[str]:
    """Return the names of all panels of a run whose diagnostics were recorded."""
    known = [name for name, (needs, _) in PANELS.items() if any(is_worth(run_data, need) for need in needs)]
    return known + [name for name in run_data.components if is_worth(run_data, name)]


def draw_panel(ax: Axes, run_data: RunData, name: str, note: str = "", *, alone: bool = False) -> None:
    """Draw one panel of diagnostics over time by name, with a ``note`` at the label of the time axis.

    The entropy and the energy share the panel "energy", except where ``alone`` is true.
    """
    if alone and name in ENERGIES:
        draw_energy(ax, run_data, [name])
    elif name in PANELS:
        PANELS[name][1](ax, run_data)
    else:
        draw_component(ax, run_data, name)
    set_time(ax, run_data.time_label + note, time_range(run_data, name), log=run_data.log_time)
    mark_time(ax, run_data.handover, ATOMS)
    if (predicted := run_data.predictions.get(name)) is not None:
        mark_time(ax, predicted.moment, f"{predicted.event} at {run_data.moment(float(f'{predicted.moment:.4g}'))}")


def draw_diagnostics(figure: Figure | SubFigure, run_data: RunData) -> None:
    """Draw the panels of diagnostics below the snapshots of a run, two in a row if there is room.

    An odd last panel fills its row.
    """
    axes, last_row = _axes_in_rows(figure, panels(run_data), panels_across(figure))
    times = [t for t in run_data.times[snapshots_chosen(run_data, SNAPSHOTS)] if t > 0 or not run_data.log_time]
    for name, ax in axes.items():
        draw_panel(ax, run_data, name, "  (gray: snapshots above)")
        if name not in last_row and time_range(run_data, name) == run_data.sample_range:
            ax.tick_params(axis="x", labelbottom=False)
            ax.set_xlabel("")
        for t in times:
            ax.axvline(t, color=ink(0.85), lw=0.8, zorder=0)


PANEL_HEIGHT = 2.3  # inches of a row of panels
MAPS = ("density",)  # in more than one dimension, with several axes


def panel_names(run_data: RunData) -> list[str]:
    """Return the names of the panels available for a run: of the density first, then of the diagnostics."""
    return [*_densities(run_data), *single_panels(run_data, recorded_panels(run_data))]


def single_panels(run_data: RunData, names: Sequence[str]) -> list[str]:
    """Return the panel ``names`` with "energy", the joint panel of energy and entropy, split into these two names.

    Of the two, only panels that are worth drawing for the run are named.
    """
    single = {"energy": [name for name in ENERGIES if is_worth(run_data, name)]}
    return [one for name in names for one in single.get(name, [name])]


def require_panels(run_data: RunData, names: Sequence[str], *, one_ax: bool = False) -> None:
    """Raise ValueError for a panel that is unknown, named twice, was not recorded, or does not fit on ``one_ax``."""
    possible = [name for name in panel_names(run_data) if not (one_ax and _is_maps(run_data, name))]
    for name in names:
        if name not in possible:
            raise ValueError(f"panels = {name!r}: expected one or more of {', '.join(possible) or 'none'}")
    if len(set(names)) < len(names):
        raise ValueError(f"panels = {','.join(names)!r}: expected each name once")


def selected_height(run_data: RunData, names: Sequence[str]) -> float:
    """Return the height in inches of the panels ``names`` on a page of two columns."""
    return sum(_heights(run_data, names, 2)) + 0.3


def draw_selected(figure: Figure | SubFigure, run_data: RunData, names: Sequence[str]) -> None:
    """Draw the panels ``names`` in as many columns as fit into the width, with maps above the rest."""
    across = panels_across(figure)
    heights = _heights(run_data, names, across)
    flat = [name for name in names if not _is_maps(run_data, name)]
    parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    if len(flat) < len(names):
        domains.load(run_data.kind.figure[0])(parts[0], run_data)
    if flat:
        _draw_rows(parts[-1], run_data, flat, min(across, len(flat)))


def _heights(run_data: RunData, names: Sequence[str], across: int) -> list[float]:
    """Return the heights in inches of the maps, if among ``names``, and of all rows of other panels together."""
    flat = [name for name in names if not _is_maps(run_data, name)]
    maps = [float(domains.load(run_data.kind.figure[1])(run_data))] if len(flat) < len(names) else []
    return maps + [PANEL_HEIGHT * -(-len(flat) // across)] * bool(flat)


def _draw_rows(figure: SubFigure, run_data: RunData, names: Sequence[str], across: int) -> None:
    """Draw the panels ``names`` in rows of ``across`` panels."""
    for name, ax in _axes_in_rows(figure, names, across)[0].items():
        draw_on(ax, run_data, name)


def _axes_in_rows(
    figure: Figure | SubFigure, names: Sequence[str], across: int
) -> tuple[dict[str, Axes], Sequence[str]]:
    """Return new axes by the names of their panels, ``across`` panels in a row, and the names in the last row.

    An odd last panel fills its row.
    """
    rows = [names[i : i + across] for i in range(0, len(names), across)]
    layout: list[Any] = [list(row) * (across // len(row)) for row in rows]
    return figure.subplot_mosaic(layout), rows[-1]


def draw_on(ax: Axes, run_data: RunData, name: str) -> None:
    """Draw one panel of a density or of diagnostics by name."""
    draw = _densities(run_data).get(name)
    if draw is None:
        draw_panel(ax, run_data, name, alone=True)
    else:
        draw(ax, run_data)


def _densities(run_data: RunData) -> dict[str, Draw | None]:
    """Return the functions that draw the panels of the density of a run, by name; none for tokens.

    The function is None for panels with several axes.
    """
    if run_data.particles is not None:
        return {}
    if run_data.coordinate is None:
        return dict.fromkeys(MAPS)
    both: dict[str, Draw | None] = {"density": draw_space_time, "profiles": draw_profile_lines}
    return both if len(shown_snapshots(run_data)) > 1 else {"profiles": draw_profile_lines}


def _is_maps(run_data: RunData, name: str) -> bool:
    """Return whether a panel consists of maps on several axes."""
    return name in MAPS and run_data.coordinate is None
