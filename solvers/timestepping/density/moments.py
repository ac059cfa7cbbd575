"""Moments of a field: few linear functionals that are smooth, whatever limiters do from cell to cell."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ...mesh.mesh import Floats, Mesh
from ...transforms.harmonics import harmonic_transform

DEGREES = 6  # waves of 60°: wider than any peak, and few enough to cost nothing
_ONE = np.ones(1)


class Moments(Protocol):
    """Linear functionals of fields, and their norm."""

    def __call__(self, *fields: Floats) -> list[Floats]:
        """(k,) moments of each field, on the host: one transfer for all of them."""
        ...

    def norms(self, moments: Floats, state: Floats) -> Floats:
        """(2,) norms of (k,) moments of degree 1, and of higher ones, relative to the extent of a state of moments
        ``state``: those of a mean that is nearly zero are not lost among others."""
        ...


class HarmonicMoments:
    """Harmonics of degree 1 to 6 of a field on a circle or a sphere, or of each of several, one after the other."""

    def __init__(self, mesh: Mesh) -> None:
        degree = min(DEGREES, mesh.cells // 2) if mesh.manifold == "circle" else DEGREES
        self._mesh, self._harmonics = mesh, harmonic_transform(mesh, degree)

    def __call__(self, *fields: Floats) -> list[Floats]:
        mesh = self._mesh
        rows = [row for field in fields for row in field.reshape(-1, mesh.cells)]
        moments = [self._harmonics.of_density(row)[1:] for row in rows]
        found = mesh.backend.to_host(mesh.backend.xp.stack(moments, axis=1))
        count = len(rows) // len(fields)
        return [found[:, first : first + count] for first in range(0, len(rows), count)]

    def norms(self, moments: Floats, state: Floats) -> Floats:
        return _two_norms(moments[0], moments[1:])


class CosineMoments:
    """∫ cos(kθ) ρ dθ, k = 1 to 6, of a field of the polar angle θ of an interval's cells."""

    def __init__(self, mesh: Mesh) -> None:
        theta = mesh.centers[:, 0]
        self._backend = mesh.backend
        self._waves = mesh.backend.xp.stack([np.cos(k * theta) * mesh.volumes for k in range(1, DEGREES + 1)])

    def __call__(self, *fields: Floats) -> list[Floats]:
        return list(self._backend.to_host(self._backend.xp.stack([self._waves @ field for field in fields])))

    def norms(self, moments: Floats, state: Floats) -> Floats:
        return _two_norms(moments[:1], moments[1:])


class PolynomialMoments:
    """∫ x ρ and ∫ xxᵀ ρ of a density of points x, in units of its root mean square √∫|x|² ρ.

    mesh     of x; or of directions ω, where cells are (radii, directions) and x = rω
    radii    (radii,) r, on the host
    widths   (radii,) of the cells of r
    """

    def __init__(self, mesh: Mesh, radii: Floats = _ONE, widths: Floats = _ONE) -> None:
        points, self._backend, self._d = mesh.centers, mesh.backend, mesh.centers.shape[1]
        squares = (points[:, :, None] * points[:, None, :]).reshape(len(points), -1)
        self._points, self._squares = points * mesh.volumes[:, None], squares * mesh.volumes[:, None]
        self._radii, self._widths = radii, widths

    def __call__(self, *fields: Floats) -> list[Floats]:
        xp = self._backend.xp
        rows = xp.stack([field.reshape(len(self._radii), -1) for field in fields])
        found = self._backend.to_host(xp.concatenate([rows @ self._points, rows @ self._squares], axis=2))
        first, second = found[:, :, : self._d], found[:, :, self._d :]
        weights = self._radii * self._widths
        return [np.concatenate([weights @ a, (self._radii * weights) @ b]) for a, b in zip(first, second, strict=True)]

    def norms(self, moments: Floats, state: Floats) -> Floats:
        d = self._d
        square = float(np.trace(state[d:].reshape(d, d)))
        found = _two_norms(moments[:d], moments[d:])
        return found / [np.sqrt(square), square] if square > 0 else found


def _two_norms(first: Floats, others: Floats) -> Floats:
    return np.array([np.linalg.norm(first), np.linalg.norm(others)])
