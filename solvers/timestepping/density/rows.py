"""Steps of densities, a row each, whose errors are estimated in their moments, and which are interpolated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...backends import backend_for
from ...mesh.mesh import Floats
from ...terms.stiff_sum import add_rate
from ...terms.term import Step
from ..control import Attempts, StepController
from ..equation import Equation
from ..evolution import SLACK, step_to_target
from ..systems import Indices, Mask, taken

RTOL = 1e-3
Numbers = NDArray[Any]  # real or complex moments
CONTROL = StepController(2)  # of an estimate of second order
OPPOSED_PART = 0.3  # of what explicit terms alone change: where the stiff one undoes it, splitting errs all the same
OTHERS_PART = 1e-6  # of the larger norm, that of smaller moments: below it limiters and rounding break symmetries
ROUNDING = 1e-13  # of moments of a density of mass 1
SINGLE_ROUNDING = 3e-7  # in float32
MIN_STEP = 16  # spacings of floating-point time


@dataclass(frozen=True)
class Measured:
    """Moments (..., k) at an end of a step: of the state, its rate of change, and that of terms beside a stiff one."""

    moments: Numbers
    rates: Numbers
    explicit: Numbers | None = None

    def where(self, accepted: Mask, end: Measured) -> Measured:
        """Return moments (rows, ...) of the end where a step is accepted."""
        pairs = ((self.moments, end.moments), (self.rates, end.rates))
        shape = (-1, *[1] * (self.moments.ndim - 1))
        return Measured(*(np.where(accepted.reshape(shape), after, before) for before, after in pairs))


class Densities(Protocol):
    """Equations of densities (rows, ...), a row each; their terms keep what they prepare until their rates.

    splits   whether steps are split around a stiff term
    """

    splits: bool

    def prepare(self, times: Floats, values: Floats, with_stiff: bool = False) -> Step:
        """Prepare the explicit terms; return the longest stable steps (rows,), NaN for values that are not finite.

        with_stiff   whether the steps are also those that the stiff term allows
        """
        ...

    def step_stiff(self, times: Floats, lengths: Floats, values: Floats) -> None:
        """Advance values in place by the stiff term alone, limited."""
        ...

    def step_explicit(self, times: Floats, lengths: Floats, values: Floats, work: tuple[Floats, ...]) -> Step:
        """Advance values in place by the explicit terms, which are prepared; return the least stable steps (rows,).

        ``work`` is that of `Stepper.step`.
        """
        ...

    def measured(self, times: Floats, values: Floats, rate: Floats) -> Measured:
        """Return moments of values, for which the explicit terms are prepared; ``rate`` is scratch memory."""
        ...

    def norms(self, moments: Numbers, ends: Numbers) -> Floats:
        """Return norms (rows, 2) of moments of degree 1, and of higher ones, of densities of moments ``ends``."""
        ...


class DensityRows:
    """Steps of densities by a stepper, with Strang splitting around a stiff term, to a tolerance in their moments M.

        |M₁ − M₀ − ½ dt (Ṁ₀ + Ṁ₁)| ≤ rtol (|M₁ − M₀| + 0.3 dt |Ṁ of explicit terms|, if there is a stiff one)

    for the moments of degree 1, and for higher ones; Ṁ are those of the rate of change at the ends of a step. The
    trapezoidal rule is of second order, as is splitting, whose error it shows too; what limiters do from cell to cell
    is not in moments. A step of a larger error is taken again, shorter, unless that is no better. Without it a density
    nearly in balance, where nothing flows that would bound the step, would leave its balance in one.

    A step depends on time, values and dt, the next step to try, alone, so that a state kept after any step continues
    bit for bit; NaN as dt for none, as after a step that has met its target, so that a state kept there needs no dt.
    Values within a step are

        u(θ) = (1 − θ) u₀ + θ (1 − θ) (u₀ + dt L(u₀)) + θ² u₁          0 ≤ θ ≤ 1

    of second order and, as a mean of densities, ≥ 0; around a stiff term they are those of a step of θ dt.

    values      (rows, ...), which change in place
    densities   numbers of systems → their equations; one of a density may not depend on the others
    cfl         fraction of the largest stable step that is used
    rtol        tolerance of a step, see above
    time, dt    of the values

    The other names are those of :class:`solvers.timestepping.systems.RowIntegrator`.
    """

    stable: Floats  # (rows,) longest steps that are taken
    _start: Measured

    def __init__(
        self,
        values: Floats,
        densities: Callable[[Indices], Densities],
        cfl: float = 0.5,
        rtol: float = RTOL,
        time: float = 0.0,
        dt: float = np.nan,
    ) -> None:
        count = len(values)
        self.numbers, self._densities_of, self._cfl, self._rtol = np.arange(count), densities, cfl, rtol
        self._rounding = ROUNDING if values.dtype == np.float64 else SINGLE_ROUNDING
        self.values, self.time, self.dt = values, np.full(count, time), np.full(count, dt)
        self._lay_out()
        self._attempts = [self._new_attempts(k) for k in range(count)]

    def attempt(self, target: Floats) -> Mask:
        """Try one step of each towards its target (rows,), by equal steps; return which are accepted."""
        values, self._begin, self._target = self.values, self.time, target
        self._stuck = ~(self.stable > np.spacing(self.time))
        self.lengths, self.reached = np.zeros(len(target)), self.time.copy()
        for k in np.flatnonzero(~self._stuck).tolist():
            step = float(self.time[k]), float(target[k]), self._attempts[k].longest
            self.lengths[k], self.reached[k] = step_to_target(*step)
        self._before[...] = values
        stable, within = self._advanced(self.lengths, self.reached, values)
        self._stuck |= np.isnan(stable)
        if self._stuck.all():
            return np.zeros(len(stable), dtype=bool)
        self._end, self._stable_end = self._densities.measured(self.reached, values, self._work[1]), self._cfl * stable
        too_long = self.lengths > max(1.0, SLACK * self._cfl) * np.minimum(within, stable)
        error = np.where(too_long, np.inf, self._error(self.lengths[:, None], self._end))
        steps = zip(self._attempts, self.lengths.tolist(), error.tolist(), self._stable_end.tolist(), strict=True)
        return np.asarray(np.array([attempts.accept(*step) for attempts, *step in steps]) & ~self._stuck)

    def commit(self, accepted: Mask) -> None:
        """Take over the steps that were accepted; the other systems begin again where they were."""
        self.time = np.where(accepted, self.reached, self.time)
        if accepted.any():
            self.stable = np.where(accepted, self._stable_end, self.stable)
            self._start = self._start.where(accepted, self._end)
        for k, accepts in enumerate(accepted.tolist()):
            if accepts:
                self.dt[k] = np.nan if self.reached[k] == self._target[k] else self._attempts[k].next.step
                self._attempts[k] = self._new_attempts(k)
            else:
                self.values[k] = self._before[k]
        if not self._densities.splits and not accepted.all():
            self._densities.prepare(self.time, self.values)

    def between(self, rows: Indices, times: Floats) -> Floats:
        """Return values (k, ...) of rows at times within the last steps."""
        begin = self._begin[rows]
        if self._densities.splits:
            lengths, values = np.zeros(len(self.time)), self._before.copy()
            lengths[rows] = times - begin
            self._advanced(lengths, self._begin + lengths, values)
            return taken(values, rows)
        part = ((times - begin) / (self.reached[rows] - begin)).reshape(-1, *[1] * (self.values.ndim - 1))
        part = backend_for(self.values).to_device(part.astype(self.values.dtype))
        start, first, end = (taken(each, rows) for each in (self._work[0], self._work[2], self.values))
        within: Floats = (1 - part) * start + (part * (1 - part)) * first + part**2 * end
        return within

    def stuck(self) -> Mask:
        """Return whether no step of a density (rows,) is left to try: its stable step is none, or its end is lost."""
        stuck: Mask = self._stuck
        return stuck

    def keep(self, stay: Mask) -> None:
        """Leave out the other densities."""
        for name in ("numbers", "values", "time", "dt"):
            setattr(self, name, getattr(self, name)[stay])
        self._attempts = [attempts for attempts, stays in zip(self._attempts, stay.tolist(), strict=True) if stays]
        if len(self.numbers):
            self._lay_out()

    def _lay_out(self) -> None:
        """Make the equations and the memory for the systems of now, prepared for their next steps."""
        values, self._densities = self.values, self._densities_of(self.numbers)
        empty_like = backend_for(values).xp.empty_like
        self._work = tuple(empty_like(values) for _ in range(2 if self._densities.splits else 3))
        self._before = empty_like(values) if self._densities.splits else self._work[0]
        self.stable = self._cfl * self._on_host(self._densities.prepare(self.time, values, True))[0]
        self._start = self._densities.measured(self.time, values, self._work[1])

    def _new_attempts(self, k: int) -> Attempts:
        """Return the attempts of the next step of a row: first the proposed one, where it is > 0 and stable."""
        longest = float(min(self.stable[k], self.dt[k]) if self.dt[k] > 0 else self.stable[k])
        return Attempts(CONTROL, longest, least=MIN_STEP * float(np.spacing(self.time[k])))

    def _advanced(self, lengths: Floats, reached: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Advance values in place; return the longest stable steps (rows,) of the ends, and the least of the stages."""
        densities, begin, half = self._densities, self._begin, lengths / 2
        if densities.splits:
            densities.step_stiff(begin, half, values)
            densities.prepare(begin, values)
        within = densities.step_explicit(begin, lengths, values, self._work)
        if densities.splits:
            densities.step_stiff(begin + half, half, values)
        stable, within = self._on_host(densities.prepare(reached, values, with_stiff=True), within)
        return stable, within

    def _on_host(self, *steps: Step) -> Floats:
        """Return steps (k, rows), for which a device is waited for once."""
        backend = backend_for(self.values)
        numbers = backend.empty((len(steps), len(self.time)), np.float64)
        for number, step in zip(numbers, steps, strict=True):
            number[...] = step
        return np.asarray(backend.to_host(numbers))

    def _error(self, dt: Floats, end: Measured) -> Floats:
        def norms(moments: Numbers) -> Floats:
            return self._densities.norms(moments, end.moments)

        return step_error(dt, self._start, end, norms, self._rtol, self._rounding)


def rates_of(equation: Equation, time: float, values: Floats, rate: Floats) -> tuple[Floats, ...]:
    """Return the rate of values, for which the explicit terms are prepared, in ``rate``, and that of explicit terms.

    The second is left out where no term is stiff.
    """
    rate[...] = 0.0
    for term in equation.terms:
        term.rate(0.0, rate)
    if equation.stiff is None:
        return (rate,)
    explicit = rate.copy()
    add_rate(equation.stiff, time, values, rate)
    return rate, explicit


def step_error(
    dt: float | Floats, start: Measured, end: Measured, norms: Callable[[Numbers], Floats], rtol: float, rounding: float
) -> Floats:
    """Return the errors of steps (...) over the allowed ones, by norms (..., 2) of moments; ∞ where not finite."""
    change = end.moments - start.moments
    error, allowed = norms(change - 0.5 * dt * (start.rates + end.rates)), norms(change)
    if end.explicit is not None:
        allowed = allowed + OPPOSED_PART * dt * norms(end.explicit)
    allowed = rtol * (allowed + OTHERS_PART * allowed.max(axis=-1, keepdims=True)) + rounding
    ratio = (error / allowed).max(axis=-1)
    return np.where(np.isfinite(ratio), ratio, np.inf)
