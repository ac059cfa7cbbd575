"""Result of a run, in a file or in memory: arrays, case, analysis, figures and exports."""

from __future__ import annotations

import html
import shutil
from collections.abc import Sequence
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from meanfield.analysis.drawn import details_as_html, figure_as_html
from meanfield.case.errors import CaseError
from meanfield.results.refusals import with_python_names
from meanfield.results.rows import DiagnosticsTable, Snapshots
from solvers.io.checkpoint import Checkpoints
from solvers.io.memory import InMemoryRun
from solvers.io.run_file import FileError, Run
from solvers.io.writing import disk_errors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from xarray import Dataset

    from meanfield.analysis.mergers import Mergers
    from meanfield.case.case import Case
    from meanfield.clusters.on_cells import Clusters
    from meanfield.view.inline import InlinePage
    from solvers.mesh.mesh import Floats, Mesh


class Result:
    """Result of a run, in memory or in a file.

    :func:`~meanfield.simulate` returns a result in memory; :func:`~meanfield.run`, :func:`~meanfield.resume` and
    :func:`~meanfield.open_run` return one in a file. A result has the attribute ``density``, or ``position`` and
    ``weight`` for particles. Its ``repr`` lists the facts of the run; a notebook shows the figure.

    Parameters
    ----------
    run : Run
        Contents of a run file, or of a run in memory, as the functions above pass them.

    Attributes
    ----------
    time : (snapshots,) array
        Times of the snapshots.
    diagnostics : mapping of str to array
        Diagnostics (samples, ...) by name. ``diagnostics.time`` (samples,) has the times of the samples;
        ``diagnostics.to_xarray()`` returns a Dataset.
    attributes : dict
        Attributes of the file: versions, seed, device, start, wall_time and more.

    Examples
    --------
    Two tokens of equal mass merge.

    >>> import meanfield as mf
    >>> case = mf.load_case("tokens_pair", {"attention.beta": 1, "time.end": 10, "output.samples": 100})
    >>> result = mf.simulate(case)
    >>> result.position.shape  # (time, token, d)
    (61, 2, 2)
    >>> [(merger.masses, merger.before, merger.after) for merger in result.mergers()]
    [((0.5, 0.5), 2, 1)]
    >>> result.clusters(time=0).count, result.clusters().count
    (2, 1)
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self.time, self.diagnostics = run.times, DiagnosticsTable(run)
        self.attributes = dict(run.attributes)

    def __reduce__(self) -> tuple[type[Result], tuple[Run]]:
        """Return the constructor and the run, for pickles.

        Pickles of a run in a file hold its path and the parts that have been read.
        """
        return Result, (self._run,)

    @property
    def path(self) -> Path | None:
        """Return the path of the file; None for a run in memory."""
        return None if isinstance(self._run, InMemoryRun) else self._run.path

    @property
    def density(self) -> Floats | Snapshots:
        """Return the density ρ (time, cell) with respect to area in all snapshots.

        Rows of a file are read when they are indexed. For a recorded solution of a PDE these are values of the first
        field.

        Raises
        ------
        AttributeError
            If the run has particles.
        """
        return self._snapshots("density")

    @property
    def position(self) -> Floats | Snapshots:
        """Return the positions x (time, token, d) of the particles in all snapshots.

        Rows of a file are read when they are indexed.

        Raises
        ------
        AttributeError
            If the run has a density.
        """
        return self._snapshots("position")

    @property
    def weight(self) -> Floats:
        """Return the masses (token,) of particles.

        Raises
        ------
        AttributeError
            If the run has a density.
        """
        self._require("position", "weight")
        return self._run.weights

    @cached_property
    def case(self) -> Case:
        """Return the case with which the run began.

        Raises
        ------
        FileError
            If the file has no case, as a recorded solution of a PDE.
        CaseError
            If the case has a component of a user that is not loaded.
        """
        from meanfield.runtime.segments import case_of

        return case_of(self._run)

    @cached_property
    def mesh(self) -> Mesh:
        """Return the mesh on which the density of the run is given.

        Raises
        ------
        AttributeError
            If the run has particles.
        FileError
            If the file has no case, as a recorded solution of a PDE.
        """
        from meanfield.simulation import set_up

        self._require("density", "mesh")
        return set_up(self.case).space  # type: ignore[return-value]

    @property
    def stop_reason(self) -> str:
        """Return the reason of the end: "finished", "interrupted", "failed" or "running".

        "running" means that the file is being written, or that its writer was killed.
        """
        return str(self.attributes["stop_reason"])

    @property
    def message(self) -> str:
        """Return why the run stopped early; empty if the run did not."""
        return str(self.attributes["message"])

    def to_xarray(self, grid: tuple[int, int] | None = None) -> Dataset:
        """Return the snapshots of the run as a Dataset with coordinates, units and names.

        Cells have the coordinate ``angle`` on the circle and on axisymmetric domains, ``longitude`` and ``latitude`` on
        the sphere, ``radius`` where it is free, and ``x`` on the line: ``.density.sel(time=3,
        method="nearest").plot(x="angle")``. ``result.diagnostics.to_xarray()`` returns the diagnostics.

        Parameters
        ----------
        grid : tuple of two int, optional
            Numbers of latitudes and longitudes of a regular grid, such as (180, 360), on which the density of a sphere
            is averaged. The total mass is conserved. None: the cells of the mesh.

        Returns
        -------
        xarray.Dataset
            ``density`` (time, cell) or ``position`` (time, token, d), read from a file on access, and the arrays of
            the mesh; with a grid ``density`` (time, latitude, longitude) and ``cell_area``, in memory.

        Raises
        ------
        ValueError
            If a grid is given for another domain than the sphere, or its numbers are not positive.
        """
        from meanfield.results.labelled import on_grid, snapshots_of

        return snapshots_of(self._run) if grid is None else on_grid(self._run, grid)

    def clusters(self, time: float | None = None) -> Clusters:
        """Return the clusters in a snapshot of the run, heaviest first.

        Parameters
        ----------
        time : float, optional
            Time whose last snapshot up to it is used; None: the last snapshot.

        Returns
        -------
        Clusters
            ``count``; ``masses`` (count,); ``centers`` (count, d), unit vectors; ``basin``, the number of the cluster
            of each cell or token, −1 for none.

        Raises
        ------
        ValueError
            If the time is no number or before the first snapshot, if there is no snapshot, or if the domain has no
            clusters: the line, densities with an axis, tokens in one dimension.
        """
        from meanfield.analysis.snapshot_clusters import cluster_finder

        number = self._number(time)
        return cluster_finder(self._run)(number)

    def mergers(self) -> Mergers:
        """Return the mergers of clusters during the run, in order of time.

        Clusters are followed by the diagnostics cluster_mass and cluster_center, else by the snapshots.

        Returns
        -------
        Mergers
            List of mergers, with ``plot``, ``to_xarray`` and ``to_dataframe``. A merger has ``since`` and ``time``,
            between which the clusters merged; ``masses`` of both; ``before`` and ``after``, numbers of clusters;
            ``energy_step``, the increase of the scaled energy.

        Raises
        ------
        ValueError
            If the domain has no clusters: the line, densities with an axis, tokens in one dimension.
        """
        from meanfield.analysis.mergers import Mergers, merger_tree
        from meanfield.analysis.tracks import tracks_of

        return Mergers(merger_tree(tracks_of(self._run)), self._run)

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
        times: Sequence[float] | None = None,
        title: bool | str = True,
        caption: bool | str = True,
    ) -> Figure:
        """Draw the run: snapshots above, diagnostics over time below; or some panels of these.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes for the one panel that is named, else for the first diagnostic. The size of their figure is kept.
        panels : str or sequence of str, optional
            Names such as "density", "energy" or "clusters". None: the snapshots, and at most four diagnostics.
        figure : matplotlib.figure.Figure or SubFigure, optional
            Empty figure, or a part of one, that is filled. None: a new figure.
        size : tuple of two floats, optional
            Width and height of a new figure in inches. None: the size that the panels need.
        dpi : int, optional
            Pixels per inch of a new figure.
        cmap : str
            Color map of Matplotlib.
        style : {"screen", "paper", "dark"}
            Sizes and colors of text; "paper" is for printing at full size.
        times : sequence of float, optional
            At most six times, whose nearest snapshots are drawn. None: six snapshots, by the changes of the run.
        title : bool or str
            Text above the figure. True: the title and the facts of the run above the page. False: no text.
        caption : bool or str
            Text below the figure. True: explanations below the page and its pictures. False: no text.

        Returns
        -------
        matplotlib.figure.Figure
            The whole figure.

        Raises
        ------
        ValueError
            If a panel is unknown or was not recorded, if arguments exclude each other, or a value is not valid. A
            recorded solution of a PDE accepts no ``ax``, ``panels``, ``times`` and ``caption``.
        TypeError
            If ``ax`` is no Axes, or ``panels`` no name or list of names.
        FileError
            If the file holds no snapshot yet.
        """
        import matplotlib.axes

        from meanfield.figures.fields import page_of_fields
        from meanfield.figures.figure import fill, load, page, panel
        from meanfield.figures.panels.options import FigureOptions
        from meanfield.figures.run_data import with_times
        from meanfield.figures.saving import DPI

        if ax is not None and not isinstance(ax, matplotlib.axes.Axes):
            raise TypeError(f"ax = {ax!r}: expected Axes of Matplotlib; panels are named by panels=")
        if panels is not None and not isinstance(panels, str | list | tuple):
            raise TypeError(f"panels = {panels!r}: expected a name, or a list of names")
        names = None if panels is None else (panels,) if isinstance(panels, str) else tuple(panels)
        moments = None if times is None else tuple(times)
        options = FigureOptions(names, size, DPI if dpi is None else dpi, cmap, style, moments, title, caption)
        if ax is not None and figure is not None:
            raise ValueError("ax and figure: expected one of the two")
        if (ax is not None or figure is not None) and (size is not None or dpi is not None):
            given = "figure, which" if ax is None else "ax, whose figure"
            raise ValueError(f"size = {size}, dpi = {dpi}: expected none with {given} has its own")
        if self._run.is_solution:
            if ax is not None:
                raise ValueError("a recorded solution of a PDE is drawn in a figure: expected no ax")
            return page_of_fields(self._run, options, figure)
        if ax is None and figure is None:
            return page(load(self._run), options)
        with matplotlib.rc_context(options.context):
            if ax is not None:
                if isinstance(title, str) or isinstance(caption, str):
                    raise ValueError("title and caption: expected no texts with ax; ax.set_title writes a title")
                return panel(with_times(load(self._run), moments), ax, names)
            assert figure is not None
            fill(figure, load(self._run), options)
            return figure.figure

    def movie(self, path: str | Path, *, fps: int = 12, overwrite: bool = False, progress: bool = False) -> Path:
        """Animate the snapshots of the run as a movie.

        Parameters
        ----------
        path : str or Path
            File to be written, .gif or .mp4. The latter needs ffmpeg.
        fps : int
            Snapshots per second, 1 to 50.
        overwrite : bool
            Whether an existing file is replaced.
        progress : bool
            Whether a terminal shows a bar.

        Returns
        -------
        Path
            Path of the movie.

        Raises
        ------
        ValueError
            If ``fps`` is out of range.
        FileError
            If the suffix is unknown, the file exists and ``overwrite`` is false or it cannot be written, ffmpeg is
            missing or fails, or the run holds no snapshot.
        """
        from meanfield.movie.animate import movie

        with with_python_names():
            return movie(self._run, path, fps=fps, overwrite=overwrite, quiet=not progress)

    @overload
    def view(self, path: None = None, *, overwrite: bool = False) -> InlinePage: ...

    @overload
    def view(self, path: str | Path, *, overwrite: bool = False) -> Path: ...

    def view(self, path: str | Path | None = None, *, overwrite: bool = False) -> Path | InlinePage:
        """Return the run as a page for a notebook, or write it as a file for a web browser that needs no network.

        Long runs and fine meshes are thinned, with a line on standard error.

        Parameters
        ----------
        path : str or Path, optional
            File to be written, .html or .htm. None: the page is returned, and shown by a notebook.
        overwrite : bool
            Whether an existing file is replaced.

        Returns
        -------
        Path or InlinePage
            Path of the page, or the page itself.

        Raises
        ------
        FileError
            If the suffix is unknown, the file exists and ``overwrite`` is false or it cannot be written, or the run
            holds no snapshot.
        """
        from meanfield.view.inline import InlinePage
        from meanfield.view.page import compose, view

        with with_python_names():
            return InlinePage(compose(self._run)) if path is None else view(self._run, path, overwrite=overwrite)

    def export(
        self, path: str | Path, to: str, *, diagnostics: Sequence[str] | None = None, overwrite: bool = False
    ) -> Path:
        """Export the run into a file for other programs.

        Parameters
        ----------
        path : str or Path
            File to be written.
        to : {"csv", "netcdf", "vtkhdf"}
            Format: diagnostics over time; densities of circle and sphere on a regular grid; cells or particles for
            ParaView. A vtkhdf file refers to the run file, which is needed beside it: save a run in memory first, and
            export the :func:`~meanfield.open_run` of that file.
        diagnostics : sequence of str, optional
            Columns of a CSV file; None: all.
        overwrite : bool
            Whether an existing file is replaced.

        Returns
        -------
        Path
            Path of the exported file.

        Raises
        ------
        ValueError
            If the format is unknown.
        FileError
            If the format does not support the domain, a diagnostic was not recorded or is given for a format other than
            csv, the run has no data to export, the format is vtkhdf and the run is in memory, the file exists and
            ``overwrite`` is false, or it cannot be written.
        """
        from meanfield.export.formats import export

        with with_python_names():
            return export(self._run, to, path, overwrite=overwrite, diagnostics=diagnostics)

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the run into a run file, with the checkpoint from which :func:`~meanfield.resume` continues.

        Parameters
        ----------
        path : str or Path
            File to be written.
        overwrite : bool
            Whether an existing file, other than the run file itself, is replaced.

        Returns
        -------
        Path
            Path of the run file.

        Raises
        ------
        FileError
            If the file exists and ``overwrite`` is false, is the run file itself, or cannot be written.
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
        try:
            picture = self._picture() if len(self.time) else ""
        except (FileError, CaseError) as error:
            picture = f"<p>{html.escape(str(error))}</p>"
        return picture + details_as_html(self.stop_reason, repr(self))

    def _picture(self) -> str:
        """Return the figure of the run as an HTML element."""
        return figure_as_html(self.plot(), self._run.path.name if self._run.is_solution else self.case.title)

    def _number(self, time: float | None) -> int:
        """Return the number of the last snapshot up to a time. Raises ValueError where there is none."""
        if not len(self.time):
            raise ValueError("the run holds no snapshot yet")
        if time is None:
            return len(self.time) - 1
        first = self.time[0]
        if not (isinstance(time, Real) and time >= first):
            raise ValueError(f"time = {time!r}: expected a number from {first:g} on, the time of the first snapshot")
        return int(np.searchsorted(self.time, time, side="right")) - 1

    def _snapshots(self, kind: str) -> Floats | Snapshots:
        """Return the snapshots of a run of a kind; raise AttributeError for a run of another kind."""
        self._require(kind, kind)
        return self._run.values if isinstance(self._run, InMemoryRun) else Snapshots(self._run)

    def _require(self, kind: str, name: str) -> None:
        """Raise AttributeError unless the run has the given kind, "density" or "particles"."""
        if self._run.kind != kind:
            held = "particles, which have position and weight" if kind == "density" else "a density on a mesh"
            raise AttributeError(f"{name}: the result holds {held}")
