"""Control of the lengths of steps by their errors, for one system or for each of many."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..backends import backend_for
from ..mesh.mesh import Floats

Numbers = float | Floats  # of one step, or (rows,) of each
SAFETY = 0.9  # of the step that the error asks for
SHRINK, GROW = 0.1, 10.0  # limits of a change, each undoing the other
NOW, BEFORE = 0.7, 0.4  # exponents of the changes that this step and the one before it ask for
MAX_GROWTH = 4.0  # of a step where no error says how long the next may be
CUT = 0.999  # of the proposed step: a shorter one has been shortened to meet a time, or by the stable step
MIN_GAIN = 0.5  # least power of the step with which an error of time decreases; another is of limiters
LARGE = 50.0  # times the tolerance: such an error may fall later, and is of limiters only where the end is as stable
MARGIN = 2.0  # factor within which two errors count as equal
MAX_REFUSED = 12  # attempts of a step
STEADY_PART = 0.01  # of |values − mean|, allowed error of a step of a steady state, relative to rtol
BALANCED, MAX_SPLIT = 0.1, 0.5  # net change over that of the explicit terms, which then is below half the values
MAX_RETRY = 0.5  # of a refused step: a shorter one shows whether the error falls


class Proposal(NamedTuple):
    """The next step to try, and the error of the step that proposes it; NaN where there is none.

    The error is NaN too where the step was shortened, or a longer one refused: it then says nothing about the next one.
    """

    step: Numbers = math.nan
    error: Numbers = math.nan


NO_PROPOSAL = Proposal()


@dataclass(frozen=True)
class StepController:
    """Proportional–integral control of the length of a step.

        dtₙ₊₁ = dtₙ · min(10, max(1/10, sₙ^0.7 / sₙ₋₁^0.4)) ,      sₙ = 0.9 errorₙ^(−1/order)

    The error of a step is relative to the allowed one, and sₙ is the change of dtₙ that would bring it there, with some
    safety. The exponents are those of Hairer and Wanner, Solving Ordinary Differential Equations II, section IV.2
    (Gustafsson, ACM Trans. Math. Softw. 17 (1991) 533). A step changes by sₙ itself, as in volume I, section II.4,
    where no error before it is given, or sₙ₋₁ is beyond the limit. So do all steps whose state continues bit for bit
    from its time, values and ``dt``, as no error is kept with a state. Numbers and arrays (rows,) are treated alike.

    order   power of dt to which the error is proportional
    """

    order: int

    def factor(self, error: Numbers, before: Numbers = math.nan) -> Floats:
        """Return the next step over this one, by the errors of this step and the one before; NaN shrinks it most."""
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            change = SAFETY * np.power(error, -1 / self.order)
            if not np.all(np.isnan(before)):
                last = SAFETY * np.power(before, -1 / self.order)
                change = np.where(last <= GROW, change**NOW / last**BEFORE, change)
        return np.asarray(np.minimum(GROW, np.fmax(SHRINK, change)))

    def next(
        self, dt: Numbers, error: Numbers, last: Proposal = NO_PROPOSAL, refused: npt.ArrayLike = False
    ) -> Proposal:
        """Return the step to try after one of dt that was accepted.

        last      what was proposed for this step: where it was only cut, to meet a time, it shortens no other
        refused   whether a longer step was refused: the next does not grow
        """
        cut = np.isfinite(last.step) & (np.asarray(dt) < CUT * np.asarray(last.step))
        factor = self.factor(error, last.error)
        step = dt * np.where(refused, np.minimum(factor, 1.0), factor)
        longer = np.where(cut & np.logical_not(refused), np.maximum(step, last.step), step)
        return Proposal(longer, np.where(np.logical_or(cut, refused), np.nan, error))


@dataclass
class Attempts:
    """Attempts of a step, each shorter than the one before, and the next step to try.

    An error that does not fall with the step is not of time. The longest step that errs no more is then taken after
    all, at the third attempt at the earliest. From rest the change in a step, and so the allowed error, may fall as
    fast as the error: an error that falls itself is of time, too.

    longest     the longest step to try
    least       a step that is taken whatever its error
    tolerated   error over the allowed one that is accepted
    last        proposal of the step before, of which ``longest`` may be a part
    """

    control: StepController
    longest: float
    least: float = 0.0
    tolerated: float = 1.0
    last: Proposal = NO_PROPOSAL
    next: Proposal = field(init=False)
    _refused: list[tuple[float, float, float]] = field(default_factory=list, init=False)  # (dt, error, allowed error)

    def accept(self, dt: float, error: float, stable: float, allowed: float = 1.0) -> bool:
        """Return whether a step of dt is taken.

        error     over the allowed one
        stable    the longest step that the end of this one allows
        allowed   the allowed error, where it depends on the step
        """
        if error <= self.tolerated or len(self._refused) == MAX_REFUSED or dt <= self.least:
            last = NO_PROPOSAL if self._refused else self.last
            self.next = self.control.next(dt, error, last) if error <= 1 else Proposal(dt)
            return True
        if self._is_no_better(dt, error, stable, allowed):
            self.tolerated = MARGIN * error
            self.longest = max([dt, *(size for size, refused, _ in self._refused if refused <= self.tolerated)])
            self.next = Proposal(self.longest)
            return self.longest == dt
        self._refused.append((dt, error, allowed))
        self.longest = max(dt * min(float(self.control.factor(error)), MAX_RETRY), self.least)
        return False

    def _is_no_better(self, dt: float, error: float, stable: float, allowed: float) -> bool:
        """Return whether the error has not fallen, and is small, or its end is as stable as its beginning."""
        if not self._refused:
            return False
        before, refused, allowed_before = self._refused[-1]
        gain = (dt / before) ** MIN_GAIN
        falls = error <= refused * gain or error * allowed <= refused * allowed_before * gain * dt / before
        return not falls and (error < LARGE or dt <= stable)


class HalvingError:
    """Error of a step u₁ against two halves u₂: |u₂ − u₁|/(2ᵖ − 1) over atol + rtol (|u₂ − u₀| + |u₂ − ū₂|/100).

    order     p of the method, whose steps err by O(dtᵖ⁺¹); in proportion to the change, by O(dtᵖ)
    allowed   the denominator of the last error

    Where the explicit terms and the stiff one are in balance, both may be too large for a split step to see either:
    whole and halves agree on a wrong state. There the error is at least that of explicit terms which change the values
    by half, to the power p. Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, section II.4.
    """

    def __init__(self, rtol: float, atol: float, order: int, values: Floats) -> None:
        self._rtol, self._atol, self._order = rtol, atol, order
        self._whole, self.allowed = backend_for(values).xp.empty_like(values), atol
        self._split = 0.0  # change of the explicit terms over the largest that is allowed, where they are balanced

    def keep_whole(self, values: Floats, before: Floats, explicit_change: float) -> None:
        """Keep the values after the whole step, within which the explicit terms of a split one changed so much."""
        self._whole[...] = values
        self._split = 0.0
        if explicit_change > 0 and root_mean_square(values - before) < BALANCED * explicit_change:
            size = max(root_mean_square(values), root_mean_square(before))
            self._split = explicit_change / (MAX_SPLIT * size) if size > 0 else math.inf

    def of_halves(self, values: Floats, before: Floats) -> float:
        """Return the error over what is allowed, by the values after two halves; ∞ where a number is not finite."""
        self.allowed = allowed_error(values, before, self._rtol, self._atol)
        error = root_mean_square(values - self._whole) / (2**self._order - 1) / self.allowed
        return max(error, self._split**self._order) if math.isfinite(error) else math.inf


def allowed_error(values: Floats, before: Floats, rtol: float, atol: float) -> float:
    """atol + rtol (|u − u₀| + |u − ū|/100), what a step from u₀ to u may err."""
    cells = int(np.argmax(values.shape))  # the longest axis: a field's mean is over its cells
    spread = root_mean_square(values - values.mean(axis=cells, keepdims=True))
    return atol + rtol * (root_mean_square(values - before) + STEADY_PART * spread)


def root_mean_square(values: Floats) -> float:
    """Root mean square."""
    flat = values.reshape(-1)
    return math.sqrt(float(backend_for(values).dot(flat, flat)) / flat.size)
