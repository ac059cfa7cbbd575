"""Harmonic transforms of point masses at cell centers, exact sums over the cells.

The circle has the discrete Fourier transform. The sphere has sums along each ring, then Legendre sums across rings.
Both are exact for every order on rings of any size: coefficients equal the direct sum Σ_j conj(Y_lm(x_j)) w_j.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..backends import Backend
from ..mesh.arguments import check_count
from ..mesh.mesh import Floats, Mesh
from .gauss_grid import GaussGrid
from .ring_transforms import PRODUCTS, RingTransform

Complexes = NDArray[np.complex128]


class Harmonics(Protocol):
    """Transform between cells and the spherical harmonics of degree 0 … ``degree``.

    Coefficients are complex arrays: (degree + 1,) on the circle and (degree + 1, degree + 1) on the sphere.
    """

    degree: int

    def analysis(self, masses: Floats) -> Complexes:
        """Return the harmonic coefficients Σ_j conj(Y(x_j)) w_j of point masses w at the cell centers x.

        Parameters
        ----------
        masses : (..., cells) array
            Masses w, of at most two dimensions on the sphere.

        Returns
        -------
        (..., degree + 1) or (..., degree + 1, degree + 1) complex array
            Coefficients [..., l] on the circle, [..., l, m] on the sphere.
        """
        ...

    def of_density(self, density: Floats) -> Complexes:
        """Return the harmonic coefficients Σ_j conj(Y(x_j)) ρ_j V_j of a density ρ, with the cell volumes V.

        Parameters
        ----------
        density : (..., cells) array
            Density ρ, of at most two dimensions on the sphere.

        Returns
        -------
        (..., degree + 1) or (..., degree + 1, degree + 1) complex array
            Coefficients as those of ``analysis``.
        """
        ...

    def synthesis(self, coefficients: Complexes) -> Floats:
        """Return the values at the cell centers of the real function with given harmonic coefficients.

        Parameters
        ----------
        coefficients : (degree + 1,) or (degree + 1, degree + 1) complex array
            Coefficients [l] on the circle, [l, m] on the sphere.

        Returns
        -------
        (cells,) array
            Values of the function.
        """
        ...

    def power(self, masses: Floats) -> Floats:
        """Return the mean square of each degree of ρ/ρ̄, for the density ρ of masses whose sum is 1.

        ρ̄ is the uniform density. The results of a row are independent of the other rows.

        Parameters
        ----------
        masses : (..., cells) array
            Masses of the cells.

        Returns
        -------
        (..., degree + 1) array
            Mean squares; degree 0 has 1.
        """
        ...


class CircleHarmonics:
    """Fourier coefficients on the circle, orthonormal: Y_l = e^{ilφ}/√(2π), ``∫|Y_l|² = 1``.

    Coefficients are (degree + 1,) complex, for l ≥ 0; those of l < 0 follow from reality.

    Parameters
    ----------
    mesh : Mesh
        A circle.
    degree : int
        Highest degree.

    Raises
    ------
    ValueError
        For another mesh, or a degree above half the number of cells.
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
        """Return the Fourier coefficients Σ_j conj(Y_l(x_j)) w_j (..., degree + 1) of masses w (..., cells) at x_j.

        Y_l = e^{ilφ}/√(2π), for l = 0 … degree. The points x_j are the cell centers.
        """
        return self.mesh.backend.rfft(masses)[..., : self.degree + 1] * np.conj(self._shift)

    def of_density(self, density: Floats) -> Complexes:
        """Return the Fourier coefficients Σ_j conj(Y_l(x_j)) ρ_j V_j (..., degree + 1) of a density ρ (..., cells).

        Y_l = e^{ilφ}/√(2π), for l = 0 … degree; x are the cell centers, V the cell volumes.
        """
        return self.analysis(density * self.mesh.volumes)

    def synthesis(self, coefficients: Complexes) -> Floats:
        """Return the values (cells,) at the cell centers of the function with Fourier coefficients c_l (degree + 1,).

        The real function is Σ_l c_l Y_l plus the conjugates of all terms l > 0, with Y_l = e^{ilφ}/√(2π).
        """
        backend = self.mesh.backend
        spectrum = backend.zeros(self.mesh.cells // 2 + 1, complex)
        spectrum[: self.degree + 1] = coefficients * self._shift
        if 2 * self.degree == self.mesh.cells:
            spectrum[-1] = 2.0 * spectrum[-1].real  # l and −l are equal at the cell centers
        return backend.irfft(spectrum, self.mesh.cells, "forward")

    def power(self, masses: Floats) -> Floats:
        """Return the mean square of each degree of ρ/ρ̄ (..., degree + 1), for the density ρ of masses (..., cells).

        The mean square is 2π |c_l|², and twice as much for l > 0, with the Fourier coefficients c of :meth:`analysis`.
        ρ̄ is the uniform density; the sum of the masses is 1.
        """
        square = np.abs(self.analysis(masses)) ** 2
        square[..., 1:] *= 2.0
        return 2 * np.pi * square


class SphereHarmonics:
    """Real-to-complex spherical harmonics on rings of latitude, orthonormal: ``∫|Y_lm|² = 1``.

    Coefficients are (degree + 1, degree + 1) complex, [l, m] for m ≥ 0, zero for m > l; those of m < 0 follow from
    reality. Y_lm = P̄_lm(cos θ) e^{imφ} without the Condon–Shortley phase.

    Parameters
    ----------
    mesh : Mesh or GaussGrid
        A sphere of rings.
    degree : int
        Highest degree.

    Raises
    ------
    ValueError
        For another mesh.
    """

    def __init__(self, mesh: Mesh | GaussGrid, degree: int) -> None:
        if mesh.manifold != "sphere":
            raise ValueError(f"expected a sphere, got {mesh.manifold}")
        self.mesh, self.degree = mesh, degree
        rings, half = len(mesh.ring_cells), (len(mesh.ring_cells) + 1) // 2
        to_device = mesh.backend.to_device
        sine, cosine = (of_rings[:half].copy() for of_rings in mesh.ring_axis)
        if rings % 2:
            cosine[-1] = 0.0  # the ring on the equator, exactly
        self._north = to_device(cosine), to_device(sine)
        self._mirror = to_device(np.arange(rings)[::-1][:half].copy())
        self.along_rings = RingTransform(mesh, degree)
        # l ≥ m and half of the rings; only the masses are read from memory
        self._analysis_work = (degree + 1) * half * degree // (5 * PRODUCTS)

    def analysis(self, masses: Floats) -> Complexes:
        """Return the coefficients [..., l, m] = Σ_j conj(Y_lm(x_j)) w_j of masses w (..., cells) at the cell centers x.

        The masses have at most two dimensions. Coefficients are (..., degree + 1, degree + 1), for m ≥ 0.
        """
        return self._of_modes(self.along_rings.analysis(masses))

    def of_density(self, density: Floats, level: Floats | None = None) -> Complexes:
        """Return the harmonic coefficients Σ_j conj(Y_lm(x_j)) (ρ_j − a) V_j of densities ρ less constants a.

        V are the cell volumes, and x the cell centers.

        Parameters
        ----------
        density : (..., cells) array
            Densities ρ, of at most two dimensions.
        level : (...) array, optional
            Constant a to subtract from each density, 0 by default.

        Returns
        -------
        (..., degree + 1, degree + 1) complex array
            Coefficients as those of :meth:`analysis`.
        """
        return self._of_modes(self.along_rings.of_density(density, level))

    def _of_modes(self, modes: Floats) -> Complexes:
        """Return the harmonic coefficients of azimuthal modes on the rings, by Legendre transforms."""
        backend, size = self.mesh.backend, self.degree + 1
        modes, shape = modes.reshape(-1, *modes.shape[-3:]), modes.shape[:-3]
        coefficients: Complexes = backend.zeros((len(modes), size, size), complex)
        work = len(modes) * self._analysis_work
        none = backend.empty((0, 0, 0))
        backend.launch(backend.legendre_analysis, work, *self._north, modes, coefficients, none)
        return coefficients.reshape(*shape, size, size)

    def synthesis(self, coefficients: Complexes) -> Floats:
        """Return the values (cells,) at the cell centers of the real function with harmonic coefficients c_lm.

        The coefficients (degree + 1, degree + 1) are those of m ≥ 0. The function is Σ_lm c_lm Y_lm plus the conjugates
        of all terms m > 0.
        """
        return self.along_rings.synthesis(*self._modes(coefficients[None]))

    def vectors(self, sets: Complexes) -> tuple[Floats, Floats]:
        """Return a function and a vector field at the cell centers from their harmonic coefficients.

        Parameters
        ----------
        sets : (4, degree + 1, degree + 1) complex array
            Harmonic coefficients of the function and of the three components of the vectors.

        Returns
        -------
        values : (cells,) array
            The function.
        vectors : (cells, 3) array
            The vectors.
        """
        return self.along_rings.vectors(*self._modes(sets))

    def gradient(self, modes: Floats, multipliers: Floats, uniform: Floats | None = None) -> tuple[Floats, Floats]:
        """Return f and the vectors ∇p + x r at the cell centers x, for convolutions f, p and r of one function.

        Parameters
        ----------
        modes : (4, degree + 1, half) array
            Azimuthal modes of the function's masses, as returned by ``RingTransform.analysis``; ``half`` counts the
            northern rings and that on the equator.
        multipliers : (2 or 3, degree + 1) array
            Factors of the function's harmonic coefficients of each degree in f, p and r; without the last row r = 0.
            The highest degree of p must vanish.
        uniform : float or () array, optional
            Uniform function that is added to the function.

        Returns
        -------
        values : (cells,) array
            The function f.
        vectors : (cells, 3) array
            The vectors ∇p + x r.
        """
        values, (east, north), along = self._gradient(modes, multipliers, uniform)
        centers, backend = self.mesh.centers, self.mesh.backend
        vectors: Floats = backend.empty(centers.shape, centers.dtype)
        backend.launch(backend.gradient_to_vectors, len(values), centers, east, north, along, vectors)
        return values, vectors

    def gradient_along_rings(
        self, modes: Floats, multipliers: Floats, uniform: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return f and the east and north components of ∇p at the cell centers, for convolutions f and p of functions.

        Parameters
        ----------
        modes : (..., 4, degree + 1, half) array
            Azimuthal modes of the masses of one function or several, as in :meth:`gradient`.
        multipliers : (2, degree + 1) array
            Multipliers of f and p as in :meth:`gradient`.
        uniform : (...) array, optional
            Uniform functions that are added to the functions.

        Returns
        -------
        values : (..., cells) array
            The function f.
        components : (2, ..., cells) array
            The components of ∇p.
        """
        return self._gradient(modes, multipliers, uniform)[:2]

    def _gradient(self, modes: Floats, multipliers: Floats, uniform: Floats | None) -> tuple[Floats, Floats, Floats]:
        """Return f, ∇p and r at the cell centers: convolutions of functions with the azimuthal modes ``modes``."""
        backend, size, shape = self.mesh.backend, self.degree + 1, modes.shape[:-3]
        modes = modes.reshape(-1, *modes.shape[-3:])
        rows, sets = len(modes), len(multipliers) + 1
        levels = backend.zeros(rows) if uniform is None else backend.xp.reshape(uniform, -1)
        coefficients, of_sets = (backend.empty((count, size, size), complex) for count in (rows, rows * sets))
        found = self._empty_modes(rows * sets)
        work = rows * self._analysis_work + self._synthesis_work(found[0])
        backend.launch(
            backend.zonal_modes, work, *self._north, modes, levels, multipliers,
            *sine_derivative_factors(size, backend), self._mirror, coefficients, of_sets, *found,
        )  # fmt: skip
        return self.along_rings.gradient(*(each.reshape(*shape, sets, *each.shape[1:]) for each in found))

    def _modes(self, sets: Complexes) -> tuple[Floats, Floats]:
        """Return the azimuthal modes along each ring of functions with harmonic coefficients ``sets``.

        Real and imaginary parts of the modes are (sets, degree + 1, rings), of coefficients
        (sets, degree + 1, degree + 1).
        """
        backend, found = self.mesh.backend, self._empty_modes(len(sets))
        work = self._synthesis_work(found[0])
        backend.launch(backend.legendre_synthesis, work, *self._north, sets, self._mirror, *found)
        return found

    def _empty_modes(self, sets: int) -> tuple[Floats, Floats]:
        """Return two new arrays (sets, degree + 1, rings), for real and imaginary parts of azimuthal modes."""
        shape, empty = (sets, self.degree + 1, len(self.mesh.ring_cells)), self.mesh.backend.empty
        return empty(shape), empty(shape)

    def _synthesis_work(self, modes: Floats) -> int:
        """Return the work of a Legendre synthesis of azimuthal modes, in the unit of the backend's ``launch``."""
        return modes.size * self.degree // (4 * PRODUCTS)  # l ≥ m, half of the rings, several sets at a time

    def power(self, masses: Floats) -> Floats:
        """Return the mean square of each degree of ρ/ρ̄ (..., degree + 1), for the density ρ of masses (..., cells).

        The mean square is 4π Σ_m |c_lm|² over all m from −l to l, with the coefficients c of :meth:`analysis`. ρ̄ is
        the uniform density; the sum of the masses is 1.
        """
        backend, modes = self.mesh.backend, self.along_rings.analysis(masses.reshape(-1, self.mesh.cells))
        squares = backend.empty((len(modes), self.degree + 1, self.degree + 1))
        work, none = len(modes) * self._analysis_work, backend.empty((0, 0, 0), complex)
        backend.launch(backend.legendre_analysis, work, *self._north, modes, none, squares)
        power: Floats = 4 * np.pi * squares.sum(axis=1)
        return power.reshape(*masses.shape[:-1], -1)


@lru_cache(maxsize=8)
def sine_derivative_factors(size: int, backend: Backend) -> tuple[Floats, Floats]:
    """Return the factors of c_{l−1,m} and −c_{l+1,m} in the harmonic coefficients [l, m] of sin θ ∂f/∂θ.

    The coefficients of f are c, up to degree size − 1. The factors are (l − 1) ε_lm for l ≥ 1 and (l + 2) ε_{l+1,m} for
    l < size − 1, two arrays (size − 1, size) with a row for each l, since

        sin θ ∂θ Y_lm = l ε_{l+1,m} Y_{l+1,m} − (l + 1) ε_lm Y_{l−1,m} ,    ε_lm = √((l² − m²)/(4l² − 1))
    """
    l, m = np.arange(size)[:, None], np.arange(size)[None, :]
    ratio = np.sqrt(np.maximum(l * l - m * m, 0) / (4.0 * l * l - 1.0))
    return backend.to_device((l[1:] - 1) * ratio[1:]), backend.to_device((l[:-1] + 2) * ratio[1:])


def has_harmonics(mesh: Mesh) -> bool:
    """Return whether the mesh has a harmonic transform: a circle, or a sphere of rings."""
    return mesh.manifold in _TRANSFORMS


def require_harmonics(mesh: Mesh) -> None:
    """Raise ValueError for a mesh without a harmonic transform."""
    if not has_harmonics(mesh):
        raise ValueError(f"mesh of a {mesh.manifold}: expected a circle or a sphere of rings")


def harmonic_transform(mesh: Mesh, degree: int) -> Harmonics:
    """Return the harmonic transform between the cells of a circle or a sphere and the harmonics up to a degree.

    Harmonics are orthonormal: Y_l = e^{ilφ}/√(2π) on the circle, and Y_lm = P̄_lm(cos θ) e^{imφ} without the
    Condon–Shortley phase on the sphere. Coefficients are complex: [l] (degree + 1,) and [l, m] (degree + 1, degree + 1)
    for m ≥ 0. Those of negative l or m follow from reality.

    Parameters
    ----------
    mesh : Mesh
        A circle, or a sphere of rings.
    degree : int
        Highest degree; on the circle at most half the number of cells.

    Returns
    -------
    Harmonics
        Object with ``analysis(masses)``, the coefficients Σ_j conj(Y(x_j)) w_j of masses (cells,);
        ``of_density(density)``, those of a density (cells,); ``synthesis(coefficients)``, the function (cells,) with
        these coefficients; and ``power(masses)``, the mean square (degree + 1,) of each degree of ρ/ρ̄ for masses of
        sum 1. The sums over cells are exact to rounding.

    Raises
    ------
    TypeError
        If ``degree`` is not a whole number.
    ValueError
        For another mesh, a negative degree, or a degree above half the number of cells of a circle.

    Examples
    --------
    >>> import numpy as np
    >>> from solvers import harmonic_transform, sphere
    >>> mesh = sphere(64)
    >>> transform = harmonic_transform(mesh, 4)
    >>> density = (1 + mesh.centers[:, 2]) / (4 * np.pi)
    >>> transform.power(density * mesh.volumes).round(3)  # z has the mean square 1/3
    array([1.   , 0.333, 0.   , 0.   , 0.   ])
    """
    require_harmonics(mesh)
    check_count("degree", degree, 0)
    return _TRANSFORMS[mesh.manifold](mesh, degree)


_TRANSFORMS: dict[str, type[CircleHarmonics] | type[SphereHarmonics]] = {
    "circle": CircleHarmonics,
    "sphere": SphereHarmonics,
}
