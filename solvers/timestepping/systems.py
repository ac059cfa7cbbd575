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
Look = tuple[int, float, Floats]  # observation: system, time, values


class RowIntegrator(Protocol):
    """Method that steps many independent systems, one in each row.

    numbers   (rows,) numbers of the systems
    time      (rows,)
    values    (rows, ...)
    reached   (rows,) end times of the last attempted steps
    """

    numbers: Indices
    time: Floats
    values: Floats
    reached: Floats

    def attempt(self, target: Floats) -> Mask:
        """Try one step of each system towards its target (rows,); return (rows,) whether accepted."""
        ...

    def between(self, rows: Indices, times: Floats) -> Floats:
        """Return values (k, ...) of rows at times within the last steps."""
        ...

    def commit(self, accepted: Mask) -> None:
        """Apply the accepted steps; the other systems restart from the previous state."""
        ...

    def stuck(self) -> Mask:
        """Return (rows,) whether no step of a system is possible."""
        ...

    def keep(self, stay: Mask) -> None:
        """Keep the systems in ``stay`` and drop the others."""
        ...


def taken(values: Floats, rows: Indices) -> Floats:
    """Return rows of values (rows, ...); the array itself for all rows."""
    return values if len(rows) == len(values) else values[rows]


class Systems:
    """Run of many systems from time 0, each to an own ``until``, with observations.

    rows      method of the systems, at time 0
    until     (systems,) end times > 0
    dues      observation times of each system
    met       times that the steps of each system meet exactly

    lost      numbers of the systems without a possible step
    """

    def __init__(
        self, rows: RowIntegrator, until: Sequence[float], dues: Sequence[Schedule], met: Sequence[Schedule] = ()
    ) -> None:
        self._rows, self._until = rows, np.array(until)
        self._dues, self._met = _Pending(dues, self._until), _Pending(met, self._until)
        self.lost = set[int]()

    @property
    def running(self) -> Indices:
        """Return the numbers of the systems that are still running."""
        return self._rows.numbers

    def start(self) -> Iterator[Look]:
        """Yield the observations that are due at time 0."""
        yield from self._observations_at_ends(np.ones(len(self._until), dtype=bool))

    def step(self) -> Iterator[Look]:
        """Try one step of each system; yield the observations due within accepted steps, in order of time."""
        rows, numbers = self._rows, self._rows.numbers
        until = self._until[numbers]
        self._met.pass_by(numbers, rows.time)
        met = self._met.next(numbers)
        accepted = rows.attempt(np.where(met < until - TIME_RTOL * np.abs(until), met, until))
        while len(within := np.flatnonzero(accepted & ~is_reached(rows.reached, self._dues.next(numbers)))):
            times = self._dues.take(numbers[within])
            yield from zip(numbers[within].tolist(), times.tolist(), rows.between(within, times), strict=True)
        rows.commit(accepted)
        yield from self._observations_at_ends(accepted)
        stuck = rows.stuck()
        self.lost.update(numbers[stuck].tolist())
        ended = stuck | (accepted & (rows.time >= until))
        if ended.any():
            rows.keep(~ended)

    def _observations_at_ends(self, moved: Mask) -> Iterator[Look]:
        rows, numbers = self._rows, self._rows.numbers
        while len(at_end := np.flatnonzero(moved & is_reached(self._dues.next(numbers), rows.time))):
            self._dues.take(numbers[at_end])
            for row in at_end.tolist():
                yield int(numbers[row]), float(rows.time[row]), rows.values[row].copy()


class _Pending:
    """Queue of scheduled times up to the ends (systems,), for each system."""

    def __init__(self, schedules: Sequence[Schedule], until: Floats) -> None:
        times = [times_until(schedule, end) for schedule, end in zip(schedules, until.tolist(), strict=False)]
        self._times = np.full((len(until), max(map(len, times), default=0) + 1), np.inf)
        for row, some in zip(self._times, times, strict=False):
            row[: len(some)] = some
        self._taken = np.zeros(len(until), dtype=np.intp)

    def next(self, numbers: Indices) -> Floats:
        """Return (k,) the next time of each system, ∞ after the last."""
        return np.asarray(self._times[numbers, self._taken[numbers]])

    def take(self, numbers: Indices) -> Floats:
        """Return (k,) the next time of each system, and remove it from the queue."""
        times = self.next(numbers)
        self._taken[numbers] += 1
        return times

    def pass_by(self, numbers: Indices, time: Floats) -> None:
        """Remove times up to those (k,) from the queues."""
        while len(over := numbers[is_reached(self.next(numbers), time)]):
            self._taken[over] += 1
