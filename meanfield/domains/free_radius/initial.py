"""Initial densities of tokens with a radius, of mass 1: arrays (radii, directions)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from meanfield.domains.free_radius.equation import FreeRadius
from meanfield.model.errors import ArgumentError
from solvers.mesh.mesh import Floats


def initial_at_radius(space: FreeRadius, directions: Floats, radius: float) -> Floats:
    """A density of directions (directions,), all at one radius, split over two cells such that ⟨log r⟩ is right.

    Raises ValueError for a radius outside the centers of the mesh's cells.
    """
    s, radii = space.radial.centers[:, 0], space.radii()
    if not radii[0] <= radius <= radii[-1]:
        raise ArgumentError("radius", radius, f"{radii[0]:.4g} to {radii[-1]:.4g}, where the mesh is")
    outer = int(np.clip(np.searchsorted(s, np.log(radius)), 1, len(s) - 1))
    share = (np.log(radius) - s[outer - 1]) / (s[outer] - s[outer - 1])
    law = np.zeros(len(s))
    law[outer - 1 : outer + 1] = [1.0 - share, share] / space.radial.volumes[outer - 1 : outer + 1]
    return initial_product(space, directions, law)


def initial_product(space: FreeRadius, directions: Floats, law: Floats) -> Floats:
    """Independent direction and radius: a density of directions (directions,) and one of log r (radii,), normalized."""
    return _normalized(space, np.outer(law, directions))


def initial_gaussian(space: FreeRadius, mean: ArrayLike, variance: ArrayLike) -> Floats:
    """N(mean, variance) in R^d, variance a number or a matrix (d, d): ∫ e^{−½⟨x − m, Σ⁻¹(x − m)⟩} r^d ds in each cell.

    Lebesgue's measure is r^{d−1} dr dω = r^d ds dω. Along s by Gauss's rule, along ω at the center. What lies within
    the innermost radius is left out. Raises ValueError for a variance that is not positive definite.
    """
    dimension = space.directions.centers.shape[1]
    given = np.asarray(variance, dtype=float)
    covariance = given * np.eye(dimension) if given.ndim == 0 else given
    if not (np.allclose(covariance, covariance.T) and (np.linalg.eigvalsh(covariance) > 0).all()):
        raise ValueError(f"variance = {given.tolist()}: expected a number > 0, or a symmetric positive definite matrix")
    precision, density = np.linalg.inv(covariance), np.zeros(space.shape)
    for node, weight in zip(*np.polynomial.legendre.leggauss(8), strict=True):
        radii = np.exp(space.radial.centers[:, 0] + 0.5 * node * space.radial.volumes)
        away = radii[:, None, None] * space.directions.centers - np.asarray(mean, dtype=float)
        exponent = -0.5 * np.einsum("rnd,de,rne->rn", away, precision, away)
        density += weight * np.exp(exponent) * radii[:, None] ** dimension
    return _normalized(space, density)


def _normalized(space: FreeRadius, density: Floats) -> Floats:
    return density / np.vdot(density, space.volumes)
