"""Runge–Kutta steps of a semi-discrete equation, explicit, additive or implicit, with embedded errors."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import NoReturn

import numpy as np

from ..mesh.mesh import Floats
from ..terms import rkl2
from ..terms.conservation_law import ConservationLaw
from .equation import Equation
from .semi_discrete import SemiDiscrete
from .state import Exploding, NonFinite, State, StepResult
from .step_control import allowed_error, root_mean_square
from .tableaux import Tableau

SAFETY, SHRINK, GROW = 0.9, 0.2, 4.0  # of the step that the error asks for; limits of a change of the step
FIRST = 1e-3  # of |u|/|∂ₜu|: a first step
MIN_STEP = 16  # spacings of floating-point time


class ErrorControlled(ABC):
    """Steps whose length follows an estimate of their error: a base of methods that give u after a step, and that.

        |error| ≤ atol + rtol (|change| + |u − ū|/100)      |·|: root mean square

    Where all terms are conservation laws, cells at their shocks do not count (`ConservationLaw.at_jumps`): the cfl
    limits the step there. Beside other terms they do, as these may err most at a front.

    order   of the error estimate in dt
    cfl     fraction of the stable step of the explicit terms
    """

    order: int

    def __init__(self, equation: Equation, rtol: float, atol: float, cfl: float) -> None:
        self.problem, self.rtol, self.atol, self.cfl = SemiDiscrete(equation), rtol, atol, cfl
        self.rejected = 0
        laws = [term for term in equation.terms if isinstance(term, ConservationLaw)]
        self._laws = laws if equation.stiff is None and len(laws) == len(equation.terms) else []

    @abstractmethod
    def attempt(self, state: State, dt: float) -> tuple[Floats, Floats]:
        """Values after a step of dt, and their error. Raises NonFinite where a solver does not converge."""

    def begin(self, state: State) -> None:
        """Choose the first step to try: ``state.dt``; else a part of |u|/|∂ₜu|, which is ∞ where nothing moves."""
        if state.dt > 0:
            self._next = state.dt
            return
        rate = self.problem.full(state.time, state.values)
        speed, size = root_mean_square(rate), root_mean_square(state.values)
        self._next = FIRST * (size + self.atol) / speed if speed > 0 else math.inf

    def step(self, state: State, target: float) -> StepResult:
        self.problem.explicit(state.time, state.values, 0.0)  # for its stable step
        if math.isnan(self.problem.stable_dt):
            lost = self.problem.equation.lost_in(state.time, state.values)
            raise NonFinite(f"{state.when}: {lost}")
        left = target - state.time
        longest = min(self._next, self.cfl * self.problem.stable_dt)
        dt, is_cut = left / max(math.ceil(left / longest), 1), False
        while True:
            if dt < MIN_STEP * float(np.spacing(state.time)):
                self._raise_underflow(state, dt)
            values, ratio = self._try(state, dt)
            change = SAFETY * ratio ** (-1 / self.order) if ratio > 0 else GROW
            if ratio <= 1:
                break
            self.rejected, is_cut = self.rejected + 1, True
            dt *= max(min(change, 0.9), SHRINK)
        proposed = dt * (1.0 if is_cut else min(change, GROW))
        self._next = max(proposed, self._next) if dt < 0.99 * self._next and not is_cut else proposed
        state.values[...] = values
        if self.problem.equation.limit is not None:
            self.problem.equation.limit(state.values)
        state.time = target if dt >= left * (1 - 1e-12) else state.time + dt
        state.steps, state.dt = state.steps + 1, dt
        return StepResult(stable_dt=self.problem.stable_dt)

    def _raise_underflow(self, state: State, dt: float) -> NoReturn:
        with np.errstate(all="ignore"):
            after = self.problem.full(state.time + 2 * dt / SHRINK, state.values)  # where a step was tried
        if not np.isfinite(after).all():
            raise NonFinite(f"{state.when}: the rate of change of the same state just after it is not finite")
        raise Exploding(f"{state.when}: step size underflow (blow-up?)")

    def _try(self, state: State, dt: float) -> tuple[Floats, float]:
        """Values after a step of dt, and its error over what is allowed; ∞ where it is lost."""
        with np.errstate(all="ignore"):
            try:
                values, error = self.attempt(state, dt)
            except NonFinite:
                return state.values, math.inf
            for law in self._laws:
                error = np.where(law.at_jumps(state.values), 0.0, error)
            ratio = root_mean_square(error) / allowed_error(values, state.values, self.rtol, self.atol)
        return values, ratio if math.isfinite(ratio) else math.inf


class RungeKutta(ErrorControlled):
    """Steps by a tableau: explicit, or additive with the stiff term implicit (no splitting).

    fully_implicit   all terms are implicit, by Newton's iteration with GMRES, preconditioned from the diffusion
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
        table, problem = self.tableau, self.problem
        assert table.implicit is not None
        explicit: list[Floats] = []
        stiff: list[Floats] = []
        for i, node in enumerate(table.nodes):
            time = state.time + node * dt
            stage = state.values + dt * (_sum(table.stages[i], explicit) + _sum(table.implicit[i], stiff))
            diagonal = table.implicit[i, i]
            if diagonal > 0:
                stage = problem.solve_stiff(time, stage, dt * diagonal)
            explicit.append(problem.explicit(time, stage, dt))
            stiff.append(problem.stiff(time, stage))
        weights = table.weights if table.implicit_weights is None else table.implicit_weights
        change = dt * (_sum(table.weights, explicit) + _sum(weights, stiff))
        error = change - dt * (_sum(table.embedded, explicit) + _sum(table.embedded, stiff))
        return state.values + change, error

    def _unpartitioned(self, state: State, dt: float) -> tuple[Floats, Floats]:
        table, problem = self.tableau, self.problem
        stages = table.stages if table.implicit is None else table.implicit
        rates: list[Floats] = []
        allowed = allowed_error(state.values, state.values, self.rtol, self.atol)
        for i, node in enumerate(table.nodes):
            time, stage = state.time + node * dt, state.values + dt * _sum(stages[i], rates)
            if stages[i, i] > 0:
                guess = rates[-1] if rates else problem.full(state.time, state.values)
                stage = problem.solve_full(time, stage, dt * stages[i, i], allowed, guess)
            rates.append(problem.full(time, stage, dt))
        change = dt * _sum(table.weights, rates)
        return state.values + change, change - dt * _sum(table.embedded, rates)


def _sum(weights: Floats, rates: list[Floats]) -> Floats:
    """Σ weights_k rates_k of as many as there are."""
    used = [(float(w), rate) for w, rate in zip(weights, rates, strict=False) if w != 0]
    return np.asarray(sum((w * rate for w, rate in used), np.zeros(1)))


class SuperTimeStepping(ErrorControlled):
    """RKL2: as many stages as the step needs, stable for real negative spectra (Meyer, Balsara and Aslam 2014).

    The error of a step is that of Sommeijer, Shampine and Verwer (1998), 0.8 (u₀ − u₁) + 0.4 dt (f₀ + f₁).
    """

    order = 3

    def begin(self, state: State) -> None:
        super().begin(state)
        self._fastest = spectral_radius(self.problem, state)

    def attempt(self, state: State, dt: float) -> tuple[Floats, Floats]:
        f, time, start = self.problem.full, state.time, state.values
        first = f(time, start, dt)
        s = max(3, math.ceil((math.sqrt(9 + 8 * dt * self._fastest) - 1) / 2))
        w = rkl2.width(s)
        before, values, nodes = start, start + rkl2.FIRST * w * dt * first, [0.0, rkl2.FIRST * w]
        for j in range(2, s + 1):
            mu, nu, of_start = rkl2.stage_weights(j)
            gamma = of_start * mu * w
            nodes.append(mu * nodes[-1] + nu * nodes[-2] + mu * w - gamma)
            rate = f(time + nodes[j - 1] * dt, values, dt)
            values, before = (
                mu * values + nu * before + (1 - mu - nu) * start + dt * (mu * w * rate - gamma * first),
                values,
            )
        error = 0.8 * (start - values) + 0.4 * dt * (first + f(time + dt, values, dt))
        return values, error


def spectral_radius(problem: SemiDiscrete, state: State, iterations: int = 40) -> float:
    """Largest |eigenvalue| of ∂f/∂u by power iterations, and a tenth more."""
    values, rate = state.values, problem.full(state.time, state.values)
    size = 1e-6 * (1.0 + root_mean_square(values))
    vector, found = np.random.default_rng(1).standard_normal(values.shape), 0.0
    for _ in range(iterations):
        vector *= size / root_mean_square(vector)
        vector = problem.full(state.time, values + vector) - rate
        found = root_mean_square(vector) / size
        if found == 0.0:
            break
    return 1.1 * found


class ExponentialRosenbrock(ErrorControlled):
    """u + dt φ₁(dt J)(f + …): exact for ∂ₜu = Lu + b, of second order else (Hochbruck and Ostermann 2010, section 2).

    φ₁(z) = (e^z − 1)/z of a Krylov space of J = ∂f/∂u; the error is that of what J leaves over, ⅓ dt |f₁ − f₀ − J(u₁ −
    u₀)|, and of the Krylov space.
    """

    order = 3

    def attempt(self, state: State, dt: float) -> tuple[Floats, Floats]:
        from .krylov import phi1_times

        problem, time, start = self.problem, state.time, state.values
        rate = problem.full(time, start)
        small = 1e-7 * (1.0 + float(np.abs(start).max()))

        def jacobian(vector: Floats) -> Floats:
            length = small / max(float(np.abs(vector).max()), np.finfo(float).tiny)
            return (problem.full(time, start + length * vector) - rate) / length

        drift = (problem.full(time + 1e-6 * dt, start) - rate) / 1e-6  # dt ∂f/∂t
        change, lost = phi1_times(jacobian, rate + 0.5 * drift, dt)
        values = start + change
        left_over = problem.full(time + dt, values) - rate - drift - jacobian(change)
        return values, dt / 3 * left_over + lost
