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
    """Interface of a schedule: the time of each event as a function of its number, free of accumulated rounding."""

    def due(self, count: int) -> float:
        """Return the scheduled time of the event with a given number.

        Parameters
        ----------
        count : int
            Number of the event: 0, 1, ….

        Returns
        -------
        float
            Due time of the event; ∞ after the last.
        """


@dataclass(frozen=True)
class Every:
    """Schedule of the times 0, span/parts, 2 span/parts, …, without an end.

    Each time is computed from its number, so that rounding does not accumulate. Multiples of ``span`` are exact.

    Parameters
    ----------
    span : float
        Length of time, finite and > 0.
    parts : int, optional
        Number of equal parts of the span, at least 1.

    Raises
    ------
    ValueError
        If ``span`` is not finite and > 0, or ``parts`` is no whole number >= 1.

    Examples
    --------
    >>> from solvers import Every
    >>> [Every(1.0, parts=4).due(k) for k in range(6)]
    [0.0, 0.25, 0.5, 0.75, 1.0, 1.25]
    """

    span: float
    parts: int = 1

    def __post_init__(self) -> None:
        _expect(0 < self.span < math.inf, "span", self.span, "a finite number > 0")
        _expect_count("parts", self.parts)

    def due(self, count: int) -> float:
        """Return the scheduled time of the event with a given number.

        Parameters
        ----------
        count : int
            Number of the event: 0, 1, ….

        Returns
        -------
        float
            Due time of the event.
        """
        whole, part = divmod(count, self.parts)
        if part == 0:
            return self.span * whole
        product = self.span * count
        between = product / self.parts if product < math.inf else self.span * (count / self.parts)
        return min(max(between, self.span * whole), self.span * (whole + 1))


@dataclass(frozen=True)
class Logarithmic:
    """Schedule of time 0, then ``parts`` times from ``first`` to ``last`` with equal ratios, without an end.

    Later times continue with the same ratio. A single part is the last time, continued with the ratio last/first.

    Parameters
    ----------
    first : float
        First time after 0, finite and > 0.
    last : float
        Time number ``parts``, finite and at least ``first``.
    parts : int
        Number of times from ``first`` to ``last``, at least 1.

    Raises
    ------
    ValueError
        If ``first`` is not finite and > 0, ``last`` is not finite or is below ``first``, or ``parts`` is no whole
        number >= 1.

    Examples
    --------
    >>> from solvers import Logarithmic
    >>> schedule = Logarithmic(0.1, 10.0, parts=3)
    >>> [round(schedule.due(k), 6) for k in range(5)]
    [0.0, 0.1, 1.0, 10.0, 100.0]
    """

    first: float
    last: float
    parts: int

    def __post_init__(self) -> None:
        _expect(0 < self.first < math.inf, "first", self.first, "a finite number > 0")
        _expect(self.first <= self.last < math.inf, "last", self.last, f"a finite number >= first = {self.first}")
        _expect_count("parts", self.parts)

    def due(self, count: int) -> float:
        """Return the scheduled time of the event with a given number.

        Parameters
        ----------
        count : int
            Number of the event: 0, 1, ….

        Returns
        -------
        float
            Due time of the event; ∞ on overflow.
        """
        if count <= 0:
            return 0.0
        if count < self.parts:
            return min(self.first * self._ratio(count - 1), self.last)
        return self.last * self._ratio(count - self.parts)

    def _ratio(self, steps: int) -> float:
        """Return the factor (last/first)^(steps/(parts − 1)) between times that are ``steps`` apart; ∞ on overflow."""
        try:
            return float((self.last / self.first) ** (steps / max(self.parts - 1, 1)))
        except OverflowError:
            return math.inf


@dataclass(frozen=True)
class Listed:
    """Schedule of given times.

    Parameters
    ----------
    times : tuple of float
        Times in increasing order; equal times count as several, and ∞ is never due.

    Raises
    ------
    ValueError
        If the times decrease or one is NaN.

    Examples
    --------
    >>> from solvers import Listed
    >>> [Listed((0.5, 2.0)).due(k) for k in range(3)]
    [0.5, 2.0, inf]
    """

    times: tuple[float, ...]

    def __post_init__(self) -> None:
        ordered = all(a <= b for a, b in pairwise((-math.inf, *self.times)))
        _expect(ordered, "times", self.times, "numbers that do not decrease")

    def due(self, count: int) -> float:
        """Return the scheduled time of the event with a given number.

        Parameters
        ----------
        count : int
            Number of the event: 0, 1, ….

        Returns
        -------
        float
            Due time of the event; ∞ after the last.
        """
        return self.times[count] if count < len(self.times) else math.inf


def _expect(holds: bool, name: str, value: object, expected: str) -> None:
    """Raise ValueError with name, value and expected value unless a condition holds."""
    if not holds:
        raise ValueError(f"{name} = {value}: expected {expected}")


def _expect_count(name: str, value: int) -> None:
    """Raise ValueError for a value that is not a whole number ≥ 1."""
    _expect(isinstance(value, int | np.integer) and value >= 1, name, value, "a whole number >= 1")


@overload
def is_reached(due: float, time: float) -> bool: ...
@overload
def is_reached(due: Floats, time: Floats) -> NDArray[np.bool_]: ...
def is_reached(due: Any, time: Any) -> Any:
    """Return whether a due time lies at or before ``time`` to rounding, for numbers or elementwise for arrays."""
    return due <= time + TIME_RTOL * abs(time)


def times_until(schedule: Schedule, end: float) -> list[float]:
    """Return a list of all times of a schedule up to ``end``, included to rounding."""
    times: list[float] = []
    while is_reached(due := schedule.due(len(times)), end):
        times.append(due)
    return times


def next_time(dues: Iterable[float], until: float) -> float:
    """Return the earliest of the due times and ``until``; ``until`` itself if both are equal to rounding."""
    first = min(dues, default=math.inf)
    return first if first < until - TIME_RTOL * abs(until) else until


def events_before(schedule: Schedule, time: float, *, or_at: bool = False) -> int:
    """Return the number of scheduled times before ``time``; ``or_at`` includes one at the time, to rounding."""
    margin = TIME_RTOL * abs(time)
    bound = time + margin if or_at else time - margin
    bound_on_count = 1
    while schedule.due(bound_on_count) <= bound:
        bound_on_count *= 2
    return (bisect_right if or_at else bisect_left)(range(bound_on_count), bound, key=schedule.due)
