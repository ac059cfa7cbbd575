"""Many systems of one kind solved together in one array, each with its own time, steps, error and end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..mesh.mesh import Floats
from .schedules import TIME_RTOL, Schedule, is_reached, times_until

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
Look = tuple[int, float, Floats]  # system, time, values


class RowIntegrator(Protocol):
    """A method that steps many systems, a row each; those of one row do not depend on the others.

    numbers   (rows,) of the systems
    time      (rows,)
    values    (rows, ...)
    reached   (rows,) ends of the steps that were tried last
    """

    numbers: Indices
    time: Floats
    values: Floats
    reached: Floats

    def attempt(self, target: Floats) -> Mask:
        """Try one step of each towards its target (rows,); return which are accepted."""
        ...

    def between(self, rows: Indices, times: Floats) -> Floats:
        """Return values (k, ...) of rows at times within their last steps."""
        ...

    def commit(self, accepted: Mask) -> None:
        """Take over the steps that were accepted; the other systems begin again where they were."""
        ...

    def stuck(self) -> Mask:
        """Return whether no step of a system (rows,) is left to try."""
        ...

    def keep(self, stay: Mask) -> None:
        """Leave out the other systems."""
        ...


def taken(values: Floats, rows: Indices) -> Floats:
    """Return rows of values (rows, ...); all of them as they are, wherever they are."""
    return values if len(rows) == len(values) else values[rows]


class Systems:
    """Systems on their way from time 0, each to its own ``until``, and the times at which they are looked at.

    rows      their method, at time 0
    until     (systems,) > 0
    dues      when each is looked at
    met       times that the steps of each meet

    lost      numbers of the systems that no step can continue with
    """

    def __init__(
        self, rows: RowIntegrator, until: Sequence[float], dues: Sequence[Schedule], met: Sequence[Schedule] = ()
    ) -> None:
        self._rows, self._until = rows, np.array(until)
        self._dues, self._met = _Pending(dues, self._until), _Pending(met, self._until)
        self.lost = set[int]()

    @property
    def running(self) -> Indices:
        """Return the numbers of the systems that are still on their way."""
        return self._rows.numbers

    def start(self) -> Iterator[Look]:
        """Yield the looks that are due at time 0."""
        yield from self._looks_at_ends(np.ones(len(self._until), dtype=bool))

    def step(self) -> Iterator[Look]:
        """Try one step of each; yield the looks that were due within those that succeeded, in order of time."""
        rows, numbers = self._rows, self._rows.numbers
        until = self._until[numbers]
        self._met.pass_by(numbers, rows.time)
        met = self._met.next(numbers)
        accepted = rows.attempt(np.where(met < until - TIME_RTOL * np.abs(until), met, until))
        while len(within := np.flatnonzero(accepted & ~is_reached(rows.reached, self._dues.next(numbers)))):
            times = self._dues.take(numbers[within])
            yield from zip(numbers[within].tolist(), times.tolist(), rows.between(within, times), strict=True)
        rows.commit(accepted)
        yield from self._looks_at_ends(accepted)
        stuck = rows.stuck()
        self.lost.update(numbers[stuck].tolist())
        ended = stuck | (accepted & (rows.time >= until))
        if ended.any():
            rows.keep(~ended)

    def _looks_at_ends(self, moved: Mask) -> Iterator[Look]:
        rows, numbers = self._rows, self._rows.numbers
        while len(at_end := np.flatnonzero(moved & is_reached(self._dues.next(numbers), rows.time))):
            self._dues.take(numbers[at_end])
            for row in at_end.tolist():
                yield int(numbers[row]), float(rows.time[row]), rows.values[row].copy()


class _Pending:
    """Times of schedules up to the ends (systems,), of which each system takes one after the other."""

    def __init__(self, schedules: Sequence[Schedule], until: Floats) -> None:
        times = [times_until(schedule, end) for schedule, end in zip(schedules, until.tolist(), strict=False)]
        self._times = np.full((len(until), max(map(len, times), default=0) + 1), np.inf)
        for row, some in zip(self._times, times, strict=False):
            row[: len(some)] = some
        self._taken = np.zeros(len(until), dtype=np.intp)

    def next(self, numbers: Indices) -> Floats:
        """Return the next time of each (k,), ∞ after the last."""
        return np.asarray(self._times[numbers, self._taken[numbers]])

    def take(self, numbers: Indices) -> Floats:
        """Return the next time of each (k,), which is then over."""
        times = self.next(numbers)
        self._taken[numbers] += 1
        return times

    def pass_by(self, numbers: Indices, time: Floats) -> None:
        """Leave out times up to those (k,)."""
        while len(over := numbers[is_reached(self.next(numbers), time)]):
            self._taken[over] += 1
