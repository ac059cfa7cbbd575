"""Diagnostics of tokens that are not confined to a sphere: on the line, and with a free radius."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.clusters.on_cells import find_clusters
from meanfield.diagnostics.overflow import OVERFLOW
from meanfield.diagnostics.table import Diagnostic, Table
from meanfield.model.functionals import root_mean_square
from solvers.mesh.mesh import Floats, Mesh


@dataclass(frozen=True)
class UnboundedTokens:
    """Density of tokens that are not confined to a sphere: masses (cells,) at the cell centers ``points`` (cells, d).

    escaped      masses in the innermost and the outermost cells, which are at the ends of the mesh
    directions   mesh of directions, and density on this mesh; None on the line
    scale        angle in radians below which two clusters count as one
    """

    points: Floats
    masses: Floats
    escaped: tuple[float, float]
    directions: tuple[Mesh, Floats] | None = None
    scale: float = 0.0


def mass(sample: UnboundedTokens) -> float:
    """Return the total mass ∫ρ of the tokens."""
    return float(sample.masses.sum())


def centroid(sample: UnboundedTokens) -> Floats:
    """Return the mean ∫xρ (d,) of the tokens."""
    return np.asarray(sample.masses @ sample.points)


def variance(sample: UnboundedTokens) -> float:
    """Return the variance ∫|x − ∫xρ|²ρ of the tokens, the trace of their covariance."""
    away = sample.points - centroid(sample)
    return float(sample.masses @ np.einsum("nd,nd->n", away, away))


def radius(sample: UnboundedTokens) -> float:
    """Return the root mean square distance √∫|x|²ρ of the tokens from the origin."""
    return float(root_mean_square(sample.masses, sample.points))


def escaped(sample: UnboundedTokens) -> Floats:
    """Return the masses (2) in the innermost and the outermost cells; on the line at its left and its right end."""
    return np.array(sample.escaped)


def clusters(sample: UnboundedTokens) -> float:
    """Return the number of clusters of directions of the tokens, found by persistence."""
    assert sample.directions is not None  # the table has this name only for meshes with directions
    return float(find_clusters(*sample.directions, reach=sample.scale).count)


DIAGNOSTICS: Table = {
    "mass": Diagnostic(mass, "", "total mass"),
    "centroid": Diagnostic(centroid, "d", "mean token"),
    "variance": Diagnostic(variance, "", "trace of the covariance of the tokens", attributes=OVERFLOW),
    "radius": Diagnostic(radius, "", "root mean square distance of the tokens from the origin"),
    "escaped": Diagnostic(escaped, "end", "mass in the cells at both ends of the mesh"),
    "clusters": Diagnostic(clusters, "", "number of clusters of directions by persistence"),
}
DIAGNOSTICS_LINE: Table = {name: entry for name, entry in DIAGNOSTICS.items() if name != "clusters"}
