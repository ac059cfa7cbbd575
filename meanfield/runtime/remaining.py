"""Remaining time of a run, estimated from past steps and outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence

from solvers.timestepping.schedules import Schedule, events_before

MIN_STEPS = 15  # before a first estimate, which must agree with an estimate from half as many records
AGREEMENT = 1.6  # largest ratio of the two estimates
MIN_SECONDS = 0.5  # of a run, before which steps are too few and uneven
MAX_MOMENTS = 512  # maximum number of records; beyond, every second one is dropped


class RemainingTime:
    """Estimate of the remaining seconds of a run: remaining steps or outputs times the seconds of recent ones.

    Where steps are limited by the state, the step number at time t is modeled as n = a + b·t^q through three records:
    the last, the one after a quarter of the steps (earlier steps are often untypical), and the one between them. q = 1
    for steps of equal length, q → 0 for steps that grow with time. The number of remaining steps is at least the number
    of remaining outputs of a schedule. Where several interpolated outputs lie in a step, outputs are counted instead of
    steps. After a handover there are as many steps as outputs; before the handover there is no estimate.

    end          end time of the run
    schedules    of the outputs
    handover    whether the run has a handover, at which atoms (point masses) replace its clusters
    """

    def __init__(self, end: float, schedules: Sequence[Schedule], handover: bool = False) -> None:
        self._end, self._schedules, self._waits = end, schedules, handover
        self._by_events = False
        self._moments: list[tuple[int, float, float]] = []  # step, model time, seconds
        self._every, self._seen = 1, 0

    def forget_density_steps(self) -> None:
        """Discard the records from before the handover, at which atoms (point masses) replaced the clusters.

        Further calls do nothing.
        """
        if self._waits:
            self._waits, self._by_events, self._moments, self._every, self._seen = False, True, [], 1, 0

    def update(self, time: float, seconds: float) -> None:
        """Record a step: ``time`` is the model time after the step, ``seconds`` the clock."""
        if self._seen % self._every == 0:
            if len(self._moments) == MAX_MOMENTS:
                self._moments, self._every = self._moments[::2], 2 * self._every
            self._moments.append((self._seen, time, seconds))
        self._seen += 1

    def seconds(self) -> float | None:
        """Return the remaining seconds of the run from the last record on; None without a reliable estimate.

        There is no reliable estimate at first, and where half of the records give another duration of the whole run.
        """
        last = len(self._moments) - 1
        if last >= 0 and self._moments[last][1] >= self._end:
            return 0.0
        now, before = self._seconds_after(last), self._seconds_after(last // 2)
        if now is None or before is None:
            return None
        began, then, clock = (self._moments[k][2] for k in (0, last // 2, last))
        whole, whole_before = clock - began + now, then - began + before
        agree = max(whole, whole_before) <= AGREEMENT * min(whole, whole_before)
        return now if agree and clock - began >= MIN_SECONDS else None

    def _seconds_after(self, last: int) -> float | None:
        """Extrapolate the remaining seconds from record ``last`` on by the records up to it; None for too few."""
        if self._waits or last < 1 or self._moments[last][0] < MIN_STEPS:
            return None
        (n0, t0, _), (n1, t1, w1), (n2, t2, w2) = (self._moments[k] for k in (last // 4, (last // 4 + last) // 2, last))
        seen, to_come = sum(self._events_between(t1, t2)), self._events_between(t2, self._end)
        if self._by_events or seen > len(self._schedules) * (n2 - n1):
            return (w2 - w1) / seen * sum(to_come) if seen else None
        q = _exponent(t0, t1, t2, (n2 - n1) / (n1 - n0))
        steps = (n2 - n1) * _power(t2, self._end, q) / _power(t1, t2, q)
        return (w2 - w1) / (n2 - n1) * max(steps, *to_come, 0)  # outputs of several schedules may be at one step

    def _events_between(self, start: float, end: float) -> list[int]:
        """Return the number of events of each schedule after ``start`` and until ``end``."""
        return [
            events_before(schedule, end, or_at=True) - events_before(schedule, start, or_at=True)
            for schedule in self._schedules
        ]


def _power(start: float, end: float, q: float) -> float:
    """Return ∫ s^(q−1) ds over [start, end], with 0 < start ≤ end."""
    return math.log(end / start) if q < 1e-9 else (end**q - start**q) / q


def _exponent(t0: float, t1: float, t2: float, ratio: float) -> float:
    """Return q in [0, 1] for which a + b·t^q has ``ratio`` steps in [t₁, t₂] for each step in [t₀, t₁].

    q is found by bisection.
    """
    low, high = 0.0, 1.0
    for _ in range(40):
        q = (low + high) / 2
        low, high = (q, high) if _power(t1, t2, q) < ratio * _power(t0, t1, q) else (low, q)
    return (low + high) / 2
