"""Tokens for figures: directions, radii, binned densities of many tokens, and principal axes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from meanfield.figures.axes import Floats
from meanfield.figures.run_data import Integers, RunData, TokenData
from meanfield.figures.sphere_map import cell_angles, polar_and_azimuth
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import sphere
from solvers.mesh.rings import sphere_cells

MAX_LINES, MAX_DOTS = 300, 3000  # tokens drawn one by one: as lines over time, and as dots at one time
FEW_CELLS, FEW_RINGS = 360, 64  # cells of the circle and rings of the sphere for tokens drawn one by one
PER_CELL = 12  # tokens in a cell of a uniform distribution, for more tokens
CELLS, RINGS = (180, 720), (32, 96)  # smallest and largest numbers for more tokens, on the circle and the sphere
SPREAD = 0.25  # fraction of the largest variance: tokens with less have collapsed
MAX_SAMPLED = 2048  # largest number of tokens for principal axes, at equal steps through the list
MAX_DOT_AREA, MIN_DOT_AREA = 350.0, 4.0  # points²: area of a dot with all mass, and smallest area of a dot
MERGE_RADIUS = 0.01  # fraction of the size of a panel: closer dots are merged


def tokens_of(run_data: RunData) -> TokenData:
    """Return the tokens in the data of a run of particles."""
    assert run_data.particles is not None
    return run_data.particles


def directions(run_data: RunData, k: int) -> Floats:
    """Return the directions (n, d) of the tokens of snapshot k, unit vectors; zero for a token at the origin."""
    return unit_vectors(tokens_of(run_data).positions(k))


def angles(points: Floats) -> Floats:
    """Return the angles (n,) of points (n, 2), from 0 to 2π."""
    return np.asarray(np.mod(np.arctan2(points[:, 1], points[:, 0]), 2 * np.pi))


def as_density(run_data: RunData) -> RunData:
    """Return the directions of tokens in R² or R³ as a density on the circle or sphere, binned into cells.

    The diagnostics omit the mass, which tokens conserve.
    """
    count = len(tokens_of(run_data).weights)
    if run_data.dimension == 2:
        cells = FEW_CELLS if count <= MAX_LINES else int(np.clip(count // PER_CELL, *CELLS))
        return _bin_tokens(run_data, "circle", np.array([cells]), np.full(cells, 2 * np.pi / cells))
    many = int(np.clip(np.sqrt(np.pi * count / (4 * PER_CELL)), *RINGS))
    ring_cells = sphere(FEW_RINGS if count <= MAX_DOTS else many).ring_cells
    return _bin_tokens(run_data, "sphere", ring_cells, cell_angles(ring_cells)[2])


def _bin_tokens(run_data: RunData, manifold: str, ring_cells: Integers, areas: Floats) -> RunData:
    """Return the directions of tokens as a density on the circle or sphere with these cells and areas."""
    weights = tokens_of(run_data).weights

    def density(k: int) -> Floats:
        """Return the density (cells,) of the directions of the tokens of snapshot k."""
        cells = _cells(directions(run_data, k), ring_cells)
        return np.asarray(np.bincount(cells, weights, len(areas)) / (areas * weights.sum()))

    recorded = {name: values for name, values in run_data.diagnostics.items() if name != "mass"}
    plain = replace(run_data, diagnostics=recorded, particles=None, dimension=None)
    return replace(plain, manifold=manifold, ring_cells=ring_cells, density=density)


def _cells(points: Floats, ring_cells: Integers) -> NDArray[np.int64]:
    """Return the cell (n,) of the circle or sphere that contains each of the unit vectors (n, d)."""
    if points.shape[1] == 2:
        count = int(ring_cells[0])
        return np.minimum((angles(points) * (count / (2 * np.pi))).astype(np.int64), count - 1)
    return sphere_cells(ring_cells, *polar_and_azimuth(points))


def token_radii(run_data: RunData, k: int) -> Floats:
    """Return the radius |x| (n,) of each token of snapshot k."""
    return np.asarray(np.linalg.norm(tokens_of(run_data).positions(k), axis=1))


def token_quantiles(run_data: RunData, snapshots: Iterable[int], parts: Floats) -> Floats:
    """Return quantiles (snapshots, parts) of the radius of tokens, for the fractions ``parts`` of the mass."""
    weights = tokens_of(run_data).weights / tokens_of(run_data).weights.sum()
    found = []
    for k in snapshots:
        radii = token_radii(run_data, k)
        order = np.argsort(radii)
        cumulative = np.cumsum(weights[order])
        found.append(radii[order[np.minimum(np.searchsorted(cumulative, parts - 1e-12), len(radii) - 1)]])
    return np.array(found)


def variance(run_data: RunData, k: int) -> float:
    """Return the variance ∫|θ − θ̄|² of the directions θ of tokens in snapshot k, from 0 to 1."""
    points, weights = directions(run_data, k), tokens_of(run_data).weights / tokens_of(run_data).weights.sum()
    return float(weights @ ((points - weights @ points) ** 2).sum(axis=1))


def principal_axes(run_data: RunData, count: int = 2) -> tuple[int, Floats, float]:
    """Return a snapshot of tokens, the principal axes (d, count) of its directions, and their share of its variance.

    It is the last snapshot with spread directions: their variance is at least a quarter of its maximum over all
    snapshots. The largest entry of each axis is positive.
    """
    variances = np.array([variance(run_data, k) for k in range(len(run_data.times))])
    last = int(np.flatnonzero(variances >= SPREAD * variances.max())[-1])
    points, weights = directions(run_data, last), tokens_of(run_data).weights
    chosen = np.unique(np.linspace(0, len(points) - 1, MAX_SAMPLED).astype(int))
    points, weights = points[chosen], weights[chosen] / weights[chosen].sum()
    scaled = np.sqrt(weights)[:, None] * (points - weights @ points)
    _, values, axes = np.linalg.svd(scaled, full_matrices=len(points) < count)
    total = float((values**2).sum())
    leading = np.vstack([axes, np.zeros((count, axes.shape[1]))])[:count]  # in one dimension there is one axis
    leading = leading * np.sign(leading[np.arange(count), np.abs(leading).argmax(axis=1)])[:, None]
    return last, leading.T, float((values[:count] ** 2).sum()) / total if total > 0 else 1.0


def merge_points(points: Floats, masses: Floats, size: float) -> tuple[Floats, Floats]:
    """Return points (n, 2) merged within small squares: positions (k, 2) and fractions (k,) of the mass.

    The side of a square is ``MERGE_RADIUS * size``, ``size`` the width of the picture.
    """
    squares = np.round(points / (MERGE_RADIUS * size)).astype(np.int64)
    _, group = np.unique(squares, axis=0, return_inverse=True)
    group_masses = np.bincount(group, masses)
    sums = [np.bincount(group, masses * x) for x in points.T]
    return np.stack(sums, axis=1) / np.where(group_masses > 0, group_masses, 1.0)[:, None], group_masses / masses.sum()


def dot_areas(masses: Floats) -> Floats:
    """Return the areas in points² of dots of tokens, given their shares of the mass."""
    return np.maximum(MAX_DOT_AREA * masses, MIN_DOT_AREA)
