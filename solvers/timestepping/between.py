"""Fields between the kept times of a solution, by steps of the same method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..mesh.mesh import Floats
from .equation import Equation
from .integrate import DenseIntegrator, Integrator, advanced, fixed, integrate
from .methods import integrator_of
from .observers import Observer
from .schedules import Listed
from .state import State


@dataclass(frozen=True)
class Between:
    """Fields between two kept times of a solution, as accurate as its steps.

    A field at time t is that of the method's own step from the last step before t. It costs that step, and no memory.
    By "dop853" the step is interpolated, at order 7.

    keeps_steps   whether all steps are kept; else they are taken again from the kept time before t
    The other attributes are arguments of `solve`.
    """

    equation: Equation
    method: str
    rtol: float
    atol: float
    cfl: float | None
    keeps_steps: bool

    def __call__(self, first: Floats, span: tuple[float, float], times: Sequence[float]) -> list[Floats]:
        """Return the fields at increasing times inside a span of two kept times, the first with the field ``first``."""
        begin, end = span
        state = State(begin, first.copy(), dt=end - begin) if self.keeps_steps else State(begin, first.copy())
        integrator, found = self._integrator(), list[Floats]()
        if isinstance(integrator, DenseIntegrator):
            keep = Observer(lambda state: found.append(state.values.copy()), Listed(tuple(times)))
            integrate(state, fixed(integrator), end, [keep])
        elif self.keeps_steps:
            found.extend(advanced(state, integrator, time).values for time in times)
        else:
            self._step_through(state, times, found)
        return found

    def _step_through(self, state: State, times: Sequence[float], found: list[Floats]) -> None:
        """Append the fields at increasing times, each by a step from the last one of the run before that time."""
        before, within = replace(state, values=state.values.copy()), self._integrator()

        def after_step(state: State) -> bool:
            nonlocal before
            before.dt = state.time - before.time
            while len(found) < len(times) and times[len(found)] <= state.time:
                found.append(advanced(before, within, times[len(found)]).values)
            before = replace(state, values=state.values.copy())
            return len(found) == len(times)

        integrate(state, fixed(self._integrator()), times[-1], (), after_step)

    def _integrator(self) -> Integrator:
        return integrator_of(self.equation, self.method, self.rtol, self.atol, self.cfl)
