"""Real coefficients of harmonics on the sphere, rotation, and products with the coordinates.

Real coefficients belong to the orthonormal P̄_l0, √2 P̄_lm cos mφ and √2 P̄_lm sin mφ. Each l has 2l + 1 numbers from
index l² on, the cosines of m = 0 … l, then the sines of m = 1 … l. A rotation mixes the coefficients of one l by an
orthogonal matrix, D^l = e^{−iαJ_z} e^{−iβJ_y} e^{−iγJ_z} in Euler angles (Wigner 1931); J_y is the tridiagonal J_x
rotated by π/2 about z.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ...backends import Backend, backend_for
from ...mesh.mesh import Floats

Complexes = NDArray[np.complex128]
Places = NDArray[np.intp]


@lru_cache(maxsize=16)
def harmonic_indices(degree: int) -> tuple[Places, Places, Places]:
    """Return the degree l, the order m, and 0 for a cosine or 1 for a sine, of all (degree + 1)² real harmonics."""
    of_degree = [(l, m, sine) for l in range(degree + 1) for sine in (0, 1) for m in range(sine, l + 1)]
    l, m, sine = np.array(of_degree, dtype=np.intp).T
    return l, m, sine


@lru_cache(maxsize=32)
def _layout(degree: int, backend: Backend) -> tuple[Places, Places, Places, Floats]:
    """Return the indices and factors that convert harmonic coefficients between complex and real ones.

    The results are the indices of cosines and of sines among the real coefficients, the index of each real coefficient
    among the complex ones, and its factor: √2 for m > 0, else 1.
    """
    l, m, is_sine = harmonic_indices(degree)
    factors = np.where(m > 0, np.sqrt(2.0), 1.0)
    found = np.flatnonzero(is_sine == 0), np.flatnonzero(is_sine), l * (degree + 1) + m, factors
    cosines, sines, places, factors = (backend.to_device(array) for array in found)
    return cosines, sines, places, factors


def real_coefficients(coefficients: Complexes) -> Floats:
    """Return real harmonic coefficients (..., (degree + 1)²) for complex ones (..., degree + 1, degree + 1), m ≥ 0.

    Real coefficients belong to the orthonormal P̄_l0, √2 P̄_lm cos mφ and √2 P̄_lm sin mφ.
    """
    degree = coefficients.shape[-1] - 1
    _, sines, places, factors = _layout(degree, backend_for(coefficients))
    found = coefficients.reshape(*coefficients.shape[:-2], -1)[..., places]
    real = found.real * factors
    real[..., sines] = -found.imag[..., sines] * factors[sines]
    return real


def complex_coefficients(real: Floats, degree: int) -> Complexes:
    """Return complex harmonic coefficients (..., degree + 1, degree + 1), m ≥ 0, for real ones (..., (degree + 1)²).

    Real coefficients belong to the orthonormal P̄_l0, √2 P̄_lm cos mφ and √2 P̄_lm sin mφ.
    """
    backend = backend_for(real)
    cosines, sines, places, factors = _layout(degree, backend)
    scaled, shape = real / factors, (*real.shape[:-1], (degree + 1) ** 2)
    re, im = backend.zeros(shape), backend.zeros(shape)
    re[..., places[cosines]] = scaled[..., cosines]
    im[..., places[sines]] = -scaled[..., sines]
    return (re + 1j * im).reshape(*real.shape[:-1], degree + 1, degree + 1)


def rotation_blocks(rotation: Floats, degree: int) -> list[Floats]:
    """Return for each degree l the matrix (2l + 1, 2l + 1) that rotates harmonics by R = ``rotation`` (3, 3).

    A matrix maps real harmonic coefficients of f(x) to those of f(R⁻¹x).
    """
    angles = _euler_angles(rotation)
    return [_real_rotation(l, *angles) for l in range(degree + 1)]


def _euler_angles(rotation: Floats) -> tuple[float, float, float]:
    """Return the Euler angles α, β and γ of a rotation R (3, 3): R = R_z(α) R_y(β) R_z(γ)."""
    sine = float(np.hypot(rotation[0, 2], rotation[1, 2]))
    beta = float(np.arctan2(sine, rotation[2, 2]))
    if sine < 1e-8:  # a rotation about z, with or without a reversal of z
        sign = 1.0 if rotation[2, 2] > 0 else -1.0
        return float(np.arctan2(-rotation[0, 1], sign * rotation[0, 0])), beta, 0.0
    alpha, gamma = np.arctan2(rotation[1, 2], rotation[0, 2]), np.arctan2(rotation[2, 1], -rotation[2, 0])
    return float(alpha), beta, float(gamma)


@lru_cache(maxsize=512)
def _spin_vectors(l: int) -> Floats:
    """Return the eigenvectors of the angular momentum J_x of degree l, as columns for the eigenvalues −l … l.

    Rows belong to the eigenvectors m = −l … l of J_z.
    """
    from scipy.linalg import eigh_tridiagonal

    m = np.arange(-l, l)
    return np.asarray(eigh_tridiagonal(np.zeros(2 * l + 1), 0.5 * np.sqrt(l * (l + 1.0) - m * (m + 1.0)))[1])


def _real_rotation(l: int, alpha: float, beta: float, gamma: float) -> Floats:
    """Return the matrix (2l + 1, 2l + 1) of a rotation by Euler angles, between real harmonics of degree l."""
    if l == 0:
        return np.ones((1, 1))
    m = np.arange(-l, l + 1)
    vectors = _spin_vectors(l)
    rotated = (vectors * np.exp(-1j * beta * m)) @ vectors.T
    sign = np.where((m > 0) & (m % 2 == 1), -1.0, 1.0)  # the harmonics here lack the Condon–Shortley phase
    rows = sign * np.exp(-1j * (alpha + np.pi / 2) * m)
    columns = sign * np.exp(-1j * (gamma - np.pi / 2) * m)
    full = rows[:, None] * rotated * columns
    half = _real_rows(full, l)
    result: Floats = _real_rows(half.conj().T, l).conj().T.real
    return np.ascontiguousarray(result)


def _real_rows(rows: Complexes, l: int) -> Complexes:
    """Convert rows for the complex harmonics m = −l … l of degree l to rows for the real harmonics.

    The new rows are c_0, then (c_m + c_−m)/√2 and i(c_m − c_−m)/√2 for m = 1 … l, with the old rows c.
    """
    above, below = rows[l + 1 :], rows[l - 1 :: -1] if l > 1 else rows[:1]
    return np.concatenate([rows[l : l + 1], (above + below) / np.sqrt(2), 1j * (above - below) / np.sqrt(2)])


def times_coordinates(coefficients: Complexes) -> Complexes:
    """Return harmonic coefficients (4, L, L) of f, xf, yf and zf up to degree L − 1, from those of f, (L + 1, L + 1).

    The recurrence is z Y_lm = ε_{l+1,m} Y_{l+1,m} + ε_lm Y_{l−1,m} with ε_lm = √((l² − m²)/(4l² − 1)). The recurrence
    of e^{±iφ} sin θ Y_lm is similar, with m ± 1.
    """
    backend, size = backend_for(coefficients), len(coefficients) - 1
    z, up, down = _coordinate_factors(size, backend)
    same, nothing = coefficients[:, :size], backend.zeros((1, size + 1), complex)
    concatenate = backend.xp.concatenate
    below, above = concatenate([nothing, coefficients[: size - 1]]), coefficients[1:]  # of l − 1 and of l + 1
    result: Complexes = backend.empty((4, size, size), complex)
    result[0] = same[:size]
    result[3] = z[0] * above[:, :size] + z[1] * below[:, :size]
    plus = down[0] * _lower(below) - down[1] * _lower(above)  # of (x + iy) f
    minus = up[0] * above[:, 1:] - up[1] * below[:, 1:]  # of (x − iy) f
    result[1], result[2] = (plus + minus) / 2, (plus - minus) / 2j
    return result


def _lower(coefficients: Complexes) -> Complexes:
    """Return harmonic coefficients c with the order shifted by one: column m holds c_{l,m−1}.

    Column 0 holds c_{l,−1} = −conj(c_{l,1}), with the Condon–Shortley sign that the factors of the recurrence assume.
    """
    xp = backend_for(coefficients).xp
    lower: Complexes = xp.concatenate([-coefficients[:, 1:2].conj(), coefficients[:, :-2]], axis=1)
    return lower


@lru_cache(maxsize=16)
def _coordinate_factors(size: int, backend: Backend) -> tuple[Floats, Floats, Floats]:
    """Return the factors of coefficients c of f in the harmonic coefficients [l, m] of zf, (x − iy)f and (x + iy)f.

    Each result is (2, size, size). The factors are those of c_{l+1,m} and c_{l−1,m} for zf, of c_{l+1,m+1} and
    −c_{l−1,m+1} for (x − iy)f, and of c_{l−1,m−1} and −c_{l+1,m−1} for (x + iy)f. All factors are 0 for m > l.
    """
    l, m = np.arange(size, dtype=float)[:, None], np.arange(size, dtype=float)[None, :]
    inside = m <= l
    low, high = np.maximum((2 * l - 1) * (2 * l + 1), 1), (2 * l + 1) * (2 * l + 3)

    def root(product: Floats, divisor: Floats) -> Floats:
        return np.where(inside, np.sqrt(np.maximum(product, 0.0) / divisor), 0.0)

    z = np.stack([root((l + 1) ** 2 - m * m, high), root(l * l - m * m, low)])
    up = np.stack([root((l + m + 1) * (l + m + 2), high), root((l - m) * (l - m - 1), low)])
    down = np.stack([root((l + m) * (l + m - 1), low), root((l - m + 1) * (l - m + 2), high)])
    return backend.to_device(z), backend.to_device(up), backend.to_device(down)
