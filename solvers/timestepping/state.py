"""State of a run, the record of a step, and the errors of a step that failed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..backends import backend_for
from ..mesh.mesh import Floats


class NonFinite(ArithmeticError):
    """The state has become NaN or infinite, or its time step has shrunk to nothing."""

    what = "a non-finite state"


class Exploding(NonFinite):
    """The state has outgrown its mesh."""

    what = "an exploding state"


@dataclass
class State:
    """Where a run is: time, values (cells) or (cells, components), and steps taken so far."""

    time: float
    values: Floats
    steps: int = 0
    dt: float = np.nan

    @property
    def when(self) -> str:
        """Time and step, for messages."""
        return f"at time {self.time:.6g}, step {self.steps}"

    def for_reading(self) -> State:
        """Return a state that shares the values, on the host, and cannot change them."""
        return replace(self, values=read_only(backend_for(self.values).to_host(self.values)))


def read_only(values: Floats) -> Floats:
    """Return a view of an array on the host through which nothing can be written."""
    view = values.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True)
class StepResult:
    """Outcome of one step.

    stable_dt   largest stable time step of the state that it leads to
    within      the least of those of the stages on the way
    undershot   whether a density has fallen below zero on the way, and was limited if that was asked for
    finite      whether that state is finite
    event       whether observers are called with that state although none is due (atoms have merged, …)
    """

    stable_dt: float = np.inf
    within: float = np.inf
    undershot: bool = False
    finite: bool = True
    event: bool = False

    @property
    def least_stable(self) -> float:
        """The least stable time step of the stages and of the end."""
        return min(self.stable_dt, self.within)
