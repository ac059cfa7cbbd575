"""What a figure says in words: the title, what was run, how it stands, what became of the clusters."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import numpy as np

from meanfield.plot_story import Story, format_time

if TYPE_CHECKING:
    from meanfield.case import Case
    from solvers.output import Run

LINE, FACTS_LINE, TITLE_LINES = 84, 96, 2  # characters in a line of the title and of facts, and lines of a title
STEPS_TOLD = 5  # of the number of clusters, in one line
STATES = {"failed": "non-finite"}  # in words that say more than the file's


def heading(story: Story) -> str:
    """The case's title, in one or two lines, and a line of what was run and how it stands."""
    rings = len(story.ring_cells)
    size = f"{rings} rings" if story.manifold == "sphere" else f"{story.ring_cells[0]} cells"
    facts = [
        f"{story.manifold}, {size}",
        story.attention,
        f"β = {story.beta:g}",
        f"κ = {story.noise:g}",
    ]
    return "\n".join([*_title_lines(story.title), " · ".join(facts + [story.state] * bool(story.state))])


def page_heading(story: Story) -> list[str]:
    """The lines above a figure: the heading, the run's state on a line of its own where needed, the clusters' story."""
    *title, facts = heading(story).splitlines()
    lines = [*title, *([facts] if len(facts) <= FACTS_LINE else facts.rsplit(" · ", 1))]
    return lines + [cluster_history(story)] * bool(cluster_history(story))


def _title_lines(title: str) -> list[str]:
    """At most two lines, cut within a word where one is longer than a line, with an ellipsis where cut."""
    lines = textwrap.wrap(title, LINE)
    if len(lines) > TITLE_LINES:
        last = lines[TITLE_LINES - 1][: LINE - 2]
        lines = [*lines[: TITLE_LINES - 1], (last.rpartition(" ")[0] or last) + " …"]
    return [line.replace("$", r"\$") for line in lines]


def attention_in_words(case: Case) -> str:
    """As in "unnormalized attention, V = -1 I"."""
    attention, value = case.attention, case.attention.value_scale
    rescaled = " rescaled" if attention.rescaled else ""
    return f"{attention.normalization}{rescaled} attention" + (f", V = {value:g} I" if value != 1 else "")


def state_in_words(run: Run, case: Case) -> str:
    """How a run stands that has not simply finished, as in "interrupted at t = 2 of 5"; else nothing."""
    reason = run.attributes["stop_reason"]
    if reason == "finished":
        return ""
    if reason == "running" and run.writer is None:
        reason = "killed"
    return f"{STATES.get(reason, reason)} at t = {format_time(run.times[-1])} of {format_time(case.time.end)}"


def cluster_history(story: Story) -> str:
    """When the recorded number of clusters first was at its highest, and each fall since that was for good.

    As in "7 clusters from t = 7.94, 6 from 27.4, 5 from 53.1"; nothing where there never was one. Without noise each
    fall is a merger. A count that only flickers does not fall: what is told is the most that there are from then on.
    """
    counts = story.diagnostics.get("clusters", np.zeros(0)).astype(int)
    if not counts.any():
        return ""
    most = int(np.argmax(counts == counts.max()))
    later = np.maximum.accumulate(counts[::-1])[::-1]  # the most from each sample on
    falls = [k for k in range(most + 1, len(counts)) if later[k] < later[k - 1]]
    times = story.diagnostics["time"]
    told = [f"{later[k]} from {_time(times[k])}" for k in falls]
    if len(told) > STEPS_TOLD:
        told = [*told[: STEPS_TOLD - 2], "…", told[-1]]
    first = f"{counts[most]} cluster{'' if counts[most] == 1 else 's'} from t = {_time(times[most])}"
    return ", ".join([first, *told])


def _time(t: float) -> str:
    """Three figures: more are not worth reading in a line."""
    return format_time(float(f"{t:.3g}"))
