"""Every kind of figure in the sizes of a column of a paper and of a slide: no text is cut or lies on another one."""

from __future__ import annotations

import io
import itertools
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import matplotlib
import pytest
from analysis.test_compare import bump, turning, write
from figures.test_fields import written
from figures.test_other_figures import MAP, escaping
from figures.test_page_layout import record_texts
from figures.test_particle_figures import run_file
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox, BboxBase
from support.run_data import LINEAR, LOG, particles, run_data
from support.sweeping import CASE, in_this_process
from support.sweeping import write as write_file
from view.test_view_particles import merging
from view.test_view_sweep import FOUR

import meanfield as mf
from meanfield.analysis.branches.branch import branch_of
from meanfield.analysis.comparison import compare
from meanfield.figures.axes import row_of_axes
from meanfield.figures.comparison.convergence import draw_convergence
from meanfield.figures.figure import fill, page
from meanfield.figures.panels.options import STYLES, FigureOptions
from meanfield.figures.panels.selected import panel_names
from meanfield.figures.sweep.figure import axes_of_sweep, draw_sweep
from meanfield.sweeping.driver import sweep
from meanfield.sweeping.results import read_sweep
from solvers.analysis.convergence import ConvergenceStudy
from solvers.mesh.interval import interval
from solvers.mesh.mesh import Mesh, circle, sphere
from solvers.mesh.product import torus

COLUMN = 3.4  # inches, the width of a column of a paper
SIZES = [(COLUMN, 2.0), (COLUMN, 8.0), (13.0, 7.0)]  # inches: panel and page of a column of a paper, slide
TIMES = [0.0, 1.0, 2.0]
SQUEEZED = 60  # pixels, at 100 per inch
Draw = Callable[[Figure], object]  # fills an empty figure


def compared(folder: Path, mesh: Mesh, d: int) -> Draw:
    paths = [
        write(folder / f"{k}.h5", mesh, TIMES, lambda t, k=k: bump(mesh, 0.2 * t * k), [2, 1, 1], d) for k in (1, 2)
    ]
    return compare(*paths).plot


def solved(folder: Path, mesh: Mesh) -> Draw:
    found = mf.open_run(written(folder / "a.h5", mesh, ("u", "v")))
    return lambda figure: found.plot(figure=figure)


def swept(folder: Path, figure: str) -> Draw:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("meanfield.sweeping.driver.with_processes", in_this_process)
        sweep(write_file(folder / "four.toml", FOUR, CASE, figure), folder / "four.h5", quiet=True)
    found = read_sweep(folder / "four.h5")
    return lambda drawing: draw_sweep(found, axes_of_sweep(found), drawing)


def overlay(figure: Figure) -> None:
    """Draw two diagnostics of two runs, a figure each, beside each other or below each other."""
    runs = [mf.simulate("growth_circle", resolution=32, end=2, beta=beta) for beta in (2, 4)]
    for name, ax in zip(("energy", "centroid"), row_of_axes(figure, 2), strict=False):
        mf.plot(runs, name, ax=ax)


STUDY = ConvergenceStudy((64, 96, 128), (1e-2, 3e-3, 1e-3), (float("nan"), 3.0, 3.8), False)
LIMIT = {"domain.resolution": 64, "output.samples": 5, "time.end": 2}
RUNS = {
    "circle": run_data(circle(64), LINEAR),
    "circle, log time": run_data(circle(64), LOG),
    "sphere": run_data(sphere(16), LINEAR),
    "particles": particles(3, 40),
}
PAGES: dict[str, Draw] = {
    f"page, {name}": lambda figure, data=data: fill(figure, data, FigureOptions()) for name, data in RUNS.items()
}
PANELS: dict[str, Draw] = {
    f"panel, {name}, {panel}": lambda figure, data=data, panel=panel: fill(figure, data, FigureOptions((panel,)))
    for name, data in RUNS.items()
    for panel in panel_names(data)
}
KINDS: dict[str, Callable[[Path], Draw]] = {
    "compare, circle": lambda folder: compared(folder, circle(64), 2),
    "compare, sphere": lambda folder: compared(folder, sphere(8), 3),
    "compare, tokens": lambda folder: (
        compare(turning(folder / "a.h5", 1.0, TIMES, [1, 1, 1]), turning(folder / "b.h5", 2.0, TIMES)).plot
    ),
    "compare, one run in 16 dimensions": lambda folder: compare(run_file(folder / "a.h5", 16, 12)).plot,
    "compare, two runs in 16 dimensions": lambda folder: (
        compare(run_file(folder / "a.h5", 16, 12), run_file(folder / "b.h5", 16, 10)).plot
    ),
    "mergers": lambda folder: mf.open_run(merging(folder / "a.h5")).mergers().plot,
    "mergers, circle": lambda folder: mf.open_run(run_file(folder / "a.h5", 2, 12)).mergers().plot,
    "sweep, curves": lambda folder: swept(folder, ""),
    "sweep, map": lambda folder: swept(folder, MAP),
    "branch": lambda folder: branch_of(mf.load_case("noise_below")).plot,
    "stability": lambda folder: mf.stability("growth_circle").plot,
    "escape": lambda folder: escaping().plot,
    "limit": lambda folder: mf.limit(mf.load_case("metastable_circle", LIMIT), [20, 40], seeds=3).limit.plot,
    "convergence": lambda folder: lambda figure: draw_convergence(STUDY, "domain.resolution", "energy", figure),
    "overlay": lambda folder: overlay,
    "solution, interval": lambda folder: solved(folder, interval(0.0, 1.0, 16)),
    "solution, torus": lambda folder: solved(folder, torus((6, 5))),
}


# A page needs more than two inches; its panels do not.
DRAWN = [(name, size) for name in PAGES for size in SIZES[1:]] + [(name, SIZES[0]) for name in PANELS]
DRAWN += [(name, size) for name in KINDS for size in (SIZES[0], SIZES[2])]  # test_other_figures draws pages


@pytest.fixture(scope="module")
def draw_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Draw]:
    """Return the function (name) that returns how a figure is drawn; its contents are computed once for all sizes."""

    @cache
    def draw(name: str) -> Draw:
        return {**PAGES, **PANELS}.get(name) or KINDS[name](tmp_path_factory.mktemp("figure"))

    return draw


@pytest.mark.sampled
@pytest.mark.parametrize(("name", "size"), DRAWN)
def test_no_text_is_cut_or_lies_on_another(draw_of, name: str, size: tuple[float, float], monkeypatch) -> None:
    figure, texts = drawn(draw_of(name), size, monkeypatch)
    assert len(texts) >= 8
    assert faults(figure, texts) == []


@pytest.mark.parametrize(
    ("name", "panels", "height"), [("sphere", ("density", "clusters"), 2.6), ("circle", None, 5.0)]
)
def test_a_size_without_room_for_labels_is_refused(name: str, panels: tuple[str, ...] | None, height: float) -> None:
    small, large = (page(RUNS[name], FigureOptions(panels, (COLUMN, h), style="paper")) for h in (height, 8.0))
    with pytest.raises(ValueError, match=f"size = 3.4x{height:g}: too small for these panels; expected fewer, or more"):
        small.savefig(io.BytesIO())
    large.savefig(io.BytesIO())


def test_faults_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def draw(figure: Figure) -> None:
        figure.text(0.5, 0.5, "below")
        figure.text(0.5, 0.5, "above")
        figure.text(0.99, 0.8, "outside")
        figure.subplots().set_axis_off()
        figure.axes[0].inset_axes((0.1, 0.1, 0.05, 0.05)).set_axis_off()

    found = faults(*drawn(draw, (3, 3), monkeypatch))
    assert [fault.partition("(")[0] for fault in found] == ["cut: Text", "Text", "squeezed: 15 x 15 pixels"]


def drawn(draw: Draw, size: tuple[float, float], monkeypatch: pytest.MonkeyPatch) -> tuple[Figure, list[Text]]:
    """Return a figure of a size and every text that is painted on it."""
    with matplotlib.rc_context(STYLES["paper" if size[0] == COLUMN else "screen"]), warnings.catch_warnings():
        warnings.simplefilter("error")  # a layout without room only warns, and puts all axes on top of each other
        figure = Figure(size, layout="constrained", dpi=100)
        draw(figure)
        texts = record_texts(monkeypatch)
        FigureCanvasAgg(figure).draw()
    return figure, texts


def is_within(box: Bbox, page: BboxBase) -> bool:
    """Return whether a box lies within a page."""
    return page.x0 <= box.x0 and box.x1 <= page.x1 and page.y0 <= box.y0 and box.y1 <= page.y1


def faults(figure: Figure, texts: list[Text]) -> list[str]:
    """Return sentences on texts that are cut or lie on another one, and on axes that are squeezed."""
    # Bounding boxes leave a margin of a pixel or two around the letters.
    boxes = {text: text.get_window_extent().padded(-2) for text in texts}
    found = [f"cut: {text}" for text, box in boxes.items() if not is_within(box, figure.bbox)]
    pairs = itertools.combinations(boxes.items(), 2)
    found += [f"{text} lies on {other}" for (text, box), (other, another) in pairs if box.overlaps(another)]
    frames = {ax.bbox.bounds for ax in figure.findobj(Axes)}
    squeezed = [frame[2:] for frame in frames if max(frame[2:]) < SQUEEZED]
    return found + [f"squeezed: {width:.0f} x {height:.0f} pixels" for width, height in squeezed]
