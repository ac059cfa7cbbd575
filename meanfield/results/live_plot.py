"""Diagnostics of a run, drawn while the run continues."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from meanfield.runtime.progress import in_notebook
from solvers.mesh.checks import check_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from meanfield.case.overrides import Overrides
    from meanfield.results.result import Result
    from meanfield.results.runs import CaseSource
    from meanfield.runtime.watching import Moment


def live(
    case: CaseSource,
    overrides: Overrides = (),
    *,
    draw: str | Sequence[str] = "energy",
    interval: float = 0.5,
    **options: Any,
) -> Result:
    """Run a case in memory, and draw diagnostics over time while the run continues.

    The figure is in the cell of a notebook, else in a window of Matplotlib.

    Parameters
    ----------
    case : Case, str, Path or mapping
        Case, its file, the name of a shipped case, or the sections of a case file, see :func:`~meanfield.load_case`.
    overrides : mapping or sequence of str
        Values that replace those of the case, by keys or short names.
    draw : str or sequence of str
        Names of scalar diagnostics that the run records, one panel each.
    interval : float
        Minimum number of seconds between two drawings.
    **options
        Values by short names, such as ``beta=4``, and the arguments of :func:`~meanfield.simulate` other than
        ``callbacks``.

    Returns
    -------
    Result
        Snapshots and diagnostics of the run, in memory, as :func:`~meanfield.simulate` returns them.

    Raises
    ------
    RuntimeError
        If there is neither a notebook nor a backend of Matplotlib with windows.
    ValueError
        If a name is not a recorded scalar diagnostic, or ``interval`` is below 0 or not finite.

    See Also
    --------
    LivePlot : Callback that draws, for runs with further callbacks or in a file.

    Examples
    --------
    >>> import meanfield as mf
    >>> mf.live("growth_circle", draw=["energy", "clusters"])  # doctest: +SKIP
    """
    import matplotlib.pyplot as plt
    from matplotlib import get_backend

    from meanfield.results.runs import simulate

    if not in_notebook() and get_backend().lower() not in interactive_backends():
        raise RuntimeError(
            f"live: Matplotlib's backend {get_backend()} has no windows; expected a notebook, or a display and an "
            "interactive backend (MPLBACKEND=qtagg)"
        )
    plot = LivePlot(*([draw] if isinstance(draw, str) else draw), interval=interval)
    if not in_notebook():
        plt.show(block=False)
    return simulate(case, overrides, callbacks=[plot], **options)


class LivePlot:
    """Callback that draws diagnostics over time while a run continues.

    The figure is in a window of an interactive backend, or in the cell of a notebook.

    Parameters
    ----------
    *names : str
        Names of scalar diagnostics that the run records, one panel each. "energy" by default.
    interval : float
        Minimum number of seconds between two drawings. The samples in between are kept.

    Attributes
    ----------
    names : tuple of str
        Names of the diagnostics.
    interval : float
        Minimum number of seconds between two drawings.
    figure : matplotlib.figure.Figure
        The figure, with one curve in each panel.

    Raises
    ------
    ValueError
        If ``interval`` is below 0 or not finite. During the run, for a name that the run does not record, or whose
        values are arrays.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import meanfield as mf
    >>> live = mf.LivePlot("mass", "energy")
    >>> case = mf.load_case("metastable_circle", {"domain.resolution": 32, "time.end": 0.1, "output.samples": 4})
    >>> result = mf.simulate(case, callbacks=[live], progress=False)
    >>> times, masses = live.figure.axes[0].lines[0].get_data()
    >>> len(times) == len(result.diagnostics.time)
    True
    >>> plt.close(live.figure)
    """

    def __init__(self, *names: str, interval: float = 0.5) -> None:
        import matplotlib.pyplot as plt

        check_number("interval", interval)
        self.names, self.interval = names or ("energy",), interval
        self._times: list[float] = []
        self._values: dict[str, list[float]] = {name: [] for name in self.names}
        size = (6.4, 1.2 + 1.6 * len(self.names))
        self.figure, axes = plt.subplots(
            len(self.names), sharex=True, squeeze=False, figsize=size, layout="constrained"
        )
        self._axes = [row[0] for row in axes]
        self._lines = [ax.plot([], [], label=name)[0] for ax, name in zip(self._axes, self.names, strict=True)]
        for ax, name in zip(self._axes, self.names, strict=True):
            ax.set_ylabel(name)
        self._axes[-1].set_xlabel("time t")
        self._show, self._drawn = _display(self.figure), -np.inf

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_show"}  # belongs to one display

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._show = _display(self.figure)

    def __call__(self, moment: Moment) -> None:
        for name in self.names:
            if np.ndim(moment.diagnostics.get(name, ())) > 0:
                numbers = [key for key, value in moment.diagnostics.items() if np.ndim(value) == 0]
                raise ValueError(f"LivePlot({name!r}): expected diagnostics that are recorded: {', '.join(numbers)}")
            self._values[name].append(float(np.asarray(moment.diagnostics[name])))
        self._times.append(moment.time)
        if clock.monotonic() - self._drawn >= self.interval:
            self.draw()

    def finish(self) -> None:
        """Draw the diagnostics once more at the end of the run, with the samples since the last drawing."""
        if self._times:
            self.draw()

    def draw(self) -> None:
        """Draw the diagnostics of the run over time, with all samples so far."""
        for ax, line, name in zip(self._axes, self._lines, self.names, strict=True):
            line.set_data(self._times, self._values[name])
            ax.relim()
            ax.autoscale_view()
        self._show()
        self._drawn = clock.monotonic()


def _display(figure: Figure) -> Callable[[], None]:
    """Return a function that shows the current figure: in the cell of a notebook, else in its window if it has one."""
    if in_notebook():
        import matplotlib.pyplot as plt
        from IPython.display import display

        plt.close(figure)  # else the cell would show the figure again at its end
        handle = display(figure, display_id=True)  # type: ignore[no-untyped-call, unused-ignore]
        return lambda: handle.update(figure)

    def refresh() -> None:
        figure.canvas.draw_idle()
        figure.canvas.flush_events()

    return refresh


def interactive_backends() -> list[str]:
    """Return the names of the backends of Matplotlib that draw in windows, in lower case."""
    from matplotlib.backends.registry import BackendFilter, backend_registry

    return [name.lower() for name in backend_registry.list_builtin(BackendFilter.INTERACTIVE)]
