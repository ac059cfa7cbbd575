"""Dormand and Prince's method of order 8 for many systems of ordinary differential equations, one in each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ...backends import backend_for
from ...mesh.mesh import Floats
from ..control import Proposal, StepController
from ..systems import Indices, Mask, take_rows
from . import coefficients

TARGET_SPACINGS = 16  # floating-point spacings of time within which a target is reached
MIN_SPACINGS = 10  # minimum step in floating-point spacings of time
ORDER = 8  # of the method, and of the error estimate
CONTROL = StepController(ORDER)

Rates = Callable[[Indices, Floats, Floats], Floats]


class DormandPrince:
    """Adaptive steps of many systems u̇ = f(t, u), one in each row, with a time, a step length and an error for each.

    rates      (numbers of systems (k,), times (k,), values (k, ...)) → rates of change (k, ...)
    values     (rows, ...) at time 0
    absolute, relative   (rows,) allowed error of a step, as the root mean square over all numbers of a system
    limit      applied to values (k, ...) after a step, in place

    numbers    (rows,) numbers of the systems
    reached    (rows,) end times of the last attempted steps

    The method is of order 8 and has error estimates of orders 5 and 3 (Hairer, Nørsett and Wanner, Solving Ordinary
    Differential Equations I, section II.10). A step depends on time, values and dt alone. One number for each system is
    transferred to the host in a step, the error. Interpolation within a step has order 7 and takes four more rates
    (section II.6).
    """

    def __init__(
        self, rates: Rates, values: Floats, absolute: Floats, relative: Floats,
        limit: Callable[[Floats], None] | None = None,
    ) -> None:  # fmt: skip
        count = len(values)
        self._rates_of, self._limit, self._backend = rates, limit, backend_for(values)
        self.numbers, self.values = np.arange(count), values
        shape = (-1, *[1] * (values.ndim - 1))
        self._relative, self._ratio = (
            self._device_array(each.reshape(shape)) for each in (relative, absolute / relative)
        )
        stages, weights, errors, self._nodes = tableau()
        self._stages, self._weights, self._errors = map(self._device_array, (stages, weights, errors))
        self._rates = self._backend.empty((len(weights), *values.shape), values.dtype)
        self._size, self._interpolated = np.empty(count), np.zeros(count, dtype=bool)
        self.start(values.copy(), np.zeros(count), np.full(count, np.nan))

    def start(self, values: Floats, time: Floats, dt: Floats) -> None:
        """Set the values (rows, ...), times (rows,) and next step lengths dt (rows,) of all systems.

        The values are stored without a copy. A step length of NaN is replaced by an estimate from the rates.
        """
        self.values, self.time, self.dt, self._refused = values, time, dt, np.zeros(len(time), dtype=bool)

    def attempt(self, target: Floats) -> Mask:
        """Try one step of each system; return (rows,) whether the estimated errors of the steps are allowed.

        target   (rows,) times that no step crosses: steps divide the time to them into equal parts

        :meth:`commit` applies the accepted steps. A system whose step is rejected tries a shorter one in the next call.
        """
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
        """Return the values (k, ...) of k systems at the ends of the last attempted steps, with the limit applied."""
        after = take_rows(self._after, rows).copy()
        if self._limit is not None:
            self._limit(after)
        return after

    def commit(self, accepted: Mask) -> None:
        """Apply the last attempted steps of the ``accepted`` (rows,) systems; the others stay at the previous state."""
        self.values[accepted], self.time[accepted] = self.ends(np.flatnonzero(accepted)), self.reached[accepted]

    def stuck(self) -> Mask:
        """Return (rows,) whether a system has no possible step, after a rejected one.

        The shorter step is below the floating-point spacing of time, or the rate at the beginning is not finite.
        """
        return self._refused & ((self._size < MIN_SPACINGS * np.spacing(self.time)) | ~self.begins_finite())

    def begins_finite(self) -> Mask:
        """Return (rows,) whether the rate of change of each system at the beginning of its step is finite."""
        return np.asarray(self._backend.to_host(_are_rows_finite(self._rates[0])))

    def retain(self, stay: Mask) -> None:
        """Remove all systems except those with ``stay`` (rows,) true."""
        for name in ("numbers", "values", "time", "dt", "_relative", "_ratio", "_size", "_refused", "_interpolated"):
            setattr(self, name, getattr(self, name)[stay])
        self._rates = self._rates[:, stay]

    def interpolate(self, rows: Indices, times: Floats) -> Floats:
        """Return the values (k, ...) of k systems at ``times`` (k,) within the last steps, interpolated with order 7.

        The polynomial has Hairer's nested form in x and 1 − x, for the fraction x of the step.
        """
        if missing := [row for row in rows.tolist() if not self._interpolated[row]]:
            self._interpolate(np.array(missing))
        x = self._columns((times - self.time[rows]) / self._taken[rows])
        before = take_rows(self.values, rows)
        values: Floats = self._backend.xp.zeros_like(before)
        for k, coefficient in enumerate(self._polynomial[::-1]):
            values = (values + take_rows(coefficient, rows)) * (x if k % 2 == 0 else 1 - x)
        values = before + values
        if self._limit is not None:
            self._limit(values)
        return values

    def _begin(self, new: Indices, target: Floats) -> None:
        """Evaluate the rates of the ``new`` systems, which begin a step, and choose step lengths up to ``target``."""
        values, time, dt, left = take_rows(self.values, new), self.time[new], self.dt[new], (target - self.time)[new]
        rate = self._rates_of(self.numbers[new], time, values)
        _put(self._rates[0], new, rate)
        known = dt > 0
        size = left / np.maximum(np.ceil(left / np.where(known, dt, left)), 1.0)
        if not known.all():
            size = np.where(known, size, self._first_size(new, values, rate, left))
        self._size[new] = np.fmax(size, MIN_SPACINGS * np.spacing(time))

    def _first_size(self, rows: Indices, values: Floats, rate: Floats, longest: Floats) -> Floats:
        """Return first step lengths (k,), at most ``longest``, by the rates now and after a short Euler step.

        Source: Hairer, Nørsett and Wanner, Solving Ordinary Differential Equations I, section II.4.
        """
        allowed = take_rows(self._relative, rows) * (take_rows(self._ratio, rows) + np.abs(values))
        size, speed = self._norms(values / allowed), self._norms(rate / allowed)
        slow = (size < 1e-5) | (speed < 1e-5)
        trial = np.minimum(np.where(slow, 1e-6, 0.01 * size / np.where(slow, 1.0, speed)), longest)
        ahead = self._rates_of(self.numbers[rows], self.time[rows] + trial, values + self._columns(trial) * rate)
        fastest = np.maximum(speed, self._norms((ahead - rate) / allowed) / trial)
        rest = fastest <= 1e-15
        second = np.where(rest, np.maximum(1e-6, 1e-3 * trial), (0.01 / np.where(rest, 1.0, fastest)) ** (1 / ORDER))
        return np.asarray(np.minimum(np.minimum(100 * trial, second), longest))

    def _advance(self) -> Floats:
        """Compute the values after one step of each system; return the ratios (rows,) of errors to allowed errors.

        A ratio is NaN where the values are not finite.
        """
        before, dt, rates = self.values, self._columns(self._taken), self._rates
        times = self.time + self._nodes[:, None] * self._taken
        for k in range(1, len(rates)):
            stage = before + dt * _linear_combination(self._stages[k, :k], rates[:k])
            rates[k] = self._rates_of(self.numbers, times[k], stage)
        self._after = before + dt * _linear_combination(self._weights, rates)
        self._interpolated = np.zeros(len(before), dtype=bool)
        allowed = self._relative * (self._ratio + np.maximum(np.abs(before), np.abs(self._after)))
        fifth, third = (_means(_squares(_linear_combination(row, rates) / allowed)) for row in self._errors)
        both = np.maximum(fifth + 0.01 * third, np.finfo(before.dtype).tiny)
        error = self._backend.xp.where(_are_rows_finite(self._after), fifth / np.sqrt(both), np.nan)
        return np.abs(self._taken) * self._backend.to_host(error)

    def _interpolate(self, rows: Indices) -> None:
        """Compute the seven coefficients (7, k, ...) of polynomials that interpolate the last steps of k systems."""
        stages, nodes, coefficients = dense_tableau()
        before, after, dt = take_rows(self.values, rows), take_rows(self._after, rows), self._columns(self._taken[rows])
        count = len(self._rates)
        rates = self._backend.empty((len(nodes) + count, *before.shape), before.dtype)
        for k in range(count):
            rates[k] = take_rows(self._rates[k], rows)
        for k, node in enumerate(nodes, count):
            stage = before + dt * _linear_combination(self._device_array(stages[k - count, :k]), rates[:k])
            rates[k] = self._rates_of(self.numbers[rows], self.time[rows] + node * self._taken[rows], stage)
        change, first, last = after - before, dt * rates[0], dt * rates[count]
        found = [change, first - change, 2 * change - first - last]
        found += [dt * _linear_combination(self._device_array(row), rates) for row in coefficients]
        if not self._interpolated.any():
            self._polynomial = self._backend.empty((len(found), *self.values.shape), before.dtype)
        for polynomial, row in zip(self._polynomial, found, strict=True):
            _put(polynomial, rows, row)
        self._interpolated[rows] = True

    def _norms(self, values: Floats) -> Floats:
        """Return the root mean square (k,) over the numbers of each system, on the host."""
        return np.asarray(np.sqrt(self._backend.to_host(_means(_squares(values))).astype(float)))

    def _columns(self, numbers: Floats) -> Floats:
        """Return ``numbers`` (k,), one for each system, in the shape (k, 1, ...), as factors of values (k, ...).

        The dtype and the device are those of the values. A single number is returned as a scalar.
        """
        if len(numbers) == 1:
            only: Floats = numbers.astype(self.values.dtype)[0]
            return only
        return self._device_array(numbers.reshape(-1, *[1] * (self.values.ndim - 1)))

    def _device_array(self, numbers: Floats) -> Floats:
        """Return a copy of an array in the dtype and on the device of the systems' values."""
        return self._backend.to_device(numbers.astype(self.values.dtype))


def _put(values: Floats, rows: Indices, some: Floats) -> None:
    """Overwrite the rows numbered ``rows`` (k,) of ``values`` (rows, ...) with ``some`` (k, ...), in place."""
    values[slice(None) if len(rows) == len(values) else rows] = some


def _means(values: Floats) -> Floats:
    """Return the mean (rows,) over all numbers in each row of ``values`` (rows, ...)."""
    means: Floats = values.reshape(len(values), -1).sum(axis=1) / values[0].size
    return means


def _are_rows_finite(values: Floats) -> Mask:
    """Return (rows,) whether all numbers in each row of ``values`` (rows, ...) are finite."""
    rows: Any = np.isfinite(values).reshape(len(values), -1)
    finite: Mask = rows.all(axis=1)
    return finite


def _squares(values: Floats) -> Floats:
    """Return the squares |x|² of real or complex numbers x."""
    return values**2 if values.dtype.kind != "c" else values.real**2 + values.imag**2


def _linear_combination(weights: Floats, rates: Floats) -> Floats:
    """Return the linear combination Σ_s weights_s rates_s (...) of rates (s, ...)."""
    total: Floats = backend_for(rates).xp.einsum("s,s...->...", weights, rates)
    return total


@cache
def tableau() -> tuple[Floats, Floats, Floats, Floats]:
    """Return the coefficients of the method of order 8 with 12 stages.

    The coefficients are the stages (12, 12), the weights (12,) of the step, the weights (2, 12) of the two error
    estimates, and the nodes (12,).
    """
    weights, *errors = _rows((coefficients.WEIGHTS, coefficients.ERROR_5, coefficients.ERROR_3), 12)
    return _rows(coefficients.STAGES, 12), weights, np.stack(errors), np.array(coefficients.NODES)


@cache
def dense_tableau() -> tuple[Floats, Floats, Floats]:
    """Return the coefficients of the interpolation within a step, with four stages beyond the twelve of the step.

    The coefficients are the stages (4, 16), whose first is the end of the step, the nodes (4,), and the coefficients
    (4, 16) of the last four of the seven terms of the polynomial.
    """
    stages = _rows((coefficients.WEIGHTS, *coefficients.INTERPOLATION_STAGES), 16)
    nodes = np.array([1.0, *coefficients.INTERPOLATION_NODES])
    return stages, nodes, _rows(coefficients.INTERPOLATION, 16)


def _rows(sparse: Sequence[Mapping[int, float]], columns: int) -> Floats:
    """Return a matrix (rows, columns) of which each row is given by its nonzero numbers {column: number}."""
    full = np.zeros((len(sparse), columns))
    for row, numbers in zip(full, sparse, strict=True):
        row[list(numbers)] = list(numbers.values())
    return full
