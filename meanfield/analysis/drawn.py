"""Results with a figure and a table: base class, and figures as HTML for notebooks."""

from __future__ import annotations

import html
import io
from abc import ABC, abstractmethod
from base64 import b64encode
from typing import TYPE_CHECKING, ClassVar

from meanfield.domains.domain import load

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure
    from pandas import DataFrame
    from xarray import Dataset

DPI = 80  # of figures in a notebook


class Drawn(ABC):
    """Result with the methods ``plot``, ``to_xarray`` and ``to_dataframe``, whose figure a notebook shows.

    A subclass names the function (result, figure) that draws the figure as ``drawing``, "module:function", and its size
    in inches as ``drawing_size``.
    """

    drawing: ClassVar[str]
    drawing_size: ClassVar[tuple[float, float]]

    @abstractmethod
    def to_xarray(self) -> Dataset:
        """Return the numbers of the result as a Dataset with coordinates and names.

        Returns
        -------
        xarray.Dataset
            A variable for each quantity.
        """

    def to_dataframe(self) -> DataFrame:
        """Return the numbers of the result as a table.

        Returns
        -------
        pandas.DataFrame
            A column for each quantity.
        """
        return self.to_xarray().to_dataframe()

    def plot(self, figure: Figure | SubFigure | None = None) -> Figure:
        """Draw the result.

        Parameters
        ----------
        figure : matplotlib.figure.Figure or SubFigure, optional
            Empty figure, or a part of one, that is filled with as many panels as fit. None: a new figure. Text in a
            figure as narrow as a column of a paper has 8 points.

        Returns
        -------
        matplotlib.figure.Figure
            The whole figure.
        """
        import matplotlib
        from matplotlib.figure import Figure

        figure = Figure(self.drawing_size, layout="constrained") if figure is None else figure
        with matplotlib.rc_context(load("meanfield.figures.panels.options:style_of")(figure)):
            load(self.drawing)(self, figure)
        return figure.figure

    def _repr_html_(self) -> str:
        """Return the figure above the folded text of the result as HTML."""
        return figure_as_html(self.plot(), type(self).__name__) + details_as_html("text", str(self))


def figure_as_html(figure: Figure, title: str) -> str:
    """Return a figure as an HTML element."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=DPI)
    source = b64encode(file.getvalue()).decode()
    return f'<img alt="{html.escape(title)}" style="max-width: 100%" src="data:image/png;base64,{source}">'


def details_as_html(summary: str, text: str) -> str:
    """Return a text as an HTML element that is folded below its summary."""
    return f"<details><summary>{html.escape(summary)}</summary><pre>{html.escape(text)}</pre></details>"
