"""Many independent systems of one size in one array, each with its own time, its own steps and its own error.

The method, the control of its steps and the interpolation are those of `AdaptiveIntegrator`, system by
system: no system sees another's error, and results are those of one run each, but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from ...mesh.mesh import Floats
from ..schedules import TIME_RTOL
from .dormand_prince import GROW, MIN_SPACINGS, ORDER, SAFETY, SHRINK, TARGET_SPACINGS, dense_tableau, tableau

Indices = NDArray[np.intp]
Rates = Callable[[Indices, Floats, Floats], Floats]


class Systems:
    """Systems u̇ = f(t, u) on their way from time 0, each to its own ``until``.

    values      (systems, ...) where they start
    rates       (which systems (k,), times (k,), values (k, ...)) → rates of change (k, ...)
    until       (systems,) > 0
    tolerance   (systems,) error of a step, absolute and relative, as in `AdaptiveIntegrator`
    limit       applied to values (k, ...) after each step, in place
    dues        (systems, times) increasing times at which a system is looked at, infinite for none

    running     numbers of the systems that are still on their way
    lost        numbers of the systems that no step can continue with: a rate is not finite, or steps shrink to nothing
    """

    def __init__(
        self, values: Floats, rates: Rates, until: Floats, tolerance: Floats, limit: Callable[[Floats], None],
        dues: Floats,
    ) -> None:  # fmt: skip
        count = len(values)
        self._rates_of, self._limit, self._dues = rates, limit, dues
        self._until, self._tolerance = until, tolerance
        self.running = np.arange(count)
        self._time, self._values = np.zeros(count), values.copy()
        self._dt, self._size, self._max_growth = np.full(count, np.nan), np.full(count, np.nan), np.full(count, GROW)
        self._first = np.full(count, np.nan)  # the size that a step began with; NaN where the rates gave it
        self._begins = np.ones(count, dtype=bool)
        self._seen = np.zeros(count, dtype=np.intp)
        self._stages = np.empty((16, count, values[0].size))
        self.lost = set[int]()

    def start(self) -> Iterator[tuple[int, float, Floats]]:
        """The looks that are due at time 0: system, time, values."""
        for k in range(len(self.running)):
            if self._dues[k, 0] == 0.0:
                self._seen[k] = 1
                yield k, 0.0, self._values[k]

    def step(self) -> Iterator[tuple[int, float, Floats]]:
        """Try one step of each; yields the looks that were due within those that succeeded, in order of time."""
        running, before, shape = self.running, self._values, self._values.shape
        rates = self._stages[:, : len(running)]
        rates[0] = self._rates_of(running, self._time, before).reshape(len(running), -1)
        self._begin(rates[0].reshape(shape))
        reached = np.minimum(self._time + self._size, self._until[running])
        taken = reached - self._time
        values, error = self._attempt(rates, taken)
        self._size = taken * _change(error, self._max_growth)
        good = error < 1
        until = self._until[running]
        time = np.where(until - reached <= TARGET_SPACINGS * np.spacing(until), until, reached)
        yield from self._look(good, time, taken, values, rates)
        cut = np.isfinite(self._first) & (taken > 0.999 * self._first)
        self._dt[good] = np.where(cut, np.maximum(self._size, self._dt), self._size)[good]
        self._time[good], self._values[good] = time[good], values[good]
        self._max_growth = np.where(good, GROW, 1.0)  # after a step that was refused none grows
        self._begins = good
        stuck = ~good & ((self._size < MIN_SPACINGS * np.spacing(self._time)) | ~np.isfinite(rates[0]).all(axis=1))
        self._leave(stuck, good & (time >= until))

    def _begin(self, rate: Floats) -> None:
        """The size of the step, for systems that begin one."""
        left = self._until[self.running] - self._time
        known = self._dt > 0
        first = np.where(known, left / np.maximum(np.ceil(left / np.where(known, self._dt, left)), 1.0), np.nan)
        size = first.copy()
        if not known.all():
            new = np.flatnonzero(~known)
            size[new] = self._first_size(new, rate[new], left[new])
        min_dt = MIN_SPACINGS * np.spacing(self._time)
        size = np.where(size > min_dt, size, min_dt)
        self._first = np.where(self._begins, first, self._first)
        self._size = np.where(self._begins, size, self._size)

    def _first_size(self, new: Indices, rate: Floats, longest: Floats) -> Floats:
        """As `AdaptiveIntegrator` has it, for systems at indices (k,) with rates (k, ...)."""
        values, running = self._values[new], self.running[new]
        allowed = _rows(self._tolerance[running], values) * (1.0 + np.abs(values))
        size, speed = _norms(values / allowed), _norms(rate / allowed)
        slow = (size < 1e-5) | (speed < 1e-5)
        trial = np.minimum(np.where(slow, 1e-6, 0.01 * size / np.where(slow, 1.0, speed)), longest)
        ahead = self._rates_of(running, self._time[new] + trial, values + _rows(trial, values) * rate)
        fastest = np.maximum(speed, _norms((ahead - rate) / allowed) / trial)
        rest = fastest <= 1e-15
        proposed = np.where(rest, np.maximum(1e-6, 1e-3 * trial), (0.01 / np.where(rest, 1.0, fastest)) ** (1 / ORDER))
        return np.asarray(np.minimum(np.minimum(100 * trial, proposed), longest))

    def _attempt(self, rates: Floats, dt: Floats) -> tuple[Floats, Floats]:
        """Values (k, ...) after steps dt (k,), and their errors (k,) over what is allowed: NaN where not finite."""
        stages, weights, errors, nodes = tableau()
        shape, before = self._values.shape, self._values.reshape(len(dt), -1)
        for k in range(1, len(weights)):
            stage = before + dt[:, None] * _combined(stages[k, :k], rates)
            rates[k] = self._rates_of(self.running, self._time + nodes[k] * dt, stage.reshape(shape)).reshape(
                stage.shape
            )
        values = before + dt[:, None] * _combined(weights, rates)
        allowed = self._tolerance[self.running, None] * (1.0 + np.maximum(np.abs(before), np.abs(values)))
        fifth, third = (((_combined(row, rates) / allowed) ** 2).sum(axis=1) for row in errors)
        both = np.maximum(fifth + 0.01 * third, np.finfo(float).tiny)
        error = np.abs(dt) * fifth / np.sqrt(both * before.shape[1])
        return values.reshape(shape), np.where(np.isfinite(values).all(axis=1), error, np.nan)

    def _look(
        self, good: NDArray[np.bool_], time: Floats, taken: Floats, after: Floats, rates: Floats
    ) -> Iterator[tuple[int, float, Floats]]:
        """What is due within the steps or at their ends; values after the steps are put back to where they belong."""
        due = self._dues[self.running, self._seen]
        within = np.flatnonzero(good & (due < time - TIME_RTOL * np.abs(due)))
        if len(within):
            yield from self._between(within, time, taken, after, rates)
        self._limit_some(good, after)
        at_end = good & (self._dues[self.running, self._seen] <= time * (1 + TIME_RTOL))
        for k in np.flatnonzero(at_end):
            self._seen[k] += 1
            yield int(self.running[k]), float(time[k]), after[k]

    def _limit_some(self, good: NDArray[np.bool_], after: Floats) -> None:
        some = after[good]
        self._limit(some)
        after[good] = some

    def _between(
        self, indices: Indices, time: Floats, taken: Floats, after: Floats, rates: Floats
    ) -> Iterator[tuple[int, float, Floats]]:
        polynomial = self._interpolated(indices, taken[indices], after[indices], rates)
        while len(indices):
            due = self._dues[self.running[indices], self._seen[indices]]
            left = due < time[indices] - TIME_RTOL * np.abs(due)
            indices, polynomial, due = indices[left], polynomial[:, left], due[left]
            if not len(indices):
                return
            x = ((due - self._time[indices]) / taken[indices])[:, None]
            values = np.zeros_like(polynomial[0])
            for k, row in enumerate(polynomial[::-1]):
                values = (values + row) * (x if k % 2 == 0 else 1 - x)
            found = self._values[indices] + values.reshape(len(indices), *after.shape[1:])
            self._limit(found)
            for system, when, looked in zip(indices, due, found, strict=True):
                self._seen[system] += 1
                yield int(self.running[system]), float(when), looked

    def _interpolated(self, indices: Indices, dt: Floats, after: Floats, rates: Floats) -> Floats:
        """Coefficients (7, k, ...) of the interpolation, by four more rates."""
        stages, nodes, coefficients = dense_tableau()
        before = self._values[indices]
        flat, step = before.reshape(len(indices), -1), dt[:, None]
        stage_rates = np.empty((16, *flat.shape))
        stage_rates[:12] = rates[:12, indices]
        for k, node in enumerate(nodes, 12):
            stage = flat + step * _combined(stages[k - 12, :k], stage_rates)
            stage_rates[k] = self._rates_of(
                self.running[indices], self._time[indices] + node * dt, stage.reshape(before.shape)
            ).reshape(flat.shape)
        change = after.reshape(flat.shape) - flat
        first, last = step * stage_rates[0], step * stage_rates[12]
        rows = [change, first - change, 2 * change - first - last]
        return np.stack(rows + [step * _combined(row, stage_rates) for row in coefficients])

    def _leave(self, stuck: NDArray[np.bool_], ended: NDArray[np.bool_]) -> None:
        """Keep those that are neither stuck nor at their end."""
        self.lost.update(self.running[stuck].tolist())
        stay = ~(stuck | ended)
        if stay.all():
            return
        for name in ("running", "_time", "_values", "_dt", "_size", "_max_growth", "_first", "_begins", "_seen"):
            setattr(self, name, getattr(self, name)[stay])


def _change(error: Floats, max_growth: Floats) -> Floats:
    """The next step over this one, by the error over what is allowed; NaN is too much by any measure."""
    with np.errstate(divide="ignore"):
        proposed = np.where(error > 0, SAFETY * np.where(error > 0, error, 1.0) ** (-1 / ORDER), GROW)
    change = np.where(error < 1, np.minimum(proposed, max_growth), np.maximum(proposed, SHRINK))
    return np.where(np.isnan(error), SHRINK, change)


def _combined(weights: Floats, rates: Floats) -> Floats:
    """Σ_s weights_s rates_s, (k, numbers); always in the same order for each number."""
    used = np.flatnonzero(weights)
    total = weights[used[0]] * rates[used[0]] if len(used) else np.zeros_like(rates[0])
    for s in used[1:]:
        total += weights[s] * rates[s]
    return np.asarray(total)


def _norms(values: Floats) -> Floats:
    """Root mean square of each system."""
    flat = values.reshape(len(values), -1)
    return np.asarray(np.sqrt((flat**2).mean(axis=1)))


def _rows(numbers: Floats, values: Floats) -> Floats:
    """Numbers (k,) to go with values (k, ...)."""
    return numbers.reshape(-1, *[1] * (values.ndim - 1))
