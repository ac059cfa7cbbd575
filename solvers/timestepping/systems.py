"""Many systems of one kind in one array, each with an own time, steps, error and end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..mesh.mesh import Floats
from .schedules import TIME_RTOL, Schedule, is_reached, times_until

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Observation = tuple[int, float, Floats]  # observation: system, time, values


class RowIntegrator(Protocol):
    """Interface of a method that steps many independent systems at once, one in each row of an array.

    numbers   (rows,) numbers of the systems
    time      (rows,) times that the systems have reached
    values    (rows, ...) values at these times
    reached   (rows,) end times of the last attempted steps
    """

    numbers: Indices
    time: Floats
    values: Floats
    reached: Floats

    def attempt(self, target: Floats) -> Mask:
        """Try one step of each system that does not cross ``target`` (rows,); return (rows,) whether it is accepted."""
        ...

    def interpolate(self, rows: Indices, times: Floats) -> Floats:
        """Return the values (k, ...) of the systems in ``rows`` (k,) at ``times`` (k,) within their last steps."""
        ...

    def commit(self, accepted: Mask) -> None:
        """Apply the last attempted steps of the ``accepted`` (rows,) systems; the others stay at the previous state."""
        ...

    def stuck(self) -> Mask:
        """Return (rows,) whether a system has no possible step, as after a blow-up."""
        ...

    def retain(self, stay: Mask) -> None:
        """Remove all systems except those with ``stay`` (rows,) true."""
        ...


def take_rows(values: Floats, rows: Indices) -> Floats:
    """Return the given rows (k, ...) of ``values`` (rows, ...).

    If ``rows`` holds as many numbers as there are rows, the array itself is returned, without a copy.
    """
    return values if len(rows) == len(values) else values[rows]


class Systems:
    """Run of many independent systems from time 0, each to its own end time, with observations at scheduled times.

    rows      method of the systems, at time 0
    until     (systems,) end times > 0
    dues      schedule of the observations of each system
    met       schedules of the first systems: times at which steps end exactly; other systems have no such times

    lost      numbers of the systems without a possible step, whose run has ended early
    """

    def __init__(
        self, rows: RowIntegrator, until: Sequence[float], dues: Sequence[Schedule], met: Sequence[Schedule] = ()
    ) -> None:
        self._rows, self._until = rows, np.array(until)
        self._dues, self._met = _TimeQueue(dues, self._until), _TimeQueue(met, self._until)
        self.lost = set[int]()

    @property
    def running(self) -> Indices:
        """Return the numbers (rows,) of the systems that have not reached their end time."""
        return self._rows.numbers

    def start(self) -> Iterator[Observation]:
        """Yield the observations that are due at time 0, as (number of the system, time, values)."""
        yield from self._observations_at_ends(np.ones(len(self._until), dtype=bool))

    def step(self) -> Iterator[Observation]:
        """Try one step of each running system; yield the observations that are due within accepted steps.

        An observation is (number of the system, time, values). The observations of one system are in order of time.
        """
        rows, numbers = self._rows, self._rows.numbers
        until = self._until[numbers]
        self._met.remove_until(numbers, rows.time)
        met = self._met.next(numbers)
        accepted = rows.attempt(np.where(met < until - TIME_RTOL * np.abs(until), met, until))
        while len(within := np.flatnonzero(accepted & ~is_reached(rows.reached, self._dues.next(numbers)))):
            times = self._dues.take(numbers[within])
            yield from zip(numbers[within].tolist(), times.tolist(), rows.interpolate(within, times), strict=True)
        rows.commit(accepted)
        yield from self._observations_at_ends(accepted)
        stuck = rows.stuck()
        self.lost.update(numbers[stuck].tolist())
        ended = stuck | (accepted & (rows.time >= until))
        if ended.any():
            rows.retain(~ended)

    def _observations_at_ends(self, moved: Mask) -> Iterator[Observation]:
        """Yield number, time and values of each system that has ``moved`` (rows,) to a scheduled time."""
        rows, numbers = self._rows, self._rows.numbers
        while len(at_end := np.flatnonzero(moved & is_reached(self._dues.next(numbers), rows.time))):
            self._dues.take(numbers[at_end])
            for row in at_end.tolist():
                yield int(numbers[row]), float(rows.time[row]), rows.values[row].copy()


class _TimeQueue:
    """Queue of scheduled times for each of many systems.

    schedules   schedule of each system; systems without one have no times
    until       (systems,) end times, after which there are no scheduled times
    """

    def __init__(self, schedules: Sequence[Schedule], until: Floats) -> None:
        times = [times_until(schedule, end) for schedule, end in zip(schedules, until.tolist(), strict=False)]
        self._times = np.full((len(until), max(map(len, times), default=0) + 1), np.inf)
        for row, some in zip(self._times, times, strict=False):
            row[: len(some)] = some
        self._taken = np.zeros(len(until), dtype=np.intp)

    def next(self, numbers: Indices) -> Floats:
        """Return the next scheduled time (k,) of each of the systems ``numbers`` (k,); ∞ after the last."""
        return np.asarray(self._times[numbers, self._taken[numbers]])

    def take(self, numbers: Indices) -> Floats:
        """Return the next scheduled time (k,) of each of the systems ``numbers`` (k,), and remove it from the queue."""
        times = self.next(numbers)
        self._taken[numbers] += 1
        return times

    def remove_until(self, numbers: Indices, time: Floats) -> None:
        """Remove all scheduled times up to ``time`` (k,) from the queues of the systems ``numbers`` (k,)."""
        while len(over := numbers[is_reached(self.next(numbers), time)]):
            self._taken[over] += 1
