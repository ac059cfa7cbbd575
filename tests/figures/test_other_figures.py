"""Figures of sweeps, branches, escapes, mergers, comparisons and solutions: no text is cut off or overlaps another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from analysis.test_compare import bump, turning, write
from figures.test_fields import written
from figures.test_page_layout import apart, inside
from figures.test_particle_figures import run_file
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from support.sweeping import CASE, in_this_process
from support.sweeping import write as write_file
from view.test_view_particles import merging
from view.test_view_sweep import FOUR

from meanfield import escape, load_case
from meanfield.analysis.branches.branch import branch_of
from meanfield.analysis.comparison import compare
from meanfield.analysis.escapes.waiting_times import WaitingTime
from meanfield.figures.comparison.convergence import plot_convergence
from meanfield.figures.figure import plot, plot_result
from meanfield.figures.merger_tree import plot_mergers
from meanfield.figures.sweep.figure import plot_sweep
from meanfield.results.escapes import Escape
from meanfield.sweeping.driver import sweep
from solvers.analysis.convergence import ConvergenceStudy
from solvers.mesh.interval import interval
from solvers.mesh.mesh import circle, sphere
from solvers.mesh.product import torus

TIMES = [0.0, 1.0, 2.0]


def compared(folder: Path, target: Path, mesh_of: Callable[[], object], d: int) -> None:
    mesh = mesh_of()
    paths = [
        write(folder / f"{k}.h5", mesh, TIMES, lambda t, k=k: bump(mesh, 0.2 * t * k), [2, 1, 1], d) for k in (1, 2)
    ]
    plot_result(compare(*paths), target)


def four_points(folder: Path, target: Path, figure: str) -> None:
    sweep(write_file(folder / "four.toml", FOUR, CASE, figure), folder / "four.h5", quiet=True)
    plot_sweep(folder / "four.h5", target)


def kept(monkeypatch: pytest.MonkeyPatch) -> list[Figure]:
    """Collect the figures that are saved from now on; their files contain no picture."""
    saved: list[Figure] = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, new, **_: (saved.append(figure), Path(new).touch()))
    return saved


def escaping() -> Escape:
    keys = {"attention.beta": 7, "attention.normalization": "unnormalized", "stabilizers.noise": 24.5}
    times = (WaitingTime(200, 50, 50, 65.0), WaitingTime(700, 50, 40, 330.0))
    return replace(escape(load_case("noise_below", keys), n=()), times=times)


MAP = '[figure]\nx = "attention.beta"\ny = "initial.amplitude"\nvalue = "energy"\n'
FIGURES: dict[str, Callable[[Path, Path], object]] = {
    "compare, circle": lambda folder, target: compared(folder, target, lambda: circle(64), 2),
    "compare, sphere": lambda folder, target: compared(folder, target, lambda: sphere(8), 3),
    "compare, tokens": lambda folder, target: plot_result(
        compare(turning(folder / "a.h5", 1.0, TIMES, [1, 1, 1]), turning(folder / "b.h5", 2.0, TIMES)), target
    ),
    "compare, one run in 16 dimensions": lambda folder, target: plot_result(
        compare(run_file(folder / "a.h5", 16, 12)), target
    ),
    "mergers": lambda folder, target: plot_mergers(merging(folder / "a.h5"), target),
    "mergers, circle": lambda folder, target: plot_mergers(run_file(folder / "a.h5", 2, 12), target),
    "sweep, curves": lambda folder, target: four_points(folder, target, ""),
    "sweep, map": lambda folder, target: four_points(folder, target, MAP),
    "branch": lambda folder, target: plot_result(branch_of(load_case("noise_below")), target),
    "escape": lambda folder, target: plot_result(escaping(), target),
    "convergence": lambda folder, target: plot_convergence(
        ConvergenceStudy((64, 96, 128), (1e-2, 3e-3, 1e-3), (np.nan, 3.0, 3.8), False),
        "domain.resolution",
        "energy",
        target,
    ),
    "solution, interval": lambda folder, target: plot(
        written(folder / "a.h5", interval(0.0, 1.0, 16), ("u", "v")), target
    ),
    "solution, torus": lambda folder, target: plot(written(folder / "a.h5", torus((6, 5)), ("u", "v")), target),
}


@pytest.mark.parametrize("name", FIGURES)
def test_text_stays_on_the_page_and_apart(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    painted: dict[Figure, list[Text]] = {}
    paint = Text.draw

    def record(text: Text, *arguments: object, **keywords: object) -> None:
        if text.get_visible() and text.get_text().strip():
            painted.setdefault(text.get_figure(root=True), []).append(text)
        paint(text, *arguments, **keywords)

    saved = kept(monkeypatch)
    monkeypatch.setattr("meanfield.sweeping.driver.with_processes", in_this_process)
    FIGURES[name](tmp_path, tmp_path / "figure.png")
    [figure] = saved
    monkeypatch.setattr(Text, "draw", record)
    FigureCanvasAgg(figure).draw()
    boxes: dict[object, object] = {text: text.get_window_extent() for text in painted[figure]}
    assert len(boxes) > 8
    inside(figure.bbox, boxes)
    apart(boxes)


def test_compared_states_are_cut_where_there_is_no_mass(tmp_path: Path) -> None:
    """A cluster at angle 0 is one cluster in the picture instead of two halves at its edges, and stays at angle 0.

    The cut at −π is in the middle of a cell.
    """
    mesh = circle(25)
    run = write(tmp_path / "a.h5", mesh, TIMES, lambda t: bump(mesh, 0.0), dimension=2)
    tokens = turning(tmp_path / "b.h5", 0.0, TIMES)
    with pytest.MonkeyPatch.context() as patch:
        drawn = kept(patch)
        plot_result(compare(run, tokens), tmp_path / "figure.png")
    state = next(ax for ax in drawn[0].findobj(matplotlib.axes.Axes) if ax.get_xlabel() == "angle φ (rad)")
    assert state.get_xlim() == pytest.approx((-np.pi, np.pi))
    assert [label.get_text() for label in state.get_xticklabels()] == ["−π", "0", "π"]
    for patch_drawn in state.patches:
        values, edges = patch_drawn.get_data()[:2]
        middles = (edges[1:] + edges[:-1]) / 2
        assert abs(values @ middles) / values.sum() < 0.1  # one of the 48 bins is 0.13 wide
