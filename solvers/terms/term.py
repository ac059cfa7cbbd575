"""Protocols of terms: the methods that an equation calls."""

from __future__ import annotations

from typing import Protocol

from ..mesh.checks import takes
from ..mesh.mesh import Floats

Step = float | Floats  # a number on the state's device: reading it on the host may wait for the device


class Term(Protocol):
    """An explicit term. :meth:`prepare` evaluates the state, :meth:`rate` uses the result.

    Each solve works on a copy of the term, ``copy.copy(term)``, so that solves in several threads may share one. A
    term that holds other terms, or arrays that it fills in place, replaces them in ``__getstate__``.
    """

    def prepare(self, time: float, values: Floats) -> Step:
        """Evaluate at (time, values); returns the largest stable time step (NaN for a non-finite state)."""
        ...

    def rate(self, dt: float, rate: Floats) -> None:
        """Add the rate of change at the prepared state, such that a step of dt keeps it admissible."""
        ...


class StiffTerm(Protocol):
    """A term that advances the state by itself, stable for any time step. It is copied as a :class:`Term` is.

    Both methods may leave out ``time``, and then are called without it.
    """

    def longest_step(self, values: Floats, time: float = 0.0) -> Step:
        """The largest step that is accurate, beside terms that are evaluated without this one; ∞ for no limit."""
        ...

    def step(self, dt: float, values: Floats, limited: bool = True, time: float = 0.0) -> Step:
        """Advance ``values`` in place from ``time`` to time + dt.

        Returns the least of them before what is below zero was limited. It stays below zero where they are not to be
        ``limited``: then nothing has to wait for that number.
        """
        ...


class Stepping:
    """Calls of a stiff term with the time, or without it where its methods do not take one."""

    def __init__(self, term: StiffTerm) -> None:
        self._term = term
        self._longest_takes_time, self._step_takes_time = takes(term.longest_step, 2), takes(term.step, 4)

    def longest_step(self, time: float, values: Floats) -> Step:
        """Return ``term.longest_step`` of values at a time."""
        return self._term.longest_step(values, *((time,) if self._longest_takes_time else ()))

    def step(self, time: float, dt: float, values: Floats, limited: bool) -> Step:
        """Advance values in place from a time by dt; returns what ``term.step`` does."""
        return self._term.step(dt, values, limited, *((time,) if self._step_takes_time else ()))
