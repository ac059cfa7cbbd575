"""Schedules of observers: times computed from a count, without accumulated rounding.

Due times are compared to rounding: 3·0.1 is 0.30000000000000004, and is due at 0.3.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from ..mesh.mesh import Floats

TIME_RTOL = 4 * float(np.finfo(float).eps)  # above the rounding 1.5 eps of k·span and an end, below due distances


class Schedule(Protocol):
    """Due times as a function of a count, without accumulation."""

    def due(self, count: int) -> float:
        """Return the time of event number ``count`` = 0, 1, …; ∞ after the last."""


@dataclass(frozen=True)
class Every:
    """Multiples of span/parts: 0, span/parts, …, without an end; multiples of the span itself are exact.

    Raises ValueError unless span is finite and > 0, and parts >= 1.
    """

    span: float
    parts: int = 1

    def __post_init__(self) -> None:
        _expect(0 < self.span < math.inf, "span", self.span, "a finite number > 0")
        _expect(self.parts >= 1, "parts", self.parts, "a whole number >= 1")

    def due(self, count: int) -> float:
        whole, part = divmod(count, self.parts)
        if part == 0:
            return self.span * whole
        product = self.span * count
        between = product / self.parts if product < math.inf else self.span * (count / self.parts)
        return min(max(between, self.span * whole), self.span * (whole + 1))


@dataclass(frozen=True)
class Logarithmic:
    """Time 0, then ``parts`` times from first to last with equal ratios, continued with the same ratio.

    A single part is the last time, continued with the ratio last/first.
    Raises ValueError unless 0 < first <= last, both finite, and parts >= 1.
    """

    first: float
    last: float
    parts: int

    def __post_init__(self) -> None:
        _expect(0 < self.first < math.inf, "first", self.first, "a finite number > 0")
        _expect(self.first <= self.last < math.inf, "last", self.last, f"a finite number >= first = {self.first}")
        _expect(self.parts >= 1, "parts", self.parts, "a whole number >= 1")

    def due(self, count: int) -> float:
        if count <= 0:
            return 0.0
        if count < self.parts:
            return min(self.first * self._ratio(count - 1), self.last)
        return self.last * self._ratio(count - self.parts)

    def _ratio(self, steps: int) -> float:
        """Return (last/first)^(steps/(parts − 1)); ∞ on overflow."""
        try:
            return float((self.last / self.first) ** (steps / max(self.parts - 1, 1)))
        except OverflowError:
            return math.inf


@dataclass(frozen=True)
class Listed:
    """Given times, ∞ for never. Raises ValueError for decreasing times."""

    times: tuple[float, ...]

    def __post_init__(self) -> None:
        ordered = all(a <= b for a, b in pairwise((-math.inf, *self.times)))
        _expect(ordered, "times", self.times, "numbers that do not decrease")

    def due(self, count: int) -> float:
        return self.times[count] if count < len(self.times) else math.inf


def _expect(holds: bool, name: str, value: object, expected: str) -> None:
    if not holds:
        raise ValueError(f"{name} = {value}: expected {expected}")


@overload
def is_reached(due: float, time: float) -> bool: ...
@overload
def is_reached(due: Floats, time: Floats) -> NDArray[np.bool_]: ...
def is_reached(due: Any, time: Any) -> Any:
    """Return whether a due time lies at or before ``time`` to rounding, for numbers or elementwise for arrays."""
    return due <= time + TIME_RTOL * abs(time)


def times_until(schedule: Schedule, end: float) -> list[float]:
    """Return all times of a schedule up to the end."""
    times: list[float] = []
    while is_reached(due := schedule.due(len(times)), end):
        times.append(due)
    return times


def next_time(dues: Iterable[float], until: float) -> float:
    """Return the first of the due times and ``until``; ``until`` itself if both are equal to rounding."""
    first = min(dues, default=math.inf)
    return first if first < until - TIME_RTOL * abs(until) else until


def events_before(schedule: Schedule, time: float, *, or_at: bool = False) -> int:
    """Return the number of events of a schedule before a time, or also at the time, to rounding."""
    margin = TIME_RTOL * abs(time)
    bound = time + margin if or_at else time - margin
    bound_on_count = 1
    while schedule.due(bound_on_count) <= bound:
        bound_on_count *= 2
    return (bisect_right if or_at else bisect_left)(range(bound_on_count), bound, key=schedule.due)
