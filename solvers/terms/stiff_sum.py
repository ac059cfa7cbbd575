"""Sum of several stiff terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import reduce
from typing import Any

import numpy as np

from ..backends import backend_for
from ..mesh.mesh import Floats, Mesh
from .term import Step, TimeArgumentAdapter


def has_rate(term: Any) -> bool:
    """Return whether a stiff term can evaluate its rate of change, besides advancing a state by ``step``."""
    return hasattr(term, "laplacian") or hasattr(term, "rate")


def add_rate(term: Any, time: float, values: Floats, rate: Floats) -> None:
    """Add the rate of change of a stiff term at a time and a state ``values`` to ``rate``, in place.

    The term has ``prepare`` and ``rate``, or a ``coefficient`` and ``laplacian``; see :func:`has_rate`.
    """
    if hasattr(term, "rate"):
        term.prepare(time, values)
        term.rate(0.0, rate)
        return
    found = backend_for(values).xp.zeros_like(values)
    term.laplacian(values, found)
    rate += term.coefficient * found


class StiffSum:
    """Sum I₁ + I₂ + … of stiff terms, itself a stiff term.

    ``step`` is a symmetric splitting (Strang 1968) of order 2: half steps of all terms, then half steps in reverse
    order. The sum has a rate of change, for methods without splitting, if each term has one.
    """

    def __init__(self, terms: Sequence[Any]) -> None:
        self.terms = tuple(terms)
        self.nonnegative = any(getattr(term, "nonnegative", False) for term in terms)
        self.is_autonomous = all(getattr(term, "is_autonomous", False) for term in terms)
        meshes = (getattr(term, "mesh", None) for term in terms)
        self.mesh = next((mesh for mesh in meshes if isinstance(mesh, Mesh)), None)
        self._stepping = [TimeArgumentAdapter(term) for term in terms]

    def __getstate__(self) -> dict[str, Any]:
        terms = tuple(map(copy, self.terms))  # a copy must not share work arrays with the original
        return vars(self) | {"terms": terms, "_stepping": [TimeArgumentAdapter(term) for term in terms]}

    @property
    def rate(self) -> Callable[[float, Floats], None]:
        """Return the function (dt, rate) → None that adds the rates of change of all terms to ``rate``.

        Raises AttributeError if a term has no rate.
        """
        if not all(map(has_rate, self.terms)):
            raise AttributeError("rate")
        return self._rate

    @property
    def jacobian(self) -> Callable[[int], list[Any]]:
        """Return the function n → list of one matrix for each of n fields: the sum of the matrices of all terms.

        Raises AttributeError if a term has no matrix.
        """
        if not all(hasattr(term, "jacobian") for term in self.terms):
            raise AttributeError("jacobian")
        return self._jacobian

    def prepare(self, time: float, values: Floats) -> Step:
        self._at = time, values
        return np.inf

    def _rate(self, dt: float, rate: Floats) -> None:
        """Add the rates of change of all terms at the prepared state to ``rate``, in place."""
        for term in self.terms:
            add_rate(term, *self._at, rate)

    def _jacobian(self, fields: int) -> list[Any]:
        """Return the Jacobian of the sum of the terms, one sparse matrix for each field."""
        each = [term.jacobian(fields) for term in self.terms]
        return [sum(matrices[1:], matrices[0]) for matrices in zip(*each, strict=True)]

    def longest_step(self, values: Floats, time: float = 0.0) -> Step:
        return reduce(np.minimum, [term.longest_step(time, values) for term in self._stepping])

    def step(self, dt: float, values: Floats, limited: bool = True, time: float = 0.0) -> Step:
        """Advance ``values`` by dt in place from ``time``; return the least value before negative ones are removed.

        ``limited``: whether the terms remove negative values of a density.
        """
        half = dt / 2
        each = [(term, time) for term in self._stepping] + [(term, time + half) for term in self._stepping[::-1]]
        return reduce(np.minimum, [term.step(begin, half, values, limited) for term, begin in each])
