"""Time integration of tokens as particles: the motion of positions x = rθ, (n, d), through depth.

    ẋ = r θ̇ + ṙ θ ,   without layer norm ẋ = A + F − γx         θ̇, ṙ, A, F, γ: meanfield/domains/particles/velocity.py

Where the layer norm keeps the radius, r = 1 after every step. The velocity may change at given times, which no step
crosses. A state continues bitwise equal from its time, values, steps and dt.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from meanfield.domains.common.problem import Check, interval_at
from meanfield.domains.particles.brownian import Brownian
from meanfield.domains.particles.motion import Motion, lengths, to_unit_length
from meanfield.domains.particles.sequence import SequenceDiffusion
from meanfield.domains.particles.velocity import ParticleVelocity, layer_map
from meanfield.model.discrete_layers import LayerIntegrator
from solvers.mesh.mesh import Floats
from solvers.terms.term import Step
from solvers.timestepping.adaptive import AdaptiveIntegrator
from solvers.timestepping.equation import Equation
from solvers.timestepping.evolution import SplitIntegrator
from solvers.timestepping.integrate import Dynamics, Integrator, fixed
from solvers.timestepping.schedules import Listed, Schedule
from solvers.timestepping.state import Exploding, State
from solvers.timestepping.steppers import STEPPERS, Stepper

VelocityOfInterval = Callable[[int], ParticleVelocity]
ToDevice = Callable[[Floats], Floats]
ONE_INTERVAL = Listed((0.0,))
MIN_RADIUS = 1e-6  # radius of a token with a layer norm below which it counts as at the origin


def dynamics_adaptive(
    velocity: VelocityOfInterval,
    intervals: Schedule = ONE_INTERVAL,
    tolerance: float = 1e-9,
    along: SequenceDiffusion | None = None,
    to_device: ToDevice = lambda values: values,
) -> Dynamics:
    """Return dynamics of tokens with adaptive steps, each with an error below ``tolerance``, by ``AdaptiveIntegrator``.

    velocity   k → velocity from time intervals.due(k) to intervals.due(k + 1)
    along      diffusion from token to token; not stiff where κn²/L² is at most of order 1

    Steps raise NonFinite, or Exploding at a blow-up.
    """

    def integrator(velocity: ParticleVelocity, time: float) -> Integrator:
        """Return the integrator of an interval of time that begins at ``time``, with the velocity of this interval."""
        motion, limit = Motion(velocity), None if velocity.norm.carries_radius else to_unit_length
        diffusion = along and along.for_tokens(velocity.norm.keeps_radius(time))

        def rate(time: float, positions: Floats) -> Floats:
            attention_rate = motion.rate_at(time, positions)
            return attention_rate if diffusion is None else attention_rate + diffusion.rate(positions)

        return AdaptiveIntegrator(rate, tolerance, limit, to_device)

    return _dynamics_by_interval(integrator, velocity, intervals)


def origin_check(velocity: VelocityOfInterval, intervals: Schedule = ONE_INTERVAL) -> Check:
    """Return a check that no token has reached the origin, where the angular velocity of its direction diverges as
    1/r.
    """

    def check(state: State) -> None:
        """Raise Exploding if a token of a state has reached the origin."""
        now, _ = _active_velocity(velocity(interval_at(intervals, state.time)), state.time)
        if not now.norm.carries_radius or now.sees_positions:
            return
        if lengths(state.values).min() < MIN_RADIUS:
            raise Exploding(f"{state.time_and_step}: a token has reached the origin and has no direction")

    return check


def dynamics_explicit(
    velocity: VelocityOfInterval,
    method: str,
    intervals: Schedule = ONE_INTERVAL,
    noise: float = 0.0,
    seed: int = 0,
    along: SequenceDiffusion | None = None,
    cfl: float = 0.5,
    to_device: ToDevice = lambda values: values,
) -> Dynamics:
    """Return dynamics of tokens by an explicit method of ``STEPPERS``, with noise or without.

    With ``noise`` κ, a step is two half steps and Brownian motion between them.

    velocity   k → velocity from time intervals.due(k) to intervals.due(k + 1)
    seed       of the noise, which depends on the seed and the number of the step
    along      diffusion from token to token, half a step before and half a step after

    With noise, distributions are of second order in the step: at cfl ½ and β = 0 the error of the stationary mean is
    0.2 %. At cfl ½ the error of ssprk3 is at most (½)³/24 = 0.5 % of the fastest rate; a good cfl where growth matters
    is 0.1. Steps raise NonFinite.
    """

    def integrator(velocity: ParticleVelocity, time: float) -> Integrator:
        """Return the integrator of an interval of time that begins at ``time``, with the velocity of this interval."""
        brownian = Brownian(noise, seed, curved=not velocity.sees_positions) if noise else None
        stepper = _TokenStepper(STEPPERS[method].weights, STEPPERS[method].order, velocity, brownian)
        diffusion = along and along.for_tokens(velocity.norm.keeps_radius(time))
        stiff = [diffusion] if diffusion else []
        equation = Equation(None, [Motion(velocity, noise), *stiff])
        return SplitIntegrator(equation, stepper, cfl, to_device=to_device)

    return _dynamics_by_interval(integrator, velocity, intervals)


def dynamics_layers(
    velocity: VelocityOfInterval,
    step: float,
    residual: bool = True,
    along: SequenceDiffusion | None = None,
    to_device: ToDevice = lambda values: values,
) -> Dynamics:
    """Return dynamics of tokens through one discrete layer after another, by :func:`layer_map`.

    Layer k uses ``velocity(k)``. ``along`` is the diffusion from token to token after each layer.
    """
    return fixed(LayerIntegrator(TokenLayers(velocity, step, residual, along), to_device))


@dataclass(frozen=True)
class _TokenStepper(Stepper):
    """Explicit stepper of tokens, with Brownian motion between two half steps (Strang 1968).

    Where layer norm keeps the radius, tokens are normalized after the step. The length |x| does not change the
    direction within a step, since ẋ is proportional to |x|. In stationary means at β = 0, noise between half steps has
    a quarter of the error of half steps of noise around a step.
    """

    velocity: ParticleVelocity
    brownian: Brownian | None

    def step(self, equation: Equation, state: State, dt: float, work: tuple[Floats, ...]) -> Step:
        if self.brownian is None:
            stable = super().step(equation, state, dt, work)
        else:
            stable = self._step_with_noise(self.brownian, equation, state, dt, work)
        if not self.velocity.norm.carries_radius:
            to_unit_length(state.values)
        return stable

    def _step_with_noise(
        self, brownian: Brownian, equation: Equation, state: State, dt: float, work: tuple[Floats, ...]
    ) -> Step:
        """Advance tokens by half a step, Brownian motion and half a step, and return the stable time step."""
        first = super().step(equation, state, dt / 2, work)
        before = work[0].copy()
        brownian.step(dt, state.steps, state.values)
        middle = replace(state, time=state.time + dt / 2)
        noisy = equation.prepare(middle.time, state.values)
        second = super().step(equation, middle, dt / 2, work)
        work[0][...] = before  # the values that are restored after a failed step
        return np.minimum(np.minimum(first, noisy), second)


class TokenLayers:
    """Discrete layers as maps of tokens, for `LayerIntegrator`: ``layer(time, positions)`` → (n, d).

    After each layer tokens diffuse along the sequence for the time Δt = ``step``.
    """

    def __init__(
        self, velocity: VelocityOfInterval, step: float, residual: bool = True, along: SequenceDiffusion | None = None
    ) -> None:
        self.duration = step if residual else 1.0
        self._velocity, self._step, self._residual, self._along = velocity, step, residual, along

    def __call__(self, time: float, positions: Floats) -> Floats:
        velocity = self._velocity(round(time / self.duration))
        moved = layer_map(velocity, positions, self._step, residual=self._residual, time=time)
        if self._along is not None:
            self._along.for_tokens(velocity.norm.keeps_radius(time)).step(self._step, moved)
        return moved


def _dynamics_by_interval(
    integrator: Callable[[ParticleVelocity, float], Integrator], velocity: VelocityOfInterval, intervals: Schedule
) -> Dynamics:
    """Return dynamics of tokens with one integrator for each interval of time.

    Within an interval the velocity field is the same. The switch of the layer norm ``mix`` also begins an interval.
    """

    def dynamics(state: State, until: float) -> tuple[Integrator, float]:
        k = interval_at(intervals, state.time)
        now, switch = _active_velocity(velocity(k), state.time)
        return integrator(now, state.time), min(intervals.due(k + 1), switch)

    return dynamics


def _active_velocity(velocity: ParticleVelocity, time: float) -> tuple[ParticleVelocity, float]:
    """Return the velocity of tokens from ``time`` on, and the time of the next switch of its layer norm.

    For the layer norm ``mix``, the returned velocity has the scheme in use at ``time``. Without a later switch the time
    of the switch is infinite.
    """
    if velocity.norm.scheme.parameter != "switch":
        return velocity, np.inf
    switched = time >= velocity.norm.switch
    norm = replace(velocity.norm, switch=0.0 if switched else np.inf)  # one scheme up to the last stage of a step
    return replace(velocity, norm=norm), np.inf if switched else velocity.norm.switch
