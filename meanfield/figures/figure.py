"""Figure of a run: snapshots of the density above, diagnostics over time below."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.analysis.drawn import Drawn
from meanfield.analysis.snapshot_clusters import counter
from meanfield.analysis.stability_report import critical_noise_of, rates_of, refusal_of_theory
from meanfield.case.summary import describe_layer
from meanfield.domains import domain as domains
from meanfield.domains.table import kind_of
from meanfield.figures.axes import Floats, inches_across, panels_across
from meanfield.figures.captions import cluster_history, describe_state, fitting_size, heading, set_heading, wrap_text
from meanfield.figures.panels.options import SCREEN, FigureOptions
from meanfield.figures.panels.selected import (
    PANEL_HEIGHT,
    draw_diagnostics,
    draw_on,
    draw_selected,
    panel_names,
    panels,
    require_panels,
    selected_height,
    single_panels,
)
from meanfield.figures.predictions.table import predictions_of
from meanfield.figures.run_data import Integers, RunData, TokenData, with_times
from meanfield.figures.saving import FONTS, figure_target, save
from meanfield.figures.trim import trim_cells
from solvers.io.run_file import FileError, Run, read

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from meanfield.case.case import Case

WIDTH = 10.0  # inches
MAX_HEIGHT = 13.5  # inches: labels of a higher page would be too small on a screen
HISTORY_SIZE = 11.0  # points, less for long lines
LOWEST = 3.0  # heights of a text: height of the lowest panel without its labels
TITLE_SIZE = 1.2  # heights of a text, of a title that a user gives
STYLE = SCREEN


def plot(path: str | Path, figure: str | Path, options: FigureOptions | None = None) -> Path:
    """Draw the run file ``path`` to ``figure`` (.png, .pdf or .svg) and return the path.

    The run may be in progress. Raises solvers.io.run_file.FileError in these cases: the run file cannot be read or has
    no snapshot; the suffix is unknown; the folder of the figure is missing or read-only; ``figure`` exists and was not
    drawn by this package; the run lacks a requested panel; the panels do not fit into the size.
    """
    import matplotlib

    from meanfield.figures.fields import plot_fields

    options, run = options or FigureOptions(), read(path)
    if run.is_solution:
        return plot_fields(run, Path(figure), options)
    target = figure_target(Path(figure))
    run_data = load(path)
    try:
        with matplotlib.rc_context(options.context), fits(options.size):
            return save(page(run_data, options), target, options.dpi)
    except ValueError as error:  # of the panels or the size
        raise FileError(f"{path}: {error}") from None


@contextmanager
def fits(size: tuple[float, float] | None) -> Iterator[None]:
    """Raise ValueError if the axes do not fit into the layout, for which Matplotlib only issues a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "constrained_layout not applied", UserWarning)
        try:
            yield
        except UserWarning:
            raise _too_small(size) from None


def _too_small(size: tuple[float, float] | None) -> ValueError:
    """Return the error for a figure whose panels do not fit into a size."""
    inches = "x".join(f"{side:g}" for side in size or ())
    return ValueError(f"size = {inches}: too small for these panels; expected fewer, or more inches")


def has_room(figure: Figure) -> bool:
    """Return whether all panels of a figure are high enough, and their titles and labels uncut and beside all axes."""
    from matplotlib import rcParams

    figure.draw_without_rendering()
    lowest, whole = LOWEST * rcParams["font.size"] / 72 * figure.dpi, figure.bbox.padded(2)  # pixels
    for ax in figure.axes:
        texts = [ax.title, *([ax.xaxis.label, ax.yaxis.label] if ax.axison else [])]
        boxes = [text.get_window_extent() for text in texts if text.get_text()]
        is_cut = any(not whole.contains(*corner) for box in boxes for corner in (box.min, box.max))
        covers = any(box.overlaps(other.bbox) for box in boxes for other in figure.axes)
        if ax.bbox.height < lowest or is_cut or covers:
            return False
    return True


def load(path: str | Path | Run) -> RunData:
    """Return the data for figures of a run, or of its file. Raises FileError for a run without snapshots."""
    from meanfield.diagnostics.table import energy_unit, entropy_is_relative
    from meanfield.runtime.segments import case_of, model_changes

    run = read(path)
    if run.is_solution:
        raise FileError(f"{run.path}: holds a solution of a PDE, which plot, movie and view show; expected a run")
    if len(run.times) == 0:
        raise FileError(f"{run.path}: holds no snapshot yet")
    case, kind, changes = case_of(run), kind_of(run.manifold), model_changes(run)
    power = None if changes else run.diagnostics.get("power")
    run_data = RunData(
        title=case.title,
        manifold=run.manifold,
        ring_cells=_ring_cells(run),
        beta=case.attention.beta_effective if case.domain.has_softmax else np.nan,
        noise=case.stabilizers.noise,
        attention=" · ".join(describe_layer(case)),
        times=run.times,
        density=run.density,
        diagnostics={"time": run.sample_times, **run.diagnostics},
        model_changes=tuple(changes),
        growth=None if power is None else _growth(case, power.shape[1]),
        critical=None if changes else _critical(case),
        state=describe_state(run, case),
        dimension=case.domain.d if "dimension" in kind.__struct_fields__ else None,
        edges=None if kind.edges is None else run.variable(kind.edges),
        expansion=case.domain.expansion,
        uniform=None if kind.uniform is None else run.variable(kind.uniform),
        particles=_particles(run, case) if kind.has_tokens else None,
        handover=run.number("hand_over_time", np.nan),
        scaled_energy=energy_unit(run, case.attention.beta_effective) != 0.0,
        relative_entropy=entropy_is_relative(run, kind.uniform is not None),
        log_spacing=case.output.spacing == "log",
        in_layers=case.time.counts_layers,
        predictions={} if changes else predictions_of(case),
        components=_components(run),
        clusters=counter(run),
    )
    return trim_cells(run_data) if kind.edges is not None and not kind.has_radius else run_data


def _components(run: Run) -> dict[str, str]:
    """Return the descriptions of the diagnostics that a user has defined, by name."""
    lines = [line.split() for line in str(run.attributes.get("components", "")).splitlines()]
    return {name: run.attributes_of(name)["long_name"] for kind, name, *_ in lines if kind == "diagnostic"}


def _particles(run: Run, case: Case) -> TokenData:
    """Return the tokens of a run of particles for figures."""
    length = None if case.sequence is None else case.sequence.length
    return TokenData(run.positions, run.weights, case.tokens_have_radius, length)


def _ring_cells(run: Run) -> Integers:
    """Return the number of cells (rings,) in each ring of latitude of a run's mesh.

    With a free radius the mesh is that of the directions, which the run file repeats for each radius.
    """
    kind = kind_of(run.manifold)
    if not kind.has_radius or kind.edges is None:
        return run.ring_cells
    return run.ring_cells[: len(run.ring_cells) // (len(run.variable(kind.edges)) - 1)]


def _growth(case: Case, degrees: int) -> Floats | None:
    """Return the growth rates (degrees,) of harmonics about the uniform density, from degree 0 on.

    None if linear theory does not apply to the case.
    """
    return None if refusal_of_theory(case) else rates_of(case, np.arange(degrees))


def _critical(case: Case) -> float | None:
    """Return the noise below which the uniform density is unstable; None without noise or linear theory."""
    if case.stabilizers.noise == 0 or refusal_of_theory(case):
        return None
    return critical_noise_of(case) or None  # 0 if no mode grows even without noise


def write_figure(figure: str | Path, draw: Callable[[Figure], object], **layout: Any) -> Path:
    """Call ``draw`` with an empty figure, write the figure to ``figure`` (.png, .pdf or .svg) and return the path.

    ``layout`` are arguments of Matplotlib's Figure. Raises FileError before drawing if the suffix is unknown or the
    figure cannot be written.
    """
    import matplotlib
    from matplotlib.figure import Figure

    target = figure_target(Path(figure))
    with matplotlib.rc_context(STYLE):
        drawing = Figure(**layout)
        draw(drawing)
        return save(drawing, target)


def plot_result(found: Drawn, figure: str | Path) -> Path:
    """Draw a result to ``figure`` (.png, .pdf or .svg) and return the path.

    Raises FileError for an unknown suffix, and if the folder of the figure is missing or read-only.
    """
    return write_figure(figure, lambda page: domains.load(found.drawing)(found, page), figsize=found.drawing_size)


def fill(figure: Figure | SubFigure, run_data: RunData, options: FigureOptions) -> None:
    """Draw a run into an empty figure or subfigure of the caller, keeping its size: the whole page, or selected panels.

    Raises ValueError for a panel that is unknown, given twice, or was not recorded.
    """
    whole = figure.figure
    if whole.get_layout_engine() is None:  # prevents overlapping labels
        whole.set_layout_engine("constrained")
    if background := options.context.get("figure.facecolor"):
        figure.set_facecolor(background)
    run_data = with_times(run_data, options.times)
    if options.panels is None:
        draw_page(figure, run_data, title=options.title is True)
    else:
        require_panels(run_data, options.panels)
        draw_selected(figure, run_data, options.panels)
    if options.caption is not True:
        clear_captions(figure)
    set_texts(figure, options)


def set_texts(figure: Figure | SubFigure, options: FigureOptions) -> None:
    """Write the title above a figure and the caption below it where the options have texts for them."""
    if isinstance(options.title, str):
        set_heading(figure, [options.title], TITLE_SIZE * options.context["font.size"])
    if isinstance(options.caption, str):
        figure.supxlabel(wrap_text(options.caption, inches_across(figure)), fontsize="medium")


def clear_captions(figure: Figure | SubFigure) -> None:
    """Remove the texts below a figure and its parts."""
    if figure.get_supxlabel():
        figure.supxlabel("")
    for part in figure.subfigs:
        clear_captions(part)


def empty_page(options: FigureOptions, size: tuple[float, float]) -> Figure:
    """Return an empty figure for notebooks, of the size of the options, else of ``size`` in inches.

    A figure of a chosen size raises ValueError when it is written if its panels have no room.
    """
    import matplotlib
    from matplotlib.figure import Figure

    class Page(Figure):
        def _repr_png_(self) -> bytes:
            file = io.BytesIO()
            self.savefig(file, format="png")
            return file.getvalue()

        def savefig(self, *arguments: Any, **keywords: Any) -> None:
            settings = {"savefig.dpi": "figure"} | options.context | FONTS
            with matplotlib.rc_context(settings), fits(options.size):
                if options.size is not None and not has_room(self):
                    raise _too_small(options.size)
                super().savefig(*arguments, **keywords)

    return Page(options.size or size, dpi=options.dpi, layout="constrained")


def page(run_data: RunData, options: FigureOptions | None = None) -> Figure:
    """Return a run as a figure for notebooks: the whole page, or the panels selected by ``options``.

    Raises ValueError for a panel that is unknown, given twice, or was not recorded.
    """
    import matplotlib

    chosen = options or FigureOptions()
    with matplotlib.rc_context(chosen.context):
        shown = with_times(run_data, chosen.times)
        if chosen.panels is not None:
            require_panels(run_data, chosen.panels)
        needed = _page_size(shown) if chosen.panels is None else (WIDTH, selected_height(shown, chosen.panels))
        figure = empty_page(chosen, needed)
        fill(figure, shown, replace(chosen, times=None))
    return figure


def panel(run_data: RunData, ax: Axes, names: Sequence[str] | None = None) -> Figure:
    """Draw one panel of a run on ``ax``, by default the first that was recorded, and return the figure.

    Raises ValueError unless one known panel is given that fits on one ax.
    """
    chosen = names or (single_panels(run_data, panels(run_data)) or panel_names(run_data))[:1]
    if len(chosen) != 1:
        raise ValueError(f"panels = {list(chosen)}: expected the name of one recorded diagnostic for one ax")
    require_panels(run_data, chosen, one_ax=True)
    draw_on(ax, run_data, chosen[0])
    figure = ax.get_figure(root=True)
    assert figure is not None
    return figure


def _page_size(run_data: RunData) -> tuple[float, float]:
    """Return the width and height in inches of the whole page of a run."""
    return WIDTH, min(sum(_heights(run_data)) + 0.9, MAX_HEIGHT)


def draw_page(figure: Figure | SubFigure, run_data: RunData, *, title: bool = True) -> None:
    """Draw the whole page of a run: heading, snapshots, diagnostics, and the number of clusters over time.

    The heading is omitted where ``title`` is false.
    """
    heights = _heights(run_data, panels_across(figure))
    if title:
        set_heading(figure, heading(run_data))
    if history := cluster_history(run_data):
        size = fitting_size([history], 0.93 * inches_across(figure), HISTORY_SIZE)
        figure.supxlabel(history, fontsize=size)
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    domains.load(run_data.kind.figure[0])(parts[0], run_data)
    if len(parts) > 1:
        draw_diagnostics(parts[1], run_data)


def _heights(run_data: RunData, across: int = 2) -> list[float]:
    """Return the heights in inches of the snapshots on a page, and of the diagnostics if there are any.

    ``across`` is the number of panels in a row.
    """
    rows = -(-len(panels(run_data)) // across)
    snapshots = domains.load(run_data.kind.figure[1])(run_data) * (1 if run_data.coordinate is None else 2 // across)
    return [snapshots] + ([PANEL_HEIGHT * rows + 0.3] if rows else [])
