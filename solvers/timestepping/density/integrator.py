"""Steps of one density with errors estimated in its moments."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...mesh.mesh import Floats
from ...terms.term import Step
from ..checks import check_positive
from ..equation import Equation
from ..state import NonFinite, State, StepResult
from ..steppers import Stepper, stepper_of
from .moments import Moments
from .rows import RTOL, DensityRows, EndMoments, Numbers, rates_of

_ONLY = np.zeros(1, dtype=np.intp)


class DensityIntegrator:
    """Integrator of one density with the error of a step estimated in moments, such as harmonics of low degree.

    equation    equation of the density
    stepper     one of STEPPERS, or its name
    moments     moments of the state's values
    cfl, rtol   fraction of the stable step and tolerance, see `DensityRows`, of which this is one row
    to_device   moves the values to the device of the equation's terms

    The values are not checked. Raises ValueError and TypeError for other arguments as `evolve` does. Raises NonFinite
    for a step that is not finite or has no stable length; the state is then the one after the last accepted step.
    """

    ends_at_restarts = True

    def __init__(
        self,
        equation: Equation,
        stepper: Stepper | str,
        moments: Moments,
        cfl: float = 0.5,
        rtol: float = RTOL,
        to_device: Callable[[Floats], Floats] = lambda values: values,
    ) -> None:
        check_positive(cfl=cfl, rtol=rtol)
        self._density = OneDensity(equation.begin(), stepper_of(stepper), moments)
        self._cfl, self._rtol, self._to_device = cfl, rtol, to_device

    def begin(self, state: State) -> None:
        state.values = self._to_device(state.values)
        one = self._density
        self._row = DensityRows(state.values[None], lambda which: one, self._cfl, self._rtol, state.time, state.dt)

    def step(self, state: State, target: float) -> StepResult:
        row = self._row
        if not row.stable[0] > np.spacing(state.time):
            raise NonFinite(f"{state.time_and_step}: stable time step is {row.stable[0]:.3g}")
        try:
            accepted = np.zeros(1, dtype=bool)
            while not accepted[0]:
                accepted = row.attempt(np.array([target]))
                if row.stuck()[0]:
                    raise NonFinite(f"the step of {row.lengths[0]:.3g} is not finite")
                row.commit(accepted)
        except NonFinite as lost:  # raised here or by a term
            row.commit(np.zeros(1, dtype=bool))
            raise type(lost)(f"{state.time_and_step}: {lost}") from lost
        state.time, state.dt, state.steps = float(row.time[0]), float(row.dt[0]), state.steps + 1
        return StepResult(stable_dt=float(row.stable[0]) / self._cfl)

    def interpolate(self, time: float) -> Floats:
        """Return the state's values interpolated at a time within the last step."""
        values: Floats = self._row.interpolate(_ONLY, np.array([time]))[0]
        return values


class OneDensity:
    """Equation of a single density with the interface `Densities`: all arrays have one row."""

    def __init__(self, equation: Equation, stepper: Stepper, moments: Moments) -> None:
        self._equation, self._stepper, self._moments = equation, stepper, moments
        self.splits = equation.stiff is not None

    def prepare(self, times: Floats, values: Floats, with_stiff: bool = False) -> Step:
        return self._equation.prepare(float(times[0]), values[0], with_stiff)

    def step_stiff(self, times: Floats, lengths: Floats, values: Floats) -> None:
        self._equation.step_stiff(float(times[0]), float(lengths[0]), values[0])

    def step_explicit(self, times: Floats, lengths: Floats, values: Floats, work: tuple[Floats, ...]) -> Step:
        state = State(float(times[0]), values[0])
        return self._stepper.step(self._equation, state, float(lengths[0]), tuple(array[0] for array in work))

    def end_moments(self, times: Floats, values: Floats, rate: Floats) -> EndMoments:
        """Return the moments of the density and of its rates of change, see :meth:`Densities.end_moments`."""
        rates = rates_of(self._equation, float(times[0]), values[0], rate[0])
        return EndMoments(*(moments[None] for moments in self._moments(values[0], *rates)))

    def norms(self, moments: Numbers, ends: Numbers) -> Floats:
        """Return the norms (1, 2) of the moments of degree 1 and of all higher degrees of one density.

        ``ends`` are the moments at the end of the step, see :meth:`Densities.norms`.
        """
        return self._moments.norms(moments[0], ends[0])[None]
