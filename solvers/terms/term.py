"""Protocols of terms: the methods that an equation calls."""

from __future__ import annotations

from typing import Protocol

from ..mesh.mesh import Floats

Step = float | Floats  # a number on the state's device: reading it on the host may wait for the device


class Term(Protocol):
    """An explicit term. :meth:`prepare` evaluates the state, :meth:`rate` uses the result."""

    def prepare(self, time: float, values: Floats) -> Step:
        """Evaluate at (time, values); returns the largest stable time step (NaN for a non-finite state)."""
        ...

    def rate(self, dt: float, rate: Floats) -> None:
        """Add the rate of change at the prepared state, such that a step of dt keeps it admissible."""
        ...


class StiffTerm(Protocol):
    """A term that advances the state by itself, stable for any time step."""

    def longest_step(self, values: Floats) -> Step:
        """The largest step that is accurate, beside terms that are evaluated without this one; ∞ for no limit."""
        ...

    def step(self, dt: float, values: Floats, limited: bool = True) -> Step:
        """Advance ``values`` in place by dt; returns the least of them before what is below zero was limited.

        It stays below zero where they are not to be ``limited``: then nothing has to wait for that number.
        """
        ...
