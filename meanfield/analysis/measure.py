"""Distributions of tokens as weighted points, from the snapshots of runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from meanfield.domains.table import kind_of
from meanfield.runtime.segments import case_table
from solvers.io.repair import FileError
from solvers.io.run_file import Run
from solvers.mesh.mesh import Floats

Integers = NDArray[np.integer]

CELL_EXTENT = 0.5  # root mean square distance from the center of a cell of area 1: 0.41 of a square, 0.46 of 2 by 1


@dataclass(frozen=True, eq=False)
class PointMeasure:
    """Measure of masses (n) at points (n, d) of a space.

    space     "S1", "S2", … for unit vectors; "R1", "R2", … for positions; "polar3", … for polar angles on S^{d−1}, with
              d = 3, …
    extents   (n) extent of the mass at each point, 0 for an atom. In one dimension it is the length of the cell over
              which the mass is spread evenly, else the root mean square distance of the mass from the point
    rings     (rings,) cells of each ring of latitude where the points are all cells of a mesh of S², in order
    """

    space: str
    points: Floats
    masses: Floats
    extents: Floats
    rings: Integers | None = None

    @property
    def is_line(self) -> bool:
        """Return whether the points lie on a line: they are positions in R¹ or polar angles."""
        return self.space == "R1" or self.space.startswith("polar")

    @property
    def centroid(self) -> Floats:
        """Return the mean ∫x dμ / ∫dμ of the points (d,); for polar angles θ the mean of cos θ (1,)."""
        values = np.cos(self.points) if self.space.startswith("polar") else self.points
        return np.asarray(self.masses @ values / self.masses.sum())


def atoms(space: str, points: Floats, masses: Floats | None = None) -> PointMeasure:
    """Return the measure of point masses ``masses`` (n) at points (n, d) of a space; by default each mass is 1/n."""
    n = len(points)
    return PointMeasure(space, points, np.full(n, 1.0 / n) if masses is None else masses, np.zeros(n))


def spaces_of(run: Run) -> tuple[str, ...]:
    """Return the spaces in which the tokens of a run can be compared with those of another run.

    Names are as in `PointMeasure`. Particles can be compared by direction or by position: positions come first without
    layer norm, directions first otherwise.
    """
    case = case_table(run.attributes)
    kind = kind_of(run.manifold)
    if kind.has_tokens:
        d = run.positions(0).shape[1] if run.snapshots else int(case["domain"]["dimension"])
        places = (f"S{d - 1}", f"R{d}") if d > 1 else ("R1",)
        return places[::-1] if case.get("stabilizers", {}).get("layer_norm") == "none" else places
    return (kind.space or f"polar{case.get('domain', {}).get('dimension', 3)}",)


def measure_of(run: Run, k: int, space: str | None = None) -> PointMeasure:
    """Return the distribution of the tokens in snapshot k, in ``space``, by default the first of `spaces_of`.

    In one dimension the mass of a cell is spread evenly; in more dimensions it is a point with an extent. Raises
    IndexError for a missing snapshot, and FileError for directions of tokens of which one is at the origin.
    """
    space = space or spaces_of(run)[0]
    kind = kind_of(run.manifold)
    if kind.has_tokens:
        points = run.positions(k)
        if space.startswith("S"):
            points = _directions(run, k, points)
        return atoms(space, points, run.weights)
    points, masses = run.cell_centers, run.density(k) * run.cell_areas
    if kind.has_radius:
        return _distribution_with_radius(run, k, space, masses)
    if kind.shows_rings:
        return PointMeasure(space, points, masses, CELL_EXTENT * np.sqrt(run.cell_areas), run.ring_cells)
    return PointMeasure(space, points, masses, run.cell_areas)


def _directions(run: Run, k: int, points: Floats) -> Floats:
    """Return the directions (n, d) of tokens at points (n, d). Raises FileError for a token at the origin."""
    radii: Floats = np.linalg.norm(points, axis=1)
    if np.any(radii == 0.0):
        raise FileError(
            f"{run.path}: token {np.argmin(radii) + 1} is at the origin at t = {run.times[k]:g}, where it has no "
            "direction; expected the directions of all tokens to compare them with points of the sphere"
        )
    return points / radii[:, None]


def _distribution_with_radius(run: Run, k: int, space: str, masses: Floats) -> PointMeasure:
    """Return the distribution in R^d of a density over direction and radius in snapshot k with ``masses`` of cells.

    The mass of a cell is at the middle of its log r, with the extent of the cell.
    """
    domain = case_table(run.attributes).get("domain", {})
    edges = run.variable("radius_edge") * np.exp(domain.get("expansion", 0.0) * run.times[k])
    radii, thickness = np.sqrt(edges[1:] * edges[:-1]), np.diff(edges)
    directions = len(masses) // len(radii)
    across = np.repeat(radii, directions) * (4 * np.pi / directions) ** 0.5
    if run.cell_centers.shape[1] == 2:
        across = np.repeat(radii, directions) * 2 * np.pi / directions
    points = np.repeat(radii, directions)[:, None] * run.cell_centers
    return PointMeasure(space, points, masses, CELL_EXTENT * np.hypot(across, np.repeat(thickness, directions)))


def run_edges(run: Run) -> Floats:
    """Return the edges (cells + 1,) of the cells of a run in one dimension.

    On the circle the edges are angles, otherwise the values of the file.
    """
    edges = kind_of(run.manifold).edges
    return np.linspace(0.0, 2 * np.pi, run.cells + 1) if edges is None else run.variable(edges)
