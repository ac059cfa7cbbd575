"""Figures, the results of all benchmarks, and measurements of times."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvers.backends import host_backend

CORES = time.process_time
REPEATS = 7  # the median is reported, which single delays by other programs do not change


@dataclass(frozen=True)
class Spread:
    """Median, minimum and maximum of several measurements; for a ratio, over all pairs of numerator and denominator."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the `Spread` of measurements, positive numbers: their median, minimum and maximum."""
        return cls(statistics.median(values), min(values), max(values))

    def __mul__(self, factor: float) -> Spread:
        return Spread(self.median * factor, self.low * factor, self.high * factor)

    __rmul__ = __mul__

    def __add__(self, other: Spread) -> Spread:
        return Spread(self.median + other.median, self.low + other.low, self.high + other.high)

    def __rsub__(self, number: float) -> Spread:
        return Spread(number - self.median, number - self.high, number - self.low)

    def __truediv__(self, other: Spread | float) -> Spread:
        if not isinstance(other, Spread):
            return self * (1 / other)
        return Spread(self.median / other.median, self.low / other.high, self.high / other.low)

    def __rtruediv__(self, number: float) -> Spread:
        return Spread(number / self.median, number / self.high, number / self.low)


@dataclass(frozen=True)
class Figure:
    """Measured number with unit and targets.

    name   name of the measured quantity
    value  the number, in ``unit``; None if it could not be measured, with the reason as ``note``
    most, least   targets: upper and lower bound of the value, or None
    low, high     minimum and maximum of several measurements, whose median is ``value``
    """

    name: str
    value: float | None
    unit: str
    most: float | None = None
    least: float | None = None
    note: str = ""
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, name: str, spread: Spread | None, unit: str, **others: Any) -> Figure:
        """Return the figure whose value is the median of several measurements ``spread``, or None if that is None."""
        if spread is None:
            return cls(name, None, unit, **others)
        return cls(name, spread.median, unit, low=spread.low, high=spread.high, **others)

    @property
    def target(self) -> str:
        """Return the target of the value as text, with "missed" if the value violates it; empty without a target."""
        limits = [f"≤ {self.most:g}"] if self.most is not None else []
        limits += [f"≥ {self.least:g}"] if self.least is not None else []
        return ", ".join([*limits, *(["missed"] if self.missed else [])])

    @property
    def missed(self) -> bool:
        """Return whether the value violates its target."""
        if self.value is None:
            return False
        too_much = self.most is not None and not self.value <= self.most
        return too_much or (self.least is not None and not self.value >= self.least)


def timed(
    call: Callable[[], object], repeats: int | None = None, clock: Callable[[], float] = time.perf_counter
) -> Spread:
    """Return the spread of wall times of ``repeats`` calls in seconds (default: REPEATS), after one warm-up call.

    clock   clock to use: CORES is the processor time of all threads, which other programs influence least
    """
    return both_timed(call, lambda: None, repeats, clock)[0]


def both_timed(
    one: Callable[[], object],
    other: Callable[[], object],
    repeats: int | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Spread]:
    """Return the spreads of wall times of two functions in seconds, called alternately.

    Slow phases of the machine then affect both.
    """
    calls = one, other
    times: tuple[list[float], ...] = ([], [])
    for call in calls:
        call()
    for _ in range(repeats or REPEATS):
        for call, taken in zip(calls, times, strict=True):
            began = clock()
            call()
            taken.append(clock() - began)
    return [Spread.of(taken) for taken in times]


def copy_bandwidth(megabytes: int = 256) -> Spread:
    """Return the memory bandwidth of a copy of an array by all cores: bytes read plus bytes written per second."""
    source = np.ones(megabytes * 2**20 // 8)
    target = np.zeros_like(source)

    def share(worker: int, workers: int) -> None:
        here = slice(len(source) * worker // workers, len(source) * (worker + 1) // workers)
        np.copyto(target[here], source[here])

    return 2 * source.nbytes / timed(lambda: host_backend().launch(share, len(source)))
