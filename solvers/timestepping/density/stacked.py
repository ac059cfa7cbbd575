"""Many independent densities on one curve, side by side in one array.

A step h of ∂ₜρ + div(ρX) = 0 is a unit step of ∂ₛρ + div(ρ hX) = 0. All densities take unit steps together, each with
an own h.
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
from ..equation import Equation, limit_positivity
from ..state import State
from ..steppers import stepper_of
from .moments import DEGREES
from .rows import EndMoments, rates_of

RowVelocity = Callable[[Floats, Floats], Floats]  # times (k,), densities (k, cells) → X (k, cells, d)
Complexes = NDArray[np.complex128]


class StackedDensities:
    """Equations ∂ₜρ + div(ρ X) = κ Δρ of many densities of equal mass on one circle: an instance of `Densities`.

    mesh        the circle
    rows        number of densities
    velocity    (times (rows,), densities (rows, cells)) → X of each density, independent of the others
    longest     densities (rows, cells) → the longest step (rows,) by all criteria except advection
    stepper     one of STEPPERS, or its name
    diffusion   κΔ of fields (rows, cells); None without diffusion
    """

    def __init__(
        self,
        mesh: Mesh,
        rows: int,
        velocity: RowVelocity,
        longest: Callable[[Floats], Floats],
        stepper: str = "ssprk3",
        diffusion: Diffusion | None = None,
    ) -> None:
        self._flow = _Flow(mesh, rows, velocity, longest)
        self._stepper, self._diffusion, self.splits = stepper_of(stepper), diffusion, diffusion is not None
        stiff = [] if diffusion is None else [diffusion]
        self._equation = Equation(None, [self._flow, *stiff], limit=limit_positivity)
        self._harmonics = harmonic_transform(mesh, min(DEGREES, mesh.cells // 2))

    def prepare(self, times: Floats, values: Floats, with_stiff: bool = False) -> Step:
        self._flow.begin(times, np.ones(len(times)))
        self._flow.prepare(0.0, values)
        if self._diffusion is None or not with_stiff:
            return self._flow.steps
        of_diffusion = np.array([float(step) for step in self._diffusion.longest_steps(values)])
        return np.asarray(np.minimum(self._flow.steps, of_diffusion))

    def step_stiff(self, times: Floats, lengths: Floats, values: Floats) -> None:
        if self._diffusion is not None:
            self._diffusion.step_each(lengths, values)

    def step_explicit(self, times: Floats, lengths: Floats, values: Floats, work: tuple[Floats, ...]) -> Step:
        self._flow.begin(times, lengths)
        self._flow.scale()
        self._stepper.step(self._equation, State(0.0, values), 1.0, work)
        return self._flow.least

    def end_moments(self, times: Floats, values: Floats, rate: Floats) -> EndMoments:
        fields = values, *rates_of(self._equation, 0.0, values, rate)
        return EndMoments(*(self._harmonics.of_density(field)[:, 1:] for field in fields))

    def norms(self, moments: Complexes, ends: Complexes) -> Floats:
        square = np.abs(moments) ** 2
        return np.asarray(np.sqrt(np.stack([square[:, 0], square[:, 1:].sum(axis=1)], axis=1)))


class _Flow:
    """Advection of many densities, one in each row, by h X with a step length h of its own for each row.

    A unit step then advances each density by its h.

    steps   (rows,) stable steps of the last ``prepare``, NaN for a row that is not finite
    least   (rows,) smallest stable steps since the last ``begin``
    """

    def __init__(self, mesh: Mesh, rows: int, velocity: RowVelocity, longest: Callable[[Floats], Floats]) -> None:
        self._velocity, self._longest = velocity, longest
        self._advection = Advection(stack(mesh, rows), lambda time, values: self._found, nonnegative=True)

    def begin(self, times: Floats, lengths: Floats) -> None:
        """Set the start times (rows,) and lengths h (rows,) of the steps whose stages ``prepare`` evaluates next."""
        self._times, self._lengths, self.least = times, lengths, np.full(len(times), np.inf)

    def scale(self) -> None:
        """Multiply the fluxes of each density, prepared for unit step length, by its step length set by ``begin``."""
        self._advection.scale_copies(self._lengths)

    def prepare(self, part: float, values: Floats) -> Step:
        """Compute the fluxes of densities (rows, cells) by the velocity h X; return ∞.

        X is the velocity of each density and h its step length. The densities are those after the fraction ``part`` of
        each step. The longest stable steps are in the attribute ``steps`` (rows,).
        """
        lengths, flat = self._lengths, values.reshape(-1)
        velocity = self._velocity(self._times + part * lengths, values) * lengths[:, None, None]
        self._found = velocity.reshape(-1, velocity.shape[-1])
        self._advection.prepare(part, flat)
        fastest = self._advection.fastest_of_copies(flat, len(values))
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.minimum(np.where(fastest == 0.0, np.inf, lengths / fastest), self._longest(values))
        self.steps = np.where(np.isfinite(values).all(axis=1), steps, np.nan)
        self.least = np.minimum(self.least, self.steps)
        return np.inf

    def rate(self, dt: float, rate: Floats) -> None:
        self._advection.rate(dt, rate.reshape(-1))
