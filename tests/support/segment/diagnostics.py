"""Diagnostics of tokens on a segment."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.diagnostics.table import Diagnostic, Table
from solvers.mesh.mesh import Floats, Mesh


@dataclass(frozen=True)
class Sample:
    """Masses (cells,) on a mesh."""

    mesh: Mesh
    masses: Floats


def mean(sample: Sample) -> float:
    """Return ∫xρ."""
    return float(sample.masses @ sample.mesh.centers[:, 0])


def sides(sample: Sample) -> Floats:
    """Return the masses (2,) left and right of 0."""
    right = sample.mesh.centers[:, 0] > 0
    return np.array([sample.masses[~right].sum(), sample.masses[right].sum()])


DIAGNOSTICS: Table = {
    "mass": Diagnostic(lambda sample: float(sample.masses.sum()), "", "total mass"),
    "mean": Diagnostic(mean, "", "mean token"),
    "sides": Diagnostic(sides, "side", "mass on the left and on the right"),
}
