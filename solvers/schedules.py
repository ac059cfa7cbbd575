"""When observers look: due times by a count, never by accumulation."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from typing import Protocol

import numpy as np


class Schedule(Protocol):
    """Due times by a count, never by accumulation."""

    def due(self, count: int) -> float:
        """Time of event number ``count`` = 0, 1, …; infinity after the last."""


@dataclass(frozen=True)
class Every:
    """Multiples of span/parts: 0, span/parts, …, without an end."""

    span: float
    parts: int = 1

    def due(self, count: int) -> float:
        return self.span * count / self.parts


@dataclass(frozen=True)
class Logarithmic:
    """0, then ``parts`` times from first to last with equal ratios, and on with the same ratio."""

    first: float
    last: float
    parts: int

    def due(self, count: int) -> float:
        if count == 0:
            return 0.0
        if count == self.parts:
            return self.last
        return self.first * (self.last / self.first) ** ((count - 1) / max(self.parts - 1, 1))


@dataclass(frozen=True)
class Listed:
    """Given times."""

    times: tuple[float, ...]

    def due(self, count: int) -> float:
        return self.times[count] if count < len(self.times) else np.inf


def events_before(schedule: Schedule, time: float, *, or_at: bool = False) -> int:
    """How many events of a schedule lie before a time, or also at it."""
    most = 1
    while schedule.due(most) <= time:
        most *= 2
    return (bisect_right if or_at else bisect_left)(range(most), time, key=schedule.due)
