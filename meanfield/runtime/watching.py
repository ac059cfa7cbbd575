"""Callbacks and stop conditions of a run: functions called with each sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from meanfield.case.case import Case
from solvers.io.layout import Space
from solvers.mesh.checks import check_call
from solvers.mesh.mesh import Floats


@dataclass(frozen=True)
class Moment:
    """A state when a sample is taken: what callbacks and stop conditions are given.

    time          of the state
    values        density (cells,) with respect to area, or positions (n, d); a view, to be copied if it is kept
    diagnostics   by name, as they are recorded
    space         the mesh, or the points with their weights
    """

    time: float
    values: Floats
    diagnostics: Mapping[str, float | Floats]
    space: Space


Callback = Callable[[Moment], object]
Condition = Callable[[Moment], bool]


class Watch:
    """Callbacks, called at each sample, and the stop conditions of a case and of a caller.

    message   why the run is to stop; empty until then
    """

    def __init__(self, case: Case, stop: Condition | None = None, callbacks: Sequence[Callback] = ()) -> None:
        for k, callback in enumerate(callbacks):
            check_call(f"callbacks[{k}]", callback, "moment")
        if stop is not None:
            check_call("stop", stop, "moment")
        self._callbacks, self.message = callbacks, ""
        name, level = case.time.stop, case.time.stop_at
        self._conditions: list[tuple[str, Condition]] = []
        if name is not None:
            make, default = CONDITIONS[name]
            self._conditions.append((name, make(default if level is None else level)))
        if stop is not None:
            self._conditions.append((getattr(stop, "__name__", "stop"), stop))

    @property
    def is_used(self) -> bool:
        """Whether there is anything to call."""
        return bool(self._callbacks or self._conditions)

    def __call__(self, moment: Moment) -> None:
        """Call all; the first condition that holds gives the message."""
        for callback in self._callbacks:
            callback(moment)
        for name, condition in self._conditions:
            if not self.message and condition(moment):
                self.message = f"stopped at time {moment.time:.6g}: {name}"

    def finish(self) -> None:
        """The run has ended: call ``finish()`` of the callbacks that have it."""
        for callback in self._callbacks:
            if (finish := getattr(callback, "finish", None)) is not None:
                finish()


def steady(rate: float) -> Condition:
    """‖u(t) − u(s)‖ ≤ rate·(t − s) ‖u(t)‖ for two samples in a row, in root mean square; a resumed run needs two."""
    before: list[tuple[float, Floats]] = []

    def condition(moment: Moment) -> bool:
        values, earlier = np.array(moment.values), before[:]
        before[:] = [(moment.time, values)]
        if not earlier or earlier[0][0] >= moment.time:
            return False
        change = np.linalg.norm(values - earlier[0][1])
        return bool(change <= rate * (moment.time - earlier[0][0]) * np.linalg.norm(values))

    return condition


def few_clusters(count: float) -> Condition:
    """From 1 to ``count`` clusters, after the start."""
    return lambda moment: moment.time > 0 and 0 < float(np.asarray(moment.diagnostics["clusters"])) <= count


CONDITIONS: dict[str, tuple[Callable[[float], Condition], float]] = {  # by time.stop, and the default of time.stop_at
    "steady": (steady, 1e-6),
    "clusters": (few_clusters, 1.0),
}
