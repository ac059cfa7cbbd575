"""Moments of a field: few smooth linear functionals, insensitive to limiters in single cells."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ...mesh.mesh import Floats, Mesh
from ...transforms.harmonics import harmonic_transform

DEGREES = 6  # wavelength of 60°, wider than peaks; few enough for a negligible cost
_ONE = np.ones(1)


class Moments(Protocol):
    """Interface of moments: few linear functionals of a field, such as its harmonics of low degree, and their norms."""

    def __call__(self, *fields: Floats) -> list[Floats]:
        """Return a list of the moments (k, ...) of each field, on the host, with one transfer from the device."""
        ...

    def norms(self, moments: Floats, state: Floats) -> Floats:
        """Return the norms (2,) of moments (k, ...) of degree 1 and of higher degrees, relative to the size of a state.

        ``moments`` may be those of an error. ``state`` are the moments (k, ...) of the state. With two norms, the error
        of a nearly vanishing mean counts too.
        """
        ...


class HarmonicMoments:
    """Moments of one or several fields on a circle or a sphere: the harmonics of degrees 1 to 6."""

    def __init__(self, mesh: Mesh) -> None:
        degree = min(DEGREES, mesh.cells // 2) if mesh.manifold == "circle" else DEGREES
        self._mesh, self._harmonics = mesh, harmonic_transform(mesh, degree)

    def __call__(self, *fields: Floats) -> list[Floats]:
        """Return the harmonic coefficients of degrees 1 to 6 of each field, (cells,) or (rows, cells), on the host.

        The coefficients are complex arrays (degrees, rows) on the circle, and (degrees, rows, orders) on the sphere.
        """
        mesh = self._mesh
        rows = [row for field in fields for row in field.reshape(-1, mesh.cells)]
        moments = [self._harmonics.of_density(row)[1:] for row in rows]
        found = mesh.backend.to_host(mesh.backend.xp.stack(moments, axis=1))
        count = len(rows) // len(fields)
        return [found[:, first : first + count] for first in range(0, len(rows), count)]

    def norms(self, moments: Floats, state: Floats) -> Floats:
        """Return the norms (2,) of the harmonic moments of degree 1 and of higher degrees."""
        return _two_norms(moments[0], moments[1:])


class CosineMoments:
    """Moments ∫ cos(kθ) ρ dθ, k = 1 to 6, of a field of the polar angle θ on an interval."""

    def __init__(self, mesh: Mesh) -> None:
        theta = mesh.centers[:, 0]
        self._backend = mesh.backend
        self._waves = mesh.backend.xp.stack([np.cos(k * theta) * mesh.volumes for k in range(1, DEGREES + 1)])

    def __call__(self, *fields: Floats) -> list[Floats]:
        """Return the cosine moments (6,) of each field (cells,), on the host."""
        return list(self._backend.to_host(self._backend.xp.stack([self._waves @ field for field in fields])))

    def norms(self, moments: Floats, state: Floats) -> Floats:
        """Return the norms (2,) of the first cosine moment and of the higher ones."""
        return _two_norms(moments[:1], moments[1:])


class PolynomialMoments:
    """Moments ∫ x ρ and ∫ xxᵀ ρ of a density ρ of points x, with norms relative to the root mean square √∫|x|² ρ.

    mesh     mesh of x; or of directions ω, with cells (radii, directions) and x = rω
    radii    (radii,) r, on the host
    widths   (radii,) widths of the cells of r
    """

    def __init__(self, mesh: Mesh, radii: Floats = _ONE, widths: Floats = _ONE) -> None:
        points, self._backend, self._d = mesh.centers, mesh.backend, mesh.centers.shape[1]
        squares = (points[:, :, None] * points[:, None, :]).reshape(len(points), -1)
        self._points, self._squares = points * mesh.volumes[:, None], squares * mesh.volumes[:, None]
        self._radii, self._widths = radii, widths

    def __call__(self, *fields: Floats) -> list[Floats]:
        """Return the moments ∫ x ρ and ∫ xxᵀ ρ of each field ρ, as one array (d + d²,) on the host.

        Fields are (cells,), or (radii, directions) of any shape with these elements.
        """
        xp = self._backend.xp
        rows = xp.stack([field.reshape(len(self._radii), -1) for field in fields])
        found = self._backend.to_host(xp.concatenate([rows @ self._points, rows @ self._squares], axis=2))
        first, second = found[:, :, : self._d], found[:, :, self._d :]
        weights = self._radii * self._widths
        return [np.concatenate([weights @ a, (self._radii * weights) @ b]) for a, b in zip(first, second, strict=True)]

    def norms(self, moments: Floats, state: Floats) -> Floats:
        """Return the norms (2,) of the moments ∫xρ and ∫xxᵀρ, relative to powers of the root mean square."""
        d = self._d
        square = float(np.trace(state[d:].reshape(d, d)))
        found = _two_norms(moments[:d], moments[d:])
        return found / [np.sqrt(square), square] if square > 0 else found


def _two_norms(first: Floats, others: Floats) -> Floats:
    """Return the Euclidean norms (2,) of two groups of moments."""
    return np.array([np.linalg.norm(first), np.linalg.norm(others)])
