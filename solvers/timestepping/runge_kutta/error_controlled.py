"""Explicit, additive and implicit Runge–Kutta steps of a semi-discrete equation with embedded error estimates."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NoReturn

import numpy as np

from ...mesh.mesh import Floats
from ..control import SHRINK, Proposal, StepController, allowed_error, root_mean_square
from ..equation import Equation
from ..state import Exploding, MethodState, NonFinite, State, StepResult
from .semi_discrete import SemiDiscrete
from .tableaux import Tableau

FIRST = 1e-3  # first step over |u|/|∂ₜu|
HALF = 0.5  # factor of a step of small error whose end is not admissible
MIN_STEP = 16  # minimum step in floating-point spacings of time


class ErrorControlled(ABC):
    """Base class of integrators with error control: a subclass gives u after a step and an estimate of the error.

        |error| ≤ atol + rtol (|change of u| + |u − ū|/100 + 3·10⁴ |D|)      |·|: root mean square, ū: mean

    D is the change of u by numerical diffusion, if all terms have that, as fluxes with limiters; see `allowed_error`.

    order   of the error estimate in dt
    cfl     fraction of the stable step of the explicit terms
    error   estimate of the errors of the last attempted step
    """

    order: int
    error: Floats

    def __init__(self, equation: Equation, rtol: float, atol: float, cfl: float) -> None:
        self.problem, self.rtol, self.atol, self.cfl = SemiDiscrete(equation), rtol, atol, cfl
        self.rejected, self._proposal = 0, Proposal(math.inf)

    @abstractmethod
    def attempt(self, state: State, dt: float) -> tuple[Floats, Floats]:
        """Return the values after a step of dt from a state, and an estimate of their errors, of the same shape.

        Raises NonFinite if a solver does not converge.
        """

    def begin(self, state: State) -> None:
        """Choose the first step to try: ``state.dt`` if it is > 0, else 10⁻³ |u|/|∂ₜu|, which is ∞ for a rate of 0.

        A state with a ``method_state`` continues with the step stored there.
        """
        if known := state.method_state:
            self._proposal = Proposal(known.get("step", state.dt), known.get("error", math.nan))
            self.rejected, self.error = int(known.get("rejected", 0)), np.asarray(known.get("errors", 0.0))
            self.problem.prepare(state.time, state.values)
            self.problem.resume(known)
            return
        if state.dt > 0:
            self._proposal = Proposal(state.dt)
            return
        rate = self.problem.full(state.time, state.values)
        speed, size = root_mean_square(rate), root_mean_square(state.values)
        self._proposal = Proposal(FIRST * (size + self.atol) / speed if speed > 0 else math.inf)

    @property
    def method_state(self) -> MethodState:
        """Return the next step to try, the number of rejected steps, the last errors and the factorization in use."""
        facts: MethodState = {"rejected": self.rejected, "errors": self.error}
        return {**self._proposal.numbers, **facts, **self.problem.method_state}

    @property
    def stable_step(self) -> float:
        """Return the length of the next step by its stability alone."""
        return self.cfl * self.problem.stable_dt

    @property
    def next_step(self) -> float:
        """Return the length of the next step by its error and the stable step, unless a time is to be met."""
        return min(float(self._proposal.step), self.stable_step)

    def step(self, state: State, target: float) -> StepResult:
        self.problem.prepare(state.time, state.values)
        if math.isnan(self.problem.stable_dt):
            lost = self.problem.equation.lost_in(state.time, state.values)
            raise NonFinite(f"{state.time_and_step}: {lost}")
        left, control, refused = target - state.time, StepController(self.order), False
        dt = left / max(math.ceil(left / self.next_step), 1)
        while True:
            if dt < min(MIN_STEP * float(np.spacing(state.time)), left):
                self._raise_underflow(state, dt)
            values, error = self.try_step(state, dt)
            end = target if dt >= left * (1 - 1e-12) else state.time + dt
            if error <= 1 and self._is_finite(end, values):
                break
            self.rejected, refused = self.rejected + 1, True
            dt *= float(control.factor(error)) if error > 1 else HALF
        self._proposal = control.next(dt, error, self._proposal, refused)
        state.values[...] = values
        if self.problem.equation.limit is not None:
            self.problem.equation.limit(state.values)
            self.problem.prepare(end, state.values)
        state.time = end
        state.steps, state.dt = state.steps + 1, dt
        return StepResult(stable_dt=self.problem.stable_dt)

    def _raise_underflow(self, state: State, dt: float) -> NoReturn:
        """Raise NonFinite for a step that is too short: a blow-up, or a rate of change that is not finite."""
        with np.errstate(all="ignore"):
            after = self.problem.full(state.time + 2 * dt / SHRINK, state.values)  # at an attempted stage
        if not np.isfinite(after).all():
            raise NonFinite(
                f"{state.time_and_step}: the rate of change of the same state just after that time is not finite"
            )
        message = f"{state.time_and_step}: step size underflow (blow-up?)"
        if state.values.ndim > 1 and any(getattr(term, "positive", ()) is None for term in self.problem.equation.terms):
            message += "; the argument positive of ConservationLaw keeps densities and pressures >= 0"
        raise Exploding(message)

    def try_step(self, state: State, dt: float) -> tuple[Floats, float]:
        """Return the values after a step of dt, and the ratio of its error to the allowed one, in root mean squares.

        The ratio is ∞ if it is not finite, or if a solver does not converge.
        """
        with np.errstate(all="ignore"):
            try:
                self.problem.prepare(state.time, state.values)
                spatial = dt * self.problem.equation.numerical_diffusion()
                values, self.error = self.attempt(state, dt)
            except NonFinite:
                return state.values, math.inf
            allowed = allowed_error(values, state.values, self.rtol, self.atol, spatial)
            ratio = root_mean_square(self.error) / allowed
        return values, ratio if math.isfinite(ratio) else math.inf

    def _is_finite(self, time: float, values: Floats) -> bool:
        """Return whether a state at the end of a step has a stable step, which is evaluated for the next step too."""
        self.problem.prepare(time, values)
        return not math.isnan(self.problem.stable_dt)


class RungeKutta(ErrorControlled):
    """Runge–Kutta integrator with error control by a tableau: explicit, additive or fully implicit.

    An additive method takes the stiff term as implicit and the other terms as explicit, without splitting.

    fully_implicit   whether all terms are implicit, by Newton's iteration
    """

    def __init__(
        self, equation: Equation, tableau: Tableau, rtol: float, atol: float, cfl: float, fully_implicit: bool = False
    ) -> None:
        super().__init__(equation, rtol, atol, math.inf if fully_implicit else cfl)
        self.tableau, self._fully_implicit = tableau, fully_implicit
        self.order = tableau.embedded_order + 1

    def attempt(self, state: State, dt: float) -> tuple[Floats, Floats]:
        if self._fully_implicit or self.tableau.implicit is None:
            return self._unpartitioned(state, dt)
        table, implicit, problem = self.tableau, self.tableau.implicit, self.problem
        explicit: list[Floats] = []
        stiff: list[Floats] = []
        for i, node in enumerate(table.nodes):
            time, step = state.time + node * dt, dt * implicit[i, i]
            stage = state.values + dt * (_sum(table.stages[i], explicit) + _sum(implicit[i], stiff))
            if step > 0:
                start, stage = stage, problem.solve_stiff(time, stage, step)
            explicit.append(problem.explicit(time, stage, dt))
            # the rate I(stage) would have the rounding of the stage times the fastest rate
            stiff.append((stage - start) / step if step > 0 else problem.stiff(time, stage))
        error = dt * (_sum(table.weights - table.embedded, explicit) + _sum(implicit[-1] - table.embedded, stiff))
        later = [rate - explicit[0] for rate in explicit]  # the weights of the difference to the last stage sum to 0
        return stage + dt * _sum(table.weights - table.stages[-1], later), error

    def _unpartitioned(self, state: State, dt: float) -> tuple[Floats, Floats]:
        """Return the values after a step and their estimated error, with one tableau for all terms."""
        table, problem = self.tableau, self.problem
        stages = table.stages if table.implicit is None else table.implicit
        rates: list[Floats] = []
        allowed = allowed_error(state.values, state.values, self.rtol, self.atol)
        for i, node in enumerate(table.nodes):
            time, step = state.time + node * dt, dt * stages[i, i]
            start = stage = state.values + dt * _sum(stages[i], rates)
            if step > 0:
                guess = rates[-1] if rates else problem.full(state.time, state.values)
                stage = problem.solve_full(time, start, step, allowed, guess)
            rates.append((stage - start) / step if step > 0 else problem.full(time, stage, dt))
        error = dt * _sum(table.weights - table.embedded, rates)
        return stage if self._fully_implicit else state.values + dt * _sum(table.weights, rates), error


def _sum(weights: Floats, rates: list[Floats]) -> Floats:
    """Return the linear combination Σ weights_k rates_k over the rates of the stages evaluated so far."""
    used = [(float(w), rate) for w, rate in zip(weights, rates, strict=False) if w != 0]
    return np.asarray(sum((w * rate for w, rate in used), np.zeros(1)))
