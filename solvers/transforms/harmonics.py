"""Harmonic transforms of point masses at cell centers, exact sums over the cells.

Circle: the discrete Fourier transform. Sphere: an FFT along each ring, then Legendre sums across rings, both exact
for every order however few cells a ring has, so that coefficients equal the brute-force sum Σ_j Y_lm(x_j) w_j.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..backends import Backend, backend_for
from ..mesh.mesh import Floats, Mesh
from .gauss_grid import GaussGrid

Complexes = NDArray[np.complex128]


class Harmonics(Protocol):
    """Transform between cells and the spherical harmonics of degree 0 … ``degree``."""

    degree: int

    def analysis(self, masses: Floats) -> Complexes:
        """Coefficients Σ_j conj(Y(x_j)) w_j of masses (cells)."""
        ...

    def synthesis(self, coefficients: Complexes) -> Floats:
        """The function with these coefficients at the cell centers, (cells)."""
        ...

    def power(self, masses: Floats) -> Floats:
        """(degree + 1) mean square of the degree-l part of ρ/ρ̄, ρ the density of the masses."""
        ...


class CircleHarmonics:
    """Fourier coefficients on the circle, orthonormal: Y_l = e^{ilφ}/√(2π), ∫|Y_l|² = 1.

    Coefficients are (degree + 1) complex, for l ≥ 0; those of l < 0 follow from reality. Raises ValueError for another
    mesh, or a degree that half the cells cannot tell apart.
    """

    def __init__(self, mesh: Mesh, degree: int) -> None:
        if mesh.manifold != "circle":
            raise ValueError(f"expected a circle, got {mesh.manifold}")
        if 2 * degree > mesh.cells:
            raise ValueError(f"degree = {degree}: expected at most half of the {mesh.cells} cells")
        self.mesh, self.degree = mesh, degree
        first = 0.5 * float(mesh.volumes[0])  # the angle of the first cell
        self._shift = mesh.backend.to_device(np.exp(1j * first * np.arange(degree + 1)) / np.sqrt(2 * np.pi))

    def analysis(self, masses: Floats) -> Complexes:
        """[l] = Σ_j conj(Y_l(x_j)) w_j for masses (cells)."""
        spectrum: Complexes = self.mesh.backend.rfft(masses)[: self.degree + 1] * np.conj(self._shift)
        return spectrum

    def synthesis(self, coefficients: Complexes) -> Floats:
        """(cells) Σ_l coefficients[l] Y_l(x_i) + the conjugates of l > 0."""
        backend = self.mesh.backend
        spectrum = backend.zeros(self.mesh.cells // 2 + 1, complex)
        spectrum[: self.degree + 1] = coefficients * self._shift
        if 2 * self.degree == self.mesh.cells:
            spectrum[-1] = 2.0 * spectrum[-1].real  # l and −l are the same wave on the cells
        values: Floats = backend.irfft(spectrum, self.mesh.cells, "forward")
        return values

    def power(self, masses: Floats) -> Floats:
        """(degree + 1) mean square of the degree-l part of ρ/ρ̄: 2π |[l]|², twice that for l > 0."""
        square = np.abs(self.analysis(masses)) ** 2
        square[1:] *= 2.0
        return 2 * np.pi * square


@dataclass(frozen=True)
class _Block:
    """Consecutive rings with the same number of cells: one batched FFT, as large as is good for the kernels."""

    cells: int
    first_ring: int
    last_ring: int
    start: int
    stop: int


class SphereHarmonics:
    """Real-to-complex spherical harmonics on rings of latitude, orthonormal: ∫|Y_lm|² = 1.

    Coefficients are (degree + 1, degree + 1) complex, [l, m] for m ≥ 0, zero for m > l; those of m < 0 follow from
    reality. Y_lm = P̄_lm(cos θ) e^{imφ} without the Condon–Shortley sign. Raises ValueError for another mesh.
    The nodes of a Gauss grid serve as cells do.
    """

    def __init__(self, mesh: Mesh | GaussGrid, degree: int) -> None:
        if mesh.manifold != "sphere":
            raise ValueError(f"expected a sphere, got {mesh.manifold}")
        self.mesh, self.degree = mesh, degree
        rings, half = len(mesh.ring_cells), (len(mesh.ring_cells) + 1) // 2
        to_device = mesh.backend.to_device
        axis = mesh.backend.to_host(mesh.centers)[mesh.ring_start[:-1]]
        sine, cosine = np.hypot(axis[:, 0], axis[:, 1]), axis[:half, 2].copy()
        if rings % 2:
            cosine[-1] = 0.0  # the equator's own ring, to the last bit
        self.sine = to_device(sine)
        self._north_cosine, self._north_sine = to_device(cosine), to_device(sine[:half].copy())
        self._mirror = to_device(np.arange(rings)[::-1][:half].copy())
        self._blocks = list(_blocks(mesh))
        self._modes = mesh.backend.empty((2, degree + 1, rings))

    def analysis(self, masses: Floats) -> Complexes:
        """[l, m] = Σ_j conj(Y_lm(x_j)) w_j for masses (cells)."""
        backend = self.mesh.backend
        for block in self._blocks:
            rows = masses[block.start : block.stop].reshape(-1, block.cells)
            spectrum = backend.rfft(rows)
            backend.launch(backend.unfold_rings, spectrum.size, spectrum, block.cells, block.first_ring, *self._modes)
        half = len(self._mirror)
        north, south = self._modes[:, :, :half], self._modes[:, :, self._mirror]
        if len(self.sine) % 2:
            south[:, :, -1] = 0.0
        even, odd = north + south, north - south
        coefficients: Complexes = backend.zeros((self.degree + 1, self.degree + 1), complex)
        backend.launch(
            backend.legendre_analysis, even.size * self.degree // 2, self._north_cosine, self._north_sine, *even, *odd,
            coefficients,
        )  # fmt: skip  # l ≥ m: half of the modes
        return coefficients

    def synthesis(self, coefficients: Complexes) -> Floats:
        """(cells) Σ_lm coefficients[l, m] Y_lm(x_i) + the conjugates of m > 0."""
        values: Floats = self.mesh.backend.empty(self.mesh.cells, self.mesh.volumes.dtype)
        for here, (block_values,) in self.blocks(coefficients[None], [(False, np.ones_like(self.sine))]):
            values[here] = block_values
        return values

    def blocks(self, sets: Complexes, outputs: list[tuple[bool, Floats]]) -> Iterator[tuple[slice, list[Floats]]]:
        """Synthesis of several coefficient sets at once, block of rings by block of rings.

        sets (sets, degree + 1, degree + 1); outputs: for each set whether to take ∂/∂φ, and a factor per ring.
        Yields the slice of cells and the values of each set there.
        """
        backend = self.mesh.backend
        shape = (len(sets), self.degree + 1, len(self.sine))
        re, im, number = backend.empty(shape), backend.empty(shape), np.result_type(self.mesh.volumes, np.complex64)
        backend.launch(
            backend.legendre_synthesis, re.size * self.degree // 4, self._north_cosine, self._north_sine, sets,
            self._mirror, re, im,
        )  # fmt: skip  # and half of the rings
        for block in self._blocks:
            values = []
            for k, (by_order, scale) in enumerate(outputs):
                spectrum = backend.empty((block.last_ring - block.first_ring, block.cells // 2 + 1), number)
                backend.launch(
                    backend.fold_rings, spectrum.size, re[k], im[k], block.cells, block.first_ring, by_order, scale,
                    spectrum,
                )  # fmt: skip
                values.append(backend.irfft(spectrum, block.cells, "forward").reshape(-1))
            yield slice(block.start, block.stop), values

    def power(self, masses: Floats) -> Floats:
        """(degree + 1) mean square of the degree-l part of ρ/ρ̄: 4π Σ_m |[l, m]|²."""
        square = np.abs(self.analysis(masses)) ** 2
        square[:, 1:] *= 2.0
        return 4 * np.pi * square.sum(axis=1)


def _blocks(mesh: Mesh | GaussGrid) -> Iterator[_Block]:
    counts, start = mesh.ring_cells, mesh.ring_start
    changes = np.flatnonzero(np.diff(counts)) + 1
    for first, last in zip([0, *changes], [*changes, len(counts)], strict=True):
        height = max(mesh.backend.TRANSFORM_CELLS // int(counts[first]), 1)
        for ring in range(int(first), int(last), height):
            end = min(ring + height, int(last))
            yield _Block(int(counts[first]), ring, end, int(start[ring]), int(start[end]))


def sine_derivative(coefficients: Complexes) -> Complexes:
    """Coefficients of sin θ ∂f/∂θ from those of f; the highest degree of f has to vanish.

    sin θ ∂θ Y_lm = l ε_{l+1,m} Y_{l+1,m} − (l+1) ε_{lm} Y_{l−1,m},  ε_lm = √((l² − m²)/(4l² − 1)).
    """
    from_below, from_above = _sine_derivative_factors(len(coefficients), backend_for(coefficients))
    result = np.zeros_like(coefficients)
    result[1:] += from_below * coefficients[:-1]
    result[:-1] -= from_above * coefficients[1:]
    return result


@lru_cache(maxsize=8)
def _sine_derivative_factors(size: int, backend: Backend) -> tuple[Floats, Floats]:
    """(l − 1) ε_lm for l ≥ 1 and (l + 2) ε_{l+1,m} for l < size − 1."""
    l, m = np.arange(size)[:, None], np.arange(size)[None, :]
    ratio = np.sqrt(np.maximum(l * l - m * m, 0) / (4.0 * l * l - 1.0))
    return backend.to_device((l[1:] - 1) * ratio[1:]), backend.to_device((l[:-1] + 2) * ratio[1:])


def harmonic_transform(mesh: Mesh, degree: int) -> Harmonics:
    """The harmonic transform of a mesh up to a degree."""
    return _TRANSFORMS[mesh.manifold](mesh, degree)


_TRANSFORMS: dict[str, type[CircleHarmonics] | type[SphereHarmonics]] = {
    "circle": CircleHarmonics,
    "sphere": SphereHarmonics,
}
