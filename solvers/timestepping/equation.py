"""Evolution equation: a sum of explicit terms and at most one stiff term."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ..mesh.mesh import Floats
from ..terms.advection import Step, StiffTerm, Term
from .checks import check_methods


@dataclass(frozen=True)
class Equation:
    """∂ₜu = Σ explicit terms + at most one stiff term.

    ``limit`` is applied to the state after each stage, in place (positivity, normalization, …).
    Raises TypeError for what is no term, or not of that kind.
    """

    terms: Sequence[Term]
    stiff: StiffTerm | None = None
    limit: Callable[[Floats], None] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.terms, Sequence):
            raise TypeError(f"terms = {self.terms!r}: expected a list of terms")
        for number, term in enumerate(self.terms):
            check_methods(f"terms[{number}]", term, ("prepare", "rate"))
        if self.stiff is not None:
            check_methods("stiff", self.stiff, ("longest_step", "step"))

    def prepare(self, time: float, values: Floats) -> Step:
        """Evaluate every explicit term; returns the largest stable time step, NaN for a non-finite state."""
        steps = [term.prepare(time, values) for term in self.terms]
        finite = np.where(np.isfinite(values).all(), np.inf, np.nan)
        return reduce(np.minimum, steps, finite)

    def longest_step(self, time: float, values: Floats) -> Step:
        """As ``prepare``, but no longer than the stiff term allows, which the others do not see meanwhile."""
        step = self.prepare(time, values)
        return step if self.stiff is None else np.minimum(step, self.stiff.longest_step(values))


def limit_positivity(values: Floats) -> None:
    """Set to zero what rounding has made negative; fluxes keep ρ ≥ 0 but for the last bit."""
    np.maximum(values, 0.0, out=values)
