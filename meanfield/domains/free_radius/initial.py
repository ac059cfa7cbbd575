"""Initial densities of tokens with a radius, of mass 1: arrays (radii, directions)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from meanfield.domains.free_radius.equation import FreeRadius
from meanfield.model.errors import ArgumentError
from solvers.mesh.mesh import Floats
from solvers.remap.deposit import deposit_points


def initial_at_radius(space: FreeRadius, directions: Floats, radius: float) -> Floats:
    """Return the density (radii, directions) of tokens at one radius whose directions have a given density.

    The radius is split over two radial cells such that the mean of log r is exact. Raises ValueError for a radius
    outside the centers of the cells of the mesh.
    """
    (radial,) = _split(space, np.array([radius])).T
    return initial_product(space, directions, radial / space.radial.volumes)


def initial_at_points(space: FreeRadius, points: ArrayLike, masses: ArrayLike | None = None) -> Floats:
    """Return the density (radii, directions) of point masses at ``points`` x_k = r_k ω_k (n, d), with mass 1.

    ``masses`` (n,) are equal by default. Radii are split as in :func:`initial_at_radius`; directions keep mass and
    first moment. Raises ValueError for a radius outside the centers of the cells of the mesh.
    """
    positions = np.asarray(points, dtype=float)
    radii = np.linalg.norm(positions, axis=1)
    shares = np.ones(len(positions)) if masses is None else np.asarray(masses, dtype=float)
    density = np.zeros(space.shape)
    for cell, weights in enumerate(_split(space, radii) * shares):
        if (occupied := weights > 0).any():
            density[cell] = deposit_points(
                space.directions, positions[occupied] / radii[occupied, None], weights[occupied]
            )
    return _normalized(space, density / space.radial.volumes[:, None])


def _split(space: FreeRadius, radii: Floats) -> Floats:
    """Return the shares (cells, n) of each radius (n,) in the radial cells.

    Each radius is split over two cells such that the mean of log r is exact.
    """
    s, centers = space.radial.centers[:, 0], space.radii()
    for radius in radii[(radii < centers[0]) | (radii > centers[-1])]:
        raise ArgumentError("radius", float(radius), f"{centers[0]:.4g} to {centers[-1]:.4g}, the radii of the mesh")
    outer = np.clip(np.searchsorted(s, np.log(radii)), 1, len(s) - 1)
    beyond = (np.log(radii) - s[outer - 1]) / (s[outer] - s[outer - 1])
    shares, each = np.zeros((len(s), len(radii))), np.arange(len(radii))
    shares[outer - 1, each], shares[outer, each] = 1.0 - beyond, beyond
    return shares


def initial_product(space: FreeRadius, directions: Floats, radial: Floats) -> Floats:
    """Return the density (radii, directions) of mass 1 that is a product of densities of directions and of log r.

    ``directions`` has the shape (directions,) and ``radial`` (radii,).
    """
    return _normalized(space, np.outer(radial, directions))


def initial_gaussian(space: FreeRadius, mean: ArrayLike, variance: ArrayLike) -> Floats:
    """Return the normal density N(mean, variance) of R^d as a density (radii, directions), with mass 1.

    The variance Σ is a number or a matrix (d, d). A cell has ∫ e^{−½⟨x − m, Σ⁻¹(x − m)⟩} r^d ds, since Lebesgue's
    measure is r^{d−1} dr dω = r^d ds dω with s = log r. The integral is Gauss quadrature along s and the midpoint rule
    along ω. Mass within the innermost radius is left out.
    """
    dimension = space.directions.centers.shape[1]
    given = np.asarray(variance, dtype=float)
    covariance = given * np.eye(dimension) if given.ndim == 0 else given
    precision, density = np.linalg.inv(covariance), np.zeros(space.shape)
    for node, weight in zip(*np.polynomial.legendre.leggauss(8), strict=True):
        radii = np.exp(space.radial.centers[:, 0] + 0.5 * node * space.radial.volumes)
        offset = radii[:, None, None] * space.directions.centers - np.asarray(mean, dtype=float)
        exponent = -0.5 * np.einsum("rnd,de,rne->rn", offset, precision, offset)
        density += weight * np.exp(exponent) * radii[:, None] ** dimension
    return _normalized(space, density)


def _normalized(space: FreeRadius, density: Floats) -> Floats:
    """Return a density (shells, directions) divided by its mass."""
    return density / np.vdot(density, space.volumes)
