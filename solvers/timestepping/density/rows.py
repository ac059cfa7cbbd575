"""Steps of densities, one in each row, with errors estimated in moments, and interpolation within steps."""

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
from ..systems import Indices, Mask, take_rows

RTOL = 1e-3
Numbers = NDArray[Any]  # real or complex moments
CONTROL = StepController(2)  # for an error estimate of second order
OPPOSED_PART = 0.3  # of the change by explicit terms alone: splitting errors remain where the stiff term cancels it
OTHERS_PART = 1e-6  # of the larger norm: limiters and rounding break symmetries below this size
ROUNDING = 1e-13  # of moments of a density of mass 1
SINGLE_ROUNDING = 3e-7  # of moments in float32
MIN_STEP = 16  # minimum step in floating-point spacings of time


@dataclass(frozen=True)
class EndMoments:
    """Moments (..., k) of a density at an end of a step, for the error estimate.

    moments    moments of the density
    rates      moments of its rate of change
    explicit   moments of the rate of change by the explicit terms alone; None without a stiff term
    """

    moments: Numbers
    rates: Numbers
    explicit: Numbers | None = None

    def with_accepted_rows(self, accepted: Mask, end: EndMoments) -> EndMoments:
        """Return these moments (rows, ...), with the ``accepted`` rows replaced by those of ``end``."""
        pairs = ((self.moments, end.moments), (self.rates, end.rates))
        shape = (-1, *[1] * (self.moments.ndim - 1))
        return EndMoments(*(np.where(accepted.reshape(shape), after, before) for before, after in pairs))


class Densities(Protocol):
    """Interface of the equations of many densities (rows, ...), one in each row.

    The terms store the results of ``prepare`` until the next call of it. Times and lengths are (rows,).

    splits   whether steps are split between explicit terms and a stiff one
    """

    splits: bool

    def prepare(self, times: Floats, values: Floats, with_stiff: bool = False) -> Step:
        """Evaluate the explicit terms at the densities; return the longest stable steps (rows,).

        A step is NaN for values that are not finite.

        with_stiff   whether the stiff term limits the steps too
        """
        ...

    def step_stiff(self, times: Floats, lengths: Floats, values: Floats) -> None:
        """Advance the densities in place by the stiff term alone, from ``times`` by ``lengths``, with its limiter."""
        ...

    def step_explicit(self, times: Floats, lengths: Floats, values: Floats, work: tuple[Floats, ...]) -> Step:
        """Advance the densities in place by the explicit terms alone; return the stages' smallest stable steps (rows,).

        The terms are prepared at ``times``. ``work`` holds the scratch arrays of `Stepper.step`.
        """
        ...

    def end_moments(self, times: Floats, values: Floats, rate: Floats) -> EndMoments:
        """Return the moments of the densities ``values`` and of their rates of change, for the error of a step.

        The explicit terms are prepared at the densities. ``rate`` is scratch memory of the shape of the values.
        """
        ...

    def norms(self, moments: Numbers, ends: Numbers) -> Floats:
        """Return two norms (rows, 2) of moments (rows, ...): of degree 1, and of all higher degrees.

        ``ends`` holds the moments of the densities at the ends of the steps, for relative norms.
        """
        ...


class DensityRows:
    """Method that steps many densities at once, one in each row, with the error of a step estimated in moments M.

        |M₁ − M₀ − ½ dt (Ṁ₀ + Ṁ₁)| ≤ rtol (|M₁ − M₀| + 0.3 dt |Ṁ of explicit terms|, if there is a stiff one)

    for the moments of degree 1, and for those of higher degrees; Ṁ are moments of the rate of change at the ends of a
    step. A step is that of a stepper, with Strang splitting around a stiff term. The trapezoidal rule is of second
    order, as is splitting, and shows the splitting error too. Moments are insensitive to limiters in single cells. A
    step with a larger error is repeated with a shorter length, unless shortening does not help. Without error control a
    density near equilibrium, with an unbounded stable step, would leave the equilibrium in a single step.

    A step depends only on time, values and dt, the next step to try, so that a resumed run is bitwise identical. dt is
    NaN after a step that has met its target, so that a restart from there needs no dt. Values within a step are

        u(θ) = (1 − θ) u₀ + θ (1 − θ) (u₀ + dt L(u₀)) + θ² u₁          0 ≤ θ ≤ 1

    of second order and, as a mean of densities, ≥ 0; with a stiff term they result from a step of θ dt.

    values      (rows, ...), changed in place
    densities   numbers of systems → equations, each independent of the other densities
    cfl         fraction of the largest stable step in use
    rtol        tolerance of a step, see above
    time, dt    time of the values, and next step to try

    For the other names see :class:`solvers.timestepping.systems.RowIntegrator`.
    """

    stable: Floats  # (rows,) cfl times the longest stable steps
    _start: EndMoments

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
        self._allocate_rows()
        self._attempts = [self._new_attempts(k) for k in range(count)]

    def attempt(self, target: Floats) -> Mask:
        """Try one step of each density; return (rows,) whether the steps are accepted.

        target   (rows,) times that no step crosses: steps divide the time to them into equal parts

        :meth:`commit` then applies the accepted steps and undoes the others, which are shorter in the next attempt.
        """
        values, self._begin, self._target = self.values, self.time, target
        self._stuck = ~(self.stable > np.spacing(self.time))
        self.lengths, self.reached = np.zeros(len(target)), self.time.copy()
        for k in np.flatnonzero(~self._stuck).tolist():
            step = float(self.time[k]), float(target[k]), self._attempts[k].longest
            self.lengths[k], self.reached[k] = step_to_target(*step)
        self._before[...] = values
        stable, within = self._advance_rows(self.lengths, self.reached, values)
        self._stuck |= np.isnan(stable)
        if self._stuck.all():
            return np.zeros(len(stable), dtype=bool)
        self._end, self._stable_end = (
            self._densities.end_moments(self.reached, values, self._work[1]),
            self._cfl * stable,
        )
        too_long = self.lengths > max(1.0, SLACK * self._cfl) * np.minimum(within, stable)
        error = np.where(too_long, np.inf, self._error(self.lengths[:, None], self._end))
        steps = zip(self._attempts, self.lengths.tolist(), error.tolist(), self._stable_end.tolist(), strict=True)
        return np.asarray(np.array([attempts.accept(*step) for attempts, *step in steps]) & ~self._stuck)

    def commit(self, accepted: Mask) -> None:
        """Apply the last steps of the ``accepted`` (rows,) densities; reset the others to the previous state."""
        self.time = np.where(accepted, self.reached, self.time)
        if accepted.any():
            self.stable = np.where(accepted, self._stable_end, self.stable)
            self._start = self._start.with_accepted_rows(accepted, self._end)
        for k, accepts in enumerate(accepted.tolist()):
            if accepts:
                self.dt[k] = np.nan if self.reached[k] == self._target[k] else self._attempts[k].next.step
                self._attempts[k] = self._new_attempts(k)
            else:
                self.values[k] = self._before[k]
        if not self._densities.splits and not accepted.all():
            self._densities.prepare(self.time, self.values)

    def interpolate(self, rows: Indices, times: Floats) -> Floats:
        """Return the values (k, ...) of the densities in ``rows`` (k,) at ``times`` (k,) within their last steps."""
        begin = self._begin[rows]
        if self._densities.splits:
            lengths, values = np.zeros(len(self.time)), self._before.copy()
            lengths[rows] = times - begin
            self._advance_rows(lengths, self._begin + lengths, values)
            return take_rows(values, rows)
        part = ((times - begin) / (self.reached[rows] - begin)).reshape(-1, *[1] * (self.values.ndim - 1))
        part = backend_for(self.values).to_device(part.astype(self.values.dtype))
        start, first, end = (take_rows(each, rows) for each in (self._work[0], self._work[2], self.values))
        within: Floats = (1 - part) * start + (part * (1 - part)) * first + part**2 * end
        return within

    def stuck(self) -> Mask:
        """Return (rows,) whether a density has no possible step: its stable step is 0, or the end not finite."""
        stuck: Mask = self._stuck
        return stuck

    def retain(self, stay: Mask) -> None:
        """Remove all densities except those with ``stay`` (rows,) true."""
        for name in ("numbers", "values", "time", "dt"):
            setattr(self, name, getattr(self, name)[stay])
        self._attempts = [attempts for attempts, stays in zip(self._attempts, stay.tolist(), strict=True) if stays]
        if len(self.numbers):
            self._allocate_rows()

    def _allocate_rows(self) -> None:
        """Create the equations and scratch arrays of the densities that are left, and prepare the next steps."""
        values, self._densities = self.values, self._densities_of(self.numbers)
        empty_like = backend_for(values).xp.empty_like
        self._work = tuple(empty_like(values) for _ in range(2 if self._densities.splits else 3))
        self._before = empty_like(values) if self._densities.splits else self._work[0]
        self.stable = self._cfl * self._on_host(self._densities.prepare(self.time, values, True))[0]
        self._start = self._densities.end_moments(self.time, values, self._work[1])

    def _new_attempts(self, k: int) -> Attempts:
        """Return the object that decides on the attempts of the next step of density k and bounds their lengths.

        The first length is the proposed one, if that is > 0 and stable, else the longest stable one.
        """
        longest = float(min(self.stable[k], self.dt[k]) if self.dt[k] > 0 else self.stable[k])
        return Attempts(CONTROL, longest, least=MIN_STEP * float(np.spacing(self.time[k])))

    def _advance_rows(self, lengths: Floats, reached: Floats, values: Floats) -> tuple[Floats, Floats]:
        """Advance ``values`` by one step of each density in place; return two stable steps (rows,) for each.

        The first is the longest stable step at the end, at the times ``reached``, the second the least of the stages.
        """
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
        """Return k arrays of step lengths (rows,) as one array (k, rows) on the host, with one transfer."""
        backend = backend_for(self.values)
        numbers = backend.empty((len(steps), len(self.time)), np.float64)
        for number, step in zip(numbers, steps, strict=True):
            number[...] = step
        return np.asarray(backend.to_host(numbers))

    def _error(self, dt: Floats, end: EndMoments) -> Floats:
        """Return the estimated errors (rows,) of a step relative to the allowed error."""

        def norms(moments: Numbers) -> Floats:
            return self._densities.norms(moments, end.moments)

        return step_error(dt, self._start, end, norms, self._rtol, self._rounding)


def rates_of(equation: Equation, time: float, values: Floats, rate: Floats) -> tuple[Floats, ...]:
    """Return (rate of change,), or with a stiff term (rate of change, rate of change by the explicit terms alone).

    The explicit terms are prepared at ``values``. The first rate is written to ``rate``.
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
    dt: float | Floats,
    start: EndMoments,
    end: EndMoments,
    norms: Callable[[Numbers], Floats],
    rtol: float,
    rounding: float,
) -> Floats:
    """Return the ratios (...) of the errors of steps to the allowed errors, in norms (..., 2); ∞ where not finite.

    The error is that of the trapezoidal rule for the moments M, |M₁ − M₀ − ½ dt (Ṁ₀ + Ṁ₁)|. The allowed error is about
    rtol |M₁ − M₀|.

    dt           lengths of the steps, of a shape to multiply moments with
    start, end   moments at the beginnings and ends of the steps
    norms        moments (..., k) → norms (..., 2)
    rounding     allowed error by rounding
    """
    change = end.moments - start.moments
    error, allowed = norms(change - 0.5 * dt * (start.rates + end.rates)), norms(change)
    if end.explicit is not None:
        allowed = allowed + OPPOSED_PART * dt * norms(end.explicit)
    allowed = rtol * (allowed + OTHERS_PART * allowed.max(axis=-1, keepdims=True)) + rounding
    ratio = (error / allowed).max(axis=-1)
    return np.where(np.isfinite(ratio), ratio, np.inf)
