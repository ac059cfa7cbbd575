"""Dormand and Prince's method of order 8 for many systems of ordinary differential equations, one in each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...backends import backend_for
from ...mesh.mesh import Floats
from ..control import Proposal, StepController
from ..systems import Indices, Mask, taken
from . import coefficients

TARGET_SPACINGS = 16  # floating-point spacings of time within which a target is reached
MIN_SPACINGS = 10  # minimum step in floating-point spacings of time
ORDER = 8  # of the method, and of the error estimate
CONTROL = StepController(ORDER)

Rates = Callable[[Indices, Floats, Floats], Floats]


class DormandPrince:
    """Adaptive steps of systems u̇ = f(t, u), (rows, ...), each with an own time, step length and error.

    rates      (numbers of systems (k,), times (k,), values (k, ...)) → rates of change (k, ...)
    values     (rows, ...) at time 0
    absolute, relative   (rows,) error of a step, as the root mean square over all numbers of a system
    limit      applied to values (k, ...) after a step, in place

    numbers    (rows,) numbers of the systems
    reached    (rows,) end times of the last attempted steps

    The method has errors of orders 5 and 3 (Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I,
    section II.10). A step depends on time, values and dt alone. One number for each system is transferred to the host
    in a step, the error. Interpolation within a step has order 7 and takes four more rates (section II.6).
    """

    def __init__(
        self, rates: Rates, values: Floats, absolute: Floats, relative: Floats,
        limit: Callable[[Floats], None] | None = None,
    ) -> None:  # fmt: skip
        count = len(values)
        self._rates_of, self._limit, self._backend = rates, limit, backend_for(values)
        self.numbers, self.values = np.arange(count), values
        shape = (-1, *[1] * (values.ndim - 1))
        self._relative, self._ratio = (self._table(each.reshape(shape)) for each in (relative, absolute / relative))
        stages, weights, errors, self._nodes = tableau()
        self._stages, self._weights, self._errors = map(self._table, (stages, weights, errors))
        self._rates = self._backend.empty((len(weights), *values.shape), values.dtype)
        self._size, self._interpolated = np.empty(count), np.zeros(count, dtype=bool)
        self.start(values.copy(), np.zeros(count), np.full(count, np.nan))

    def start(self, values: Floats, time: Floats, dt: Floats) -> None:
        """Begin at values (rows, ...), stored without a copy, times and first steps (rows,); NaN for an estimate."""
        self.values, self.time, self.dt, self._refused = values, time, dt, np.zeros(len(time), dtype=bool)

    def attempt(self, target: Floats) -> Mask:
        """Try one step of each system towards its target (rows,) in equal steps; return (rows,) whether accepted."""
        new = np.flatnonzero(~self._refused)
        if len(new):
            self._begin(new, target)
        reached = np.minimum(self.time + self._size, target)
        self._taken = reached - self.time
        error = self._advance()
        accepted = error < 1
        if accepted.any():
            following = CONTROL.next(self._taken, error, Proposal(self.dt), self._refused)
            self.dt = np.where(accepted, following.step, self.dt)
        if not accepted.all():
            self._size = self._taken * CONTROL.factor(error)
        self._refused = ~accepted
        self.reached = np.where(target - reached <= TARGET_SPACINGS * np.spacing(target), target, reached)
        return np.asarray(accepted)

    def ends(self, rows: Indices) -> Floats:
        """Return the values (k, ...) of rows after the last steps."""
        after = taken(self._after, rows).copy()
        if self._limit is not None:
            self._limit(after)
        return after

    def commit(self, accepted: Mask) -> None:
        """Apply the accepted steps; the other systems restart from the previous state."""
        self.values[accepted], self.time[accepted] = self.ends(np.flatnonzero(accepted)), self.reached[accepted]

    def stuck(self) -> Mask:
        """Return (rows,) whether no smaller step is possible, by the spacing of time or a non-finite rate."""
        return self._refused & ((self._size < MIN_SPACINGS * np.spacing(self.time)) | ~self.begins_finite())

    def begins_finite(self) -> Mask:
        """Return (rows,) whether the rates at the beginning of the step are finite."""
        return np.asarray(self._backend.to_host(_all_finite(self._rates[0])))

    def keep(self, stay: Mask) -> None:
        """Keep the systems in ``stay`` and drop the others."""
        for name in ("numbers", "values", "time", "dt", "_relative", "_ratio", "_size", "_refused", "_interpolated"):
            setattr(self, name, getattr(self, name)[stay])
        self._rates = self._rates[:, stay]

    def between(self, rows: Indices, times: Floats) -> Floats:
        """Return values (k, ...) of rows at times within the last steps, by Hairer's nested form in x and 1 − x."""
        if missing := [row for row in rows.tolist() if not self._interpolated[row]]:
            self._interpolate(np.array(missing))
        x = self._columns((times - self.time[rows]) / self._taken[rows])
        before = taken(self.values, rows)
        values: Floats = self._backend.xp.zeros_like(before)
        for k, coefficient in enumerate(self._polynomial[::-1]):
            values = (values + taken(coefficient, rows)) * (x if k % 2 == 0 else 1 - x)
        values = before + values
        if self._limit is not None:
            self._limit(values)
        return values

    def _begin(self, new: Indices, target: Floats) -> None:
        """Evaluate the rates of systems that begin a step, and choose the step length."""
        values, time, dt, left = taken(self.values, new), self.time[new], self.dt[new], (target - self.time)[new]
        rate = self._rates_of(self.numbers[new], time, values)
        _put(self._rates[0], new, rate)
        known = dt > 0
        size = left / np.maximum(np.ceil(left / np.where(known, dt, left)), 1.0)
        if not known.all():
            size = np.where(known, size, self._first_size(new, values, rate, left))
        self._size[new] = np.fmax(size, MIN_SPACINGS * np.spacing(time))

    def _first_size(self, rows: Indices, values: Floats, rate: Floats, longest: Floats) -> Floats:
        """Return first steps (k,), at most ``longest``, by the rates now and after an Euler step (section II.4)."""
        allowed = taken(self._relative, rows) * (taken(self._ratio, rows) + np.abs(values))
        size, speed = self._norms(values / allowed), self._norms(rate / allowed)
        slow = (size < 1e-5) | (speed < 1e-5)
        trial = np.minimum(np.where(slow, 1e-6, 0.01 * size / np.where(slow, 1.0, speed)), longest)
        ahead = self._rates_of(self.numbers[rows], self.time[rows] + trial, values + self._columns(trial) * rate)
        fastest = np.maximum(speed, self._norms((ahead - rate) / allowed) / trial)
        rest = fastest <= 1e-15
        second = np.where(rest, np.maximum(1e-6, 1e-3 * trial), (0.01 / np.where(rest, 1.0, fastest)) ** (1 / ORDER))
        return np.asarray(np.minimum(np.minimum(100 * trial, second), longest))

    def _advance(self) -> Floats:
        """Compute the values after the steps; return errors (rows,) over the allowed ones, NaN where not finite."""
        before, dt, rates = self.values, self._columns(self._taken), self._rates
        times = self.time + self._nodes[:, None] * self._taken
        for k in range(1, len(rates)):
            stage = before + dt * _combined(self._stages[k, :k], rates[:k])
            rates[k] = self._rates_of(self.numbers, times[k], stage)
        self._after = before + dt * _combined(self._weights, rates)
        self._interpolated = np.zeros(len(before), dtype=bool)
        allowed = self._relative * (self._ratio + np.maximum(np.abs(before), np.abs(self._after)))
        fifth, third = (_means((_combined(row, rates) / allowed) ** 2) for row in self._errors)
        both = np.maximum(fifth + 0.01 * third, np.finfo(before.dtype).tiny)
        error = self._backend.xp.where(_all_finite(self._after), fifth / np.sqrt(both), np.nan)
        return np.abs(self._taken) * self._backend.to_host(error)

    def _interpolate(self, rows: Indices) -> None:
        """Compute the coefficients (7, k, ...) of the interpolation of rows, by four more rates."""
        stages, nodes, coefficients = dense_tableau()
        before, after, dt = taken(self.values, rows), taken(self._after, rows), self._columns(self._taken[rows])
        count = len(self._rates)
        rates = self._backend.empty((len(nodes) + count, *before.shape), before.dtype)
        for k in range(count):
            rates[k] = taken(self._rates[k], rows)
        for k, node in enumerate(nodes, count):
            stage = before + dt * _combined(self._table(stages[k - count, :k]), rates[:k])
            rates[k] = self._rates_of(self.numbers[rows], self.time[rows] + node * self._taken[rows], stage)
        change, first, last = after - before, dt * rates[0], dt * rates[count]
        found = [change, first - change, 2 * change - first - last]
        found += [dt * _combined(self._table(row), rates) for row in coefficients]
        if not self._interpolated.any():
            self._polynomial = self._backend.empty((len(found), *self.values.shape), before.dtype)
        for polynomial, row in zip(self._polynomial, found, strict=True):
            _put(polynomial, rows, row)
        self._interpolated[rows] = True

    def _norms(self, values: Floats) -> Floats:
        """Return the root mean square of each system (k,), on the host."""
        return np.asarray(np.sqrt(self._backend.to_host(_means(values**2)).astype(float)))

    def _columns(self, numbers: Floats) -> Floats:
        """Return numbers (k,) as (k, 1, ...) in the dtype and on the device of the values; a single one as a scalar."""
        if len(numbers) == 1:
            only: Floats = numbers.astype(self.values.dtype)[0]
            return only
        return self._table(numbers.reshape(-1, *[1] * (self.values.ndim - 1)))

    def _table(self, numbers: Floats) -> Floats:
        """Return an array in the dtype and on the device of the values."""
        return self._backend.to_device(numbers.astype(self.values.dtype))


def _put(values: Floats, rows: Indices, some: Floats) -> None:
    """Set the given rows of values (rows, ...) to ``some``."""
    values[slice(None) if len(rows) == len(values) else rows] = some


def _means(values: Floats) -> Floats:
    """Return (rows,) the mean over all numbers of each system."""
    means: Floats = values.reshape(len(values), -1).sum(axis=1) / values[0].size
    return means


def _all_finite(values: Floats) -> Mask:
    """Return (rows,) whether all numbers of a system are finite."""
    rows: Any = np.isfinite(values).reshape(len(values), -1)
    finite: Mask = rows.all(axis=1)
    return finite


def _combined(weights: Floats, rates: Floats) -> Floats:
    """Return Σ_s weights_s rates_s, in the same order of summation for each number."""
    total: Floats = backend_for(rates).xp.einsum("s,s...->...", weights, rates)
    return total


@cache
def tableau() -> tuple[Floats, Floats, Floats, Floats]:
    """Return stages (12, 12), weights (12), weights of the two errors (2, 12) and nodes (12)."""
    weights, *errors = _rows((coefficients.WEIGHTS, coefficients.ERROR_5, coefficients.ERROR_3), 12)
    return _rows(coefficients.STAGES, 12), weights, np.stack(errors), np.array(coefficients.NODES)


@cache
def dense_tableau() -> tuple[Floats, Floats, Floats]:
    """Return the tableau of the interpolation stages (4, 16), nodes (4), coefficients (4, 16). Stage 0 is the step."""
    stages = _rows((coefficients.WEIGHTS, *coefficients.INTERPOLATION_STAGES), 16)
    nodes = np.array([1.0, *coefficients.INTERPOLATION_NODES])
    return stages, nodes, _rows(coefficients.INTERPOLATION, 16)


def _rows(sparse: Sequence[Mapping[int, float]], columns: int) -> Floats:
    """Return (rows, columns) for the nonzero numbers of each row by column."""
    full = np.zeros((len(sparse), columns))
    for row, numbers in zip(full, sparse, strict=True):
        row[list(numbers)] = list(numbers.values())
    return full
