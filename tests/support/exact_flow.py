"""Trajectories of tokens as particles, integrated to any accuracy: the reference of runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from meanfield.domains.particles.velocity import ParticleVelocity
from solvers.mesh.mesh import Floats


def flow(
    law: ParticleVelocity, directions: Floats, radii: Floats, times: Floats, tolerance: float = 1e-10
) -> tuple[Floats, Floats]:
    """Return directions (times, n, d) and radii (times, n) at increasing ``times``, from θ (n, d) and r (n,) at the
    first.

    Without layer norm x = rθ. With layer norm θ may have any length, and only the direction of θ matters.

    The method is Dormand and Prince's eighth-order Runge–Kutta method; ``tolerance`` is the absolute and relative
    error of a step. Raises ArithmeticError where the step size underflows (blow-up?).
    """
    from scipy.integrate import solve_ivp

    n, d = directions.shape
    if law.sees_positions:
        start, rate = radii[:, None] * directions, _rate_of_positions(law, n, d)
    else:
        start, rate = np.column_stack([directions, radii]), _rate_of_directions(law, n, d)
    solution = solve_ivp(rate, (times[0], times[-1]), start.ravel(), "DOP853", times, rtol=tolerance, atol=tolerance)
    if not solution.success:
        raise ArithmeticError(f"particles stopped after time {solution.t[-1]:g}: {solution.message}")
    states = solution.y.T.reshape(len(times), n, -1)
    lengths = np.linalg.norm(states[..., :d], axis=-1)
    return states[..., :d] / lengths[..., None], lengths if law.sees_positions else states[..., d]


def _rate_of_positions(law: ParticleVelocity, n: int, d: int) -> Callable[[float, Floats], Floats]:
    """Return the rate ẋ = A + F − γx: the dynamics of θ and r, valid also where a token passes the origin."""

    def rate(time: float, state: Floats) -> Floats:
        positions = state.reshape(n, d)
        return np.asarray(law.output_at(positions) - law.gate * positions).ravel()

    return rate


def _rate_of_directions(law: ParticleVelocity, n: int, d: int) -> Callable[[float, Floats], Floats]:
    """Return the rate of n × (d + 1) numbers: r, and a vector along θ, whose length is constant and has no effect."""

    def rate(time: float, state: Floats) -> Floats:
        vectors, radii = state.reshape(n, d + 1)[:, :d], state.reshape(n, d + 1)[:, d]
        lengths = np.linalg.norm(vectors, axis=1)[:, None]
        turn, growth = law.rates(time, vectors / lengths, radii)
        return np.column_stack([lengths * turn, growth]).ravel()

    return rate
