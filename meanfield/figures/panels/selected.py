"""Panels by name: the density and the diagnostics, each drawn on axes of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from meanfield.domains import domain as domains
from meanfield.figures.axes import panels_across
from meanfield.figures.diagnostics import draw_panel, recorded_panels
from meanfield.figures.profiles import columns, draw_profile_lines, draw_space_time
from meanfield.figures.run_data import RunData

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    Draw = Callable[[Axes, RunData], None]

PANEL_HEIGHT = 2.3  # inches, of a row of panels
MAPS = ("density",)  # in more than one dimension: several axes


def panel_names(run_data: RunData) -> list[str]:
    """Names of the panels that a run can be drawn in: of its density first, then of what it recorded."""
    return [*_densities(run_data), *recorded_panels(run_data)]


def require_panels(run_data: RunData, names: Sequence[str], *, one_ax: bool = False) -> None:
    """Raise ValueError for a panel that is unknown, named twice, was not recorded, or does not fit on ``one_ax``."""
    possible = [name for name in panel_names(run_data) if not (one_ax and _is_maps(run_data, name))]
    for name in names:
        if name not in possible:
            raise ValueError(f"panels = {name!r}: expected some of {', '.join(possible) or 'none'}")
    if len(set(names)) < len(names):
        raise ValueError(f"panels = {','.join(names)!r}: expected each name once")


def selected_height(run_data: RunData, names: Sequence[str]) -> float:
    """Inches that these panels need on a page of two columns."""
    return sum(_heights(run_data, names, 2)) + 0.3


def draw_selected(figure: Figure | SubFigure, run_data: RunData, names: Sequence[str]) -> None:
    """Fill ``figure`` with panels by ``names``: in rows, as many as its width has room for; maps above the others."""
    across = panels_across(figure)
    heights = _heights(run_data, names, across)
    flat = [name for name in names if not _is_maps(run_data, name)]
    parts = figure.subfigures(len(heights), 1, squeeze=False, height_ratios=heights)[:, 0]
    if len(flat) < len(names):
        domains.load(run_data.kind.figure[0])(parts[0], run_data)
    if flat:
        _draw_rows(parts[-1], run_data, flat, min(across, len(flat)))


def _heights(run_data: RunData, names: Sequence[str], across: int) -> list[float]:
    """Inches of the maps, if they are among ``names``, and of the rows of the other panels."""
    flat = [name for name in names if not _is_maps(run_data, name)]
    maps = [float(domains.load(run_data.kind.figure[1])(run_data))] if len(flat) < len(names) else []
    return maps + [PANEL_HEIGHT * -(-len(flat) // across)] * bool(flat)


def _draw_rows(figure: SubFigure, run_data: RunData, names: Sequence[str], across: int) -> None:
    rows = [names[i : i + across] for i in range(0, len(names), across)]
    layout: list[Any] = [list(row) * (across // len(row)) for row in rows]
    for name, ax in figure.subplot_mosaic(layout).items():
        draw_on(ax, run_data, name)


def draw_on(ax: Axes, run_data: RunData, name: str) -> None:
    """One panel, by its name."""
    draw = _densities(run_data).get(name)
    if draw is None:
        draw_panel(ax, run_data, name)
    else:
        draw(ax, run_data)


def _densities(run_data: RunData) -> dict[str, Draw | None]:
    """Panels of the density; those that take several axes have no function of one."""
    if run_data.particles is not None:
        return {}
    if run_data.coordinate is None:
        return dict.fromkeys(MAPS)
    both: dict[str, Draw | None] = {"density": draw_space_time, "profiles": draw_profile_lines}
    return both if len(columns(run_data)) > 1 else {"profiles": draw_profile_lines}


def _is_maps(run_data: RunData, name: str) -> bool:
    return name in MAPS and run_data.coordinate is None
