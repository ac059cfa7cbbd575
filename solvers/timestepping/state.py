"""State of a run, outcome of a step, and errors of a failed step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from ..backends import backend_for
from ..mesh.mesh import Floats

MethodState = Mapping[str, float | Floats]


class NonFinite(ArithmeticError):
    """Error of a state that has become NaN or infinite, or whose time step has vanished.

    The message gives time and step, and what is not finite.

    Attributes
    ----------
    what : str
        Kind of the failure, for messages.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import Equation, NonFinite, solve
    >>> try:
    ...     solve(Equation(None, [lambda t, u: -np.sqrt(1 - t) * u]), [1.0], (0.0, 2.0))
    ... except NonFinite as error:
    ...     print(error)
    at time 1, step ...: the rate of change of the same state just after that time is not finite
    """

    what = "a non-finite state"


class Exploding(NonFinite):
    """Error of a state that blows up in finite time, or that has outgrown its mesh.

    A step length that decreases to the rounding of time counts as a blow-up.

    Attributes
    ----------
    what : str
        Kind of the failure, for messages.

    Examples
    --------
    ∂ₜu = u² from u(0) = 1 is u = 1/(1 − t), without a solution beyond t = 1.

    >>> from solvers import Equation, Exploding, solve
    >>> try:
    ...     solve(Equation(None, [lambda t, u: u**2]), [1.0], (0.0, 2.0), rtol=1e-8)
    ... except Exploding as error:
    ...     print(error)
    at time 1, step ...: step size underflow (blow-up?)
    """

    what = "an exploding state"


@dataclass
class State:
    """State of a run: time, values, number of steps and length of a step.

    Callbacks of :func:`~solvers.solve` and observers receive a state with read-only values.

    Parameters
    ----------
    time : float
        Model time.
    values : (cells,) or (fields, cells) array
        Field at that time. Systems without a mesh have any shape.
    steps : int, optional
        Number of steps from the start of the run.
    dt : float, optional
        Length of the last step, or with method "dop853" of the next one to try; NaN before the first step.
    method_state : mapping, optional
        Numbers and arrays by which the method continues from the end of a step: the next step to try, the error of the
        last one, …. States of :func:`~solvers.solve` have them.

    Examples
    --------
    >>> from solvers import Equation, solve
    >>> seen = []
    >>> decay = Equation(None, [lambda t, u: -u])
    >>> solution = solve(decay, [1.0], (0.0, 1.0), callbacks=lambda state: seen.append(state.time))
    >>> seen == solution.t[1:].tolist()
    True

    A state in place of u0 continues its run, bitwise equal to an uninterrupted one:

    >>> states = []
    >>> first = solve(decay, [1.0], (0.0, 1.0), callbacks=lambda state: states.append(state) or len(states) == 3)
    >>> second = solve(decay, states[-1], (0.0, 1.0))
    >>> second.t.tolist() == solution.t[3:].tolist(), bool(second.u[-1] == solution.u[-1])
    (True, True)
    """

    time: float
    values: Floats
    steps: int = 0
    dt: float = np.nan
    method_state: MethodState = field(default_factory=dict, repr=False)

    @property
    def time_and_step(self) -> str:
        """Return the time of the state and the number of steps so far as text, for messages."""
        return f"at time {self.time:.6g}, step {self.steps}"

    def for_reading(self) -> State:
        """Return the same state with read-only values on the host.

        Returns
        -------
        State
            State that shares its values with this one on the host; a copy of values on a device.
        """
        return replace(self, values=read_only(backend_for(self.values).to_host(self.values)))


def reals(values: Floats) -> Floats:
    """Return an array as a flat vector of real numbers: complex numbers as their real and imaginary parts in turn."""
    flat = values.ravel()
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


def from_reals(flat: Floats, like: Floats) -> Floats:
    """Return a flat vector of real numbers as an array like ``like``, real or complex, the inverse of `reals`."""
    found = np.ascontiguousarray(flat)
    return (found.view(like.dtype) if like.dtype.kind == "c" else found).reshape(like.shape)


def read_only(values: Floats) -> Floats:
    """Return a view of an array on the host that cannot be written to."""
    view = values.view()
    view.flags.writeable = False
    return view


@dataclass(frozen=True, slots=True)
class StepResult:
    """Outcome of one step.

    stable_dt   largest stable time step at the end of the step
    within      smallest of the stable time steps of the stages
    undershot   whether a density has fallen below zero within the step, before any limiter
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
        """Return the smallest of the stable time steps of the stages and of the end of the step."""
        return min(self.stable_dt, self.within)
