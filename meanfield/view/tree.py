"""Merger tree on the page of `meanfield view`: clusters as lines over time, and the times of mergers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis.mergers import describe_event_time, merger_tree
from meanfield.analysis.tracks import Tracks, tracks_of
from meanfield.domains.table import kind_of
from meanfield.figures.merger_tree import COLORS, heights_of, tree_order
from meanfield.figures.run_data import BLACK
from meanfield.view.data import Described
from meanfield.view.panels import INK, round_values

if TYPE_CHECKING:
    from meanfield.figures.axes import Floats
    from solvers.io.run_file import Run

MAX_POINTS = 400  # of a line
TICKS = [[-np.pi, "−π"], [-np.pi / 2, "−π/2"], [0.0, "0"], [np.pi / 2, "π/2"], [np.pi, "π"]]


def tree_of(run: Run) -> Described | None:
    """Return the merger tree of a run for its page: clusters as lines over time, and their mergers.

    The result is None if the clusters of the run cannot be followed, or if none merge.
    """
    try:
        tracks = tracks_of(run)
    except ValueError:  # the clusters of this run cannot be tracked
        return None
    mergers, order = merger_tree(tracks), tree_order(tracks)
    if not mergers:
        return None
    on_circle = kind_of(run.manifold).space == "S1"
    places = {number: heights_of(tracks.tracks[number], i, on_circle) for i, number in enumerate(order)}
    lines = [_line(tracks, number, places, COLORS[i % len(COLORS)]) for i, number in enumerate(order)]
    marks = []
    for one in mergers:
        if one.source not in places:
            continue
        target = places[one.into][tracks.tracks[one.source].last + 1 - tracks.tracks[one.into].first]
        when = describe_event_time(one.since, one.time)
        text = f"{one.before} → {one.after} clusters, masses {one.masses[0]:.3g} + {one.masses[1]:.3g}, {_at(when)}"
        marks.append({"time": one.time, "place": round(float(target), 6), "text": text})
    limits = [-np.pi, np.pi] if on_circle else [-0.7, len(order) - 0.3]
    label = "angle φ (rad)" if on_circle else "clusters"
    return {"lines": lines, "mergers": marks, "limits": limits, "label": label, "ticks": TICKS if on_circle else [],
            "circle": on_circle}  # fmt: skip


def _at(when: str) -> str:
    """Return the time of an event as a phrase, such as "at t = 95"; a text on an interval of time is unchanged."""
    return when if when.startswith("between") else f"at t = {when}"


def _line(tracks: Tracks, number: int, places: dict[int, Floats], color: str) -> Described:
    """Return times, positions in the picture and masses of cluster ``number``, up to its merger with another."""
    one, into = tracks.tracks[number], tracks.tracks[number].into
    times, place, mass = tracks.times[one.samples], places[number], one.masses
    keep = np.unique(np.linspace(0, len(times) - 1, MAX_POINTS).round().astype(int))
    times, place, mass = times[keep], place[keep], mass[keep]
    if into in places:
        times = np.append(times, tracks.times[one.last + 1])
        place = np.append(place, places[into][one.last + 1 - tracks.tracks[into].first])
        mass = np.append(mass, mass[-1])
    return {
        "times": round_values(times),
        "places": round_values(place),
        "masses": round_values(mass.round(4)),
        "color": INK if color == BLACK else color,
    }
