"""Captions of figures: title, case, status of the run, and number of clusters over time."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis.text import format_time
from meanfield.diagnostics.overflow import describe_overflow, overflows
from meanfield.figures.axes import inches_across, panels_across
from meanfield.figures.run_data import LAYERS, SNAPSHOTS, TIME, RunData, snapshots_chosen
from meanfield.runtime.segments import read_segments

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from meanfield.case.case import Case
    from solvers.io.run_file import Run

SEPARATOR = " · "
LINE, FACTS_LINE = 84, 132  # characters of the title, and of the line of facts
HEADING_SIZE = 12.5  # points, less for long lines
LEGIBLE = 5.5  # points, of the smallest heading
TITLE_PART = 0.8  # of the width of a figure, for the title of a panel
MAX_STEPS = 5  # largest number of cluster counts in one line


def heading(run_data: RunData) -> list[str]:
    """Return the lines above the figure of a run: the title of the case if there is one, and the facts of the run."""
    return [*filter(None, [_title_line(run_data.title)]), _facts_line(facts(run_data))]


def facts(run_data: RunData) -> list[str]:
    """Return texts on the manifold, the layer and its parameters, and the status of an unfinished run."""
    return [
        f"{run_data.manifold.replace('_', ' ')}, {_size(run_data)}",
        run_data.attention,
        *([f"β = {run_data.beta:g}"] if np.isfinite(run_data.beta) else []),
        *([_noise(run_data)] if run_data.noise else []),
        *run_data.model_changes,
        *([f"atoms from {run_data.moment(run_data.handover, _time)}"] if np.isfinite(run_data.handover) else []),
        *([run_data.state] if run_data.state else []),
        *([overflow] if (overflow := _overflow(run_data)) else []),
    ]


def _overflow(run_data: RunData) -> str:
    """Return a text on the diagnostics of a run that overflow to infinity and therefore have no curve."""
    if "time" not in run_data.diagnostics:
        return ""
    found = overflows(run_data.diagnostics["time"], run_data.diagnostics)
    return describe_overflow(found, lambda time: run_data.moment(time, _time))


def _noise(run_data: RunData) -> str:
    """Return a text on the noise of a run, with the critical noise if linear theory applies."""
    critical = "" if run_data.critical is None else f" (critical {run_data.critical:.4g})"
    return f"noise κ = {run_data.noise:g}{critical}"


def _size(run_data: RunData) -> str:
    """Return a text on the number of tokens or cells of a run, and on its dimension."""
    if run_data.particles is not None:
        count = len(run_data.particles.weights)
        return f"d = {run_data.dimension}, {count} token{'' if count == 1 else 's'}"
    cells = f"{len(run_data.ring_cells)} rings" if run_data.kind.shows_rings else f"{run_data.ring_cells[0]} cells"
    dimension = "" if run_data.dimension is None else f"d = {run_data.dimension}, "
    radii = f" × {len(run_data.edges) - 1} radii" if run_data.has_radius and run_data.edges is not None else ""
    return dimension + cells + radii


def _facts_line(parts: list[str]) -> str:
    """Return the facts of a run in one line; if it is too long, the last words on the layer are omitted."""
    first, layer, *rest = parts
    words = layer.split(SEPARATOR)
    while len(line := SEPARATOR.join([first, *words, *rest])) > FACTS_LINE and len(words) > 2:
        words = [*words[:-2], "…"]
    return line


def fitting_size(lines: list[str], width: float, max_size: float) -> float:
    """Return the font size in points, at most ``max_size``, for which all ``lines`` fit into ``width`` inches."""
    from matplotlib.textpath import TextPath

    widest = max(TextPath((0, 0), line, size=max_size).get_extents().width for line in lines)
    return max_size * min(1.0, width * 72 / widest)


def wrap_text(text: str, width: float) -> str:
    """Return the text broken into the fewest lines that fit into ``width`` inches in the font of the figure."""
    from matplotlib import rcParams

    size = float(rcParams["font.size"])
    for parts in range(1, len(text)):
        lines = wrap(text, -(-len(text) // parts))
        if fitting_size(lines, width, size) >= size:
            return "\n".join(lines)
    return text


def set_heading(
    figure: Figure | SubFigure, lines: Sequence[str], max_size: float = HEADING_SIZE, part: float = 0.97
) -> None:
    """Write lines above a figure, at most ``max_size`` points high; lines that would be illegible are broken.

    The lines take at most the given part of the width. The part is less for lines that become small, such as those with
    paths, since small glyphs are relatively wider.
    """
    from matplotlib import rcParams

    width = (min(part, 0.93) if panels_across(figure) == 1 else part) * inches_across(figure)
    size = fitting_size(list(lines), width, max_size)
    if size < LEGIBLE:
        broken = "\n".join(wrap_text(line, width) for line in lines)
        figure.suptitle(broken, fontsize=rcParams["font.size"])
    else:
        figure.suptitle("\n".join(lines), fontsize=size)


def set_title(ax: Axes, title: str) -> None:
    """Set the title of the only panel in a row of a figure, in as many lines as its width needs."""
    whole = ax.get_figure(root=True)
    assert whole is not None
    ax.set_title(wrap_text(title, TITLE_PART * inches_across(whole)))


def _title_line(title: str) -> str:
    """Return the title of a case for a heading, truncated between words if possible and with $ escaped."""
    if len(title) > LINE:
        cut = title[: LINE - 2]
        title = (cut.rpartition(" ")[0] or cut) + " …"
    return title.replace("$", r"\$")


def describe_state(run: Run, case: Case) -> str:
    """Return the status of a run such as "interrupted at t = 2 of 5", or an empty text for a finished run."""
    reason = run.attributes["stop_reason"]
    if reason == "finished":
        return ""
    if reason == "running" and run.writer is None:
        reason = "killed"
    if reason == "failed":
        reason = "exploded" if run.attributes.get("exploded") else "failed"
    before = (LAYERS if case.time.counts_layers else TIME)[1]
    segments = read_segments(run.attributes)
    until = segments[-1].until if segments else case.time.end
    return f"{reason} at {before}{format_time(run.times[-1])} of {format_time(until)}"


def cluster_history(run_data: RunData) -> str:
    """Return a text on the recorded number of clusters over time, from its maximum on.

    Example: "7 clusters from t = 7.94, 6 from 27.4, 5 from 53.1". The text is empty without clusters. Each lasting
    decrease is listed; without noise each is a merger. The count used is the maximum from each time on, which ignores
    short fluctuations.
    """
    if "clusters" not in run_data.diagnostics:
        return ""
    times, found = run_data.clusters_over(snapshots_chosen(run_data, SNAPSHOTS))
    counts = np.nan_to_num(found).astype(int)
    if not counts.any():
        return ""
    peak = int(np.argmax(counts == counts.max()))
    later = np.maximum.accumulate(counts[::-1])[::-1]  # maximum from each sample on
    falls = [k for k in range(peak + 1, len(counts)) if later[k] < later[k - 1]]
    texts = [f"{later[k]} from {_time(times[k])}" for k in falls]
    if len(texts) > MAX_STEPS:
        texts = [*texts[: MAX_STEPS - 2], "…", texts[-1]]
    first = f"{counts[peak]} cluster{'' if counts[peak] == 1 else 's'} from {run_data.moment(times[peak], _time)}"
    return ", ".join([first, *texts])


def _time(t: float) -> str:
    """Return a time as text, rounded to three significant digits."""
    return format_time(float(f"{t:.3g}"))
