"""Several stiff terms as one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ..mesh.mesh import Floats, Mesh
from .term import Step


def has_rate(term: Any) -> bool:
    """Whether a stiff term has a rate of change, beside steps of its own."""
    return hasattr(term, "laplacian") or hasattr(term, "rate")


def add_rate(term: Any, time: float, values: Floats, rate: Floats) -> None:
    """rate += I(t, u) of a stiff term that has a rate."""
    if hasattr(term, "rate"):
        term.prepare(time, values)
        term.rate(0.0, rate)
        return
    found = np.zeros_like(values)
    term.laplacian(values, found)
    rate += term.coefficient * found


class StiffSum:
    """I₁ + I₂ + …: implicit together; a step by itself takes half steps forth and back (Strang 1968), of order 2.

    The sum has rates, which methods without splitting take, where each term has them.
    """

    def __init__(self, terms: Sequence[Any]) -> None:
        self.terms = tuple(terms)
        self.nonnegative = any(getattr(term, "nonnegative", False) for term in terms)
        meshes = (getattr(term, "mesh", None) for term in terms)
        self.mesh = next((mesh for mesh in meshes if isinstance(mesh, Mesh)), None)
        if all(map(has_rate, terms)):
            self.rate = self._rate
        if all(hasattr(term, "jacobian") for term in terms):
            self.jacobian = self._jacobian

    def prepare(self, time: float, values: Floats) -> Step:
        self._at = time, values
        return np.inf

    def _rate(self, dt: float, rate: Floats) -> None:
        for term in self.terms:
            add_rate(term, *self._at, rate)

    def _jacobian(self, fields: int) -> list[Any]:
        each = [term.jacobian(fields) for term in self.terms]
        return [sum(matrices[1:], matrices[0]) for matrices in zip(*each, strict=True)]

    def longest_step(self, values: Floats) -> Step:
        longest: Step = reduce(np.minimum, [term.longest_step(values) for term in self.terms])
        return longest

    def step(self, dt: float, values: Floats, limited: bool = True) -> Step:
        """Advance in place by dt; returns the least value before undershoots were limited."""
        each = (*self.terms, *self.terms[::-1])
        lowest: Step = reduce(np.minimum, [term.step(dt / 2, values, limited) for term in each])
        return lowest
