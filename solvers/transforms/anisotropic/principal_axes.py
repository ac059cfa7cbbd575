"""Matrix of the kernel e^{⟨x,By⟩ − s(x)} between harmonics on the sphere, in the principal axes of B.

With B = U diag(σ) Vᵀ, x' = Uᵀx and y' = Vᵀy the kernel is e^{Σ σ_i x'_i y'_i − s}, s a function of the squares of x'_i.
The kernel is invariant under a change of sign of both x'_i and y'_i. The matrix couples only harmonics of equal
parities along the three axes: eight blocks, together an eighth of all pairs. Each block is integrated over an octant,
by Gauss's rule along z' and equal steps of the azimuth, with cosh or sinh of σ_i x'_i y'_i for an even or odd axis. A
product with the matrix takes L⁴/4 operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...backends import Backend
from ...mesh.mesh import Floats
from .blocks import BlockMatrix
from .rotation import (
    Complexes,
    complex_coefficients,
    harmonic_indices,
    real_coefficients,
    rotation_blocks,
    times_coordinates,
)

Parities = tuple[int, int, int]  # 0 or 1 where a function is even or odd along x, y and z
_PARITIES: list[Parities] = [(x, y, z) for x in (0, 1) for y in (0, 1) for z in (0, 1)]


class PrincipalAxes:
    """Matrix from harmonic coefficients of ρ up to degree L to those of Z e^{−s} and N e^{−s} up to degree T.

        Z(x) = ∫ e^{⟨x,By⟩} ρ(y) dy ,    N(x) = ∫ y e^{⟨x,By⟩} ρ(y) dy

    matrix          B (3, 3)
    scale           function |Bᵀx| (...) → s (...)
    source_degree   L; the degree of the kernel is at most L − 1
    target_degree   T
    """

    def __init__(
        self,
        matrix: Floats,
        scale: Callable[[Floats], Floats],
        source_degree: int,
        target_degree: int,
        backend: Backend,
    ) -> None:
        left, sizes, right = np.linalg.svd(matrix)
        axes = [left, right.T]
        for each in axes:  # make both rotations: reversing an axis reverses the sign of σ
            if np.linalg.det(each) < 0:
                each[:, 2] *= -1.0
                sizes[2] *= -1.0
        self._degrees = source_degree, target_degree
        self._axes = backend.to_device(axes[1])
        self._to_sources = BlockMatrix(rotation_blocks(axes[1].T, source_degree), backend)
        self._from_targets = BlockMatrix(rotation_blocks(axes[0], target_degree), backend)
        sources, targets = _Octant(source_degree - 1), _Octant(target_degree)
        self._kernel = BlockMatrix(_blocks(sources, targets, sizes, scale), backend)
        by_parity = [np.concatenate([octant.places[p] for p in _PARITIES]) for octant in (sources, targets)]
        self._columns, self._rows = backend.to_device(by_parity[0]), backend.to_device(np.argsort(by_parity[1]))

    @staticmethod
    def bytes(source_degree: int, target_degree: int) -> int:
        """Return the memory of the matrix in bytes, between harmonics up to source_degree − 1 and target_degree."""
        return (source_degree * (target_degree + 1)) ** 2

    def apply(self, coefficients: Complexes) -> Complexes:
        """Return harmonic coefficients (4, T + 1, T + 1) of Z e^{−s} and N e^{−s} from those of ρ, (L + 1, L + 1).

        For a density ρ on the sphere, Z(x) = ∫ e^{⟨x,By⟩} ρ(y) dy and N(x) = ∫ y e^{⟨x,By⟩} ρ(y) dy, with a matrix B
        and a scale s(x).
        """
        source_degree, target_degree = self._degrees
        rotated = self._to_sources.apply(real_coefficients(coefficients)[None])
        sources = real_coefficients(times_coordinates(complex_coefficients(rotated[0], source_degree)))
        targets = self._kernel.apply(sources[:, self._columns])[:, self._rows]
        targets[1:] = self._axes @ targets[1:]
        return complex_coefficients(self._from_targets.apply(targets), target_degree)


@dataclass(frozen=True)
class _Order:
    """Harmonics of one order m and given parities along x, y and z, at the nodes of an octant of the sphere.

    The weights of the integral over the sphere, 8 times the sum over the octant, are included.

    rows       rows of these harmonics in the block of the parities
    wave       (azimuths,) cos mφ or sin mφ
    legendre   (rings, degrees) P̄_lm, √2 and the weights of the nodes included
    """

    rows: slice
    wave: Floats
    legendre: Floats


class _Octant:
    """Gauss's rule on the octant x, y, z > 0 of the sphere, exact for products of two harmonics up to a degree.

    nodes    (3, rings, azimuths) x, y and z
    places   indices of the real coefficients for each triple of parities along x, y and z
    orders   harmonics at the nodes for each triple of parities, by their order m
    """

    def __init__(self, degree: int) -> None:
        from scipy.special import assoc_legendre_p_all, roots_legendre

        count = degree // 2 + 1  # rings, and azimuths: 4 count steps integrate e^{imφ} up to m = 2 degree
        cosine, weights = (values[count:] for values in roots_legendre(2 * count))
        sine, phi = np.sqrt(1 - cosine * cosine), (np.arange(count) + 0.5) * (0.5 * np.pi / count)
        weights = weights * (8 * 0.5 * np.pi / count)
        self.nodes = np.stack(np.broadcast_arrays(np.outer(sine, np.cos(phi)), np.outer(sine, np.sin(phi)),
                                                  cosine[:, None]))  # fmt: skip
        legendre = assoc_legendre_p_all(degree, degree, cosine, norm=True).reshape(degree + 1, 2 * degree + 1, -1)
        l, m, is_sine = harmonic_indices(degree)
        self.places: dict[Parities, NDArray[np.intp]] = {}
        self.orders: dict[Parities, list[_Order]] = {}
        for x, y, z in _PARITIES:
            places = np.flatnonzero((is_sine == y) & ((m + y) % 2 == x) & ((l + m) % 2 == z))
            places = places[np.lexsort((l[places], m[places]))]
            self.places[x, y, z], self.orders[x, y, z] = places, []
            for order in np.unique(m[places]):
                first, last = np.searchsorted(m[places], [order, order + 1])
                factor = (-1.0) ** order * np.sqrt(
                    (2 if order else 1) / (2 * np.pi)
                )  # without the Condon–Shortley phase
                values = legendre[l[places[first:last]], order].T * (factor * weights[:, None])
                wave = (np.sin if y else np.cos)(order * phi)
                self.orders[x, y, z].append(_Order(slice(int(first), int(last)), wave, values))


def _blocks(sources: _Octant, targets: _Octant, sizes: Floats, scale: Callable[[Floats], Floats]) -> list[Floats]:
    """Return the matrix of the kernel e^{Σ σ_i x_i y_i − s(x)} between harmonics, a block for each triple of parities.

    A block (target harmonics, source harmonics) has the harmonics of equal parities along the three axes; other pairs
    have no entries.

    sources, targets   nodes y and x on an octant, and harmonics there
    sizes              (3,) σ
    scale              function |(σ_i x_i)| (...) → s (...)
    """
    rings, azimuths = targets.nodes.shape[1:]
    halfway = [np.empty((rings, azimuths, len(sources.places[p]))) for p in _PARITIES]  # nodes to harmonics
    for ring in range(rings):
        x = sizes[:, None] * targets.nodes[:, ring]
        waves = [(np.cosh(e), np.sinh(e)) for e in x[:, :, None, None] * sources.nodes[:, None]]
        smooth = np.exp(-scale(np.sqrt((x**2).sum(axis=0))))[:, None, None]
        for parities, found in zip(_PARITIES, halfway, strict=True):
            kernel = smooth * np.prod([pair[odd] for pair, odd in zip(waves, parities, strict=True)], axis=0)
            for order in sources.orders[parities]:
                found[ring, :, order.rows] = (kernel @ order.wave) @ order.legendre
    blocks = [np.empty((len(targets.places[p]), len(sources.places[p]))) for p in _PARITIES]
    for parities, found, block in zip(_PARITIES, halfway, blocks, strict=True):
        for order in targets.orders[parities]:
            block[order.rows] = order.legendre.T @ (order.wave @ found)
    return blocks
