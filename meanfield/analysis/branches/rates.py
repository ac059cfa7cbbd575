"""Linear stability of axisymmetric stationary densities to perturbations of any order about the axis.

∂ₜ(fg) = div(f ∇(κg − Φ)) with Φ = v/β φ'(Z) k(fg), for g = p(z) Y(ξ), ξ the direction about the axis, Y of order m.
On S^{d−1} with s² = 1 − z²

    ⟨∇(pY), ∇(PY)⟩ = s² p' P' + m(m + d − 3) p P/s²

On the circle the orders are m = 0 and 1, even and odd about the axis. In terms of K = v/(βκ) φ'(Z) k f

    f ∂ₜg = −κ A (I − K) g ,   A = −div(f∇·) = BᵀB

so a rate vanishes only where an eigenvalue μ of K is 1. K is symmetric in g √(f/φ'). Where φ' is constant, A and
f(I − K) are symmetric, and the number of positive rates equals the number of eigenvalues μ > 1 (Sylvester's law of
inertia). For softmax the two numbers differ by complex pairs of rates that have crossed the imaginary axis. Signs
of rates are taken from μ − 1. The error of μ − 1 is rounding even where a rate is exponentially small because A is
small, such as the rate of mass exchange between clusters.

Two directions are projected out exactly: constants (m = 0), which conservation of mass excludes, and rotations of the
axis (m = 1), which are neutral.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from solvers.mesh.mesh import Floats

if TYPE_CHECKING:
    from meanfield.analysis.branches.equilibria import Equilibria

MODES = 80  # number of slow modes of A in which rates are found: with 48, rates of narrow clusters have errors of 1e-8
ORDERS = 5  # m = 0 … 4 for d ≥ 3
_SLOW = 1e-13  # relative to the largest eigenvalue of A: rates of smaller modes are below rounding
_UNIFORM = 1e-6  # slope of log f below which the density counts as uniform, so that rotations do not change it
_ROUNDING = 8  # error of μ in units of n ε ‖K‖: 8 times the largest difference between 128 and 176 nodes


@dataclass(frozen=True)
class Spectrum:
    """Linear stability to perturbations of one order about the axis.

    Attributes
    ----------
    rates : (n,) array
        Real parts of the eigenvalues of the linearized equation, largest first.
    margins : (n,) array
        Numbers μ − 1 for the eigenvalues μ of K, largest first. As many are positive as rates are positive.
    error : float
        Bound of the error of a margin from rounding, the nodes and f, measured by the action of K on rotations.
    """

    rates: Floats
    margins: Floats
    error: float

    @property
    def signs(self) -> NDArray[np.intp]:
        """Return the sign of each margin (n,): 1, −1, or 0 where the margin is below its error.

        A margin is a number with the sign of a growth rate, but a smaller rounding error.
        """
        return np.where(np.abs(self.margins) <= self.error, 0, np.sign(self.margins)).astype(np.intp)

    @property
    def unstable(self) -> int:
        """Return the number of positive growth rates; rates of unknown sign are not counted."""
        return int((self.signs > 0).sum())

    @property
    def unknown(self) -> int:
        """Return the number of growth rates whose sign is lost to rounding."""
        return int((self.signs == 0).sum())


def spectra(equilibria: Equilibria, masses: Floats, noise: float) -> tuple[Spectrum, ...]:
    """Return the linear stability of a stationary density to perturbations of each order m about its axis.

    ``masses`` (nodes,) are the density at the nodes times the quadrature weights.
    """
    density = StationaryDensity(equilibria, masses, noise)
    return tuple(_spectrum(density, m) for m in range(2 if equilibria.dimension == 2 else ORDERS))


class StationaryDensity:
    """Stationary density f at the nodes, with the quantities from which its linear stability is computed.

    root        √(f w), w the quadrature weights
    inner       φ'(Z), where log f = v/(βκ) φ(Z) + const
    log_slope   derivative of log f by z = ⟨x, e⟩
    defect      numerical error of the quadrature and of f, see `_defect`
    """

    def __init__(self, equilibria: Equilibria, masses: Floats, noise: float) -> None:
        z = equilibria.nodes
        self.equilibria, self.noise, self.root = equilibria, noise, np.sqrt(masses)
        self.sine = np.sqrt((1 - z) * (1 + z))
        self.inner = equilibria.slope(equilibria.kernel(0) @ masses)
        along, across = equilibria.kernel(0) @ (z * masses), self.kernel(1) @ (self.sine * masses)
        force = equilibria.beta * (along - z / self.sine * across)  # Z': the gradient of ⟨x, y⟩ along the axis
        self.log_slope = equilibria.gain / noise * self.inner * force
        self.defect = self._defect()

    def kernel(self, m: int) -> Floats:
        """Return the signed kernel of order m about the axis (nodes, nodes).

        `Equilibria.kernel` returns its absolute value; it is negative for β < 0 and odd m.
        """
        return np.asarray((np.sign(self.equilibria.beta) or 1.0) ** m * self.equilibria.kernel(m))

    def operator(self, m: int) -> tuple[Floats, Floats]:
        """Return the operator K of order m about the axis as a symmetric matrix (nodes, nodes), and a scale (nodes,).

        A perturbation f g of the stationary density f obeys f ∂ₜg = −κ A (I − K) g, where A = −div(f∇·) and
        K g = v/(βκ) φ'(Z) ∫k f g. k is the kernel, Z = ∫k f, and φ = log for softmax, φ(Z) = Z for unnormalized
        attention. The matrix acts on g times the scale.
        """
        root = self.root * np.sqrt(self.inner)
        matrix = self.equilibria.gain / self.noise * root[:, None] * self.kernel(m) * root
        return matrix, self.root / np.sqrt(self.inner)

    def _defect(self) -> float:
        """Return the numerical error |Kg − g|/|g| for the rotation g of the axis, or 0 for a uniform density.

        Exactly, K g = g for the operator K of :meth:`operator`. The error is that of the quadrature and of the density.
        """
        rotation = self.neutral(1)
        if rotation is None:
            return 0.0
        matrix, scale = self.operator(1)
        unit = rotation * scale / np.linalg.norm(rotation * scale)
        return float(np.linalg.norm(matrix @ unit - unit))

    def neutral(self, m: int) -> Floats | None:
        """Return the direction g (nodes,) of order m that is projected out of the linearized equation, or None.

        For m = 0 it is a constant, which conservation of mass excludes. For m = 1 it is the rotation of the axis, or
        None if the density is uniform. For other orders it is None.
        """
        if m == 0:
            return np.ones_like(self.sine)
        rotation = self.sine * self.log_slope
        return rotation if m == 1 and np.abs(rotation).max() > _UNIFORM else None


def _spectrum(density: StationaryDensity, m: int) -> Spectrum:
    """Return the growth rates of perturbations of order m about the axis, and numbers μ − 1 with the same signs.

    μ are the eigenvalues of the operator K of :meth:`StationaryDensity.operator`.
    """
    from scipy.linalg import eigvalsh

    operator, scale = density.operator(m)
    neutral = density.neutral(m)
    projected = operator if neutral is None else project_matrix(operator, neutral * scale)
    size = float(np.abs(projected).sum(axis=1).max())
    error = _ROUNDING * len(scale) * float(np.finfo(float).eps) * max(1.0, size) + density.defect
    margins = eigvalsh(projected)[::-1] - 1
    return Spectrum(_eigenvalues(*_linearization(density, m, neutral)), margins, error)


def project_matrix(matrix: Floats, direction: Floats) -> Floats:
    """Return P M P for a symmetric matrix M and the orthogonal projection P on the complement of a direction."""
    unit = direction / np.linalg.norm(direction)
    rows = matrix - np.outer(unit, unit @ matrix)
    return np.asarray(rows - np.outer(rows @ unit, unit))


def _eigenvalues(sigma: Floats, factor: Floats) -> Floats:
    """Return the real parts of the eigenvalues of diag(σ) M, largest first, for increasing σ and M = ``factor``.

    Rows of the smallest σ, which are below rounding beside the largest, are separated by Schur's complement.
    """
    from scipy.linalg import eigvals

    slow = int((sigma**2 < _SLOW * sigma[-1] ** 2).sum())
    fast = sigma[slow:, None] * factor[slow:, slow:]
    reduced = factor[:slow, :slow] - factor[:slow, slow:] @ np.linalg.solve(factor[slow:, slow:], factor[slow:, :slow])
    found = [np.real(eigvals(part)) for part in (sigma[:slow, None] * reduced, fast) if len(part)]
    return np.sort(np.concatenate(found))[::-1]


def _linearization(density: StationaryDensity, m: int, neutral: Floats | None) -> tuple[Floats, Floats]:
    """Return σ and M such that the linearized equation −κ A (I − K) for √f g is diag(σ) M in the slowest modes of A.

    f g is a perturbation of the density f, with A and K as in :meth:`StationaryDensity.operator`. σ are singular values
    of B with A = BᵀB, smallest first. Rows are exact relative to σ, so that exponentially small rates have the signs
    that I − K gives them. With a neutral g0, (I − K) g0 = 0, and f/φ' g0 is orthogonal to the
    range of I − K: A acts from the complement of f/φ' g0 to that of f g0.
    """
    basis, first = _basis_and_derivative(density, m)
    image = basis.T @ (density.root[:, None] * density.inner[:, None] * density.kernel(m) * density.root) @ basis
    rest = np.eye(basis.shape[1]) - density.equilibria.gain / density.noise * image
    if neutral is None or m == 0:
        space = _complement(basis, None if neutral is None else neutral * density.root)
        sigma, modes = _slowest(first @ space, space)
        return sigma, -density.noise * sigma[:, None] * (modes.T @ rest @ modes)
    space, image_space = (_complement(basis, neutral * part) for part in (density.root, density.root / density.inner))
    sigma, modes = _slowest(first @ space, space)
    other, image_modes = _slowest(first @ image_space, image_space)
    overlap = (first @ modes / sigma).T @ (first @ image_modes / other)
    return sigma, -density.noise * (overlap * other) @ (image_modes.T @ rest @ modes)


def _basis_and_derivative(density: StationaryDensity, m: int) -> tuple[Floats, Floats]:
    """Return orthonormal harmonics of order m at the nodes (nodes, modes), and their images (rows, modes) under B.

    B u = √f ∇(u/√f) is the square root of the diffusion A = BᵀB with the density f; values have the factor √w of the
    weights.
    """
    at, sine = density.equilibria, density.sine[:, None]
    values, slopes = at.harmonics(m)
    along = sine * slopes - m * at.nodes[:, None] / sine * values - sine / 2 * density.log_slope[:, None] * values
    across = m * (m + at.dimension - 3)
    return values, np.vstack([along, np.sqrt(across) / sine * values]) if across else along


def _complement(basis: Floats, direction: Floats | None) -> Floats:
    """Return an orthonormal basis (modes, modes − 1) of the complement of a direction, in coefficients of ``basis``.

    ``direction`` (nodes,) is given at the nodes. If it is None, the identity (modes, modes) is returned.
    """
    if direction is None:
        return np.eye(basis.shape[1])
    coefficients = basis.T @ direction
    unit = coefficients / np.linalg.norm(coefficients)
    unit[0] += np.copysign(1.0, unit[0])  # Householder's reflection maps the direction to the first axis
    reflection = np.eye(len(unit)) - np.outer(unit, unit) * (2 / (unit @ unit))
    return np.asarray(reflection[:, 1:])


def _slowest(matrix: Floats, space: Floats) -> tuple[Floats, Floats]:
    """Return the MODES smallest singular values of ``matrix``, smallest first, and their modes (modes, MODES).

    The columns of ``matrix`` are the images of the columns of ``space``. Modes are linear combinations of the latter.
    """
    _, sigma, modes = np.linalg.svd(np.linalg.qr(matrix, mode="r"))
    return sigma[::-1][:MODES], space @ modes[::-1][:MODES].T
