"""Super-time-stepping: explicit steps with the number of stages that stable diffusion requires."""

from __future__ import annotations

import math

import numpy as np

from ...mesh.mesh import Floats
from ...terms import rkl2
from ..checks import check_real
from ..control import root_mean_square
from ..state import MethodState, State
from .error_controlled import ErrorControlled
from .semi_discrete import SemiDiscrete

POWER_ITERATIONS = 40


class SuperTimeStepping(ErrorControlled):
    """RKL2 integrator with error control: explicit steps with as many stages as stable diffusion requires.

    Steps are stable for real negative spectra (Meyer, Balsara and Aslam 2014). The error estimate of a step is that of
    Sommeijer, Shampine and Verwer (1998), 0.8 (u₀ − u₁) + 0.4 dt (f₀ + f₁).
    """

    order = 3

    def begin(self, state: State) -> None:
        check_real("u0", state.values, "the method rkl2")
        super().begin(state)
        known = state.method_state
        self._fastest = float(known["fastest"]) if "fastest" in known else spectral_radius(self.problem, state)

    @property
    def method_state(self) -> MethodState:
        """Return the numbers of the error control, and the spectral radius."""
        return {**super().method_state, "fastest": self._fastest}

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


def spectral_radius(problem: SemiDiscrete, state: State) -> float:
    """Estimate an upper bound of the |eigenvalues| of ∂f/∂u at a state, for ∂ₜu = f(t, u) = ``problem``.

    The bound is 1.1 times the |eigenvalue| found by power iterations.
    """
    values, rate = state.values, problem.full(state.time, state.values)
    size = 1e-6 * (1.0 + root_mean_square(values))
    vector, found = np.random.default_rng(1).standard_normal(values.shape), 0.0
    for _ in range(POWER_ITERATIONS):
        vector *= size / root_mean_square(vector)
        vector = problem.full(state.time, values + vector) - rate
        found = root_mean_square(vector) / size
        if found == 0.0:
            break
    return 1.1 * found
