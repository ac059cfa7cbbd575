"""State of a run, outcome of a step, and errors of a failed step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..backends import backend_for
from ..mesh.mesh import Floats


class NonFinite(ArithmeticError):
    """Error of a state that has become NaN or infinite, or whose time step has vanished."""

    what = "a non-finite state"


class Exploding(NonFinite):
    """Error of a state that has outgrown its mesh."""

    what = "an exploding state"


@dataclass
class State:
    """State of a run: time, values (cells) or (cells, components), and the number of steps."""

    time: float
    values: Floats
    steps: int = 0
    dt: float = np.nan

    @property
    def when(self) -> str:
        """Return time and step, for messages."""
        return f"at time {self.time:.6g}, step {self.steps}"

    def for_reading(self) -> State:
        """Return a state that shares the values, on the host, read-only."""
        return replace(self, values=read_only(backend_for(self.values).to_host(self.values)))


def read_only(values: Floats) -> Floats:
    """Return a read-only view of an array on the host."""
    view = values.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True)
class StepResult:
    """Outcome of one step.

    stable_dt   largest stable time step at the end of the step
    within      least stable time step of the stages
    undershot   whether a density has fallen below zero within the step, and was limited on request
    finite      whether the state at the end is finite
    event       whether observers are called at the end although none is due (atoms have merged, …)
    """

    stable_dt: float = np.inf
    within: float = np.inf
    undershot: bool = False
    finite: bool = True
    event: bool = False

    @property
    def least_stable(self) -> float:
        """Return the least stable time step of the stages and of the end."""
        return min(self.stable_dt, self.within)
