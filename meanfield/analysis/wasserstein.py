"""Distances between distributions of tokens: Wasserstein's W₁ and W₂, and L¹.

    W_p(μ, ν)^p = min over plans π with marginals μ and ν of ∬ dist(x, y)^p dπ(x, y)

dist is the geodesic distance, in radians, on spheres S^{d−1}, and |x − y| in R^d. Masses are scaled to 1 first. W_p is
exact on the circle and the line, and for axisymmetric distributions. Their mass moves along meridians (dist(x, y) ≥
|θ − θ'|, attained at equal azimuth), so that W_p is that of the distributions of the polar angle θ. In more dimensions
W_p is exact up to SUPPORTS points each; beyond, points are gathered in patches, with a bound of the error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from meanfield.analysis.measure import PointMeasure, run_edges
from meanfield.analysis.ring_overlap import Places, overlay
from meanfield.analysis.wasserstein_1d import Curve, cumulative_curve, wasserstein_circle, wasserstein_line
from meanfield.analysis.wasserstein_patches import arc_lengths, gather, patch_labels, straight_lengths, transport_cost
from meanfield.domains.table import kind_of
from solvers.io.run_file import Run
from solvers.mesh.mesh import Floats
from solvers.mesh.rings import sphere_cells

SUPPORTS = 500  # points on each side of an exact transport in several dimensions: some hundredths of a second


@dataclass(frozen=True)
class Distance:
    """Distance between measures, with a bound of the error by gathering masses in patches; 0 for an exact distance."""

    value: float
    error: float = 0.0


def wasserstein(a: PointMeasure, b: PointMeasure, order: int = 1, supports: int = SUPPORTS) -> Distance:
    """Return the Wasserstein distance W_p of ``order`` p = 1 or 2 between two measures; radians on spheres.

    In several dimensions measures with more than ``supports`` points are gathered in patches. The error is then at most
    (∫ r^p dμ)^{1/p} + (∫ r^p dν)^{1/p}, r the distance of a mass from its patch's point, by the triangle inequality.
    The error is much smaller where both distributions are spread alike, since both are gathered in the same patches.
    Raises ValueError for two spaces, another order, and a measure without mass.
    """
    if a.space != b.space or order not in (1, 2):
        raise ValueError(f"W{order} of distributions on {a.space} and {b.space}: expected order 1 or 2, and one space")
    if not (a.masses.sum() > 0 and b.masses.sum() > 0):
        raise ValueError("distance from a distribution without mass")
    if all(np.array_equal(getattr(a, part), getattr(b, part)) for part in ("points", "masses", "extents")):
        return Distance(0.0)
    if a.is_line:
        return Distance(wasserstein_line(_curve(a, a.points[:, 0]), _curve(b, b.points[:, 0]), order))
    if a.space == "S1":
        return Distance(wasserstein_circle(_curve(a, _angles(a)), _curve(b, _angles(b)), order))
    a, b = common_patches(a, b, supports)
    shares = a.masses / a.masses.sum(), b.masses / b.masses.sum()
    lengths = (arc_lengths if a.space.startswith("S") else straight_lengths)(a.points, b.points)
    value = transport_cost(*shares, lengths**order) ** (1 / order)
    return Distance(value, sum(float(w @ m.extents**order) ** (1 / order) for w, m in zip(shares, (a, b), strict=True)))


def common_patches(a: PointMeasure, b: PointMeasure, supports: int = SUPPORTS) -> tuple[PointMeasure, PointMeasure]:
    """Return two measures with their points gathered in at most ``supports`` patches common to both.

    In each patch a measure keeps its own mass and centroid. The measures are returned unchanged in one dimension, and
    where both have few points; points without mass are removed if that suffices.
    """
    if a.is_line or a.space == "S1" or max(len(a.masses), len(b.masses)) <= supports:
        return a, b
    occupied = [np.flatnonzero(m.masses) for m in (a, b)]  # once clusters have collapsed few cells hold all mass
    if max(map(len, occupied)) <= supports:
        pairs = zip((a, b), occupied, strict=True)
        first, second = (PointMeasure(m.space, m.points[on], m.masses[on], m.extents[on]) for m, on in pairs)
        return first, second
    labels: tuple[Places, ...]
    if a.rings is None and np.array_equal(a.points, b.points):
        labels = (patch_labels(a.points, sum(m.masses / m.masses.sum() for m in (a, b)), supports),) * 2
    elif a.rings is None and b.rings is None:
        shares = np.concatenate([m.masses / m.masses.sum() for m in (a, b)])
        both = patch_labels(np.concatenate([a.points, b.points]), shares, supports)
        labels = both[: len(a.masses)], both[len(a.masses) :]
    else:
        (a, b), labels = _patches_of_cells(a, b, supports)
    on_sphere = a.space.startswith("S")
    found = (gather(m.points, m.masses, m.extents, part, on_sphere) for m, part in zip((a, b), labels, strict=True))
    first, second = (PointMeasure(a.space, *patches) for patches in found)
    return first, second


def _patches_of_cells(
    a: PointMeasure, b: PointMeasure, supports: int
) -> tuple[tuple[PointMeasure, ...], tuple[Places, ...]]:
    """Return two measures on S², and the patch of each of their points; patches consist of cells of the coarser mesh.

    A patch that cut cells would have their centers on one side and tokens on both, and so a spurious difference. A
    finer mesh is therefore cut into the pieces that lie in the cells of the coarser one.
    """
    base = min((m for m in (a, b) if m.rings is not None), key=lambda m: len(m.masses))
    parts = [(m, np.arange(len(m.masses))) if m is base else _bin_to_cells(base, m) for m in (a, b)]
    shares = sum(np.bincount(cells, m.masses / m.masses.sum(), len(base.masses)) for m, cells in parts)
    labels = patch_labels(base.points, np.asarray(shares), supports)
    return tuple(m for m, _ in parts), tuple(labels[cells] for _, cells in parts)


def _bin_to_cells(base: PointMeasure, other: PointMeasure) -> tuple[PointMeasure, Places]:
    """Return the measure ``other`` on S², and the cell of the mesh of ``base`` around each of its points.

    A measure on another mesh is first cut into pieces that lie in the cells of ``base``.
    """
    assert base.rings is not None
    if other.rings is None:
        x, y, z = other.points.T
        return other, sphere_cells(base.rings, np.arccos(z.clip(-1, 1)), np.arctan2(y, x))
    if np.array_equal(base.rings, other.rings):
        return other, np.arange(len(other.masses))
    pieces = overlay(other.rings, base.rings)
    masses = other.masses[pieces.first] * pieces.shares
    return PointMeasure(other.space, pieces.points, masses, other.extents[pieces.first]), pieces.second


def distance_l1(a: Run, k: int, b: Run, j: int) -> float | None:
    """Return the L¹ distance ∫|ρ_a − ρ_b|, from 0 to 2, between snapshot k of run a and snapshot j of run b.

    On two meshes the mass on the finer mesh is moved to the coarser, cell by cell, in proportion to the common length
    or area. The result is None for tokens, on different manifolds, and for two meshes of a space with directions and
    radii.
    """
    kind = kind_of(a.manifold)
    if a.manifold != b.manifold or kind.has_tokens:
        return None
    masses = [run.density(at) * run.cell_areas for run, at in ((a, k), (b, j))]
    if a.cells == b.cells and np.array_equal(a.cell_areas, b.cell_areas):
        return float(np.abs(masses[0] - masses[1]).sum())
    (fine, from_fine), (coarse, at_coarse) = sorted(zip((a, b), masses, strict=True), key=lambda each: -each[0].cells)
    if kind.has_radius:
        return None
    return float(np.abs(_coarsen_masses(fine, from_fine, coarse) - at_coarse).sum())


def _coarsen_masses(fine: Run, masses: Floats, coarse: Run) -> Floats:
    """Return the masses of the cells of a fine mesh, moved to the cells of the coarser mesh of another run."""
    if kind_of(fine.manifold).shows_rings:
        pieces = overlay(fine.ring_cells, coarse.ring_cells)
        return np.bincount(pieces.second, masses[pieces.first] * pieces.shares, coarse.cells).astype(float)
    sums = np.concatenate([[0.0], np.cumsum(masses)])
    return np.diff(np.interp(run_edges(coarse), run_edges(fine), sums))


def _curve(measure: PointMeasure, places: Floats) -> Curve:
    """Return the cumulative distribution of a measure along a line, given the position of each point."""
    return cumulative_curve(places, measure.extents, measure.masses)


def _angles(measure: PointMeasure) -> Floats:
    """Return the angles (n,), from 0 to 2π, of the points of a measure on the circle."""
    return np.mod(np.arctan2(measure.points[:, 1], measure.points[:, 0]), 2 * np.pi)
