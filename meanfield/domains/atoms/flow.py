"""Time integration of atoms to any time: slow drift over e^{cβ}, then mergers within O(1).

    dx/ds = (u + t − t₀) ẋ / (1 + g) ,   dℓ/ds = 1/(1 + g) ,   t = t₀ + u(e^ℓ − 1)
    g = (1 + β)(u + t − t₀)|ẋ|

by Radau's stiff method of order 5. The clock s counts both the e-folds of the time since t₀ and the way of the atoms:
a rest is short, to whatever time, and so is the run into a merger, whose speed grows by e^β per radian. No step is
long for what grows from far below the tolerance, which the method would damp. u is the time in which the fastest atom
moves by a radian. Two atoms that touch become one, and t₀ moves on. The rest of the way to a given time has g = 0, so
that it ends there. What is faster than the rounding of t leaves t where it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from meanfield.domains.atoms.velocity import Atoms, AtomVelocity
from solvers.mesh.mesh import Floats

TOUCH = 1e-4  # radians: what is lost then is β times its square of 2βe^{−β}E, and less of the later times
TOLERANCE = 1e-9  # error of a step: far below TOUCH, and merging times, about β times as sensitive, are right to 1e-7
LONGEST = 0.25  # e-folds of growth in a step: each is right to 1e-7, whatever the tolerance
FINEST = 1e-9  # of s: smaller steps would feel the rounding of s
TOUCH_RTOL = 1e-6  # of TOUCH: pairs that touch at once but for rounding merge at once
MAX_LOG = 1e250  # largest (t − t₀)/u, far from overflow
MAX_NUMBERS = 1_000_000  # in one evaluation of many states
MAX_STEP = 1e3  # in s
NEAR = 1e-2  # of the angle 1/(1 + β): the difference by which growth is found


@dataclass(frozen=True, eq=False)
class Merger:
    """Two atoms of ``masses`` that became one at ``position`` (d,) when they touched, at ``time``.

    ``atoms`` are their numbers i < j among those of before; of these i goes on.
    """

    time: float
    masses: tuple[float, float]
    position: Floats
    atoms: tuple[int, int]


def advance(
    law: AtomVelocity, atoms: Atoms, time: float, until: float, *, tolerance: float = TOLERANCE, touch: float = TOUCH
) -> tuple[Atoms, tuple[Merger, ...]]:
    """Atoms at ``until`` from those at ``time``, and the mergers between, in order.

    tolerance   error of a step, absolute, in radians
    touch       angle (radians) at which two atoms become one: at the mean of both by their masses, on the sphere

    The result depends on the arguments alone. Raises ValueError for an infinite ``until``, ArithmeticError where no
    step is small enough.
    """
    if not math.isfinite(until):
        raise ValueError(f"until = {until}: expected a finite time")
    atoms, mergers = _merge(atoms, [(time, i, j) for i, j in _touching(atoms.positions, touch)])
    while time < until:
        atoms, time, met = _stretch(law, atoms, time, until, tolerance, touch)
        atoms, merged = _merge(atoms, met)
        mergers += merged
    return atoms, tuple(mergers)


def until_merger(
    law: AtomVelocity, atoms: Atoms, time: float, until: float, *, tolerance: float = TOLERANCE, touch: float = TOUCH
) -> tuple[Atoms, float, tuple[Merger, ...]]:
    """As :func:`advance`, but only to the first merger: atoms, the time there, and who merged."""
    while time < until:
        atoms, time, met = _stretch(law, atoms, time, until, tolerance, touch)
        if met:
            atoms, merged = _merge(atoms, met)
            return atoms, time, tuple(merged)
    return atoms, until, ()


Meeting = tuple[float, int, int]


def _stretch(
    law: AtomVelocity, atoms: Atoms, time: float, until: float, tolerance: float, touch: float, straight: bool = False
) -> tuple[Atoms, float, list[Meeting]]:
    """Atoms and time at ``until``, or where two touch, or after the step in which all came to rest or s has to start
    anew; and who met.
    """
    clock = _clock(law, atoms, time, until, straight)
    if clock is None:
        return atoms, until, []
    solver = clock.solver(atoms, tolerance)
    while solver.status == "running":
        before = solver.y
        solver.max_step = clock.longest(before)
        message = solver.step()
        if solver.status == "failed":
            raise ArithmeticError(f"atoms stopped at time {clock.time(before[-1]):g}: {message}")
        if solver.y[-1] > clock.end and not clock.straight:
            return _stretch(law, clock.atoms(before), clock.time(before[-1]), until, tolerance, touch, straight=True)
        met = _touching(clock.atoms(solver.y).positions, touch)
        if met:
            return _at_first_meeting(clock, solver, met, touch)
        if solver.step_size < FINEST * solver.t or not np.any(solver.f[:-1]):
            break
    now = until if solver.status == "finished" else clock.time(solver.y[-1])
    return clock.atoms(solver.y), now, []


@dataclass(frozen=True, eq=False)
class _Clock:
    """States (k·d + 1) of vectors along the atoms, whose lengths are without effect and stay, and ℓ; and their rates.

    ``straight`` is for g = 0. ``quiet``: until ``until`` no atom moves by more than rounding.
    """

    law: AtomVelocity
    masses: Floats
    start: float
    until: float
    unit: float
    straight: bool
    quiet: bool

    @property
    def per_way(self) -> float:
        """g/((u + t − t₀)|ẋ|)."""
        return 0.0 if self.straight else 1 + abs(self.law.particles.beta)

    def longest(self, state: Floats) -> float:
        """The step in s in which speeds grow by LONGEST e-folds."""
        atoms, time = self.atoms(state), self.time(state[-1])
        passed = self.unit * math.exp(min(max(state[-1], 0.0), self.end))
        speed = np.linalg.norm(self.law.velocities(time, atoms.positions, atoms.masses))
        growth = _growth(self.law, time, atoms)
        return LONGEST * (1 + passed * self.per_way * float(speed)) / max(passed * growth, LONGEST / MAX_STEP)

    @property
    def end(self) -> float:
        """ℓ at ``until``."""
        return math.log1p((self.until - self.start) / self.unit)

    def time(self, log: float) -> float:
        return min(self.start + self.unit * math.expm1(log), self.until)

    def atoms(self, state: Floats) -> Atoms:
        positions = state[:-1].reshape(len(self.masses), -1)
        return Atoms(positions / np.linalg.norm(positions, axis=1, keepdims=True), self.masses)

    def solver(self, atoms: Atoms, tolerance: float) -> Any:
        """Radau's method from ``atoms`` at ``start``."""
        from scipy.integrate import Radau

        start, end = np.append(atoms.positions, 0.0), self.end if self.straight else np.inf
        first = self.end if self.quiet and self.straight else None
        return Radau(self.rate, 0.0, start, end, MAX_STEP, tolerance, tolerance, None, None, True, first)

    def rate(self, s: float, states: Floats) -> Floats:
        """dx/ds and dℓ/ds of ``states`` (k·d + 1, states)."""
        at_once = max(1, MAX_NUMBERS // (len(self.masses) * len(states)))
        parts = [self._rate(states[:, c : c + at_once]) for c in range(0, states.shape[1], at_once)]
        return np.concatenate(parts, axis=1)

    def _rate(self, states: Floats) -> Floats:
        vectors = states[:-1].T.reshape(states.shape[1], len(self.masses), -1)
        lengths = np.linalg.norm(vectors, axis=2, keepdims=True)
        passed = self.unit * np.exp(np.clip(states[-1], 0.0, self.end + 1))  # trial states may be anywhere
        times = self.start - self.unit + passed
        velocities = self.law.velocities(times[:, None], vectors / lengths, self.masses)
        options = 1 + passed * self.per_way * np.sqrt((velocities**2).sum(axis=(1, 2)))
        ways = (lengths * velocities).reshape(states.shape[1], -1).T * passed
        matrix: Floats = np.vstack([ways, np.ones(states.shape[1])]) / options
        return matrix


def _clock(law: AtomVelocity, atoms: Atoms, time: float, until: float, straight: bool) -> _Clock | None:
    """The clock of a part of the way, None where all rest."""
    velocities = law.velocities(time, atoms.positions, atoms.masses)
    speed = float(np.linalg.norm(velocities, axis=1).max())
    if speed == 0.0:
        return None
    span = until - time
    unit = max(1 / speed, span / MAX_LOG) if speed * span > 1 else span
    changes = span * (speed * (1 + abs(law.particles.beta)) + _growth(law, time, atoms))
    quiet = bool(speed * span < np.finfo(float).eps)
    return _Clock(law, atoms.masses, time, until, min(unit, law.period(time)), straight or changes < LONGEST, quiet)


def _growth(law: AtomVelocity, time: float, atoms: Atoms) -> float:
    """The largest e_i · ∂ẋ_i > 0, all atoms moved along e_i = ẋ_i/|ẋ_i|: the rate at which speeds grow."""
    per_way = 1 + abs(law.particles.beta)
    velocities = law.velocities(time, atoms.positions, atoms.masses)
    speeds = np.linalg.norm(velocities, axis=-1)
    along = velocities / np.where(speeds > 0, speeds, 1.0)[..., None]
    moved = law.velocities(time, atoms.positions + NEAR / per_way * along, atoms.masses)
    return max(0.0, float(((moved - velocities) * along).sum(axis=-1).max() * (per_way / NEAR)))


def _touching(positions: Floats, touch: float) -> list[tuple[int, int]]:
    """Pairs i < j closer than ``touch``."""
    distances = np.linalg.norm(positions[:, None] - positions, axis=2)
    return [(int(i), int(j)) for i, j in np.argwhere(distances < touch) if i < j]


def _at_first_meeting(
    clock: _Clock, solver: Any, met: list[tuple[int, int]], touch: float
) -> tuple[Atoms, float, list[Meeting]]:
    """Atoms where the first of those that ``met`` within the solver's last step touch, the time there, and who does.

    The step may be long beside the time since the last merger, so its end would be too late.
    """
    from scipy.optimize import brentq

    within, pairs = solver.dense_output(), np.array(met)

    def distance(s: float) -> float:
        positions = clock.atoms(within(s)).positions
        return float(np.linalg.norm(positions[pairs[:, 0]] - positions[pairs[:, 1]], axis=1).min()) - touch

    first = solver.t_old
    if distance(first) > 0:  # else they touched from the start
        first = brentq(distance, first, solver.t, xtol=1e-15, rtol=1e-14) if distance(solver.t) < 0 else solver.t
    state = within(first)
    atoms, time = clock.atoms(state), clock.time(state[-1])
    return atoms, time, [(time, i, j) for i, j in _touching(atoms.positions, touch * (1 + TOUCH_RTOL))]


def _merge(atoms: Atoms, meetings: list[Meeting]) -> tuple[Atoms, list[Merger]]:
    """Make one atom of those that met; the mass and the direction of the first moment stay."""
    positions, masses, mergers = atoms.positions.copy(), atoms.masses.copy(), []
    place = list(range(atoms.count))
    for time, i, j in sorted(meetings):
        a, b = sorted((place[i], place[j]))
        if a == b:  # through a third
            continue
        total = masses[a] * positions[a] + masses[b] * positions[b]
        positions[a] = total / np.linalg.norm(total)
        mergers.append(Merger(time, (float(masses[a]), float(masses[b])), positions[a].copy(), (a, b)))
        masses[a] += masses[b]
        place = [a if p == b else p for p in place]
    kept = sorted(set(place))
    return Atoms(positions[kept], masses[kept]) if mergers else atoms, mergers
