"""Symplectic steps of constant length for equations of second order in time, such as wave equations."""

from __future__ import annotations

import math

import numpy as np

from ...mesh.mesh import Floats
from ..control import StepController, allowed_error, root_mean_square
from ..equation import Equation
from ..state import MethodState, NonFinite, State, StepResult
from .semi_discrete import SemiDiscrete

# Blanes and Moan (2002), Table 2, S₆ of order 4, to the digits that are printed; the middle ones by symmetry
_A = (0.0792036964311957, 0.353172906049774, -0.0420650803577195)
_B = (0.209515106613362, -0.143851773179818)
OF_Q = np.array([*_A, 1 - 2 * sum(_A), *_A[::-1]])  # parts of a step by which q is advanced
OF_P = np.array([*_B, 0.5 - sum(_B), 0.5 - sum(_B), *_B[::-1], 0.0])  # and p after each of them
ORDER = 4
LIMIT = 3.13  # stable step times the frequency: the trace of the step of an oscillator is at most 2
POWER_ITERATIONS, MARGIN = 40, 1.05  # of the highest frequency, and its bound over the estimate
STEPS_BETWEEN_ESTIMATES = 100
DIFFERENCE = 1e-6  # relative length of a difference quotient
ROUNDING = 1e-8  # relative change of a rate that does not depend on the changed rows
ATTEMPTS = 20  # lengths of the step that are tried at the start


class Symplectic:
    """Symplectic integrator of ∂ₜq = g(t, p), ∂ₜp = f(t, q), where u has the rows q and then as many rows p.

    A step consists of seven parts ``OF_Q`` with constant p and six parts ``OF_P`` with constant q between them. The
    order is 4. Steps are reversible, and the energy of a Hamiltonian system oscillates but does not drift.

    The step length is the fraction ``cfl`` of the stable step, which is LIMIT over the highest frequency, or shorter if
    the error of the first step would exceed the tolerance. It decreases if the highest frequency increases. Between two
    output times, the steps are equal parts of the time. An initial state with ``dt`` > 0 gives the step length instead.

    Source: Blanes and Moan, J. Comput. Appl. Math. 142 (2002) 313, Table 2. Hairer, Lubich and Wanner, Geometric
    Numerical Integration (2006), chapters VI and IX.
    """

    def __init__(self, equation: Equation, rtol: float, atol: float, cfl: float) -> None:
        self._problem, self._rtol, self._atol, self._cfl = SemiDiscrete(equation), rtol, atol, cfl

    def begin(self, state: State) -> None:
        """Choose the length of the steps, unless the state gives it; raise ValueError for an odd number of rows."""
        rows = len(state.values)
        if rows % 2:
            raise ValueError(
                f"u0 of {rows} rows: expected an even number with method = 'symplectic', first q and then p"
            )
        self._half, self._count = rows // 2, 0
        self._vector = np.random.default_rng(1).standard_normal(state.values[: self._half].shape)
        self._step = state.dt
        if "vector" in (known := state.method_state):
            self._step, self._count, self._vector = float(known["step"]), int(known["count"]), np.array(known["vector"])
        elif not state.dt > 0:
            self._step = self._accurate_step(state, self._stable_step(state, POWER_ITERATIONS))

    @property
    def method_state(self) -> MethodState:
        """Return the length of the steps, their number, and the approximate mode of the highest frequency."""
        return {"step": self._step, "count": self._count, "vector": self._vector}

    def step(self, state: State, target: float) -> StepResult:
        """Advance a state by one step, whose length divides the time to ``target`` into equal parts."""
        self._count += 1
        if self._count % STEPS_BETWEEN_ESTIMATES == 0:
            self._step = min(self._step, self._stable_step(state, 1))
        left = target - state.time
        parts = max(math.ceil(left / self._step * (1 - 1e-12)), 1)
        dt = left / parts
        values = self._advance(state.time, state.values, dt)
        if not np.isfinite(values).all():
            raise NonFinite(f"{state.time_and_step}: the state after a step of {dt:.3g} is not finite")
        state.values[...] = values
        state.time = target if parts == 1 else state.time + dt
        state.steps, state.dt = state.steps + 1, dt
        return StepResult(stable_dt=self._step)

    def _advance(self, time: float, values: Floats, dt: float) -> Floats:
        """Return the values after a step of dt."""
        half, rate, found = self._half, self._problem.full, values.copy()
        time_q = time_p = time
        for of_q, of_p in zip(dt * OF_Q, dt * OF_P, strict=True):
            found[:half] += of_q * rate(time_p, found)[:half]
            time_q += of_q
            if of_p != 0:
                found[half:] += of_p * rate(time_q, found)[half:]
                time_p += of_p
        return found

    def _accurate_step(self, state: State, longest: float) -> float:
        """Return a step, at most the ``longest``, whose error is allowed, by comparison with two half steps."""
        dt, control = longest, StepController(ORDER + 1)
        for _ in range(ATTEMPTS if math.isfinite(dt) else 0):
            whole = self._advance(state.time, state.values, dt)
            middle = self._advance(state.time, state.values, dt / 2)
            halves = self._advance(state.time + dt / 2, middle, dt / 2)
            allowed = allowed_error(halves, state.values, self._rtol, self._atol)
            error = root_mean_square(halves - whole) / (1 - 2.0**-ORDER) / allowed
            if error <= 1:
                break
            dt *= float(control.factor(error))
        return dt

    def _stable_step(self, state: State, iterations: int) -> float:
        """Return the fraction cfl of the stable step at a state, by power ``iterations`` for the highest frequency.

        The square of the frequency is the largest |eigenvalue| of ∂g/∂p ∂f/∂q. Raises ValueError if ∂ₜq depends on q,
        or ∂ₜp on p.
        """
        square, rate = 0.0, self._problem.full(state.time, state.values)
        for _ in range(iterations):
            size = root_mean_square(self._vector)
            if not 0 < size < math.inf:
                break
            force = self._derivative(state, rate, 0, self._vector)
            if root_mean_square(force) == 0:
                break
            self._vector = self._derivative(state, rate, self._half, force) / size  # whose powers would overflow
            square = root_mean_square(self._vector)
        return self._cfl * LIMIT / (MARGIN * math.sqrt(square)) if square > 0 else math.inf

    def _derivative(self, state: State, rate: Floats, first: int, vector: Floats) -> Floats:
        """Return the derivative of f by q along ``vector`` if ``first`` = 0, else of g by p; ``rate`` holds (g, f)."""
        half = self._half
        rows, others = (slice(half), slice(half, None)) if first == 0 else (slice(half, None), slice(half))
        small = DIFFERENCE * (1 + root_mean_square(state.values)) / root_mean_square(vector)
        moved = state.values.copy()
        moved[rows] += small * vector
        change = self._problem.full(state.time, moved) - rate
        if root_mean_square(change[rows]) > ROUNDING * (root_mean_square(change) + root_mean_square(rate)):
            own, other = ("q", "p") if first == 0 else ("p", "q")
            raise ValueError(
                f"method = 'symplectic': ∂ₜ{own} depends on {own}: expected a function of t and {other} alone, where u"
                " has the rows q and then p"
            )
        return change[others] / small
