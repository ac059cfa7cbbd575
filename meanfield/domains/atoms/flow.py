"""Time integration of atoms to any time: slow drift over e^{cβ}, then mergers within O(1).

    dx/ds = (u + t − t₀) ẋ / (1 + g) ,   dℓ/ds = 1/(1 + g) ,   t = t₀ + u(e^ℓ − 1)
    g = (1 + β)(u + t − t₀)|ẋ|

by an explicit method of order 8 where atoms only attract each other, else by Radau's method of order 5: the attraction
to a fixed point at a rate of order 1 is stiff in times of e^{cβ}. The transformed time s measures both the e-folds of
the time since t₀ and the path length of the atoms: intervals without motion are short in s, however long in t, and so
is the approach to a merger, where speeds grow by e^β per radian. Steps are limited by the growth of speeds, since
Radau's method would damp a growing motion far below its tolerance. u is the time in which the fastest atom moves by a
radian. Two atoms that touch merge, and t₀ is set to that time. The last part up to a given time has g = 0, so that the
integration ends there exactly. Motion that takes less time than the rounding of t leaves t unchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.domains.atoms.velocity import Atoms, AtomVelocity
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats

MERGE_ANGLE = (
    1e-4  # radians: the lost energy is β times its square of 2βe^{−β}E, and the relative error of later times is less
)
TOLERANCE = (
    1e-9  # error of a step: far below MERGE_ANGLE; errors of merging times, about β times as sensitive, are below 1e-7
)
MAX_GROWTH = 0.25  # e-folds of growth in a step: the error of each is below 1e-7 for any tolerance
MIN_STEP = 1e-9  # of s: smaller steps are affected by the rounding of s
TOUCH_RTOL = 1e-6  # relative to the distance: pairs that touch at the same time to rounding merge together
MAX_LOG = 1e250  # largest (t − t₀)/u, far from overflow
MAX_NUMBERS = 1_000_000  # in one evaluation of many states
MAX_STEP = 1e3  # in s
Distances = float | Floats  # chords, one for all pairs or one for each pair (k, k)
Touch = tuple[float, int, int]
DIFFERENCE_STEP = 1e-2  # relative to the angle 1/(1 + β): finite difference for the growth rate


@dataclass(frozen=True, eq=False)
class AtomMerger:
    """Merger of two atoms of ``masses`` into one at ``position`` (d,), when they touched at ``time``.

    ``atoms`` are the numbers i < j of the two among the atoms before the merger; the merged atom keeps the number i.
    """

    time: float
    masses: tuple[float, float]
    position: Floats
    atoms: tuple[int, int]


def advance(velocity: AtomVelocity, atoms: Atoms, time: float, until: float) -> tuple[Atoms, tuple[AtomMerger, ...]]:
    """Return the atoms (point masses in place of clusters) at ``until``, and the mergers since ``time``, in order.

    Two atoms within MERGE_ANGLE merge at their center of mass, projected to the sphere. The result depends on the
    arguments alone. Raises ArithmeticError for a step size underflow.
    """
    atoms, mergers = merge(atoms, [(time, i, j) for i, j in touching_pairs(atoms.positions)])
    while time < until:
        atoms, time, merged = until_merger(velocity, atoms, time, until)
        mergers += merged
    return atoms, tuple(mergers)


def until_merger(
    velocity: AtomVelocity, atoms: Atoms, time: float, until: float
) -> tuple[Atoms, float, tuple[AtomMerger, ...]]:
    """Advance atoms from ``time`` up to their first merger, or to ``until``.

    Returns the atoms, the time reached, and the mergers at that time, none at ``until``. Raises ArithmeticError as
    :func:`advance`.
    """
    atoms, time, touches = until_touch(velocity, atoms, time, until)
    atoms, merged = merge(atoms, touches)
    return atoms, time, tuple(merged)


def until_touch(
    velocity: AtomVelocity, atoms: Atoms, time: float, until: float, distances: Distances = MERGE_ANGLE
) -> tuple[Atoms, float, list[Touch]]:
    """Advance atoms from ``time`` until two of them are nearer than ``distances``, or to ``until``.

    ``distances`` are chords, one for all pairs, or one for each pair (k, k). Returns the atoms, the time reached, and
    (time, i, j) for the pairs i < j that touch, none at ``until``. Raises ArithmeticError as :func:`advance`.
    """
    while time < until:
        atoms, time, touching = _advance_to_event(velocity, atoms, time, until, distances)
        if touching:
            return atoms, time, touching
    return atoms, until, []


def _advance_to_event(
    velocity: AtomVelocity,
    atoms: Atoms,
    time: float,
    until: float,
    distances: Distances,
    uniform_time: bool = False,
) -> tuple[Atoms, float, list[Touch]]:
    """Return atoms, their time and the touching pairs at the next event: the first touch of two atoms, or ``until``.

    Atoms touch when they are nearer than ``distances``. A step without motion, or too short for the transformed time s,
    is also an event, without pairs. ``uniform_time`` selects a transformation that meets ``until`` exactly.
    """
    time_map = _time_map(velocity, atoms, time, until, uniform_time)
    if time_map is None:
        return atoms, until, []
    solver = time_map.solver(atoms)
    while solver.status == "running":
        before = solver.y
        solver.max_step = time_map.longest(before)
        message = solver.step()
        if solver.status == "failed":
            raise ArithmeticError(f"atoms stopped at time {time_map.time(before[-1]):g}: {message}")
        if solver.y[-1] > time_map.end and not time_map.uniform_time:
            last = time_map.atoms(before), time_map.time(before[-1])
            return _advance_to_event(velocity, *last, until, distances, uniform_time=True)
        if touching_pairs(time_map.atoms(solver.y).positions, distances):
            return _locate_first_touch(time_map, solver, distances)
        if solver.step_size < MIN_STEP * solver.t or not np.any(solver.f[:-1]):
            break
    now = until if solver.status == "finished" else time_map.time(solver.y[-1])
    return time_map.atoms(solver.y), now, []


@dataclass(frozen=True, eq=False)
class _TimeMap:
    """Equations of motion of k atoms in a transformed time s, in which both slow drift and mergers take few steps.

    A state (k·d + 1) holds a vector along each atom, whose length has no effect, and ℓ. The elapsed time is
    (e^ℓ − 1)·``unit``.

    uniform_time   whether steps in s do not depend on the speed of the atoms
    no_motion      whether no atom moves by more than rounding before ``until``
    """

    velocity: AtomVelocity
    masses: Floats
    start: float
    until: float
    unit: float
    uniform_time: bool
    no_motion: bool

    @property
    def inverse_angle(self) -> float:
        """Return 1 + |β|, the inverse of the angle over which velocities of atoms change; 0 if time s is uniform.

        The transformation of time has a factor 1/(1 + g), where g is this number times the largest (u + t − t₀)|ẋ| of
        all atoms; u is the unit of time, and t₀ the start.
        """
        return 0.0 if self.uniform_time else 1 + abs(self.velocity.particles.beta)

    def longest(self, state: Floats) -> float:
        """Return the step in the transformed time s in which the speeds of atoms grow by MAX_GROWTH e-folds."""
        atoms, time = self.atoms(state), self.time(state[-1])
        passed = self.unit * math.exp(min(max(state[-1], 0.0), self.end))
        speed = np.linalg.norm(self.velocity.velocities(time, atoms.positions, atoms.masses))
        growth_rate = _growth_rate(self.velocity, time, atoms)
        return (
            MAX_GROWTH
            * (1 + passed * self.inverse_angle * float(speed))
            / max(passed * growth_rate, MAX_GROWTH / MAX_STEP)
        )

    @property
    def end(self) -> float:
        """Return the logarithmic time ℓ = log(1 + (t − t₀)/u) at t = ``until``, with the start t₀ and the unit u."""
        return math.log1p((self.until - self.start) / self.unit)

    def time(self, log: float) -> float:
        """Return the time t of a logarithmic time ℓ, at most the end time."""
        return min(self.start + self.unit * math.expm1(log), self.until)

    def atoms(self, state: Floats) -> Atoms:
        """Return the atoms at the positions in a state vector of the ODE solver."""
        positions = state[:-1].reshape(len(self.masses), -1)
        return Atoms(unit_vectors(positions), self.masses)

    def solver(self, atoms: Atoms) -> Any:
        """Return the ODE method for the equations in the transformed time, with ``atoms`` at ``start``."""
        from scipy.integrate import DOP853, Radau

        method = DOP853 if self.velocity.only_attracts else Radau
        start, end = np.append(atoms.positions, 0.0), self.end if self.uniform_time else np.inf
        first = self.end if self.no_motion and self.uniform_time else None
        return method(self.rate, 0.0, start, end, MAX_STEP, TOLERANCE, TOLERANCE, vectorized=True, first_step=first)

    def rate(self, s: float, states: Floats) -> Floats:
        """Return the derivatives by the transformed time s of ``states`` (k·d + 1, states) of k atoms."""
        at_once = max(1, MAX_NUMBERS // (len(self.masses) * len(states)))
        parts = [self._rate(states[:, c : c + at_once]) for c in range(0, states.shape[1], at_once)]
        return np.concatenate(parts, axis=1)

    def _rate(self, states: Floats) -> Floats:
        """Return the rates of change of state vectors, one in each column, with respect to the transformed time s."""
        vectors = states[:-1].T.reshape(states.shape[1], len(self.masses), -1)
        lengths = np.linalg.norm(vectors, axis=2, keepdims=True)
        passed = self.unit * np.exp(np.clip(states[-1], 0.0, self.end + 1))  # trial states may be arbitrary
        times = self.start - self.unit + passed
        velocities = self.velocity.velocities(times[:, None], vectors / lengths, self.masses)
        slowing = 1 + passed * self.inverse_angle * np.sqrt((velocities**2).sum(axis=(1, 2)))
        displacements = (lengths * velocities).reshape(states.shape[1], -1).T * passed
        return np.asarray(np.vstack([displacements, np.ones(states.shape[1])]) / slowing)


def _time_map(velocity: AtomVelocity, atoms: Atoms, time: float, until: float, uniform_time: bool) -> _TimeMap | None:
    """Return the transformation of time from ``time`` on for the motion of atoms; None where no atom moves."""
    velocities = velocity.velocities(time, atoms.positions, atoms.masses)
    speed = float(np.linalg.norm(velocities, axis=1).max())
    if speed == 0.0:
        return None
    span = until - time
    unit = max(1 / speed, span / MAX_LOG) if speed * span > 1 else span
    changes = span * (speed * (1 + abs(velocity.particles.beta)) + _growth_rate(velocity, time, atoms))
    no_motion = bool(speed * span < np.finfo(float).eps)
    uniform_time = uniform_time or changes < MAX_GROWTH
    return _TimeMap(velocity, atoms.masses, time, until, min(unit, velocity.period(time)), uniform_time, no_motion)


def _growth_rate(velocity: AtomVelocity, time: float, atoms: Atoms) -> float:
    """Return the rate at which the speeds of atoms grow: the largest e_i · ∂ẋ_i, or 0 where all are negative.

    ∂ẋ_i is the derivative of the velocity ẋ_i when all atoms move along their directions e_i = ẋ_i/|ẋ_i|.
    """
    inverse_angle = 1 + abs(velocity.particles.beta)
    velocities = velocity.velocities(time, atoms.positions, atoms.masses)
    speeds = np.linalg.norm(velocities, axis=-1)
    along = velocities / np.where(speeds > 0, speeds, 1.0)[..., None]
    moved = velocity.velocities(time, atoms.positions + DIFFERENCE_STEP / inverse_angle * along, atoms.masses)
    return max(0.0, float(((moved - velocities) * along).sum(axis=-1).max() * (inverse_angle / DIFFERENCE_STEP)))


def touching_pairs(positions: Floats, distances: Distances = MERGE_ANGLE) -> list[tuple[int, int]]:
    """Return the pairs i < j of atoms at ``positions`` (k, d) nearer than ``distances``, a number or (k, k)."""
    near = np.linalg.norm(positions[:, None] - positions, axis=2) < distances
    return [(int(i), int(j)) for i, j in np.argwhere(near) if i < j]


def _locate_first_touch(time_map: _TimeMap, solver: Any, distances: Distances) -> tuple[Atoms, float, list[Touch]]:
    """Return the atoms and the time at the first touch within the last step of the solver, and the pairs that touch.

    The step may be long compared with the time since the last merger, so its end would be too late.
    """
    from scipy.optimize import brentq

    within, (i, j) = solver.dense_output(), np.transpose(touching_pairs(time_map.atoms(solver.y).positions, distances))
    limits = np.broadcast_to(distances, (time_map.masses.size,) * 2)[i, j]

    def distance(s: float) -> float:
        positions = time_map.atoms(within(s)).positions
        return float((np.linalg.norm(positions[i] - positions[j], axis=1) - limits).min())

    first = solver.t_old
    if distance(first) > 0:  # else the pair touched from the start
        first = brentq(distance, first, solver.t, xtol=1e-15, rtol=1e-14) if distance(solver.t) < 0 else solver.t
    state = within(first)
    atoms, time = time_map.atoms(state), time_map.time(state[-1])
    return (
        atoms,
        time,
        [(time, *pair) for pair in touching_pairs(atoms.positions, np.multiply(distances, 1 + TOUCH_RTOL))],
    )


def merge(atoms: Atoms, touches: list[Touch]) -> tuple[Atoms, list[AtomMerger]]:
    """Merge the pairs of atoms that touch, keeping the mass and the direction of the first moment.

    Returns the remaining atoms and the mergers. ``touches`` are (time, i, j).
    """
    positions, masses, mergers = atoms.positions.copy(), atoms.masses.copy(), []
    slot = list(range(atoms.count))
    for time, i, j in sorted(touches):
        a, b = sorted((slot[i], slot[j]))
        if a == b:  # merged already through a third atom
            continue
        total = masses[a] * positions[a] + masses[b] * positions[b]
        positions[a] = total / np.linalg.norm(total)
        mergers.append(AtomMerger(time, (float(masses[a]), float(masses[b])), positions[a].copy(), (a, b)))
        masses[a] += masses[b]
        slot = [a if p == b else p for p in slot]
    remaining = sorted(set(slot))
    return Atoms(positions[remaining], masses[remaining]) if mergers else atoms, mergers
