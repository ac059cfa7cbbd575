"""Size, resolution, colors and style of a figure."""

from __future__ import annotations

import io

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text
from support.run_data import LINEAR, run_data

from meanfield.figures.figure import page, panel
from meanfield.figures.panels.options import FigureOptions
from solvers.mesh.mesh import circle

DATA = run_data(circle(64), LINEAR)


def test_a_figure_has_the_size_and_the_pixels_that_are_asked_for() -> None:
    options = FigureOptions(("density", "energy"), (3.4, 2.8), 200, "magma", "paper")
    figure, file = page(DATA, options), io.BytesIO()
    figure.savefig(file, format="png")
    file.seek(0)
    assert imread(file).shape[:2] == (560, 680)
    assert figure.axes[0].collections[0].get_cmap().name == "magma"
    boxes = [ax.get_position() for ax in figure.axes[:2]]
    assert boxes[0].y0 > boxes[1].y1  # a row of 3.4 inches has room for one panel


@pytest.mark.parametrize("style", ["paper", "screen", "dark"])
def test_all_that_is_written_stands_out_from_the_background(style: str) -> None:
    figure = page(DATA, FigureOptions(style=style))
    FigureCanvasAgg(figure).draw()
    background = np.array(to_rgb(figure.get_facecolor()))
    texts = [text for text in figure.findobj(Text) if text.get_text().strip()]
    assert len(texts) > 20
    for text in texts:
        contrast = np.abs(np.array(to_rgb(text.get_color())) - background).max()
        assert contrast > 0.4, text
    sizes = {text.get_fontsize() for text in texts}
    assert min(sizes) >= 6.6  # font size "small" for 8 points, which is legible in print


def test_axes_of_a_user_keep_the_size_of_their_figure() -> None:
    with matplotlib.rc_context(FigureOptions(cmap="cividis").context):
        figure = Figure(figsize=(2, 2))
        panel(DATA, figure.subplots(), ["density"])
    assert tuple(figure.get_size_inches()) == (2, 2)
    assert figure.axes[0].collections[0].get_cmap().name == "cividis"


def test_a_size_without_room_is_refused() -> None:
    figure = page(DATA, FigureOptions(("density",), (0.5, 0.4)))
    with pytest.raises(ValueError, match=r"size = 0\.5x0\.4: too small for these panels"):
        figure.savefig(io.BytesIO(), format="png")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"size": (0.0, 3.0)}, r"size = \(0.0, 3.0\): expected a width and a height"),
        ({"size": (np.nan, 3.0)}, "size = "),
        ({"size": (400.0, 3.0), "dpi": 300}, "size = "),
        ({"dpi": 0}, "dpi = 0: expected 1 to"),
        ({"cmap": "magna"}, "cmap = 'magna': expected a color map"),
        ({"style": "print"}, "style = 'print': expected paper, screen, dark"),
    ],
)
def test_what_cannot_be_is_refused(keys: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FigureOptions(**keys)
