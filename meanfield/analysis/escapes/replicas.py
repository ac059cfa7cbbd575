"""Simulation of many independent systems of n tokens with noise until each of them has escaped.

A step is Brownian motion on the sphere, exact, and then a Runge–Kutta step of attention. After a half step of attention
at the start this is the splitting of Strang of runs of particles with noise, of second order in the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from meanfield.domains.particles.brownian import Brownian
from meanfield.domains.particles.motion import lengths, to_unit_length
from meanfield.domains.particles.systems import RatesOfSystems
from meanfield.domains.particles.velocity import ParticleVelocity
from meanfield.model.heads import Head
from meanfield.model.linear_stability import growth_rates
from solvers.mesh.mesh import Floats
from solvers.terms.term import Step
from solvers.timestepping.equation import Equation
from solvers.timestepping.state import State
from solvers.timestepping.steppers import STEPPERS
from solvers.timestepping.systems import Indices

STEP = 0.025  # step times the fastest rate of noise: errors of log T are below 0.1 for barriers nΔF/κ up to 3
MAX_TOKENS = 1 << 14  # of systems that are simulated in one array: complex numbers fit the cache of a core
_ACCURACY = 1e-6  # of the velocity by harmonics on the circle, relative to the first
_MAX_DEGREE = 400

RatesOfTokens = Callable[[Floats], Floats]


@dataclass(frozen=True)
class TokenSystem:
    """Systems of n tokens on the unit sphere, moved by noise and by unnormalized attention without rescaling.

    Attributes
    ----------
    dimension : int
        Dimension d.
    beta : float
        Inverse temperature β.
    value : float
        v of V = vI.
    noise : float
        Noise κ.
    count : int
        Number n of tokens.
    step : float
        Time step.
    """

    dimension: int
    beta: float
    value: float
    noise: float
    count: int
    step: float


@dataclass(frozen=True)
class Passages:
    """First passages of simulated systems.

    Attributes
    ----------
    times : (systems,) array
        Times of passage, or the times up to which a system without passage was simulated.
    passed : (systems,) array of bool
        Whether a system has passed.
    """

    times: Floats
    passed: np.ndarray


def first_passages(
    system: TokenSystem,
    positions: Floats,
    threshold: float,
    upward: bool,
    until: float,
    seed: int,
    stop: Callable[[], bool] = lambda: False,
) -> Passages:
    """Return the first times at which the mean tokens of systems pass the length ``threshold``.

    positions   (systems, n, d) at the start, changed in place
    upward      whether passages are to larger lengths
    until       time at which the simulation of a system without passage ends
    seed        seed of the noise
    stop        returns True to end the simulation after the current step
    """
    motion = _AttentionOfSystems(rates_of_tokens(system))
    brownian, equation = Brownian(system.noise, seed), Equation(None, [motion])
    times, passed = np.zeros(len(positions)), np.zeros(len(positions), dtype=bool)
    active, state = np.arange(len(positions)), State(0.0, positions)
    _advance(equation, state, system.step / 2)
    while len(active) and state.time < until and not stop():
        brownian.step(system.step, state.steps, state.values.reshape(-1, system.dimension))
        _advance(equation, state, system.step)
        state.time, state.steps = state.time + system.step, state.steps + 1
        times[active] = state.time
        order = lengths(state.values.mean(axis=1))
        now = order > threshold if upward else order < threshold
        if now.any():
            passed[active[now]] = True
            active, state.values = active[~now], np.ascontiguousarray(state.values[~now])
    return Passages(times, passed)


def rates_of_tokens(system: TokenSystem) -> RatesOfTokens:
    """Return the function from positions (systems, n, d) of unit vectors to the tangent velocities of attention."""
    if system.dimension == 2:
        return _CircleRates(system.beta, system.value)
    velocity = ParticleVelocity(system.beta, "unnormalized", (Head(value=system.value),))
    rates = RatesOfSystems([velocity], np.full((1, system.count), 1 / system.count), system.dimension)

    def evaluate(positions: Floats) -> Floats:
        which: Indices = np.zeros(len(positions), dtype=np.intp)
        return rates(which, np.zeros(len(positions)), positions)

    return evaluate


class _CircleRates:
    """Velocities of tokens on the circle, Σ_l 2 l c_l Im(m_l z̄^l) along the tangent, with moments m_l = Σ_j z_j^l/n.

    z = e^{iθ} are the tokens, and c_l the response of linear theory, here exact: unnormalized attention is linear in
    the density.
    """

    def __init__(self, beta: float, value: float) -> None:
        l = np.arange(1, _MAX_DEGREE)
        factors = 2 * growth_rates(2, beta, l, "unnormalized", value=value) / l
        needed = np.flatnonzero(np.abs(factors) > _ACCURACY * np.abs(factors).max())[-1] + 1
        self._factors = factors[:needed]

    def __call__(self, positions: Floats) -> Floats:
        z = np.ascontiguousarray(positions).view(np.complex128)[..., 0]
        power, moments = z.copy(), list[Floats]()
        for factor in self._factors:
            moments.append(factor * power.mean(axis=1, keepdims=True).conj())
            power *= z
        total = moments.pop() * z
        for moment in reversed(moments):  # Horner's scheme for Σ_l factor_l m̄_l z^l
            total += moment
            total *= z
        return np.asarray((-1j * total.imag * z).view(np.float64).reshape(positions.shape))


class _AttentionOfSystems:
    """Attention as a term of an equation whose state is the positions (systems, n, d) of tokens."""

    def __init__(self, rates: RatesOfTokens) -> None:
        self._rates, self._rate = rates, np.empty(0)

    def prepare(self, time: float, values: Floats) -> Step:
        """Evaluate the velocities of tokens, and return ∞ as the stable step, because the step is fixed."""
        self._rate = self._rates(values / lengths(values)[..., None])
        return np.inf

    def rate(self, dt: float, rate: Floats) -> None:
        """Add the velocities at the prepared positions to ``rate`` (systems, n, d) in place."""
        rate += self._rate


def _advance(equation: Equation, state: State, dt: float) -> None:
    """Advance the tokens by attention over the time ``dt``, and normalize their positions."""
    equation.prepare(state.time, state.values)
    STEPPERS["ssprk2"].step(equation, state, dt, (np.empty_like(state.values), np.empty_like(state.values)))
    to_unit_length(state.values)
