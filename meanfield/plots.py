"""The figure that tells a run's story: snapshots of the density above, diagnostics over time below."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.plot_circle import circle_height, draw_circle
from meanfield.plot_diagnostics import draw_diagnostics, panels
from meanfield.plot_sphere import draw_sphere, sphere_height
from meanfield.plot_story import Floats, Story, format_time

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

    from meanfield.case import Case
    from solvers.output import Run

SUFFIXES = (".png", ".pdf", ".svg")
WIDTH, DPI = 10.0, 160  # inches and pixels an inch: half of the pixels still leave the smallest text legible
STYLE: Any = {  # Any: matplotlib types the keys as literals since 3.11
    "font.size": 10.5,
    "axes.titlesize": 10.5,
    "axes.labelsize": 10,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 9.5,
    "legend.fontsize": 9.5,
    "legend.handlelength": 1.4,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
}


def plot(path: str | Path, figure: str | Path) -> Path:
    """Draw the run file ``path`` to ``figure`` (.png, .pdf or .svg) and return where it was written.

    The run may still be going. Raises solvers.output.FileError where the run file cannot be read or holds no
    snapshot, where the suffix is unknown, and where the figure's folder is missing or cannot be written.
    """
    target = _target(Path(figure))
    return draw(load(path), target)


def load(path: str | Path) -> Story:
    """The story of the run file ``path``. Raises solvers.output.FileError where there is none to tell yet."""
    from meanfield.case import parse
    from solvers.output import FileError, read

    run = read(path)
    if len(run.times) == 0:
        raise FileError(f"{path}: holds no snapshot yet, so there is nothing to draw")
    case = parse(run.attributes["case"])
    return Story(
        title=case.title,
        manifold=run.manifold,
        ring_cells=run.ring_cells,
        beta=case.attention.beta_effective,
        noise=case.stabilizers.noise,
        attention=_attention(case),
        times=run.times,
        density=run.density,
        diagnostics={"time": run.sample_times, **run.diagnostics},
        growth=_growth(case, run.diagnostics["power"].shape[1]) if "power" in run.diagnostics else None,
        state=_state(run, case),
    )


def _attention(case: Case) -> str:
    attention, value = case.attention, case.attention.value_scale
    rescaled = " rescaled" if attention.rescaled else ""
    return f"{attention.normalization}{rescaled} attention" + (f", V = {value:g} I" if value != 1 else "")


def _growth(case: Case, degrees: int) -> Floats:
    """(degrees,) growth rate of each mode about uniform, from degree 0 on."""
    from meanfield.stability import growth_rates

    d, attention = case.domain.dimension, case.attention
    l = np.arange(degrees)
    rates = attention.value_scale * growth_rates(d, attention.beta_effective, l, attention.normalization)
    if attention.rescaled:
        rates *= np.exp(-abs(attention.beta_effective))
    return rates - case.stabilizers.noise * l * (l + d - 2)


def _state(run: Run, case: Case) -> str:
    """How a run stands that has not simply finished."""
    reason = run.attributes["stop_reason"]
    if reason == "finished":
        return ""
    if reason == "running" and run.writer is None:
        reason = "killed"
    return f"{reason} at t = {format_time(run.times[-1])} of {format_time(case.time.end)}"


def draw(story: Story, target: Path) -> Path:
    """Draw ``story`` to ``target``, snapshots above and diagnostics below, and return ``target``."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = compose(story, Figure())
        figure.savefig(target, dpi=DPI)
    return target


def compose(story: Story, figure: Figure) -> Figure:
    """Lay the story out on an empty ``figure``, which takes the size that its parts need, and return it."""
    rows = -(-len(panels(story)) // 2)
    draw_snapshots, height = DRAWINGS[story.manifold]
    heights = [height(story)] + ([2.3 * rows + 0.3] if rows else [])
    figure.set_size_inches(WIDTH, sum(heights) + 0.7)
    figure.suptitle(heading(story))
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    draw_snapshots(parts[0], story)
    if rows:
        draw_diagnostics(parts[1], story)
    return figure


def heading(story: Story) -> str:
    """The case's title, and a line of what was run and how it stands."""
    rings = len(story.ring_cells)
    size = f"{rings} rings" if story.manifold == "sphere" else f"{story.ring_cells[0]} cells"
    facts = [
        f"{story.manifold}, {size}",
        story.attention,
        f"β = {story.beta:g}",
        f"κ = {story.noise:g}",
    ]
    lines = textwrap.wrap(story.title.replace("$", r"\$"), 84, max_lines=2, placeholder=" …")
    return "\n".join([*lines, " · ".join(facts + [story.state] * bool(story.state))])


def _target(figure: Path) -> Path:
    from solvers.output import FileError

    if figure.suffix.lower() not in SUFFIXES:
        raise FileError(f"{figure}: unknown kind of figure {figure.suffix!r}; expected {', '.join(SUFFIXES)}")
    if not figure.parent.is_dir():
        raise FileError(f"{figure}: the folder {figure.parent} does not exist")
    if not os.access(figure if figure.exists() else figure.parent, os.W_OK) or figure.is_dir():
        raise FileError(f"{figure}: cannot be written")
    return figure


DRAWINGS: dict[str, tuple[Callable[[SubFigure, Story], None], Callable[[Story], float]]] = {
    "circle": (draw_circle, circle_height),
    "sphere": (draw_sphere, sphere_height),
}
