"""Initial densities of tokens on the circle and the sphere, with mass 1, each an array (cells)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from meanfield.domains.sphere.fields import harmonic_coefficients, perturbed_coefficients
from meanfield.model.errors import ArgumentError
from solvers.mesh.coordinates import unit_vectors
from solvers.mesh.mesh import Floats, Mesh
from solvers.remap.deposit import deposit_points
from solvers.transforms.harmonics import harmonic_transform

POINTS = 2048  # number of points that represent a density narrower than cells


def initial_uniform(mesh: Mesh) -> Floats:
    """Return the uniform density ρ̄ = 1/|S| (cells) on a circle or sphere of area |S|, bitwise equal in all cells."""
    return np.full(mesh.cells, 1.0 / mesh.volume)


def initial_perturbed(mesh: Mesh, amplitude: float, degrees: int = 12, seed: int = 0) -> Floats:
    """Return the density (cells) that is proportional to e^{amplitude·g}, with a Gaussian random field g.

    The field has unit variance. The field has equal power in the degrees 1 to ``degrees``, and depends on the seed
    alone, not on the resolution.
    """
    coefficients = perturbed_coefficients(mesh.ambient_dimension, degrees, seed)
    return _normalized(mesh, np.exp(amplitude * harmonic_transform(mesh, degrees).synthesis(coefficients)))


def initial_harmonic(mesh: Mesh, degree: int, order: int, amplitude: float) -> Floats:
    """Return the density ρ̄ (1 + amplitude·Y) (cells), with uniform ρ̄ and a real harmonic Y of unit mean square.

    On the circle Y = √2 cos(degree·φ), with order = 0 only. On the sphere −degree ≤ order ≤ degree, and Y varies as
    cos(order·φ) for order ≥ 0, as sin(|order|·φ) below. Raises ValueError where the density would be negative.
    """
    coefficients = harmonic_coefficients(mesh.ambient_dimension, degree, order)
    harmonic = harmonic_transform(mesh, degree).synthesis(coefficients)
    lowest = 1.0 + (amplitude * harmonic).min()
    if lowest < 0:
        largest = abs(amplitude) / (1 - lowest)
        raise ArgumentError("amplitude", amplitude, f"at most {largest:.4g}, where the density becomes negative")
    return _normalized(mesh, 1.0 + amplitude * harmonic)


def initial_von_mises_fisher(
    mesh: Mesh, centers: Sequence[Sequence[float]], concentrations: Sequence[float], masses: Sequence[float]
) -> Floats:
    """Return a mixture Σ_k m_k e^{c_k (⟨x, μ_k⟩ − 1)} / ∫… (cells) of von Mises–Fisher densities with mass 1.

    The centers are μ, the concentrations c, and the masses m, whose sum is scaled to 1. A component narrower than two
    cells is deposited as points, so that its mass and center are kept.
    """
    density = np.zeros(mesh.cells)
    for center, concentration, mass in zip(unit_vectors(centers), concentrations, masses, strict=True):
        if concentration * (2 * mesh.width) ** 2 > 1:
            points = _von_mises_fisher_points(center, concentration)
            component = deposit_points(mesh, points, np.full(len(points), 1.0 / len(points)))
        else:
            component = _normalized(mesh, np.exp(concentration * (mesh.centers @ center - 1)))
        density += mass * component
    return _normalized(mesh, density)


def _von_mises_fisher_points(center: Floats, concentration: float) -> Floats:
    """Return points (POINTS, d) of equal mass that represent a narrow von Mises–Fisher density.

    The points are at quantiles of the angle from the center, on a golden spiral.
    """
    quantile = (np.arange(POINTS) + 0.5) / POINTS
    if len(center) == 2:
        reach = min(np.pi, 9 / np.sqrt(concentration))  # e^{−40} beyond; the density as a sum of narrow trapezoids
        offset = np.linspace(-reach, reach, 20_001)
        profile = np.exp(-2 * concentration * np.sin(offset / 2) ** 2)
        below = np.append(0.0, np.cumsum(profile[1:] + profile[:-1]))
        angle = np.arctan2(center[1], center[0]) + np.interp(quantile, below / below[-1], offset)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1)
    z = 1 + np.log1p(-quantile * -np.expm1(-2 * concentration)) / concentration
    return _spiral(center, z, np.sqrt(np.maximum(1 - z * z, 0.0)))


def _spiral(center: Floats, along: Floats, across: Floats) -> Floats:
    """Return points (n, 3) on a golden spiral, with components (n,) along a unit vector and across it.

    Successive points differ by the golden angle about the vector.
    """
    phi = np.pi * (1 + np.sqrt(5)) * np.arange(len(along))
    tangent = np.linalg.svd(center[None])[2][1:]
    return np.asarray(
        along[:, None] * center
        + across[:, None] * (np.cos(phi)[:, None] * tangent[0] + np.sin(phi)[:, None] * tangent[1])
    )


def initial_moebius(mesh: Mesh, axis: Sequence[float], parameter: float) -> Floats:
    """Return the uniform density transported along ``axis`` for the time s = ``parameter`` (cells).

    The transported density is an exact solution of the flow at β = 0. S²: ρ = ρ̄ (1 − T²)/(1 − zT)², T = tanh s, z =
    ⟨x, axis⟩; S¹: the Poisson kernel of radius tanh(s/2). A density narrower than two cells, 2e^{−|s|} wide, is
    deposited as points, so that its mass and center are kept.
    """
    if np.exp(-abs(parameter)) < mesh.width:
        points = _moebius_points(np.sign(parameter) * unit_vectors([axis])[0], abs(parameter))
        return deposit_points(mesh, points, np.full(len(points), 1.0 / len(points)))
    z = mesh.centers @ unit_vectors([axis])[0]
    if mesh.manifold == "circle":
        r = np.tanh(parameter / 2)
        return _normalized(mesh, (1 - r * r) / (1 - 2 * r * z + r * r))
    t = np.tanh(parameter)
    return _normalized(mesh, (1 - t * t) / (1 - z * t) ** 2)


def _moebius_points(axis: Floats, parameter: float) -> Floats:
    """Return points (POINTS, d) of equal mass: uniform points, moved towards the axis for the time s = ``parameter``.

    The angle θ of a point from the axis changes by tan(θ/2) ↦ e^{−s} tan(θ/2).
    """
    quantile = (np.arange(POINTS) + 0.5) / POINTS
    angle = np.pi * (2 * quantile - 1) if len(axis) == 2 else np.arccos(1 - 2 * quantile)
    cosine, sine = np.cos(angle / 2), np.exp(-parameter) * np.sin(angle / 2)
    along, across = (cosine**2 - sine**2) / (cosine**2 + sine**2), 2 * cosine * sine / (cosine**2 + sine**2)
    if len(axis) == 2:
        return np.asarray(along[:, None] * axis + across[:, None] * np.array([-axis[1], axis[0]]))
    return _spiral(axis, along, across)


def initial_points(mesh: Mesh, points: ArrayLike, masses: ArrayLike | None = None) -> Floats:
    """Return the density (cells) of point masses Σ m_k δ_{p_k}, deposited keeping mass and first moment.

    points   (n, d) of any length: only directions matter
    masses   (n,), equal by default; their sum is scaled to 1
    """
    directions = unit_vectors(points)
    weights = np.ones(len(directions)) if masses is None else np.asarray(masses, dtype=float)
    return deposit_points(mesh, directions, weights / weights.sum())


def _normalized(mesh: Mesh, density: Floats) -> Floats:
    """Return a density (cells,) divided by its mass."""
    return density / (density @ mesh.volumes)
