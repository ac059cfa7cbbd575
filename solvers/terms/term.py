"""Protocols of terms: the methods that an equation calls."""

from __future__ import annotations

from typing import Protocol

from ..mesh.checks import takes
from ..mesh.mesh import Floats

Step = float | Floats  # a number on the state's device: a read on the host may block until the device has finished


class Term(Protocol):
    """Explicit term: :meth:`prepare` evaluates at the state, :meth:`rate` uses the result.

    Each solve works on a copy of the term, ``copy.copy(term)``, so that solves in several threads may share one. A
    term that holds other terms, or arrays that it fills in place, replaces them in ``__getstate__``.
    """

    def prepare(self, time: float, values: Floats) -> Step:
        """Evaluate at (time, values); return the largest stable time step (NaN for a non-finite state)."""
        ...

    def rate(self, dt: float, rate: Floats) -> None:
        """Add the rate of change at the prepared state, such that a step of dt keeps the state admissible."""
        ...


class StiffTerm(Protocol):
    """Term with a step of its own, stable for any time step. Each solve copies the term, as in :class:`Term`.

    Both methods may omit the parameter ``time``.
    """

    def longest_step(self, values: Floats, time: float = 0.0) -> Step:
        """Return the longest step for which splitting from the other terms is accurate; ∞ for no limit."""
        ...

    def step(self, dt: float, values: Floats, limited: bool = True, time: float = 0.0) -> Step:
        """Advance ``values`` in place from ``time`` to time + dt.

        Return the least value before negative values are limited. Values that are not ``limited`` stay negative, so
        that no result has to be read from the device.
        """
        ...


class Stepping:
    """Caller of a stiff term's methods, with or without the time as their signatures require."""

    def __init__(self, term: StiffTerm) -> None:
        self._term = term
        self._longest_takes_time, self._step_takes_time = takes(term.longest_step, 2), takes(term.step, 4)

    def longest_step(self, time: float, values: Floats) -> Step:
        """Return ``term.longest_step`` of values at a time."""
        return self._term.longest_step(values, *((time,) if self._longest_takes_time else ()))

    def step(self, time: float, dt: float, values: Floats, limited: bool) -> Step:
        """Advance values in place from a time by dt; return the result of ``term.step``."""
        return self._term.step(dt, values, limited, *((time,) if self._step_takes_time else ()))
