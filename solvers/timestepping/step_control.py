"""Control of time steps: their error, found by two steps of half the length, and bounds from rates ahead of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import numpy as np

from ..backends import backend_for
from ..mesh.mesh import Floats
from ..terms.stiff_sum import has_rate
from .equation import Equation
from .integrate import Integrator
from .semi_discrete import SemiDiscrete
from .state import State

SAFETY, SHRINK, GROW = 0.9, 0.1, 3.0  # of the step that the error asks for; limits of a change of the step
STEADY_PART = 0.01  # of |values − mean|, allowed error of a step of a steady state, relative to rtol
MIN_GAIN = 0.5  # power of the step that an error falls by at least if it is of time: a smooth one falls by 1 or more
MARGIN, DECAY = 2.0, 0.9  # of an error that no shorter step makes smaller: by how much more is allowed, less each step
BALANCED, MAX_SPLIT = 0.1, 0.5  # net change over that of the explicit terms, which then is below half the values
MIN_STEP = 1e-6  # of the first step tried: states that are still not finite there are lost
PROBES = 1000  # times of a run at which rates of change are evaluated, beside those of the steps
MAX_GROWTH = 4.0  # largest ratio of a step and the one before it
SMOOTH = 0.1  # residual of a parabola over the largest value, below which the methods' own error estimates hold


class StepControl:
    """Error of a step u₁ against two halves u₂: |u₂ − u₁|/(2ᵖ − 1) ≤ atol + rtol (|u₂ − u₀| + |u₂ − ū₂|/100).

    order   p of the method, whose steps err by O(dtᵖ⁺¹); in proportion to the change, by O(dtᵖ)

    Where a shorter step errs no less (limiters, modes that only decay), that much is allowed, and less with each step
    from there on. Where the explicit terms and the stiff one are in balance, both may be too large for a split step to
    see either: whole and halves agree on a wrong state. The step is then so short that the explicit terms change less
    than half of the values. Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, section II.4.
    """

    def __init__(self, rtol: float, atol: float, order: int, values: Floats) -> None:
        self._rtol, self._atol, self._order = rtol, atol, order
        self._whole = np.empty_like(values)
        self._wanted = math.inf  # the step that the error asks for
        self._allowed = 1.0  # of the tolerance
        self._split = 0.0  # change of the explicit terms over the largest that is allowed, where they are balanced
        self._tried: list[tuple[float, float]] = []  # (dt, error over the tolerance) of this step's refused attempts

    def longest(self, stable: float) -> float:
        """The longest step to try."""
        return min(stable, self._wanted)

    def keep_whole(self, values: Floats, before: Floats, explicit_change: float) -> None:
        """Keep the values after the whole step, within which the explicit terms of a split one changed so much."""
        self._whole[...] = values
        self._split = 0.0
        if explicit_change > 0 and root_mean_square(values - before) < BALANCED * explicit_change:
            size = max(root_mean_square(values), root_mean_square(before))
            self._split = explicit_change / (MAX_SPLIT * size) if size > 0 else math.inf

    def accepts(self, dt: float, values: Floats, before: Floats) -> bool:
        """Whether the values after two halves are good enough; chooses the next step to try."""
        error = self._error(values, before)
        if math.isnan(error):
            self._tried.append((dt, math.inf))
            self._wanted = SHRINK * dt
            return dt < MIN_STEP * self._tried[0][0]  # then the caller raises
        if self._split > 1:
            self._wanted = max(SHRINK, SAFETY / self._split) * dt
            return False
        if self._tried and error > self._tried[-1][1] * (dt / self._tried[-1][0]) ** MIN_GAIN:
            self._allowed = max(self._allowed, MARGIN * error)
            dt = max([dt, *(size for size, refused in self._tried if refused <= self._allowed)])
        change = SAFETY * (self._allowed / error) ** (1 / self._order) if error > 0 else GROW
        if error > self._allowed:
            self._tried.append((dt, error))
            self._wanted = max(SHRINK, min(change, 0.5)) * dt
            return False
        cut = not self._tried and dt < 0.999 * self._wanted < math.inf  # shortened to meet the target, or by the cfl
        self._wanted = max(min(change, GROW) * dt, self._wanted if cut else 0.0)
        if self._split > 0:
            self._wanted = min(self._wanted, SAFETY / self._split * dt)
        self._allowed = max(1.0, DECAY * self._allowed)
        self._tried.clear()
        return True

    def _error(self, values: Floats, before: Floats) -> float:
        """The error over what is allowed; NaN where a number is not finite."""
        allowed = allowed_error(values, before, self._rtol, self._atol)
        return float(root_mean_square(values - self._whole) / (2**self._order - 1) / allowed)


def allowed_error(values: Floats, before: Floats, rtol: float, atol: float) -> float:
    """atol + rtol (|u − u₀| + |u − ū|/100), what a step from u₀ to u may err."""
    cells = int(np.argmax(values.shape))  # the longest axis: a field's mean is over its cells
    spread = root_mean_square(values - values.mean(axis=cells, keepdims=True))
    return atol + rtol * (root_mean_square(values - before) + STEADY_PART * spread)


def root_mean_square(values: Floats) -> float:
    """Root mean square."""
    flat = values.reshape(-1)
    return math.sqrt(float(backend_for(values).dot(flat, flat)) / flat.size)


@dataclass
class LookAhead:
    """The integrator of a run, and the time that its next step may not cross: dynamics of `integrate`.

    The rate of change of the present state is evaluated ahead of the state, at times ``spacing`` apart, no further than
    a step may reach. Where its change in time is no parabola, and integrates to more than a step may err, the step
    ends before that; there steps are no longer than ``spacing``. The first step is no longer either, and each of the
    next at most four times as long as the one before it. A run whose steps are shorter than a quarter of ``spacing``
    costs nothing more.

    max_step   longest step
    """

    equation: Equation
    integrator: Integrator
    rtol: float
    atol: float
    spacing: float
    max_step: float = math.inf
    _problem: SemiDiscrete = field(init=False, repr=False)
    _granted: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        stiff = self.equation.stiff
        known = stiff is not None and all(has_rate(term) for term in getattr(stiff, "terms", (stiff,)))
        self._problem = SemiDiscrete(Equation(self.equation.terms, stiff if known else None))

    def __call__(self, state: State, until: float) -> tuple[Integrator, float]:
        """Return the integrator, and the end of its next step at the latest."""
        longest = MAX_GROWTH * min(state.dt, self._granted) if state.dt > 0 else 0.0
        longest = min(longest, self.max_step, until - state.time)
        self._granted = min(self._smooth_part(state, longest, until), self.max_step)
        return self.integrator, state.time + self._granted

    def _smooth_part(self, state: State, longest: float, until: float) -> float:
        """Return the length of the time from a state on within which its rate is smooth in time."""
        if longest < 4 * self.spacing:
            return self.spacing
        parts = 2 ** math.ceil(math.log2(longest / self.spacing))
        allowed = allowed_error(state.values, state.values, self.rtol, self.atol)
        rates, changes, found = self._changes(state, longest / parts, until), [0.0], self.spacing
        for number in (2**power for power in range(2, parts.bit_length())):
            changes.extend(next(rates) for _ in range(number + 1 - len(changes)))
            if not _is_smooth(np.array(changes), allowed / (longest / parts)):
                break
            found = longest * number / parts
        return found

    def _changes(self, state: State, spacing: float, until: float) -> Iterator[float]:
        """Return the change of the rate of a state at each of the times ahead."""
        first = self._problem.full(state.time, state.values)
        for k in count(1):
            time = min(state.time + k * spacing, until)
            with np.errstate(all="ignore"):
                yield root_mean_square(self._problem.full(time, state.values) - first)


def _is_smooth(changes: Floats, allowed: float) -> bool:
    """Return whether changes at equal distances are those of a parabola, or sum up to no more than is allowed."""
    x = np.linspace(0.0, 1.0, len(changes))
    middle, last = changes[len(changes) // 2], changes[-1]
    residual = np.abs(changes - (4 * middle * x * (1 - x) + last * x * (2 * x - 1)))
    return bool(residual.sum() <= allowed or residual.max() <= SMOOTH * changes.max())
