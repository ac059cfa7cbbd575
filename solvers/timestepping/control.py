"""Control of step lengths by error estimates, for one system or for each of many."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..backends import backend_for
from ..mesh.mesh import Floats

Numbers = float | Floats  # for one step, or (rows,) for many
SAFETY = 0.9  # factor of the step that the error estimate allows
SHRINK, GROW = 0.1, 10.0  # limits of the change of a step, inverse to each other
NOW, BEFORE = 0.7, 0.4  # exponents of the changes by the errors of this step and of the previous one
MAX_GROWTH = 4.0  # of a step without an error estimate
CUT = 0.999  # of the proposed step: a shorter step was cut to meet a time or the stability limit
MIN_GAIN = 0.5  # least order at which a temporal error decreases; a slower decrease is attributed to limiters
LARGE = 50.0  # times the tolerance: a larger error is attributed to limiters only if the end of the step is stable
MARGIN = 2.0  # factor within which two errors count as equal
MAX_REFUSED = 12  # rejected attempts of a step
SPATIAL_PART = 3e4  # of the change by numerical diffusion, relative to rtol: limiters cause errors of 0.1 to 3 of it
STEADY_PART = 0.01  # of |values − mean|: allowed error of a step of a steady state, relative to rtol
BALANCED, MAX_SPLIT = 0.1, 0.5  # net over explicit change in a balance; then largest explicit change over the values
MAX_RETRY = 0.5  # of a rejected step: halving shows whether the error decreases


class Proposal(NamedTuple):
    """Length of the next step to try, and the error of the step just made; NaN for a missing number.

    The error is NaN if the step was shortened to meet a time, or after a rejected attempt of a longer step: such an
    error does not predict the next step.
    """

    step: Numbers = math.nan
    error: Numbers = math.nan

    @property
    def numbers(self) -> dict[str, float]:
        """Return the length of the next step as "step", and the error of the last step as "error"."""
        return {"step": float(self.step), "error": float(self.error)}


NO_PROPOSAL = Proposal()


@dataclass(frozen=True)
class StepController:
    """Proportional–integral control of the length of a step.

        dtₙ₊₁ = dtₙ · min(10, max(1/10, sₙ^0.7 / sₙ₋₁^0.4)) ,      sₙ = 0.9 errorₙ^(−1/order)

    The error of a step is relative to the allowed one, and sₙ is the factor of dtₙ for the allowed error, with a safety
    margin. The exponents are those of Hairer and Wanner, Solving Ordinary Differential Equations II, section IV.2
    (Gustafsson, ACM Trans. Math. Softw. 17 (1991) 533). Without a previous error, or if sₙ₋₁ > 10, the
    factor is sₙ alone, as in volume I, section II.4. Method "dop853" never has a previous error, since its state holds
    only time, values and ``dt``. Numbers and arrays (rows,) are treated alike.

    order   power of dt to which the error is proportional
    """

    order: int

    def factor(self, error: Numbers, before: Numbers = math.nan) -> Floats:
        """Return the ratio of the next step length to this one, by the errors of this step and of the previous one.

        ``error`` and ``before`` are these errors, relative to the allowed ones. The factor is from SHRINK to GROW; a
        NaN ``error`` gives SHRINK, a NaN ``before`` is ignored.
        """
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            change = SAFETY * np.power(error, -1 / self.order)
            if not np.all(np.isnan(before)):
                last = SAFETY * np.power(before, -1 / self.order)
                change = np.where(last <= GROW, change**NOW / last**BEFORE, change)
        return np.asarray(np.minimum(GROW, np.fmax(SHRINK, change)))

    def next(
        self, dt: Numbers, error: Numbers, last: Proposal = NO_PROPOSAL, refused: npt.ArrayLike = False
    ) -> Proposal:
        """Return the proposal of the next step after an accepted step of dt; ``error`` is relative to the allowed one.

        last      proposal for this step: a step that was only cut to meet a time does not shorten the next one
        refused   whether a longer step was rejected: the next one does not grow
        """
        cut = np.isfinite(last.step) & (np.asarray(dt) < CUT * np.asarray(last.step))
        factor = self.factor(error, last.error)
        step = dt * np.where(refused, np.minimum(factor, 1.0), factor)
        longer = np.where(cut & np.logical_not(refused), np.maximum(step, last.step), step)
        return Proposal(longer, np.where(np.logical_or(cut, refused), np.nan, error))


@dataclass
class Attempts:
    """Decision on the attempts of one step, each shorter than the previous one, and proposal of the next step.

    An error that does not decrease with the step is not temporal. The longest attempted step without a larger error is
    then accepted, at the third attempt at the earliest. Near rest the allowed error, which is relative to the change,
    may decrease as fast as the error: an error that decreases in absolute terms is temporal, too.

    longest     the longest step to try
    least       step length that is accepted with any error
    tolerated   accepted ratio of the error to the allowed one
    last        proposal of the previous step, of which ``longest`` may be a part
    next        proposal of the next step, set by an accepted attempt
    """

    control: StepController
    longest: float
    least: float = 0.0
    tolerated: float = 1.0
    last: Proposal = NO_PROPOSAL
    next: Proposal = field(init=False)
    _refused: list[tuple[float, float, float]] = field(default_factory=list, init=False)  # (dt, error, allowed error)

    def accept(self, dt: float, error: float, stable: float, allowed: float = 1.0) -> bool:
        """Return whether an attempted step of dt is accepted; otherwise set ``longest`` to the next length to try.

        error     ratio of the step's error to the allowed error
        stable    longest stable step at the end of this one
        allowed   allowed error in absolute terms, if it differs between attempts
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
        """Return whether a shorter step has not reduced the error of the previous attempt: it is not temporal.

        The error is relative to ``allowed``. Above LARGE it counts only if the step is at most ``stable``, the longest
        stable step at its end.
        """
        if not self._refused:
            return False
        before, refused, allowed_before = self._refused[-1]
        gain = (dt / before) ** MIN_GAIN
        falls = error <= refused * gain or error * allowed <= refused * allowed_before * gain * dt / before
        return not falls and (error < LARGE or dt <= stable)


class HalvingError:
    """Error estimate of a step from u₀, by comparison of one whole step u₁ with two half steps u₂.

        |u₂ − u₁|/(2ᵖ − 1) over the allowed error of u₂, see `allowed_error`      |·|: root mean square

    order     p of the method, with an error O(dtᵖ⁺¹) of a step, O(dtᵖ) relative to the change
    allowed   the denominator of the last error

    Where explicit and stiff terms cancel, the whole step and the half steps may agree on a wrong state of the
    splitting. If the change in the step is less than a tenth of the change c by the explicit terms, the error estimate
    is at least (2c/|u|)ᵖ.
    Source: Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, section II.4.
    """

    def __init__(self, rtol: float, atol: float, order: int, values: Floats) -> None:
        self._rtol, self._atol, self._order = rtol, atol, order
        self._whole, self.allowed = backend_for(values).xp.empty_like(values), atol
        self._split = 0.0  # change of balanced explicit terms over the largest allowed one

    def keep_whole(self, values: Floats, before: Floats, explicit_change: float) -> None:
        """Store the values after the whole step from ``before``, to compare them with those after two half steps.

        ``explicit_change`` is the change by the explicit terms within the split step, in root mean square.
        """
        self._whole[...] = values
        self._split = 0.0
        if explicit_change > 0 and root_mean_square(values - before) < BALANCED * explicit_change:
            size = max(root_mean_square(values), root_mean_square(before))
            self._split = explicit_change / (MAX_SPLIT * size) if size > 0 else math.inf

    def of_halves(self, values: Floats, before: Floats, diffused: float = 0.0) -> float:
        """Return the ratio of the error of a step to the allowed error; ∞ if it is not finite.

        values     values after two half steps
        before     values before the step
        diffused   change by numerical diffusion in the step, in root mean square
        """
        self.allowed = allowed_error(values, before, self._rtol, self._atol, diffused)
        error = root_mean_square(values - self._whole) / (2**self._order - 1) / self.allowed
        return max(error, self._split**self._order) if math.isfinite(error) else math.inf


def allowed_error(values: Floats, before: Floats, rtol: float, atol: float, diffused: float = 0.0) -> float:
    """Return the allowed error of a step from u₀ = ``before`` to u = ``values``.

        atol + rtol (|u − u₀| + |u − ū|/100 + 3·10⁴ |D|)      |·|: root mean square, ū: mean over the cells

    |D| is ``diffused``, the change by numerical diffusion in the step. At the default rtol = 10⁻⁴ the error of time is
    at most about that of space. Limiters switch in steps of any length, and cause errors in proportion to D. For
    rtol = ∞ the result is ∞, at a steady state too.
    """
    if math.isinf(rtol):
        return rtol
    cells = int(np.argmax(values.shape))  # the longest axis, that of the cells
    spread = root_mean_square(values - values.mean(axis=cells, keepdims=True))
    return atol + rtol * (root_mean_square(values - before) + STEADY_PART * spread + SPATIAL_PART * diffused)


def root_mean_square(values: Floats) -> float:
    """Return the root mean square over all numbers of an array, of their moduli if they are complex."""
    flat = values.reshape(-1)
    if flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    return math.sqrt(float(backend_for(values).dot(flat, flat)) / values.size)
