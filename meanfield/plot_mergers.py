"""The tree of mergers of a run over time, and the staircase that its energy climbs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from meanfield.mergers import LASTING, merger_tree, staircase
from meanfield.plot_axes import say, set_time
from meanfield.plot_story import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from meanfield.plot_words import SEPARATOR, fitting_size
from meanfield.plots import DPI, HEADING_SIZE, STYLE, WIDTH, _target
from meanfield.tracks import Track, Tracks, tracks_of
from solvers.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from solvers.output import Run

COLORS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK)
THICKEST, THINNEST = 18.0, 0.8  # points: of a cluster with all the mass, and at least
MOST_NAMED = 12  # tracks whose masses are written; of more, only those of the last
HEIGHT = 6.6  # inches
EARLY = 0.2  # of the time shown: a log axis is for what happens sooner
TURN = 2 * np.pi


def plot_mergers(path: str | Path, figure: str | Path) -> Path:
    """Draw the mergers of the run file ``path`` to ``figure`` (.png, .pdf or .svg) and return where it was written.

    Above the tree, each cluster a line as thick as its mass; below Σ m², and where Q = K = V = I and the energy was
    recorded 2β e^{−β} E, which climbs the same stairs. Raises solvers.output.FileError where the run file cannot be
    read or the figure not be written, ValueError for a run whose clusters cannot be followed.
    """
    import matplotlib
    from matplotlib.figure import Figure

    from solvers.output import FileError, read

    target = _target(Path(figure))
    run = read(path)
    tracks = tracks_of(run)
    if not len(tracks.times):
        raise FileError(f"{path}: holds nothing yet, so there is nothing to draw")
    limits, log = _time_axis(tracks)
    with matplotlib.rc_context(STYLE):
        page = Figure(figsize=(WIDTH, HEIGHT))
        heading = _heading(run)
        page.suptitle("\n".join(heading), fontsize=fitting_size(heading, 0.97 * WIDTH, HEADING_SIZE))
        above, below = page.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        draw_mergers(above, tracks, circle=run.manifold == "circle")
        draw_staircase(below, tracks, staircase(run))
        for ax, label in ((below, "time t"), (above, "")):
            set_time(ax, label, limits, log=log)
        above.tick_params(axis="x", labelbottom=False)
        page.savefig(target, dpi=DPI)
    return target


def draw_mergers(axes: Axes, tracks: Tracks, *, circle: bool = False) -> None:
    """Each cluster that lasted as a line through time, as thick as its mass, joined to the one that it merged into.

    circle   lines lie at the clusters' angles; else each has a place of its own, such that no two cross
    """
    order = tree_order(tracks)
    heights = {number: _heights(tracks.tracks[number], place, circle) for place, number in enumerate(order)}
    for place, number in enumerate(order):
        _draw_track(axes, tracks, number, heights, COLORS[place % len(COLORS)], circle)
    if not order:
        say(axes, "no cluster lasted")
    axes.set_title("clusters: as thick as their mass, which is written where they end")
    if circle:
        axes.set(ylim=(-np.pi, np.pi), ylabel="angle φ (rad)")
        axes.set_yticks([-np.pi, -np.pi / 2, 0, np.pi / 2, np.pi], ["−π", "−π/2", "0", "π/2", "π"])
    else:
        axes.set(ylim=(-0.7, max(len(order), 1) - 0.3), ylabel="clusters")
        axes.set_yticks([])


def _heights(one: Track, place: int, circle: bool) -> Floats:
    """(samples of the track,) where its line lies."""
    if circle:
        return np.asarray(np.arctan2(one.centers[:, 1], one.centers[:, 0]))
    return np.full(len(one.masses), float(place))


def _draw_track(axes: Axes, tracks: Tracks, number: int, heights: dict[int, Floats], color: str, circle: bool) -> None:
    """One line, up to where it joins another, and its mass at its end."""
    from matplotlib.collections import LineCollection

    one, into = tracks.tracks[number], tracks.tracks[number].into
    time, height = tracks.times[one.samples], heights[number]
    if into in heights:
        time = np.append(time, tracks.times[one.last + 1])
        height = np.append(height, heights[into][one.last + 1 - tracks.tracks[into].first])
    step = np.diff(height)
    ahead = height[:-1] + (np.remainder(step + np.pi, TURN) - np.pi if circle else step)
    widths = np.maximum(THICKEST * one.masses, THINNEST)
    for shift in (-TURN, 0.0, TURN) if circle else (0.0,):  # a line that leaves at π comes back at −π
        starts, ends = np.stack([time[:-1], height[:-1] + shift], 1), np.stack([time[1:], ahead + shift], 1)
        segments = list(np.stack([starts, ends], 1))
        axes.add_collection(LineCollection(segments, linewidths=widths, colors=color, capstyle="round"))
    if one.last < len(tracks.times) - 1 and len(heights) > MOST_NAMED:
        return
    axes.annotate(
        f"{one.masses[-1]:.2f}", (time[len(one.masses) - 1], heights[number][-1]), xytext=(-6, 8 + widths[-1] / 2),
        textcoords="offset points", ha="right", va="center", fontsize="small",
    )  # fmt: skip


def tree_order(tracks: Tracks) -> list[int]:
    """The tracks that lasted, each followed by those that merged into it, the first to merge next to it.

    So a line from a track's end to the one that it merges into crosses none that is still there.
    """
    lasting = {number: one for number, one in enumerate(tracks.tracks) if len(one.masses) >= LASTING}
    merged: dict[int | None, list[int]] = {}
    for number, one in sorted(lasting.items(), key=lambda item: item[1].last):
        merged.setdefault(one.into if one.into in lasting else None, []).append(number)
    order: list[int] = []

    def visit(number: int) -> None:
        order.append(number)
        for source in merged.get(number, []):
            visit(source)

    for root in merged.get(None, []):
        visit(root)
    return order


def draw_staircase(axes: Axes, tracks: Tracks, energy: tuple[Floats, Floats] | None = None) -> None:
    """Σ_j m_j² of the clusters, and 2β e^{−β} E where it is given as (times, values)."""
    squares = np.zeros(len(tracks.times))
    for one in tracks.tracks:
        squares[one.samples] += one.masses**2
    axes.step(tracks.times, squares, where="post", color=BLACK, lw=1.4, label=r"$\sum_j m_j^2$")
    if energy is not None:
        axes.plot(*energy, color=VERMILION, ls="--", lw=1.4, label=r"$2\beta e^{-\beta}E$")
    for merger in merger_tree(tracks):
        axes.axvline(merger.time, color="0.85", lw=0.8, zorder=0)
    highest = float(squares[tracks.counts.argmax() :].max()) if len(squares) else 1.0  # before, tokens still gather
    axes.set(ylim=(0.0, 1.15 * max(highest, 0.01)), ylabel="sum of squared masses")
    axes.set_title("the staircase  (grey: mergers)")
    axes.legend(loc="lower right", frameon=False)


def _heading(run: Run) -> list[str]:
    from meanfield.case import parse
    from meanfield.layer_words import layer_in_words

    case = parse(run.attributes["case"])
    title = case.title.replace("$", r"\$") or run.path.name
    facts = [run.manifold, *layer_in_words(case), f"β = {case.attention.beta_effective:g}"]
    return [title, SEPARATOR.join([*facts, f"κ = {case.stabilizers.noise:g}"])]


def _time_axis(tracks: Tracks) -> tuple[tuple[float, float], bool]:
    """From when there are most clusters to the end; on a log axis where mergers, or else samples, come early."""
    times = tracks.times[int(tracks.counts.argmax()) :]
    mergers = [merger.time for merger in merger_tree(tracks)]
    early = float(np.median(mergers or times)) - times[0] < EARLY * (times[-1] - times[0])
    begin = float(times[0] if times[0] > 0 or not early else times[min(1, len(times) - 1)])
    return (begin, float(times[-1])), bool(early and begin > 0)
