"""Solution of an evolution equation: times, fields, reason of the end, dense output, datasets and figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..mesh.checks import check_unmasked
from ..mesh.mesh import Floats, Mesh
from .equation import Equation
from .integrate import Integrator, advance_copy, integrate
from .look_ahead import LookAhead
from .methods import Make, integrator_of, make_implicit
from .state import State
from .stiffness import StiffnessTest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from xarray import Dataset


@dataclass(frozen=True)
class Interpolant:
    """Interpolation of a solution between two stored times, as accurate as the steps.

    The field at time t is the result of one step of the method from the end of the last step before t. If
    ``keeps_steps`` is false, the steps from the last stored time to t are repeated first.

    spacing       distance of times at which `LookAhead` evaluates rates of change
    keeps_steps   whether the ends of all steps are stored
    changed       time from which on the method is implicit
    longest       longest step that a run with "auto" can use; 0 for a run whose method does not change
    The other attributes are arguments of `solve`.
    """

    equation: Equation
    method: str | Make
    rtol: float
    atol: float
    cfl: float | None
    max_step: float
    spacing: float
    keeps_steps: bool
    changed: float = math.inf
    longest: float = 0.0

    def __call__(self, first: Floats, span: tuple[float, float], times: Sequence[float]) -> list[Floats]:
        """Return the fields at increasing times between two stored times.

        first   field at the first of the stored times
        span    the two stored times
        """
        begin, end = span
        if self.keeps_steps:
            state, integrator = State(begin, first, dt=end - begin), self.integrator(begin)
            return [advance_copy(state, integrator, time).values for time in times]
        return self._recompute_fields(State(begin, first.copy()), times)

    def _recompute_fields(self, state: State, times: Sequence[float]) -> list[Floats]:
        """Return the fields at increasing ``times`` by a repeated run from ``state``.

        Each field is the result of a step from the last state of the run before the time.
        """
        before, found = replace(state, values=state.values.copy()), list[Floats]()
        dynamics = self.dynamics(state.time)
        integrator_within = cache(lambda changed: replace(self, changed=changed).integrator(before.time))

        def after_step(state: State) -> bool:
            nonlocal before
            before.dt = state.time - before.time
            while len(found) < len(times) and times[len(found)] <= state.time:
                within = integrator_within(dynamics.changed)
                found.append(advance_copy(before, within, times[len(found)]).values)
            before = replace(state, values=state.values.copy())
            return len(found) == len(times)

        integrate(state, dynamics, times[-1], (), after_step)
        return found

    def dynamics(self, time: float, first_step: float | None = None) -> LookAhead:
        """Return a new integrator with bounds of its steps: none crosses a sudden change of a rate in time.

        ``time`` is the start time of the first step.
        """
        limits, stiffness = (self.spacing, self.max_step, first_step), None
        if self.longest > 0 and time < self.changed:
            implicit = make_implicit(self.equation, self.rtol, self.atol)
            stiffness = StiffnessTest(self.equation, implicit, self.longest)
        return LookAhead(self.equation, self.integrator(time), self.rtol, self.atol, *limits, stiffness)

    def integrator(self, time: float) -> Integrator:
        """Return a new integrator of the method for steps from a time, with work arrays of its own."""
        if time >= self.changed:
            return make_implicit(self.equation, self.rtol, self.atol)
        return integrator_of(self.equation, self.method, self.rtol, self.atol, self.cfl)


@dataclass(frozen=True)
class Solution:
    """Result of :func:`~solvers.solve`; ``solution(t)`` is the field at any time of the run.

    Each parameter is an attribute of the same name.

    Parameters
    ----------
    t : (n,) array
        Times: those requested and an early end, or t0 and the end of every step.
    u : (n, cells) or (n, fields, cells) array
        Fields at these times.
    steps : int
        Number of accepted steps, with those before the start of a continued run.
    rejected : int
        Number of rejected steps; 0 for methods that do not count them: "dop853", "euler", "ssprk2" and "ssprk3".
    message : str
        Reason of the end, method and number of steps.
    event : int, optional
        Number of the event that ended the run; None without one.
    mesh : Mesh, optional
        Mesh of the equation; None if neither the equation nor a term has one.
    _interpolant : Interpolant, optional
        Interpolation between the times.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import Equation, solve
    >>> decay = Equation(None, [lambda t, u: -u])
    >>> solution = solve(decay, [1.0], (0.0, 1.0), times=[0.0, 1.0], rtol=1e-8)
    >>> solution.t, solution.u.shape
    (array([0., 1.]), (2, 1))
    >>> bool(abs(solution(0.5)[0] - np.exp(-0.5)) < 1e-7)
    True
    """

    t: Floats
    u: Floats
    steps: int
    rejected: int
    message: str
    event: int | None = None
    mesh: Mesh | None = field(default=None, repr=False)
    _interpolant: Interpolant | None = field(default=None, repr=False, kw_only=True)

    def __call__(self, time: npt.ArrayLike) -> Floats:
        """Return u at one or several times between the first and the last stored time.

        Values between the times ``t`` are as accurate as those at ``t``. Each value costs a step of the method from the
        end of the previous step. A solution with given ``times`` repeats the steps from the last stored time before.

        Parameters
        ----------
        time : float or (times,) array
            Times in any order.

        Returns
        -------
        (cells,) or (fields, cells) array
            Field at a time; with an additional first axis for several times.

        Raises
        ------
        ValueError
            If a time is outside the run, or ``time`` is no number or list of numbers.
        """
        times = self._times(time)
        found = np.empty((times.size, *self.u.shape[1:]), self.u.dtype)
        places = np.searchsorted(self.t, times.ravel(), side="right") - 1
        kept = times.ravel() == self.t[places]
        found[kept] = self.u[places[kept]]
        for k in np.unique(places[~kept]):
            inside, where = np.unique(times.ravel()[~kept & (places == k)], return_inverse=True)
            assert self._interpolant is not None
            fields = self._interpolant(self.u[k], (float(self.t[k]), float(self.t[k + 1])), inside.tolist())
            found[~kept & (places == k)] = np.stack(fields)[where]
        return found.reshape(*times.shape, *self.u.shape[1:])

    def _times(self, time: npt.ArrayLike) -> Floats:
        """Return ``time`` as an array () or (times,); raise ValueError unless it holds times of the run."""
        check_unmasked("t", time)
        try:
            times = np.asarray(time, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"t = {time!r}: expected a time, or a list of times") from None
        if times.ndim > 1:
            raise ValueError(f"t of shape {times.shape}: expected a time, or a list of times")
        outside = times[~((times >= self.t[0]) & (times <= self.t[-1]))]
        if outside.size:
            expected = f"expected a time from {self.t[0]:.10g} to {self.t[-1]:.10g}"
            raise ValueError(f"t = {float(outside[0])!r}: {expected}")
        return times

    def to_xarray(self, fields: Sequence[str] | None = None) -> Dataset:
        """Return the fields over time and the coordinates of the mesh, with the cell volumes, as a dataset.

        Parameters
        ----------
        fields : sequence of str, optional
            Names of the fields; by default "u" for one field, "u0", "u1", … for several.

        Returns
        -------
        xarray.Dataset
            Fields with the dimensions of the mesh: x, y, z on a box, angle on a circle, else cell.

        Raises
        ------
        ValueError
            If the equation has no mesh, the numbers of names and fields differ, or a name occurs twice or is that of a
            coordinate.
        """
        from ..mesh.views import dataset

        return dataset(self.t, self.u, self._on_mesh(), fields)

    def plot(self, ax: Axes | None = None, *, time: float | None = None, field: int = 0, **style: Any) -> Axes:
        """Draw a field of the solution with Matplotlib, or the modulus and the phase of a complex field.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw into, which show the modulus alone. By default the current axes of pyplot if a figure of pyplot
            is open and these axes are empty; else those of a new figure, which ``.figure.savefig`` writes.
        time : float, optional
            Time whose nearest stored time is drawn. By default up to six times as curves on a line or a circle, else
            the last time.
        field : int, optional
            Number of the field.
        **style : Any
            Options of Matplotlib's plot, pcolormesh, imshow, tripcolor or scatter.

        Returns
        -------
        matplotlib.axes.Axes
            Axes with the drawing; ``ax.figure`` is the figure.

        Raises
        ------
        ValueError
            If the equation has no mesh, or the mesh is a box of three dimensions.
        """
        from ..mesh.views import draw

        return draw(self.t, self.u, self._on_mesh(), ax, time, field, **style)

    def movie(self, path: str | Path, *, field: int = 0, fps: int = 10, **style: Any) -> Path:
        """Animate a field of the solution over the stored times, on one range of values.

        Parameters
        ----------
        path : str or Path
            File to write: a GIF for the suffix ".gif", else a video by ffmpeg.
        field : int, optional
            Number of the field.
        fps : int, optional
            Frames per second.
        **style : Any
            Options of Matplotlib's plot, pcolormesh, imshow, tripcolor or scatter.

        Returns
        -------
        Path
            Path of the file.

        Raises
        ------
        ValueError
            If the equation has no mesh, or the mesh is a box of three dimensions.
        RuntimeError
            If a video is requested and ffmpeg is not installed.
        """
        from ..mesh.views import film

        return film(self.t, self.u, self._on_mesh(), path, field, fps, **style)

    def _on_mesh(self) -> Mesh:
        if self.mesh is None:
            raise ValueError("the equation has no mesh: expected Equation(mesh, [term, …])")
        return self.mesh
