"""Exact sampling of tokens from a density that is a function of a field on the circle or the sphere.

    ρ ∝ e^{f(g)} ,   g a trigonometric polynomial or a sum of spherical harmonics, f increasing

The conventions of the harmonics are those of solvers/transforms/harmonics.py; this module sums them at any points.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from solvers.mesh.mesh import Floats, Integers, Mesh, circle, sphere
from solvers.transforms.harmonics import Complexes, harmonic_transform

BLOCK = 1 << 14  # number of points at a time
MAX_TRIES = 1 << 18
CELLS_PER_DEGREE = (64, 40)  # cells of the circle, and rings of the sphere, for each degree
MAX_RINGS = 512  # largest number of rings, unless four rings for each degree are more
CELL_RADIUS = 2.1  # bound of the distance of a point of a cell on the sphere from the center, in half heights of a ring


class Field:
    """Real field g(x) = Σ_l c_l Y_l(x) on the circle or the sphere, a sum of harmonics Y_l, at any points x.

    coefficients   c (degree + 1) on the circle, (degree + 1, degree + 1) on the sphere, by degree and order
    """

    def __init__(self, coefficients: Complexes) -> None:
        self.coefficients, self.degree = coefficients, len(coefficients) - 1
        self.dimension = coefficients.ndim + 1

    def __call__(self, points: Floats) -> Floats:
        """Return the values (n,) of the field at unit vectors (n, d)."""
        add_up = _values_on_circle if self.dimension == 2 else _values_on_sphere
        blocks = [add_up(self.coefficients, points[i : i + BLOCK]) for i in range(0, len(points), BLOCK)]
        return np.concatenate(blocks) if blocks else np.empty(0)


def _values_on_circle(coefficients: Complexes, points: Floats) -> Floats:
    """Return the values (n,) at unit vectors (n, 2) of a real trigonometric polynomial with coefficients c.

    The values are 2 Re Σ_{l>0} c_l e^{ilφ}/√(2π) plus the term of c_0, by Horner's scheme.
    """
    phase = points[:, 0] + 1j * points[:, 1]
    total = np.zeros(len(points), dtype=complex)
    for value in coefficients[:0:-1]:
        total = (total + value) * phase
    return np.asarray((2 * total.real + coefficients[0].real) / np.sqrt(2 * np.pi))


def _values_on_sphere(coefficients: Complexes, points: Floats) -> Floats:
    """Return the values (n,) at unit vectors (n, 3) of a sum of spherical harmonics with coefficients c_lm.

    The values are Σ_m (x + iy)^m R_m(z), R_m = Σ_l c_lm P̄_lm/sin^m by the recurrence in l at fixed m, which is stable.
    """
    degree, z = len(coefficients) - 1, points[:, 2]
    phase, power = points[:, 0] + 1j * points[:, 1], np.full(len(points), 0.5 / np.sqrt(np.pi), dtype=complex)
    total = np.zeros(len(points))
    for m in range(degree + 1):
        before, here = np.zeros_like(z), np.ones_like(z)
        series = coefficients[m, m] * here
        for l in range(m + 1, degree + 1):
            up = np.sqrt((4 * l * l - 1) / (l * l - m * m))
            down = np.sqrt((2 * l + 1) * ((l - 1) ** 2 - m * m) / ((2 * l - 3) * (l * l - m * m)))
            before, here = here, up * z * here - down * before
            series = series + coefficients[l, m] * here
        total += (1 if m == 0 else 2) * (power * series).real
        power = power * phase * np.sqrt((2 * m + 3) / (2 * m + 2))
    return total


def draw_from_field(field: Field, log_density: Callable[[Floats], Floats], count: int, seed: int) -> Floats:
    """Return independent tokens (count, d) drawn from the density e^{log_density(g(x))}, up to a factor, of a field g.

    ``log_density`` is increasing. Rejection sampling: a cell of a fine mesh is drawn by an upper bound of its mass,
    then a uniform point of the cell. The bound is Bernstein's, |g′| ≤ nG and |g″| ≤ n²G along great circles, n the
    degree and G = max |g|, so the rule is exact.
    """
    mesh, values, reach = _field_on_mesh(field)
    bounds = log_density(_upper_bounds(values, field.degree * reach))
    cumulative_masses = np.cumsum(mesh.volumes * np.exp(bounds - bounds.max()))
    random = np.random.default_rng(seed)
    drawn, found, tried = [np.empty((0, field.dimension))], 0, 0
    while found < count:
        tries = min(int((count - found) * 1.2 * (tried + 1) / (found + 1)) + 64, MAX_TRIES)
        cells = np.searchsorted(cumulative_masses, random.random(tries) * cumulative_masses[-1], side="right").clip(
            max=mesh.cells - 1
        )
        points = _random_points_in_cells(mesh, cells, random)
        with np.errstate(invalid="ignore", divide="ignore"):  # the logarithm of a density that is 0 except for rounding
            accepted = np.log(random.random(tries)) < log_density(field(points)) - bounds[cells]
        drawn.append(points[accepted])
        found, tried = found + len(drawn[-1]), tried + tries
    return np.concatenate(drawn)[:count]


def _upper_bounds(values: Floats, reach: float) -> Floats:
    """Return upper bounds (cells,) of a field within cells, from its values at the centers, by Bernstein's inequality.

    ``reach`` is the degree of the field times the largest distance of a point of a cell from the center.
    """
    largest = np.abs(values).max() / (1 - reach**2 / 2)
    return np.asarray(np.minimum(values + reach * largest, largest))


def lowest(field: Field) -> float:
    """Return the least value of a field at the centers of a mesh that resolves the field."""
    return float(_field_on_mesh(field)[1].min())


def _field_on_mesh(field: Field) -> tuple[Mesh, Floats, float]:
    """Return a mesh that resolves a field, the field at its cell centers, and the reach of a cell.

    The reach is the largest distance of a point of a cell from the center.
    """
    cells = CELLS_PER_DEGREE[field.dimension - 2] * field.degree
    if field.dimension == 2:
        mesh, reach = circle(max(cells, 64)), np.pi / max(cells, 64)
    else:
        rings = max(min(cells, MAX_RINGS), 4 * field.degree)
        mesh, reach = sphere(rings), CELL_RADIUS * np.pi / (2 * rings)
    return mesh, harmonic_transform(mesh, field.degree).synthesis(field.coefficients), reach


def _random_points_in_cells(mesh: Mesh, cells: Integers, random: np.random.Generator) -> Floats:
    """Return a uniform random point (n, d) in each of the cells of a mesh with the numbers ``cells`` (n,)."""
    along = random.random(len(cells))
    if mesh.dimension == 1:
        angle = (cells + along) * (2 * np.pi / mesh.cells)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    ring = np.searchsorted(mesh.ring_start, cells, side="right") - 1
    angle = (cells - mesh.ring_start[ring] + along) * (2 * np.pi / mesh.ring_cells[ring])
    edges = np.cos(mesh.ring_edges)
    z = edges[ring] + random.random(len(cells)) * (edges[ring + 1] - edges[ring])
    radius = np.sqrt(1 - z * z)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), z], axis=1)
