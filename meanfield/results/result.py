"""Result of a run, in a file or in memory: arrays, case, analysis, figures and exports."""

from __future__ import annotations

import html
import io
import shutil
from base64 import b64encode
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from meanfield.case.errors import CaseError
from meanfield.results.refusals import in_python
from meanfield.results.rows import DiagnosticsTable, Snapshots
from solvers.io.checkpoint import Checkpoints
from solvers.io.memory import InMemoryRun
from solvers.io.run_file import FileError, Run
from solvers.io.writing import disk_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from xarray import Dataset

    from meanfield.analysis.tracks import Merger
    from meanfield.case.case import Case
    from meanfield.clusters.on_cells import Clusters
    from solvers.mesh.mesh import Floats, Mesh


class Result:
    """Result of a run: ``simulate`` returns it in memory, ``run``, ``resume`` and ``open_run`` return it in a file.

    time         (snapshots,) times of the snapshots
    density      (time, cell) with respect to area; read from a file when the density is indexed
    position     (time, token, d) of particles, instead of a density
    weight       (token,) masses of particles
    diagnostics  by name (samples, ...), and ``diagnostics.time`` (samples,)
    attributes   attributes of the file: versions, seed, device, start, wall_time, ...
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.time, self.diagnostics = run.times, DiagnosticsTable(run)
        self.attributes = dict(run.attributes)

    def __reduce__(self) -> tuple[type[Result], tuple[Run]]:
        """Return the constructor and the run: pickles of a run in a file hold its path and the parts that have been
        read.
        """
        return Result, (self._run,)

    @property
    def path(self) -> Path | None:
        """Return the path of the file; None in memory."""
        return None if isinstance(self._run, InMemoryRun) else self._run.path

    @property
    def density(self) -> Floats | Snapshots:
        """Return ρ (time, cell). Raises AttributeError for particles."""
        return self._snapshots("density")

    @property
    def position(self) -> Floats | Snapshots:
        """Return x (time, token, d). Raises AttributeError for a density."""
        return self._snapshots("position")

    @property
    def weight(self) -> Floats:
        """Return the masses (token,). Raises AttributeError for a density."""
        self._require("position", "weight")
        return self._run.weights

    @cached_property
    def case(self) -> Case:
        """Return the case with which the run began."""
        from meanfield.runtime.segments import case_of

        return case_of(self._run)

    @cached_property
    def mesh(self) -> Mesh:
        """Return the mesh of the density. Raises AttributeError for particles."""
        from meanfield.simulation import set_up

        self._require("density", "mesh")
        return set_up(self.case).space  # type: ignore[return-value]

    @property
    def stop_reason(self) -> str:
        """Return "finished", "interrupted", "failed", or "running" for a file that is being written or whose writer
        died.
        """
        return str(self.attributes["stop_reason"])

    @property
    def message(self) -> str:
        """Return why the run stopped early; empty where it did not."""
        return str(self.attributes["message"])

    def to_xarray(self) -> Dataset:
        """Return snapshots as an xarray Dataset with coordinates, units and names, read from a file on access.

        ``diagnostics.to_xarray()`` returns the diagnostics.
        """
        from meanfield.results.labelled import snapshots_of

        return snapshots_of(self._run)

    def clusters(self, time: float | None = None) -> Clusters:
        """Return masses (k,) and centers (k, d) of the clusters, heaviest first, at the last snapshot up to
        ``time``.
        """
        from meanfield.analysis.snapshot_clusters import cluster_finder

        return cluster_finder(self._run)(self._number(time))

    def mergers(self) -> list[Merger]:
        """Return the mergers of clusters, in order of time. Raises ValueError where clusters cannot be followed."""
        from meanfield.analysis.mergers import merger_tree
        from meanfield.analysis.tracks import tracks_of

        return merger_tree(tracks_of(self._run))

    def plot(
        self,
        ax: Axes | None = None,
        panels: str | Sequence[str] | None = None,
        *,
        figure: Figure | SubFigure | None = None,
        size: tuple[float, float] | None = None,
        dpi: int | None = None,
        cmap: str = "viridis",
        style: str = "screen",
    ) -> Figure:
        """Return the figure of the run: snapshots above, diagnostics over time below; or some ``panels`` of these.

        ax      axes for the one panel that is named, else for the first diagnostic; the size of their figure is kept
        figure  an empty figure, or a part of one (``figure.subfigures``), to be filled instead of a new one
        panels  names such as "density", "energy", "clusters"; by default the first four that were recorded
        size    width and height in inches
        dpi     pixels per inch
        cmap    name of a Matplotlib colormap
        style   "paper", "screen" or "dark"

        The return value is the whole figure. Raises ValueError for a panel that is unknown or was not recorded, and for
        other invalid values; TypeError for invalid types of axes and names of panels.
        """
        import matplotlib.axes

        from meanfield.figures.figure import fill, load, page, panel
        from meanfield.figures.panels.options import FigureOptions
        from meanfield.figures.saving import DPI

        if self._run.is_solution:
            if any(given is not None for given in (ax, panels, size, dpi)):
                raise ValueError("a recorded solution of a PDE is drawn as a whole: expected a figure alone")
            return self._plot_fields(figure)
        if ax is not None and not isinstance(ax, matplotlib.axes.Axes):
            raise TypeError(f"ax = {ax!r}: expected axes of Matplotlib's")
        if panels is not None and not isinstance(panels, str | list | tuple):
            raise TypeError(f"panels = {panels!r}: expected a name, or a list of names")
        names = None if panels is None else (panels,) if isinstance(panels, str) else tuple(panels)
        options = FigureOptions(names, size, DPI if dpi is None else dpi, cmap, style)
        if ax is None and figure is None:
            return page(load(self._run), options)
        if ax is not None and figure is not None:
            raise ValueError("ax and figure: expected one of the two")
        if size is not None or dpi is not None:
            given = "figure, which" if ax is None else "ax, whose figure"
            raise ValueError(f"size = {size}, dpi = {dpi}: expected none with {given} has its own")
        with matplotlib.rc_context(options.context):
            if ax is not None:
                return panel(load(self._run), ax, names)
            assert figure is not None
            fill(figure, load(self._run), options)
            return figure.figure

    def movie(self, path: str | Path, *, fps: int = 12, overwrite: bool = False, progress: bool = False) -> Path:
        """Animate the snapshots to a .gif or .mp4, and return its path."""
        from meanfield.movie.animate import movie

        with in_python():
            return movie(self._run, path, fps=fps, overwrite=overwrite, quiet=not progress)

    def view(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write a page for the browser, and return its path."""
        from meanfield.view.page import view

        with in_python():
            return view(self._run, path, overwrite=overwrite)

    def export(
        self, path: str | Path, to: str, *, diagnostics: Sequence[str] | None = None, overwrite: bool = False
    ) -> Path:
        """Write the run as "csv", "netcdf" or "vtkhdf", and return the path; ``diagnostics`` are the columns of a
        CSV.
        """
        from meanfield.export.formats import export

        with in_python():
            return export(self._run, to, path, overwrite=overwrite, diagnostics=diagnostics)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write a run file, with the checkpoint from which ``resume`` continues, and return its path.

        Raises FileError if the file exists and ``overwrite`` is false, or cannot be written.
        """
        path = Path(path)
        if isinstance(self._run, InMemoryRun):
            self._run.write(path, overwrite)
            return path
        if path.exists() and (not overwrite or path.samefile(self._run.path)):
            raise FileError(f"{path}: exists already; choose another name")
        beside = Checkpoints(self._run.path, self._run.writers)
        beside.require_own()
        with disk_errors(path, "cannot write it"):
            shutil.copyfile(self._run.path, path)
        beside.copy_to(path)
        return path

    def __repr__(self) -> str:
        from meanfield.analysis.info import describe, format_text

        lines = format_text(describe(self._run)).splitlines()
        hidden = ("file ", "next ") if self.path is None else ()  # lines that only a file has
        return "\n".join(line for line in lines if not line.startswith(hidden))

    def _repr_html_(self) -> str:
        """Return the figure above a folded table of facts as HTML; without a figure, the reason of its absence."""
        facts = html.escape(repr(self))
        try:
            picture = self._picture() if len(self.time) else ""
        except (FileError, CaseError) as error:
            picture = f"<p>{html.escape(str(error))}</p>"
        return f"{picture}<details><summary>{self.stop_reason}</summary><pre>{facts}</pre></details>"

    def _picture(self) -> str:
        """Return the figure as an HTML element."""
        file = io.BytesIO()
        self.plot().savefig(file, format="png", dpi=80)
        title = self._run.path.name if self._run.is_solution else self.case.title
        source = b64encode(file.getvalue()).decode()
        return f'<img alt="{html.escape(title)}" style="max-width: 100%" src="data:image/png;base64,{source}">'

    def _plot_fields(self, figure: Figure | SubFigure | None) -> Figure:
        """Return the figure of a recorded solution."""
        from matplotlib.figure import Figure

        from meanfield.figures.fields import compose_fields, size_of_fields

        if figure is None:
            figure = Figure(figsize=size_of_fields(self._run), layout="constrained")
        compose_fields(self._run, figure)
        return figure.figure

    def _number(self, time: float | None) -> int:
        """Return the number of the last snapshot up to a time. Raises ValueError where there is none."""
        number = len(self.time) - 1 if time is None else int(np.searchsorted(self.time, time, side="right")) - 1
        if number < 0:
            raise ValueError(f"time = {time}: expected one from {self.time[:1]} on, the time of the first snapshot")
        return number

    def _snapshots(self, kind: str) -> Floats | Snapshots:
        self._require(kind, kind)
        return self._run.values if isinstance(self._run, InMemoryRun) else Snapshots(self._run)

    def _require(self, kind: str, name: str) -> None:
        if self._run.kind != kind:
            held = "particles, which have position and weight" if kind == "density" else "a density on a mesh"
            raise AttributeError(f"{name}: the result holds {held}")
