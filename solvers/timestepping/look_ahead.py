"""Bounds of steps by rates of change at later times."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..mesh.mesh import Floats
from ..terms.stiff_sum import has_rate
from .control import MAX_GROWTH, allowed_error, root_mean_square
from .equation import Equation
from .integrate import Integrator
from .runge_kutta.semi_discrete import SemiDiscrete
from .state import MethodState, State
from .stiffness import StiffnessTest

PROBES = 1000  # times of a run at which rates of change are evaluated in addition to those of the steps
WHOLE = 0.99  # of a whole number of steps, since the stable step may become a little shorter
SMOOTH = 0.1  # relative residual of a parabola below which the error estimates of the methods are reliable


@dataclass
class LookAhead:
    """Choice of the longest next step of a run such that no step crosses a sudden change of the rate in time.

    An instance is the argument ``dynamics`` of `integrate`. The rate of change of the present state is evaluated at
    later times with distance ``spacing``, up to the longest step. Where its change in time is no parabola and
    integrates to more than the allowed error, the step ends before, and steps there are at most ``spacing`` long. If
    only boundary data depend on the time, the rate is evaluated only where the data are no parabolas either. The
    first step is at most ``first_step`` long, and each later step at most ``spacing`` or four times the previous one,
    whichever is longer. A run with steps shorter than ``spacing`` has no additional cost, and neither has a term with
    the attribute ``is_autonomous``, or a run without a tolerance.

    Where an equation turns out to be stiff, an implicit integrator replaces the one of the run at the time
    ``changed``.

    rtol, atol   tolerances of a step, for the allowed error
    max_step     longest step
    first_step   longest first step, by default ``spacing``
    stiffness    test of whether the integrator is to be replaced; None for never
    """

    equation: Equation
    integrator: Integrator
    rtol: float
    atol: float
    spacing: float
    max_step: float = math.inf
    first_step: float | None = None
    stiffness: StiffnessTest | None = None
    changed: float = field(default=math.inf, init=False)
    _problem: SemiDiscrete = field(init=False, repr=False)
    _terms_with_data: list[Any] = field(init=False, repr=False)
    _granted: float = field(default=0.0, init=False)
    _end: float = field(default=-math.inf, init=False)
    _looks_ahead: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        stiff = self.equation.stiff
        of_stiff = () if stiff is None else getattr(stiff, "terms", (stiff,))
        terms = [*self.equation.terms, *(of_stiff if all(map(has_rate, of_stiff)) else ())]
        changing = [term for term in terms if not getattr(term, "is_autonomous", False)]
        self._terms_with_data = changing if all(hasattr(term, "boundary_data") for term in changing) else []
        self._problem = SemiDiscrete(Equation(self.equation.mesh, changing))
        self._looks_ahead = bool(changing) and math.isfinite(self.rtol)

    def __call__(self, state: State, until: float) -> tuple[Integrator, float]:
        """Return the integrator, and the latest time at which the next steps from a state may end."""
        if state.time < self._end:  # in a continued run
            return self.integrator, self._end
        if self.stiffness is not None and self.stiffness(self.integrator, state, until):
            self.integrator, self.changed, self.stiffness = self.stiffness.implicit, state.time, None
            state.method_state = {}  # that of the replaced method
        limit, growth, step = self.max_step, MAX_GROWTH * min(state.dt, self._granted), math.inf
        if self._granted == 0.0:
            limit = growth = min(limit, self.spacing if self.first_step is None else self.first_step)
        else:
            step = getattr(self.integrator, "stable_step", math.inf)
        longest = min(limit, growth, until - state.time)
        if longest < 0.99 * MAX_GROWTH * self.spacing:  # after a step of ``spacing`` rounding must not end the growth
            self._granted = _whole_steps(min(self.spacing, limit), step)
        else:
            self._granted = self._smooth_part(state, _whole_steps(longest, step), until)
        self._end = state.time + self._granted
        return self.integrator, self._end

    @property
    def method_state(self) -> MethodState:
        """Return the numbers and arrays on which the next steps depend besides time, values, steps and dt."""
        found: dict[str, float | Floats] = dict(getattr(self.integrator, "method_state", {}))
        found |= {"granted": self._granted, "granted_end": self._end, "changed": self.changed}
        if self.stiffness is not None:
            found["next_trial"] = self.stiffness.next_trial
        return found

    def resume(self, state: State) -> None:
        """Continue the run of a state, from its ``method_state``."""
        known = state.method_state
        self._granted, self._end = float(known.get("granted", 0.0)), float(known.get("granted_end", -math.inf))
        self.changed = float(known.get("changed", math.inf))
        if self.stiffness is not None and "next_trial" in known:
            self.stiffness.next_trial = int(known["next_trial"])
        self.integrator.begin(state)  # gives the stable step, which bounds the first step

    def _smooth_part(self, state: State, longest: float, until: float) -> float:
        """Return the length of time after a state in which the rate of change of that state is smooth in time.

        The result is at most ``longest``, and at least one spacing.
        """
        if not self._looks_ahead:
            return longest
        parts = 2 ** math.ceil(math.log2(longest / self.spacing))
        allowed = allowed_error(state.values, state.values, self.rtol, self.atol)
        times = np.minimum(state.time + longest / parts * np.arange(parts + 1), until)
        data = self._data(state, times)
        of_data, changes, found = [np.sqrt((np.abs(g - g[0]) ** 2).mean(axis=1)) for g in data], [0.0], self.spacing
        rates = self._changes(state, times, data)
        for number in (2**power for power in range(2, parts.bit_length())):
            if data and all(_is_smooth(row[: number + 1], 0.0) for row in of_data):
                found = longest * number / parts
                continue
            changes.extend(next(rates) for _ in range(number + 1 - len(changes)))
            if not _is_smooth(np.array(changes), allowed / (longest / parts)):
                break
            found = longest * number / parts
        return found

    def _data(self, state: State, times: Floats) -> list[Floats]:
        """Return the boundary data (n, faces) at n times, one array a field and part; [] unless all are known."""
        fields = len(state.values) if state.values.ndim == 2 else 0
        found: list[Floats] = []
        for term in self._terms_with_data:
            for part in zip(*(term.boundary_data(time, fields) for time in times.tolist()), strict=True):
                found.extend(np.moveaxis(np.stack(part).reshape(len(times), max(fields, 1), -1), 1, 0))
        return found

    def _changes(self, state: State, times: Floats, data: list[Floats]) -> Iterator[float]:
        """Yield |f(t_k, u) − f(t₀, u)| for the ``times`` t_k after the first, t₀, in root mean square.

        f is the rate of change by terms that are not autonomous, and u are the values of the state. Where ``data`` are
        not empty and equal those of the time before, f is not evaluated.
        """
        first, change = self._problem.full(state.time, state.values), 0.0
        for k in range(1, len(times)):
            if not data or any((g[k] != g[k - 1]).any() for g in data):
                with np.errstate(all="ignore"):
                    change = root_mean_square(self._problem.full(float(times[k]), state.values) - first)
            yield change


def _whole_steps(length: float, step: float) -> float:
    """Return the longest multiple of a ``step`` up to a ``length``, less a margin; ``length`` if it is shorter."""
    return length if length <= step else WHOLE * step * math.floor(length / step)


def _is_smooth(changes: Floats, allowed: float) -> bool:
    """Return whether the changes of a rate at equally spaced times are those of a parabola.

    The changes also count as smooth if the absolute deviations from the parabola sum to at most ``allowed``.
    """
    x = np.linspace(0.0, 1.0, len(changes))
    middle, last = changes[len(changes) // 2], changes[-1]
    residual = np.abs(changes - (4 * middle * x * (1 - x) + last * x * (2 * x - 1)))
    return bool(residual.sum() <= allowed or residual.max() <= SMOOTH * changes.max())
