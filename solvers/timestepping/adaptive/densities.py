"""Many independent densities on one curve in one array, each with its own time, its own steps and its own error.

The method, the control of its steps and the interpolation are those of `DensityIntegrator`, density by density: none
sees another's error, and results are those of one run each, but for rounding. A step of h of ∂ₜρ + div(ρX) = 0 is one
of 1 of ∂ₛρ + div(ρ hX) = 0, so that all take steps of 1 together, each with its own h.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...mesh.mesh import Floats, Mesh
from ...mesh.stack import stack
from ...terms.advection import Advection
from ...terms.diffusion import Diffusion
from ...terms.term import Step
from ...transforms.harmonics import harmonic_transform
from ..density import MIN_STEP, OPPOSED_PART, ROUNDING, RTOL, Attempts, error_ratio
from ..equation import Equation, limit_positivity
from ..evolution import SLACK, step_to_target
from ..moments import DEGREES
from ..schedules import is_reached, next_time
from ..state import State
from ..steppers import stepper_of
from .systems import Indices

RowVelocity = Callable[[Floats, Floats], Floats]  # times (k,), densities (k, cells) → X (k, cells, d)
Complexes = NDArray[np.complex128]


class DensitySystems:
    """Densities ∂ₜρ + div(ρ X) = κ Δρ of equal mass on their way from time 0, each to its own ``until``.

    mesh        a circle
    values      (systems, cells) where they start
    velocity    which systems (k,) → the velocity of these; a density's may not depend on the others
    longest     which systems (k,) → densities (k, cells) → the longest step (k,) that anything but the flow allows
    until       (systems,) > 0
    met         of each system the times that steps meet
    dues        of each system the increasing times at which it is looked at
    stepper     one of STEPPERS, or its name
    cfl         fraction of the largest stable step that is used
    diffusion   which systems (k,) → κΔ of fields (k, cells), on ``mesh``; None for none

    lost        numbers of the systems that no step can continue with
    """

    def __init__(
        self,
        mesh: Mesh,
        values: Floats,
        velocity: Callable[[Indices], RowVelocity],
        longest: Callable[[Indices], Callable[[Floats], Floats]],
        until: Floats,
        met: Sequence[Sequence[float]],
        dues: Sequence[Sequence[float]],
        stepper: str = "ssprk3",
        cfl: float = 0.5,
        diffusion: Callable[[Indices], Diffusion | None] = lambda which: None,
    ) -> None:
        count = len(values)
        self._mesh, self._velocity, self._longest, self._until = mesh, velocity, longest, until
        self._met, self._dues, self._stepper, self._cfl = met, dues, stepper_of(stepper), cfl
        self._diffusion_of = diffusion
        self._harmonics = harmonic_transform(mesh, min(DEGREES, mesh.cells // 2))
        self._numbers = np.arange(count)  # of the systems in the rows of the arrays
        self._runs = np.ones(count, dtype=bool)
        self._time, self._values, self._dt = np.zeros(count), values.copy(), np.full(count, np.nan)
        self._seen, self._met_seen = [0] * count, [0] * count
        self._attempts: list[Attempts | None] = [None] * count
        self.lost = set[int]()
        self._lay_out()

    @property
    def running(self) -> Indices:
        """Numbers of the systems that are still on their way."""
        return self._numbers[self._runs]

    def start(self) -> Iterator[tuple[int, float, Floats]]:
        """The looks that are due at time 0: system, time, values."""
        for k in self.running.tolist():
            yield from self._looks_until(k, k, 0.0, self._values[k])

    def step(self) -> Iterator[tuple[int, float, Floats]]:
        """Try one step of each; yields the looks that were due within those that succeeded, in order of time."""
        self._compact()
        lengths, reached = self._proposed()
        values = self._advanced(lengths)
        within = self._flow.least
        ends = self._measured(reached, values)
        stable = self._stable_steps(values)
        too_long = lengths > max(1.0, SLACK * self._cfl) * np.minimum(within, stable)
        error = np.where(too_long, np.inf, self._error(lengths, ends))
        done = np.array([self._is_accepted(k, lengths[k], error[k], stable[k]) for k in range(len(lengths))])
        yield from self._looks(done, reached, values)
        self._commit(done, reached, values, ends, stable)

    def _advanced(self, lengths: Floats) -> Floats:
        """Values after steps of these lengths, for whose beginning the flow is prepared if nothing diffuses."""
        values = self._values.copy()
        if self._diffusion is not None:
            self._diffusion.step_each(0.5 * lengths, values)
            self._flow.at(self._time)
            self._flow.prepare(0.0, values.reshape(-1))
        self._flow.scale(self._time, lengths)
        state = State(0.0, values.reshape(-1))
        self._stepper.step(self._equation, state, 1.0, tuple(array.reshape(-1) for array in self._work))
        if self._diffusion is not None:
            self._diffusion.step_each(0.5 * lengths, values)
        return values

    def _lay_out(self) -> None:
        """Terms and memory for the systems of now, prepared for their next steps."""
        rows = len(self._numbers)
        self._flow = _Flow(self._mesh, rows, self._velocity(self._numbers), self._longest(self._numbers))
        self._equation = Equation([self._flow], limit=limit_positivity)
        self._target = np.zeros(rows)  # the time that each step goes towards
        self._work = np.empty((3, *self._values.shape))  # values before a step, a rate, values after the first stage
        self._diffusion = self._diffusion_of(self._numbers)
        self._start = self._measured(self._time, self._values)
        self._stable = self._stable_steps(self._values)

    def _stable_steps(self, values: Floats) -> Floats:
        """(rows,) the longest step of each, for which the flow is prepared."""
        if self._diffusion is None:
            return self._flow.steps
        of_diffusion = np.array([float(step) for step in self._diffusion.longest_steps(values)])
        return np.asarray(np.minimum(self._flow.steps, of_diffusion))

    def _compact(self) -> None:
        """Leave out what has ended once that is half of all: until then it is carried along without moving."""
        if 2 * self._runs.sum() > len(self._runs):
            return
        keep = np.flatnonzero(self._runs)
        self._numbers, self._time, self._values = self._numbers[keep], self._time[keep], self._values[keep]
        self._dt, self._runs = self._dt[keep], self._runs[keep]
        self._attempts = [self._attempts[k] for k in keep.tolist()]
        self._lay_out()

    def _proposed(self) -> tuple[Floats, Floats]:
        """Lengths and ends of the next attempts; 0 for systems that do not run."""
        lengths, reached = np.zeros(len(self._time)), self._time.copy()
        for k in np.flatnonzero(self._runs).tolist():
            time, number = float(self._time[k]), int(self._numbers[k])
            spacing, attempts = float(np.spacing(time)), self._attempts[k]
            if attempts is None:
                stable = self._cfl * float(self._stable[k])
                if not stable > spacing:
                    self._lose(k)
                    continue
                attempts = self._attempts[k] = Attempts(float(self._dt[k]), stable, least=MIN_STEP * spacing)
            met = self._met[number]
            while self._met_seen[number] < len(met) and is_reached(met[self._met_seen[number]], time):
                self._met_seen[number] += 1
            next_met = met[self._met_seen[number] : self._met_seen[number] + 1]
            self._target[k] = next_time(next_met, float(self._until[number]))
            lengths[k], reached[k] = step_to_target(time, float(self._target[k]), attempts.longest)
        return lengths, reached

    def _measured(self, times: Floats, values: Floats) -> _Measured:
        """Moments of values, for which the flow is prepared at their times, and of their rates of change."""
        self._flow.at(times)
        self._flow.prepare(0.0, values.reshape(-1))
        rate = self._work[1]
        rate[...] = 0.0
        self._flow.rate(0.0, rate.reshape(-1))
        explicit = None
        if self._diffusion is not None:
            explicit = self._moments(rate)
            self._diffusion.prepare(0.0, values)
            self._diffusion.rate(0.0, rate)
        return _Measured(self._moments(values), self._moments(rate), explicit)

    def _moments(self, rows: Floats) -> Complexes:
        """(rows, degrees) of the degrees 1 to 6."""
        return self._harmonics.of_density(rows)[:, 1:]

    def _error(self, dt: Floats, end: _Measured) -> Floats:
        """(rows,) as `DensityIntegrator` has it."""
        change = end.moments - self._start.moments
        error = change - 0.5 * dt[:, None] * (self._start.rates + end.rates)
        allowed = _norms(change)
        if end.explicit is not None:
            allowed += OPPOSED_PART * dt[:, None] * _norms(end.explicit)
        return error_ratio(_norms(error), allowed, RTOL, ROUNDING)

    def _is_accepted(self, k: int, dt: float, error: float, stable: float) -> bool:
        attempts = self._attempts[k]
        if not self._runs[k] or attempts is None:
            return False
        if np.isnan(stable):
            self._lose(k)
            return False
        return attempts.accept(float(dt), float(error), self._cfl * float(stable))

    def _lose(self, k: int) -> None:
        self._runs[k] = False
        self.lost.add(int(self._numbers[k]))

    def _commit(
        self, done: NDArray[np.bool_], reached: Floats, values: Floats, ends: _Measured, stable: Floats
    ) -> None:
        """Take over the steps that are done; the others begin again where they were."""
        for k in np.flatnonzero(done).tolist():
            attempts = self._attempts[k]
            assert attempts is not None
            self._dt[k] = np.nan if reached[k] == self._target[k] else attempts.next_step
            self._attempts[k] = None
            self._runs[k] = reached[k] < self._until[self._numbers[k]]
        self._time[done], self._values[done], self._stable[done] = reached[done], values[done], stable[done]
        self._start.moments[done], self._start.rates[done] = ends.moments[done], ends.rates[done]
        if self._diffusion is None and (self._runs & ~done).any():
            self._flow.at(self._time)
            self._flow.prepare(0.0, self._values.reshape(-1))

    def _looks(self, done: NDArray[np.bool_], reached: Floats, values: Floats) -> Iterator[tuple[int, float, Floats]]:
        """What is due within the steps that are done, and at their ends."""
        rows = np.flatnonzero(done).tolist()
        while within := {k: due for k in rows if not is_reached(float(reached[k]), due := self._next_due(k))}:
            for k, found in self._between(within, reached, values).items():
                self._seen[self._numbers[k]] += 1
                yield int(self._numbers[k]), within[k], found
        for k in rows:
            yield from self._looks_until(int(self._numbers[k]), k, float(reached[k]), values[k])

    def _next_due(self, k: int) -> float:
        number = int(self._numbers[k])
        dues, seen = self._dues[number], self._seen[number]
        return dues[seen] if seen < len(dues) else np.inf

    def _between(self, times: dict[int, float], reached: Floats, after: Floats) -> dict[int, Floats]:
        """Values of rows at times within their steps: interpolated, or those of a shorter step where they diffuse."""
        if self._diffusion is not None:
            lengths = np.zeros(len(reached))
            for k, time in times.items():
                lengths[k] = time - self._time[k]
            found = self._advanced(lengths)
            return {k: found[k] for k in times}
        (start, _, first), begin = self._work, self._time
        parts = {k: (time - begin[k]) / (reached[k] - begin[k]) for k, time in times.items()}
        return {k: (1 - p) * start[k] + (p * (1 - p)) * first[k] + p**2 * after[k] for k, p in parts.items()}

    def _looks_until(self, number: int, k: int, time: float, values: Floats) -> Iterator[tuple[int, float, Floats]]:
        dues = self._dues[number]
        while self._seen[number] < len(dues) and is_reached(dues[self._seen[number]], time):
            self._seen[number] += 1
            yield number, time, values.copy()


@dataclass(frozen=True)
class _Measured:
    """(rows, degrees) moments of states, of their rates of change, and of those of the flow alone beside diffusion."""

    moments: Complexes
    rates: Complexes
    explicit: Complexes | None


class _Flow:
    """The advection of all rows, (rows·cells,), by h X with each row's h, and the longest step of each.

    steps   (rows,) stable as of the last ``prepare``, NaN for a row that is not finite
    least   (rows,) of all since the last ``scale``
    """

    def __init__(self, mesh: Mesh, rows: int, velocity: RowVelocity, longest: Callable[[Floats], Floats]) -> None:
        self.mesh = stack(mesh, rows)
        self._shape, self._given, self._velocity, self._longest = (rows, mesh.cells), _Given(), velocity, longest
        self._advection = Advection(self.mesh, self._given, nonnegative=True)

    def at(self, times: Floats) -> None:
        """What is prepared next is at these times, with h = 1."""
        self._times, self._lengths, self.least = times, np.ones(len(times)), np.full(len(times), np.inf)

    def scale(self, times: Floats, lengths: Floats) -> None:
        """What is prepared, and what will be, is a stage of steps of these lengths h that begin at these times."""
        self._times, self._lengths, self.least = times, lengths, np.full(len(times), np.inf)
        self._advection.scale_copies(lengths)

    def prepare(self, part: float, values: Floats) -> Step:
        """h X for densities after this part of the steps."""
        rows, lengths = values.reshape(self._shape), self._lengths
        velocity = self._velocity(self._times + part * lengths, rows) * lengths[:, None, None]
        self._given.velocity = velocity.reshape(-1, velocity.shape[-1])
        self._advection.prepare(part, values)
        fastest = self._advection.fastest_of_copies(values, len(rows))
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.minimum(np.where(fastest == 0.0, np.inf, lengths / fastest), self._longest(rows))
        self.steps = np.where(np.isfinite(rows).all(axis=1), steps, np.nan)
        self.least = np.minimum(self.least, self.steps)
        return np.inf

    def rate(self, dt: float, rate: Floats) -> None:
        self._advection.rate(dt, rate)


class _Given:
    """The velocity that has been found for all rows."""

    velocity: Floats

    def __call__(self, time: float, values: Floats) -> Floats:
        return self.velocity


def _norms(moments: Complexes) -> Floats:
    """(rows, 2) norms of moments (rows, degrees) of degree 1, and of higher ones."""
    square = np.abs(moments) ** 2
    return np.asarray(np.sqrt(np.stack([square[:, 0], square[:, 1:].sum(axis=1)], axis=1)))
