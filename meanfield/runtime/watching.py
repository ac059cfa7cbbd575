"""Callbacks and stop conditions of a run: functions called with each sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from meanfield.case.case import Case
from solvers.io.layout import Space
from solvers.mesh.checks import check_call, listed_calls
from solvers.mesh.mesh import Floats
from solvers.timestepping.state import read_only


@dataclass(frozen=True)
class Moment:
    """State of a sample, the argument of callbacks and stop conditions.

    Attributes
    ----------
    time : float
        Time of the state.
    values : array
        Density (cells,) with respect to area, or positions (n, d). A read-only view, to be copied if it is kept.
    diagnostics : mapping of str to float or array
        Diagnostics by name, as they are recorded; read-only.
    space : Mesh or Points
        Mesh of the density, or the points with their ``weights`` (n,).

    Examples
    --------
    >>> import meanfield as mf
    >>> masses = []
    >>> case = mf.load_case("flow_beta0_circle", {"domain.resolution": 64})
    >>> result = mf.simulate(case, callbacks=[lambda moment: masses.append(moment.values @ moment.space.volumes)],
    ...                      stop=lambda moment: moment.time >= 0.5)
    >>> float(result.diagnostics.time[-1]), round(float(masses[-1]), 9)
    (0.5, 1.0)
    """

    time: float
    values: Floats
    diagnostics: Mapping[str, float | Floats]
    space: Space

    def __post_init__(self) -> None:
        found = {name: read_only(np.asarray(one)) if np.ndim(one) else one for name, one in self.diagnostics.items()}
        object.__setattr__(self, "values", read_only(self.values))
        object.__setattr__(self, "diagnostics", MappingProxyType(found))


COLLAPSED = 1e-6  # smallest share of the mass that counts in a cell
MAX_OCCUPIED = 0.1  # largest share of the cells that hold the mass of a collapsed state

Callback = Callable[[Moment], object]
Callbacks = Callback | Sequence[Callback]
Condition = Callable[[Moment], bool]


class Watch:
    """Callbacks, called at each sample, and the stop conditions of a case and of a caller.

    message   reason why the run is to stop; empty until then
    """

    def __init__(self, case: Case, stop: Condition | None = None, callbacks: Callbacks = ()) -> None:
        self._callbacks: Sequence[Callback] = listed_calls("callbacks", callbacks, "moment")
        if isinstance(stop, str):
            condition = f"the case has its conditions in time.stop, such as {{'time.stop': {stop!r}}}"
            raise TypeError(f"stop = {stop!r}: expected a function of (moment); {condition}")
        if stop is not None:
            check_call("stop", stop, "moment")
        self.message = ""
        name, level = case.time.stop, case.time.stop_at
        self._conditions: list[tuple[str, Condition]] = []
        if name is not None:
            make, default = CONDITIONS[name]
            self._conditions.append((name, make(default if level is None else level)))
        if stop is not None:
            self._conditions.append((getattr(stop, "__name__", "stop"), stop))

    @property
    def ending(self) -> str:
        """Return why the run has stopped, or which condition of the case is not met at its end; else an empty text."""
        return self.message or "; ".join(filter(None, (getattr(each, "unmet", "") for _, each in self._conditions)))

    @property
    def is_used(self) -> bool:
        """Return whether there are callbacks or stop conditions."""
        return bool(self._callbacks or self._conditions)

    def __call__(self, moment: Moment) -> None:
        """Call all callbacks and stop conditions with a sample; the first condition that holds sets ``message``."""
        for callback in self._callbacks:
            callback(moment)
        for name, condition in self._conditions:
            if not self.message and condition(moment):
                self.message = f"stopped at time {moment.time:.6g}: {name}"

    def finish(self) -> None:
        """Call ``finish()`` of the callbacks that have it, at the end of the run."""
        for callback in self._callbacks:
            if (finish := getattr(callback, "finish", None)) is not None:
                finish()


class Steady:
    """Stop condition ‖u(t) − u(s)‖ ≤ rate·(t − s) ‖u(t)‖ for the states u at two consecutive samples, at times s < t.

    Norms are root mean squares. A collapsed cluster between cells meets this condition late: under softmax the heaviest
    of its cells attracts the mass of the others at the rate βh²/2, with the cell width h, where tokens would be
    stationary, see docs/numerics.md. A resumed run needs two samples.
    """

    def __init__(self, rate: float) -> None:
        self._rate, self._before, self._last = rate, (np.nan, np.empty(0)), ""

    def __call__(self, moment: Moment) -> bool:
        (earlier, before), values = self._before, np.array(moment.values)
        self._before = moment.time, values
        if not earlier < moment.time:
            return False
        change = np.linalg.norm(values - before) / (moment.time - earlier)
        size = np.linalg.norm(values)
        self._last = _not_steady(moment, float(change / size), self._rate) if change > self._rate * size else ""
        return bool(change <= self._rate * size)

    @property
    def unmet(self) -> str:
        """Return a text on how much the last two samples differ; empty if the condition holds or is not known."""
        return self._last


def _not_steady(moment: Moment, change: float, rate: float) -> str:
    """Return a line for a state that is not steady; it gives a reason if nearly all mass is in few cells of a mesh."""
    line = f"not steady at time {moment.time:.6g}: the state changes by {change:.2g} of itself in a unit of time"
    line += f", expected at most {rate:.2g}"
    volumes = getattr(moment.space, "volumes", None)
    if volumes is None:
        return line
    masses = moment.values * volumes
    if np.count_nonzero(masses > COLLAPSED * masses.sum()) > MAX_OCCUPIED * masses.size:
        return line
    return f"{line}; clusters of a few cells creep into one of them, at a rate of βh²/2 with cells of width h"


def few_clusters(count: float) -> Condition:
    """Return the stop condition that a state after time 0 has 1 to ``count`` clusters."""
    return lambda moment: moment.time > 0 and 0 < float(np.asarray(moment.diagnostics["clusters"])) <= count


CONDITIONS: dict[str, tuple[Callable[[float], Condition], float]] = {  # by time.stop, with the default of time.stop_at
    "steady": (Steady, 1e-6),
    "clusters": (few_clusters, 1.0),
}
