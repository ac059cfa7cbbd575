"""Tokens of low discrepancy: points of the unit cube mapped to an initial density by inverse distribution functions.

    x = T(u) ,   u at quantiles or Sobol points,   T maps the uniform density of the cube to the density of the tokens

No point is rejected, so that tokens are as even with respect to their density as the points are in the cube. On the
circle tokens at quantiles have W₁ = π/2n to a density without gaps, the least of any n equal masses, and at most π/n.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from meanfield.domains.particles.field import Field
from meanfield.domains.particles.initial import field_harmonic, field_perturbed, scale_normal, transport_moebius
from meanfield.sections import initial as sections
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats, sphere
from solvers.transforms.harmonics import harmonic_transform

BITS = 32  # of a coordinate of a Sobol point
GOLDEN = (np.sqrt(5.0) - 1) / 2
CELLS = 1 << 14  # intervals in which a density of one coordinate is constant
CELLS_NEAR = 1 << 12  # further intervals of the circle around each center of a mixture
RINGS = 512  # least number of rings of the mesh on which a field on the sphere is sampled
TAIL = 9.0  # standard deviations, e^{−40} of the mass beyond


def sample_tokens(initial: sections.SampledDensity, count: int, dimension: int, seed: int) -> Floats:
    """Return directions or positions (count, dimension) of tokens at quantiles or Sobol points of an initial density.

    ``seed`` scrambles the Sobol points, and draws the order of tokens at quantiles.
    """
    return _MAPS[type(initial)](initial, dimension, make_cube_points(initial.sampling, count, dimension, seed))


def make_cube_points(sampling: str, count: int, dimension: int, seed: int) -> Floats:
    """Return scrambled Sobol points (count, dimension) of the open unit cube, or quantiles (count, 2).

    Quantiles are the points ((i + ½)/count, (i + ½)φ mod 1) of a lattice with the golden ratio φ, in random order: the
    position of a token in a sequence or under a causal mask does not depend on the point.
    """
    if sampling == "sobol":
        from scipy.stats import qmc

        points = qmc.Sobol(dimension, bits=BITS, rng=seed).random_base2((count - 1).bit_length())
        return np.asarray(points[:count] + 0.5 ** (BITS + 1))
    numbers = np.random.default_rng(seed).permutation(count) + 0.5
    return np.stack([numbers / count, numbers * GOLDEN % 1], axis=1)


def map_to_sphere(points: Floats, dimension: int) -> Floats:
    """Return unit vectors (n, d), uniform on the sphere for uniform points (n, ≥ d) of the cube.

    For d = 2 the first coordinate is the angle over 2π, and for d = 3 the map of Lambert preserves areas. In more
    dimensions d independent Gaussian coordinates are divided by their norm.
    """
    if dimension == 2:
        return _place_on_circle(2 * np.pi * points[:, 0])
    if dimension == 3:
        u = points[:, 0]
        return _place_about_pole(1 - 2 * u, 2 * np.sqrt(u * (1 - u)), map_to_sphere(points[:, 1:], 2))
    return unit_vectors(_map_to_normal(points, dimension))


def _place_on_circle(angles: Floats) -> Floats:
    """Return the unit vectors (n, 2) with the given angles (n,)."""
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def _place_about_pole(cosines: Floats, sines: Floats, around: Floats) -> Floats:
    """Return unit vectors (n, d) at polar angles, given by cosine and sine, from e₁ in directions (n, d − 1)."""
    return np.column_stack([cosines, sines[:, None] * around])


def _map_to_normal(points: Floats, dimension: int) -> Floats:
    """Return vectors (n, d) of the distribution N(0, I) for uniform points (n, ≥ d) of the cube."""
    from scipy.special import ndtri

    return np.asarray(ndtri(points[:, :dimension]))


def _find_quantiles(levels: Floats, edges: Floats, density: Callable[[Floats], Floats]) -> Floats:
    """Return the quantiles of a density of one coordinate at ``levels`` (n,).

    The density is constant, up to a common factor, between successive ``edges``: its value at the middle.
    """
    masses = density((edges[1:] + edges[:-1]) / 2) * np.diff(edges)
    sums = np.concatenate([[0.0], np.cumsum(masses)])
    return np.interp(levels, sums / sums[-1], edges)


def _sample_von_mises_fisher(kind: sections.VonMisesFisher, dimension: int, points: Floats) -> Floats:
    """Return tokens (n, d) of a mixture: on the circle at its quantiles, else each in a component.

    The first coordinate of a point selects the component, and then the angle from the center.
    """
    centers, concentrations, masses = (np.array(column) for column in kind.columns)
    centers = unit_vectors(centers)
    if dimension == 2:
        return _place_on_circle(_find_angles_on_circle(centers, concentrations, masses, points[:, 0]))
    ends = np.concatenate([[0.0], np.cumsum(masses)]) / masses.sum()
    component = np.searchsorted(ends, points[:, 0], side="right") - 1
    levels = (points[:, 0] - ends[component]) / np.diff(ends)[component]
    around = map_to_sphere(points[:, 1:], dimension - 1)
    tokens = np.empty((len(points), dimension))
    for k, (center, concentration) in enumerate(zip(centers, concentrations, strict=True)):
        on = component == k
        angles = _find_angles_from_center(levels[on], float(concentration), dimension)
        tokens[on] = _reflect_pole_to(_place_about_pole(np.cos(angles), np.sin(angles), around[on]), center)
    return tokens


def _find_reach(concentration: ArrayLike, dimension: int) -> Floats:
    """Return the angle from the center of a von Mises–Fisher density beyond which the density is negligible."""
    deviations = np.sqrt(dimension - 1) + TAIL  # of √c·2 sin(θ/2), about a χ distribution of d − 1 degrees of freedom
    return np.asarray(2 * np.arcsin(deviations / np.maximum(deviations, 2 * np.sqrt(concentration))))


def _find_angles_on_circle(centers: Floats, concentrations: Floats, masses: Floats, levels: Floats) -> Floats:
    """Return the quantiles (n,) of a mixture of von Mises densities on the circle, as angles."""
    from scipy.special import i0e

    middles = np.arctan2(centers[:, 1], centers[:, 0])
    near = middles[:, None] + _find_reach(concentrations, 2)[:, None] * np.linspace(-1, 1, CELLS_NEAR + 1)
    edges = np.unique(np.concatenate([np.linspace(0, 2 * np.pi, CELLS + 1), np.mod(near, 2 * np.pi).ravel()]))

    def density(angles: Floats) -> Floats:
        parts = zip(middles, concentrations, masses / i0e(concentrations), strict=True)
        return np.asarray(sum(m * np.exp(-2 * c * np.sin((angles - middle) / 2) ** 2) for middle, c, m in parts))

    return _find_quantiles(levels, edges, density)


def _find_angles_from_center(levels: Floats, concentration: float, dimension: int) -> Floats:
    """Return the quantiles (n,) of the angle θ from the center of a von Mises–Fisher density on S^{d−1}.

    The density of θ is e^{c cos θ} sin^{d−2} θ, up to a factor.
    """

    def density(theta: Floats) -> Floats:
        logarithm = -2 * concentration * np.sin(theta / 2) ** 2 + (dimension - 2) * np.log(np.sin(theta))
        return np.asarray(np.exp(logarithm - logarithm.max()))

    return _find_quantiles(levels, np.linspace(0.0, float(_find_reach(concentration, dimension)), CELLS + 1), density)


def _reflect_pole_to(vectors: Floats, center: Floats) -> Floats:
    """Return unit vectors (n, d) mapped by an orthogonal matrix that maps e₁ to a unit vector ``center``.

    The matrix is a reflection, up to a sign that avoids cancellation.
    """
    sign = np.copysign(1.0, center[0])
    normal = center + sign * np.eye(len(center))[0]
    return np.asarray(sign * (np.outer(vectors @ normal, normal * (2 / (normal @ normal))) - vectors))


def _sample_field(field: Field, density: Callable[[Floats], Floats], points: Floats) -> Floats:
    """Return tokens (n, d) of the density of a field on the circle or the sphere, up to a factor.

    On the sphere the first coordinate of a point gives the latitude by the masses of rings, and the second gives the
    azimuth by the masses of the cells of a ring.
    """
    if field.dimension == 2:
        edges = np.linspace(0.0, 2 * np.pi, max(CELLS, 64 * field.degree) + 1)
        return _place_on_circle(
            _find_quantiles(points[:, 0], edges, lambda angles: density(field(_place_on_circle(angles))))
        )
    mesh = sphere(max(RINGS, 4 * field.degree))
    masses = density(harmonic_transform(mesh, field.degree).synthesis(field.coefficients)) * mesh.volumes
    sums = np.concatenate([[0.0], np.cumsum(masses)])
    starts, numbers = mesh.ring_start, np.arange(len(mesh.ring_start))
    rings = np.interp(points[:, 0] * sums[-1], sums[starts], numbers)  # of the ring, and a fraction within the ring
    z = np.interp(rings, numbers, np.cos(mesh.ring_edges))
    ring = np.minimum(rings.astype(int), len(mesh.ring_cells) - 1)
    first, last = sums[starts[ring]], sums[starts[ring + 1]]
    cells = np.interp(first + points[:, 1] * (last - first), sums, np.arange(len(sums))) - starts[ring]
    azimuth = _place_on_circle(cells * (2 * np.pi / mesh.ring_cells[ring]))
    return np.column_stack([np.sqrt(1 - z * z)[:, None] * azimuth, z])


def _sample_perturbed(kind: sections.Perturbed, dimension: int, points: Floats) -> Floats:
    """Return tokens (n, d) of the density ∝ e^g with the random field g of a section [initial]."""
    field = field_perturbed(dimension, kind.amplitude, kind.degrees, kind.seed)
    return _sample_field(field, lambda g: np.exp(g - g.max()), points)


def _sample_harmonic(kind: sections.Harmonic, dimension: int, points: Floats) -> Floats:
    """Return tokens (n, d) of the density ∝ 1 + g with the harmonic g of a section [initial]."""
    field = field_harmonic(dimension, kind.degree, kind.order, kind.amplitude)
    return _sample_field(field, lambda g: np.maximum(1 + g, 0.0), points)


_MAPS: dict[type, Callable[[Any, int, Floats], Floats]] = {
    sections.Uniform: lambda kind, d, points: map_to_sphere(points, d),
    sections.Perturbed: _sample_perturbed,
    sections.Harmonic: _sample_harmonic,
    sections.VonMisesFisher: _sample_von_mises_fisher,
    sections.Moebius: lambda kind, d, points: transport_moebius(map_to_sphere(points, d), kind.axis, kind.parameter),
    sections.Gaussian: lambda kind, d, points: scale_normal(_map_to_normal(points, d), kind.mean, kind.variance),
}
