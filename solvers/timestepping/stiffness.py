"""Stiffness of a run: whether stability, not accuracy, limits the steps of an explicit or additive method."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from ..mesh.mesh import Floats
from ..terms.source import Source
from .control import root_mean_square
from .equation import Equation
from .integrate import Integrator
from .runge_kutta.error_controlled import ErrorControlled
from .runge_kutta.semi_discrete import SemiDiscrete
from .state import State

TRIAL = 30.0  # implicit step to try over the step of the run
MIN_STEPS = 100  # remaining steps for which a change pays
FIRST_TRIAL = 20  # steps before the first trial; the number of steps between trials doubles
UNSTABLE = 2.0  # step times eigenvalue, near the limits of stability 2.5 to 4
DIFFERENCE = 1e-6  # relative length of a difference quotient


@dataclass
class StiffnessTest:
    """Test of whether an implicit step of 30 times the length of a run's steps has an allowed error.

    The trial is made where stability seems to limit the steps: a step is the longest stable step of a term, or the step
    length times the growth rate |J e|/|e| of the error e of a step is large (Hairer and Wanner, Solving Ordinary
    Differential Equations II, section IV.2). Terms without a matrix, as those of transport, have to be stable in the
    longer step.

    implicit     integrator with implicit steps
    longest      longest step that a run can use
    next_trial   number of steps of a run before the next trial
    """

    equation: Equation
    implicit: ErrorControlled
    longest: float
    next_trial: int = field(default=FIRST_TRIAL, init=False)

    def __call__(self, integrator: Integrator, state: State, until: float) -> bool:
        """Return whether a run up to the time ``until`` is to be continued from a state by the implicit integrator."""
        if state.steps < self.next_trial or not isinstance(integrator, ErrorControlled):
            return False
        self.next_trial = 2 * state.steps
        step, stable = integrator.next_step, integrator.stable_step
        if until - state.time < MIN_STEPS * step or self.longest < TRIAL * step:
            return False
        if step < stable and step * self._growth(integrator.error, state) < UNSTABLE:
            return False
        self.implicit.problem.forget_factorization()  # of an earlier trial, which a continued run has not made
        return self._is_transport_stable(TRIAL * step, state) and self.implicit.try_step(state, TRIAL * step)[1] <= 1

    def _growth(self, error: Floats, state: State) -> float:
        """Return |J e|/|e| for e = ``error`` and the derivative J of the rate of change by the explicit terms."""
        size, problem = root_mean_square(error), SemiDiscrete(self.equation)
        if not 0 < size < math.inf:
            return 0.0
        small = DIFFERENCE * (1.0 + root_mean_square(state.values)) / size
        with np.errstate(all="ignore"):
            ahead, at = (problem.explicit(state.time, state.values + part * error, 0.0) for part in (small, 0.0))
            return root_mean_square(ahead - at) / (small * size)

    def _is_transport_stable(self, step: float, state: State) -> bool:
        """Return whether explicit terms that are neither sources nor have a matrix are stable in a step."""
        terms = [term for term in self.equation.begin().terms if not isinstance(term, Source)]
        each = (term.prepare(state.time, state.values) for term in terms if not hasattr(term, "jacobian"))
        return all(float(stable) >= step for stable in each)
