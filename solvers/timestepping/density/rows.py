"""Many independent densities on one curve in one array, each with its own time, its own steps and its own error.

Results are those of one run of `DensityIntegrator` each, but for rounding. A step of h of ∂ₜρ + div(ρX) = 0 is one
of 1 of ∂ₛρ + div(ρ hX) = 0, so that all take steps of 1 together, each with its own h.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...mesh.mesh import Floats, Mesh
from ...mesh.stack import stack
from ...terms.advection import Advection
from ...terms.diffusion import Diffusion
from ...terms.term import Step
from ...transforms.harmonics import harmonic_transform
from ..control import Attempts
from ..equation import Equation, limit_positivity
from ..evolution import SLACK, step_to_target
from ..state import State
from ..steppers import stepper_of
from ..systems import Indices, Mask
from .integrator import ROUNDING, RTOL, Measured, attempts_from, interpolated, step_error
from .moments import DEGREES

RowVelocity = Callable[[Floats, Floats], Floats]  # times (k,), densities (k, cells) → X (k, cells, d)
Complexes = NDArray[np.complex128]


class DensityRows:
    """Steps of densities ∂ₜρ + div(ρ X) = κ Δρ of equal mass from time 0, a row each, to a tolerance in their moments.

    mesh        a circle
    values      (systems, cells) where they start
    velocity    which systems (k,) → the velocity of these; a density's may not depend on the others
    longest     which systems (k,) → densities (k, cells) → the longest step (k,) that anything but the flow allows
    stepper     one of STEPPERS, or its name
    cfl         fraction of the largest stable step that is used
    diffusion   which systems (k,) → κΔ of fields (k, cells), on ``mesh``; None for none

    The other names are those of :class:`solvers.timestepping.systems.RowIntegrator`.
    """

    def __init__(
        self,
        mesh: Mesh,
        values: Floats,
        velocity: Callable[[Indices], RowVelocity],
        longest: Callable[[Indices], Callable[[Floats], Floats]],
        stepper: str = "ssprk3",
        cfl: float = 0.5,
        diffusion: Callable[[Indices], Diffusion | None] = lambda which: None,
    ) -> None:
        count = len(values)
        self._mesh, self._velocity, self._longest, self._diffusion_of = mesh, velocity, longest, diffusion
        self._stepper, self._cfl = stepper_of(stepper), cfl
        self._harmonics = harmonic_transform(mesh, min(DEGREES, mesh.cells // 2))
        self.numbers, self.time, self.values = np.arange(count), np.zeros(count), values.copy()
        self._dt = np.full(count, np.nan)
        self._attempts: list[Attempts | None] = [None] * count
        self._lay_out()

    def attempt(self, target: Floats) -> Mask:
        """Try one step of each towards its target (rows,), by equal steps; return which are accepted."""
        self._stuck = ~(self._cfl * self._stable > np.spacing(self.time))
        lengths, self.reached = self._proposed(target)
        self._after = self._advanced(lengths)
        within = self._flow.least
        self._ends = self._measured(self.reached, self._after)
        self._stable_after = self._stable_steps(self._after)
        self._stuck |= np.isnan(self._stable_after)
        too_long = lengths > max(1.0, SLACK * self._cfl) * np.minimum(within, self._stable_after)
        found = step_error(lengths[:, None], self._start, self._ends, _norms, RTOL, ROUNDING)
        error = np.where(too_long, np.inf, found)
        steps = zip(self._attempts, lengths.tolist(), error.tolist(), self._cfl * self._stable_after, strict=True)
        accepted = [attempts is not None and attempts.accept(*step) for attempts, *step in steps]
        return np.array(accepted) & ~self._stuck

    def between(self, rows: Indices, times: Floats) -> Floats:
        """Return values (k, cells) of rows at times within the last steps; where they diffuse, by a shorter step."""
        if self._diffusion is not None:
            lengths = np.zeros(len(self.time))
            lengths[rows] = times - self.time[rows]
            return self._advanced(lengths)[rows]
        (start, _, first), begin = self._work, self.time[rows]
        part = ((times - begin) / (self.reached[rows] - begin))[:, None]
        return interpolated(part, start[rows], first[rows], self._after[rows])

    def commit(self, accepted: Mask) -> None:
        """Take over the steps that were accepted; the other systems begin again where they were."""
        for k in np.flatnonzero(accepted).tolist():
            attempts = self._attempts[k]
            assert attempts is not None
            self._dt[k] = np.nan if self.reached[k] == self._target[k] else float(attempts.next.step)
            self._attempts[k] = None
        self.time[accepted], self.values[accepted] = self.reached[accepted], self._after[accepted]
        self._stable[accepted] = self._stable_after[accepted]
        for now, end in ((self._start.moments, self._ends.moments), (self._start.rates, self._ends.rates)):
            now[accepted] = end[accepted]
        if self._diffusion is None and not accepted.all():
            self._flow.at(self.time)
            self._flow.prepare(0.0, self.values.reshape(-1))

    def stuck(self) -> Mask:
        """Return whether no step of a density (rows,) is left to try: its stable step is none, or its end is lost."""
        return self._stuck

    def keep(self, stay: Mask) -> None:
        """Leave out the other densities."""
        self.numbers, self.time, self.values, self._dt = (
            self.numbers[stay], self.time[stay], self.values[stay], self._dt[stay],
        )  # fmt: skip
        self._attempts = [attempts for attempts, stays in zip(self._attempts, stay.tolist(), strict=True) if stays]
        if len(self.numbers):
            self._lay_out()

    def _proposed(self, target: Floats) -> tuple[Floats, Floats]:
        """Return lengths and ends of the next attempts; 0 where none is left to try."""
        lengths, reached, self._target = np.zeros(len(self.time)), self.time.copy(), target
        for k in np.flatnonzero(~self._stuck).tolist():
            time, stable, attempts = float(self.time[k]), self._cfl * float(self._stable[k]), self._attempts[k]
            if attempts is None:
                attempts = self._attempts[k] = attempts_from(time, float(self._dt[k]), stable)
            lengths[k], reached[k] = step_to_target(time, float(target[k]), attempts.longest)
        return lengths, reached

    def _advanced(self, lengths: Floats) -> Floats:
        """Return values after steps of these lengths, for whose beginning the flow is prepared if nothing diffuses."""
        values = self.values.copy()
        if self._diffusion is not None:
            self._diffusion.step_each(0.5 * lengths, values)
            self._flow.at(self.time)
            self._flow.prepare(0.0, values.reshape(-1))
        self._flow.scale(self.time, lengths)
        state = State(0.0, values.reshape(-1))
        self._stepper.step(self._equation, state, 1.0, tuple(array.reshape(-1) for array in self._work))
        if self._diffusion is not None:
            self._diffusion.step_each(0.5 * lengths, values)
        return values

    def _lay_out(self) -> None:
        """Make the terms and the memory for the systems of now, prepared for their next steps."""
        self._flow = _Flow(self._mesh, len(self.numbers), self._velocity(self.numbers), self._longest(self.numbers))
        self._equation = Equation([self._flow], limit=limit_positivity)
        self._work = np.empty((3, *self.values.shape))  # values before a step, a rate, values after the first stage
        self._diffusion = self._diffusion_of(self.numbers)
        self._start = self._measured(self.time, self.values)
        self._stable = self._stable_steps(self.values)

    def _stable_steps(self, values: Floats) -> Floats:
        """Return the longest step of each (rows,), for which the flow is prepared."""
        if self._diffusion is None:
            return self._flow.steps
        of_diffusion = np.array([float(step) for step in self._diffusion.longest_steps(values)])
        return np.asarray(np.minimum(self._flow.steps, of_diffusion))

    def _measured(self, times: Floats, values: Floats) -> Measured:
        """Return moments of values and of their rates of change, for which the flow is then prepared."""
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
        return Measured(self._moments(values), self._moments(rate), explicit)

    def _moments(self, rows: Floats) -> Complexes:
        """Return the moments (rows, degrees) of degree 1 to 6."""
        return self._harmonics.of_density(rows)[:, 1:]


class _Flow:
    """Advection of all rows, (rows·cells,), by h X with the h of each row, and the longest step of each.

    steps   (rows,) stable as of the last ``prepare``, NaN for a row that is not finite
    least   (rows,) of all since the last ``scale``
    """

    def __init__(self, mesh: Mesh, rows: int, velocity: RowVelocity, longest: Callable[[Floats], Floats]) -> None:
        self.mesh = stack(mesh, rows)
        self._shape, self._given, self._velocity, self._longest = (rows, mesh.cells), _Given(), velocity, longest
        self._advection = Advection(self.mesh, self._given, nonnegative=True)

    def at(self, times: Floats) -> None:
        """Set the times of what is prepared next, with h = 1."""
        self._times, self._lengths, self.least = times, np.ones(len(times)), np.full(len(times), np.inf)

    def scale(self, times: Floats, lengths: Floats) -> None:
        """Scale what is prepared, and what will be, to stages of steps of these lengths h that begin at these times."""
        self._times, self._lengths, self.least = times, lengths, np.full(len(times), np.inf)
        self._advection.scale_copies(lengths)

    def prepare(self, part: float, values: Floats) -> Step:
        """Find h X for densities after this part of the steps."""
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
    """Velocity that has been found for all rows."""

    velocity: Floats

    def __call__(self, time: float, values: Floats) -> Floats:
        return self.velocity


def _norms(moments: Complexes) -> Floats:
    """Return norms (rows, 2) of moments (rows, degrees) of degree 1, and of higher ones."""
    square = np.abs(moments) ** 2
    return np.asarray(np.sqrt(np.stack([square[:, 0], square[:, 1:].sum(axis=1)], axis=1)))
