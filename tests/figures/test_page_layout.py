"""Layout of a page: text stays inside, does not overlap, is legible at 800 pixels, and every empty panel has a
reason."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox
from support.run_data import LINEAR, LOG, MANIFOLDS, crowd, law, particles, run_data, without

from meanfield.figures.figure import STYLE, WIDTH, draw_page, page
from meanfield.figures.panels.options import PAPER
from meanfield.figures.run_data import RunData
from meanfield.figures.saving import DPI
from solvers.mesh.mesh import Mesh, circle, sphere

PAINT = Text.draw
LEGIBLE = 7  # points, for the smallest font of a figure that is 800 pixels wide on a screen of 96 pixels per inch


def still(mesh: Mesh, **changes: object) -> RunData:
    """Return a constant uniform density with the rounding errors that a run records."""
    recorded = {
        "time": LINEAR,
        "entropy": np.full(41, -2.531),
        "energy": 25.0 + 1e-15 * np.arange(41),
        "speed": np.full(41, 1e-17),
        "clusters": np.zeros(41),
        "power": np.full((41, 13), 1e-33),
    }
    uniform = np.full(mesh.cells, 1 / mesh.volume)
    return run_data(mesh, LINEAR, density=lambda k: uniform, diagnostics=recorded, **changes)


def barely(mesh: Mesh, end: float) -> RunData:
    """Return a run to ``end`` in which every diagnostic changes by 1e-7."""
    data = run_data(mesh, LINEAR / 10 * end)
    recorded = dict(data.diagnostics)
    recorded |= {"entropy": 1e-7 * recorded["entropy"] - 1.8379, "energy": 1e-7 * recorded["energy"] + 2.72399}
    uniform, wave = 1 / mesh.volume, mesh.centers[:, 0]
    return replace(data, diagnostics=recorded, density=lambda k: uniform * (1 + 3e-5 * k * wave))


def eventful(mesh: Mesh) -> RunData:
    """Return a long run that ended with an error and has many mergers and a long heading."""
    data = run_data(
        mesh, 1e4 * LOG, title="EVERY WORD IS LOUD WHERE ALL OF THE LETTERS ARE CAPITALS " * 4, beta=-123.456
    )
    recorded = data.diagnostics | {"clusters": 23.0 - np.arange(41) // 2}
    attention = "unnormalized rescaled attention, V = -1.25 I"
    return replace(data, diagnostics=recorded, attention=attention, state="non-finite at t = 1.234e+04 of 1.235e+08")


def poles(mesh: Mesh) -> np.ndarray:
    """Return equal point masses (cells,) in the northernmost and the southernmost cell."""
    density = np.zeros(mesh.cells)
    density[[np.argmax(mesh.centers[:, 2]), np.argmin(mesh.centers[:, 2])]] = 1.0
    return density / (mesh.volumes @ density)


ALONE = ("entropy", "energy", "speed", "clusters", "power")
MASS = {"mass": np.ones(41) + 1e-15 * np.arange(41), "centroid": np.outer(np.arange(41) / 41, [0.6, 0.8])}
FACTS = (
    "unnormalized rescaled attention, general Q, K, V, causal mask · pre layer norm · gate γ = 0.5 · gelu feed-forward"
)
LABELS = {"label_centroid": np.linspace(0, 1, 41 * 9 * 2).reshape(41, 9, 2)}
RUNS: dict[str, Callable[[], RunData]] = {
    "sphere": lambda: run_data(sphere(24), LINEAR),
    "sphere, log time": lambda: run_data(sphere(24), LOG, state="running at t = 10 of 2000"),
    "sphere, one snapshot": lambda: run_data(sphere(24), np.zeros(1), diagnostics={"time": np.zeros(1)}),
    "sphere, two snapshots": lambda: run_data(sphere(24), np.array([0.0, 1.0]), growth=None),
    "sphere, three panels": lambda: without(run_data(sphere(24), LINEAR), "entropy", "speed"),
    "sphere, long title": lambda: run_data(sphere(24), LINEAR, title="A title much longer than a page is wide " * 9),
    "sphere, many peaks": lambda: run_data(sphere(64), LINEAR, beta=99, density=lambda k: crowd(sphere(64))),
    "circle": lambda: run_data(circle(256), LINEAR),
    "circle, log time": lambda: run_data(circle(256), LOG),
    "circle, one snapshot": lambda: run_data(circle(256), np.zeros(1), diagnostics={}),
    "circle, one panel": lambda: without(run_data(circle(256), LINEAR), "entropy", "energy", "speed", "power"),
    "circle, uniform": lambda: run_data(circle(256), LINEAR, density=lambda k: np.full(256, 0.5 / np.pi)),
    "sphere, masses at the poles": lambda: run_data(sphere(24), LINEAR, density=lambda k: poles(sphere(24))),
    "sphere, uniform": lambda: still(sphere(24)),
    "sphere, barely": lambda: barely(sphere(24), 1e-9),
    "circle, barely": lambda: barely(circle(256), 1e-9),
    "circle, barely in a long time": lambda: barely(circle(256), 1e9),
    "circle, still": lambda: still(circle(16)),
    "sphere, eventful": lambda: eventful(sphere(24)),
    "circle, eventful": lambda: eventful(circle(4096)),
    "circle, widest letters": lambda: run_data(circle(16), LINEAR, title="W" * 300),
    "sphere, beta 1000": lambda: replace(barely(sphere(8), 1.0), beta=1000.0),
    "sphere, entropy alone": lambda: without(run_data(sphere(24), LINEAR), *ALONE[1:]),
    "circle, energy alone": lambda: without(barely(circle(64), 1.0), *ALONE[:1], *ALONE[2:]),
    "circle, mass and centroid": lambda: run_data(circle(64), LINEAR, diagnostics={"time": LINEAR, **MASS}),
}

for manifold in MANIFOLDS:
    RUNS |= {
        manifold: lambda manifold=manifold: law(manifold, LINEAR),
        f"{manifold}, log time": lambda manifold=manifold: law(manifold, LOG, state="running at t = 10 of 2000"),
        f"{manifold}, one snapshot": lambda manifold=manifold: law(manifold, np.zeros(1), state="failed at t = 0 of 1"),
        f"{manifold}, full heading": lambda manifold=manifold: law(manifold, LINEAR, attention=FACTS, title="W" * 300),
    }
ONCE, FAR = np.zeros(1), np.concatenate([[0], np.geomspace(1e-3, 1e12, 40)])
TOKENS: dict[str, Callable[[], RunData]] = {
    "plane, few": lambda: particles(2, 40),
    "plane, two, to 1e12": lambda: particles(2, 2, FAR),
    "plane, many": lambda: particles(2, 500, LOG),
    "plane, radius": lambda: particles(2, 40, LOG, radius=True),
    "plane, many with radius": lambda: particles(2, 500, radius=True),
    "plane, once": lambda: particles(2, 40, ONCE, radius=True),
    "space, few": lambda: particles(3, 60, FAR),
    "space, many": lambda: particles(3, 4000, LINEAR[::10]),
    "space, radius": lambda: particles(3, 400, LOG, radius=True),
    "space, once": lambda: particles(3, 1, ONCE),
    "64 dimensions": lambda: particles(64, 32, FAR),
    "64 dimensions, radius": lambda: particles(64, 400, radius=True, title="W" * 300, attention=FACTS),
    "64 dimensions, no pairs": lambda: without(particles(64, 32, LINEAR[::20]), "pairs", "energy"),
    "64 dimensions, once": lambda: particles(64, 2, ONCE),
    "64 dimensions, nothing": lambda: particles(64, 2, diagnostics={"time": LINEAR}),
    "not finite": lambda: unfinished(particles(3, 9)),
    "nothing finite": lambda: unfinished(particles(16, 9), first=0),
}
RUNS |= {f"particles, {name}": made for name, made in TOKENS.items()}
RUNS |= {
    "circle, atoms": lambda: run_data(circle(64), FAR, handover=1.0),
    "sphere, atoms": lambda: run_data(sphere(24), FAR, handover=9e11),
    "circle, atoms, linear time": lambda: run_data(circle(64), LINEAR, handover=9.9),
    "circle, atoms from the start": lambda: run_data(circle(64), LINEAR, handover=0.0),
    "circle, labels": lambda: run_data(circle(64), LINEAR, diagnostics={"time": LINEAR, **LABELS}),
}


def unfinished(data: RunData, first: int = 20) -> RunData:
    """Return a run whose diagnostics are NaN from the sample ``first`` on, and whose energy grows to 1e300 before."""
    recorded = {name: values.copy() for name, values in data.diagnostics.items()}
    for name, values in recorded.items():
        if name != "time":
            values[first:] = np.nan
    recorded["energy"][: first // 2] = np.geomspace(1, 1e300, 10)[: first // 2]
    return replace(data, diagnostics=recorded)


def drawn(
    data: RunData, monkeypatch: pytest.MonkeyPatch, style: Any = STYLE, size: tuple[float, float] | None = None
) -> tuple[Figure, list[Text]]:
    """Return the figure and every text painted on it; axes contain more tick labels than they show."""
    with matplotlib.rc_context(style), warnings.catch_warnings():
        warnings.simplefilter("error")  # a layout without room only warns, and puts all axes on top of each other
        figure = Figure(size or page(data).get_size_inches(), dpi=DPI)
        draw_page(figure, data)
        painted = record_texts(monkeypatch)
        FigureCanvasAgg(figure).draw()
    return figure, painted


def record_texts(monkeypatch: pytest.MonkeyPatch) -> list[Text]:
    """Return a list to which each text is added that is painted from now on."""
    painted: list[Text] = []
    paint = PAINT

    def record(text: Text, *arguments: object, **keywords: object) -> None:
        if text.get_visible() and text.get_text().strip():
            painted.append(text)
        paint(text, *arguments, **keywords)

    monkeypatch.setattr(Text, "draw", record)
    return painted


def apart(boxes: dict[object, Bbox]) -> None:
    for (one, box), (other, another) in itertools.combinations(boxes.items(), 2):
        # Bounding boxes leave a margin of a pixel or two around the letters.
        assert not box.padded(-2).overlaps(another.padded(-2)), f"{one} lies on {other}"


def inside(page: Bbox, boxes: dict[object, Bbox]) -> None:
    for thing, box in boxes.items():
        assert page.x0 <= box.x0, f"cut on the left: {thing}"
        assert box.x1 <= page.x1, f"cut on the right: {thing}"
        assert page.y0 <= box.y0, f"cut at the bottom: {thing}"
        assert box.y1 <= page.y1, f"cut at the top: {thing}"


# Pages with the same panels as others that have a longer heading, larger numbers, or fewer snapshots. The plain pages
# are drawn in other sizes, below and in test_sizes.py.
EASIER = ("sphere", "circle", "circle, barely", "sphere, two snapshots", "particles, plane, many",
          "particles, space, few", *MANIFOLDS, *(f"{manifold}, log time" for manifold in MANIFOLDS))  # fmt: skip


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", [name for name in RUNS if name not in EASIER])
def test_text_and_panels_stay_on_the_page_and_apart(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    figure, texts = drawn(RUNS[name](), monkeypatch)
    boxes: dict[object, Bbox] = {text: text.get_window_extent() for text in texts}
    # A page of maps without panels has a title and two lines.
    assert len(boxes) >= (3 if name == "particles, space, once" else 8)
    inside(figure.bbox, boxes)
    apart(boxes)
    at_800 = 800 / 96 / WIDTH
    for text in texts:
        assert text.get_fontsize() * at_800 >= LEGIBLE, f"too small on a page 800 pixels wide: {text}"
    # A panel with two scales has two axes with one frame.
    frames = {ax.bbox.bounds: ax for ax in figure.findobj(Axes)}
    panels: dict[object, Bbox] = {ax: ax.get_tightbbox() for ax in frames.values()}
    inside(figure.bbox, panels)
    apart(panels)
    for ax in frames.values():
        assert min(ax.bbox.size) >= 10, f"squeezed: {ax}"
        assert max(ax.bbox.size) >= 250, f"squeezed: {ax}"
        legend = ax.get_legend()
        assert legend is None or not legend.get_window_extent().overlaps(ax.bbox), f"hides curves: {ax}"


COLUMN = 3.4  # inches, the width of a column of a paper
PLANE = ("particles, plane, many", "particles, space, few", "particles, 64 dimensions")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["sphere, log time", *MANIFOLDS, *PLANE])  # test_sizes.py draws others
def test_a_page_as_wide_as_a_column(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A narrow page has one panel in a row, fewer maps, and captions of several lines."""
    figure, texts = drawn(RUNS[name](), monkeypatch, PAPER, (COLUMN, 15.0))
    boxes: dict[object, Bbox] = {text: text.get_window_extent() for text in texts}
    inside(figure.bbox, boxes)
    apart(boxes)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("mesh", [sphere(24), circle(64)], ids=["sphere", "circle"])
def test_what_shows_nothing_says_why(mesh: Mesh, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = ["uniform, within $10^{-9}$", "nothing moves: zero to rounding", "every mode is zero to rounding"]
    _, texts = drawn(still(mesh), monkeypatch)
    written = " | ".join(text.get_text() for text in texts)
    for reason in [*reasons, "none at any time"]:
        assert reason in written
    _, texts = drawn(run_data(mesh, LINEAR), monkeypatch)
    written = " | ".join(text.get_text() for text in texts)
    assert not [reason for reason in [*reasons, "none at any time"] if reason in written]
