"""Merger tree of a run over time, and the sum of squared cluster masses with the energy."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from meanfield.analysis.mergers import Mergers, lasts, merger_tree, staircase
from meanfield.analysis.tracks import Merger, Track, Tracks, tracks_of
from meanfield.case.summary import describe_layer
from meanfield.domains.table import kind_of
from meanfield.figures.axes import annotate, is_early, is_single, set_time
from meanfield.figures.captions import SEPARATOR, set_heading, set_title
from meanfield.figures.figure import WIDTH, write_figure
from meanfield.figures.labels import LabeledLine, write_beside
from meanfield.figures.run_data import BLACK, BLUE, GREEN, ORANGE, PURPLE, SKY, VERMILION
from meanfield.runtime.segments import case_of, model_changes
from solvers.io.run_file import FileError, Run, read
from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

COLORS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK)
MAX_LINE_WIDTH, MIN_LINE_WIDTH = 18.0, 0.8  # points: widths for the total mass, and smallest width
HEIGHT = Mergers.drawing_size[1]  # inches
TWO_PI = 2 * np.pi


def plot_mergers(path: str | Path | Run, figure: str | Path) -> Path:
    """Draw the mergers of the run file ``path`` to ``figure`` (.png, .pdf or .svg) and return the path.

    The upper panel shows the tree, each cluster as a line of width ∝ mass. The lower panel shows Σ m², and 2β e^{−β} E,
    which rises with the same steps, if Q = K = V = I and the energy was recorded. A gray band shows the interval
    between the samples before and after a merger. Raises solvers.io.run_file.FileError if the run file cannot be read
    or the figure not be written, ValueError for a run without trackable clusters.
    """
    return write_figure(figure, lambda page: _compose(read(path), page), figsize=(WIDTH, HEIGHT))


def compose_mergers(mergers: Mergers, page: Figure | SubFigure) -> None:
    """Draw the merger tree of the run of some mergers on an empty page."""
    _compose(mergers.run, page)


def _compose(run: Run, page: Figure | SubFigure) -> None:
    """Draw the heading, the merger tree and the sum of squared cluster masses of a run on an empty page.

    A page of one panel has the tree only.
    """
    tracks = tracks_of(run)
    if not len(tracks.times):
        raise FileError(f"{run.path}: holds no sample yet")
    mergers = merger_tree(tracks)
    limits, log = _time_axis(tracks, mergers, case_of(run).output.spacing == "log")
    if is_single(page):
        above, *below = [page.add_subplot()]
    else:
        set_heading(page, _heading(run))
        above, *below = page.subplots(2, 1, sharex=True, height_ratios=(3, 2))
    lines = draw_mergers(above, tracks, circle=kind_of(run.manifold).space == "S1")
    for ax in below:
        draw_staircase(ax, tracks, mergers, staircase(run))
        set_time(ax, "time t", limits, log=log)
        above.tick_params(axis="x", labelbottom=False)
    set_time(above, "" if below else "time t", limits, log=log)
    page.figure.draw_without_rendering()  # the labels depend on the final layout
    write_beside(above, lines)


def draw_mergers(axes: Axes, tracks: Tracks, *, circle: bool = False) -> list[LabeledLine]:
    """Draw each lasting cluster as a line over time, of width ∝ mass, connected to the cluster that it merged into.

    circle   lines show the angles of the clusters; otherwise each cluster has its own row, so that no lines cross

    Returns the lines with the masses at their ends as texts: latest end first, then by mass.
    """
    order = tree_order(tracks)
    heights = {number: heights_of(tracks.tracks[number], row, circle) for row, number in enumerate(order)}
    drawn: list[tuple[tuple[int, float], list[LabeledLine]]] = []
    for row, number in enumerate(order):
        one, color = tracks.tracks[number], COLORS[row % len(COLORS)]
        drawn.append(((-one.last, -one.masses[-1]), _draw_track(axes, tracks, number, heights, color, circle)))
    if not order:
        annotate(axes, "no cluster lasted")
    set_title(axes, "clusters: line width ∝ mass, number = mass at the end of a line")
    if circle:
        axes.set(ylim=(-np.pi, np.pi), ylabel="angle φ (rad)")
        axes.set_yticks([-np.pi, -np.pi / 2, 0, np.pi / 2, np.pi], ["−π", "−π/2", "0", "π/2", "π"])
    else:
        axes.set(ylim=(-0.7, max(len(order), 1) - 0.3), ylabel="clusters")
        axes.set_yticks([])
    return [line for _, lines in sorted(drawn, key=lambda item: item[0]) for line in lines]


def heights_of(one: Track, row: int, circle: bool) -> Floats:
    """Return the vertical position of a cluster in the merger tree at each of its samples (samples,).

    The position is the angle of the center on the circle, elsewhere ``row``.
    """
    if circle:
        return np.asarray(np.arctan2(one.centers[:, 1], one.centers[:, 0]))
    return np.full(len(one.masses), float(row))


def _draw_track(
    axes: Axes, tracks: Tracks, number: int, heights: dict[int, Floats], color: str, circle: bool
) -> list[LabeledLine]:
    """Draw the line of cluster ``number`` over time up to the cluster into which it merges.

    Return the line and, on the circle, its copies shifted by 2π.
    """
    from matplotlib.collections import LineCollection

    one, into = tracks.tracks[number], tracks.tracks[number].into
    time, height = tracks.times[one.samples], heights[number]
    if into in heights:
        time = np.append(time, tracks.times[one.last + 1])
        height = np.append(height, heights[into][one.last + 1 - tracks.tracks[into].first])
    turned = np.unwrap(height) if circle else height
    widths = np.maximum(MAX_LINE_WIDTH * one.masses, MIN_LINE_WIDTH)
    end = float(time[len(one.masses) - 1]), float(heights[number][-1])
    lines: list[LabeledLine] = []
    for shift in _shifts(turned) if circle else (0.0,):  # a line that leaves at π continues at −π
        points = np.stack([time, turned - shift], 1)
        segments = list(np.stack([points[:-1], points[1:]], 1))
        axes.add_collection(LineCollection(segments, linewidths=widths, colors=color, capstyle="round"))
        lines.append(LabeledLine(points, float(widths[-1]), "" if lines else f"{one.masses[-1]:.2f}", end))
    return lines


def _shifts(turned: Floats) -> Floats:
    """Return the multiples of 2π that shift the parts of a continuous angle to between −π and π."""
    first, last = np.floor((turned.min() + np.pi) / TWO_PI), np.floor((turned.max() + np.pi) / TWO_PI)
    return np.asarray(TWO_PI * np.arange(first, last + 1))


def tree_order(tracks: Tracks) -> list[int]:
    """Return the numbers of the lasting clusters, each followed by those that merged into it, the earliest first.

    In this order, the connection between a cluster and its successor crosses no cluster that still exists.
    """
    lasting = {number: one for number, one in enumerate(tracks.tracks) if lasts(tracks, one)}
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


def draw_staircase(
    axes: Axes, tracks: Tracks, mergers: Sequence[Merger], energy: tuple[Floats, Floats] | None = None
) -> None:
    """Draw the sum Σ_j m_j² of squared cluster masses over time, and mark the mergers.

    ``energy`` are the times and values of 2β e^{−β} E, the scaled energy that approximates the sum.
    """
    squares = np.zeros(len(tracks.times))
    for one in tracks.tracks:
        squares[one.samples] += one.masses**2
    axes.step(tracks.times, squares, where="post", color=BLACK, lw=1.4, label=r"$\sum_j m_j^2$")
    if energy is not None:
        axes.plot(*energy, color=VERMILION, ls="--", lw=1.4, label=r"$2\beta e^{-\beta}E$")
    for merger in mergers:
        axes.axvspan(merger.since, merger.time, color="0.85", lw=0.8, zorder=0)
    highest = float(squares[tracks.counts.argmax() :].max()) if len(squares) else 1.0  # clusters still form before
    axes.set(ylim=(0.0, 1.15 * max(highest, 0.01)), ylabel="sum of squared masses")
    set_title(axes, "gray: mergers, from the sample before to the sample after")
    axes.legend(loc="lower right", frameon=False)


def _heading(run: Run) -> list[str]:
    """Return the lines above the merger tree: title, manifold and parameters."""
    case = case_of(run)
    title = case.title.replace("$", r"\$") or run.path.name
    facts = [run.manifold, *describe_layer(case)]
    facts += [f"β = {case.attention.beta_effective:g}"] if case.domain.has_softmax else []
    noise = case.stabilizers.noise
    facts += [f"noise κ = {noise:g}"] if noise else []
    return [title, SEPARATOR.join([*facts, *model_changes(run)])]


def _time_axis(tracks: Tracks, mergers: Sequence[Merger], log_spacing: bool) -> tuple[tuple[float, float], bool]:
    """Return the time limits of the merger tree, and whether the axis is logarithmic.

    The limits extend from the largest number of clusters to the end. The rule for a log axis is that of
    RunData.log_time.
    """
    times = tracks.times[int(tracks.counts.argmax()) :]
    begin, end = float(times[0]), float(times[-1])
    first = begin if begin > 0 else float(times[min(1, len(times) - 1)])
    moments = np.array([merger.since for merger in mergers])
    early = any(is_early(found, np.ones(len(found)), first, end) for found in (moments, tracks.times))
    log = first > 0 and len(times) > 2 and (log_spacing or early)
    return (first if log else begin, end), log
